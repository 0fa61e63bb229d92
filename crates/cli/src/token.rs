//! Tokens that nobody guesses.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// 256 bits from the system.
pub(crate) fn fresh() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes)
        .map_err(|error| anyhow::anyhow!("the system gives no random numbers: {error}"))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}
