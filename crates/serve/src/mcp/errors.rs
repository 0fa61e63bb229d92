//! Errors of the hub in the words of MCP: the one table of this front.

use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{Error, Kind, Origin};
use toolyard_wire::{Era, Raw, RpcError, Version, code};

/// What was asked for. Only a tool's result can say that it failed; everything else needs a JSON-RPC error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asked {
    Tool,
    Other,
}

pub(super) fn answer(error: &Error, version: Version, asked: Asked) -> Result<Raw, RpcError> {
    let modern = version.era() == Era::Modern;
    if let Some(origin) = error.origin() {
        return Err(repeated(origin, modern));
    }
    let code = match error.kind() {
        Kind::UnknownTool | Kind::UnknownPrompt => code::INVALID_PARAMS,
        Kind::UnknownResource if modern => code::INVALID_PARAMS,
        Kind::UnknownResource => code::RESOURCE_NOT_FOUND,
        Kind::InvalidArguments if version >= Version::V2025_11_25 => {
            return told(error, asked, code::INVALID_PARAMS);
        }
        Kind::InvalidArguments => code::INVALID_PARAMS,
        // The door answers these with HTTP 401 and 413; here only stdio is left.
        Kind::Unauthenticated | Kind::TooLarge => code::INVALID_REQUEST,
        Kind::Forbidden
        | Kind::RateLimited
        | Kind::TimedOut
        | Kind::Cancelled
        | Kind::NotConnected
        | Kind::CannotConnect
        | Kind::ConnectionLost
        | Kind::ToolFailed => return told(error, asked, code::INTERNAL),
        Kind::ClientCannot if modern => {
            let needed = error.details().cloned().unwrap_or_else(|| json!({}));
            let data = json!({"requiredCapabilities": needed});
            return Err(RpcError::new(code::MISSING_CAPABILITY, error.sentence()).with_data(data));
        }
        Kind::ClientCannot => return told(error, asked, code::INVALID_REQUEST),
        Kind::Bug => code::INTERNAL,
    };
    Err(rpc(code, error))
}

/// A caller that holds too much, or asks too often, for something that is no tool.
pub(super) fn refused(error: &Error) -> RpcError {
    // The request is fine; the status stays that of an answer.
    let data =
        error.wait().map(|wait| json!({"retryAfterMs": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)}));
    let refused = RpcError::new(code::INTERNAL, error.sentence()).with_status(200);
    data.into_iter().fold(refused, RpcError::with_data)
}

/// A source's own error, in the codes of the client's era.
fn repeated(origin: &Origin, modern: bool) -> RpcError {
    let code = match origin.code {
        code::RESOURCE_NOT_FOUND if modern => code::INVALID_PARAMS,
        other => other,
    };
    let error = RpcError::new(code, origin.message.clone());
    // Only this one says something about the request itself; the others are about what it led to.
    let error = if code == code::MISSING_CAPABILITY { error } else { error.with_status(200) };
    origin.data.iter().cloned().fold(error, RpcError::with_data)
}

/// As a result that says it failed, where there is one.
fn told(error: &Error, asked: Asked, code: i64) -> Result<Raw, RpcError> {
    match asked {
        Asked::Tool => Ok(to_raw(&json!({
            "content": [{"type": "text", "text": error.sentence()}],
            "isError": true,
        }))),
        Asked::Other => Err(rpc(code, error)),
    }
}

fn rpc(code: i64, error: &Error) -> RpcError {
    let rpc = RpcError::new(code, error.sentence());
    match error.details() {
        Some(details) if *details != Value::Null => rpc.with_data(details.clone()),
        _ => rpc,
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use toolyard_hub::{Error, Kind};
    use toolyard_wire::Version;

    use super::{Asked, answer};

    #[test]
    fn every_kind_of_error_has_its_words() {
        let mut table = String::new();
        for kind in Kind::ALL {
            for (version, asked) in [
                (Version::V2025_06_18, Asked::Tool),
                (Version::V2025_11_25, Asked::Tool),
                (Version::V2026_07_28, Asked::Tool),
                (Version::V2025_11_25, Asked::Other),
                (Version::V2026_07_28, Asked::Other),
            ] {
                let words = match answer(&Error::new(kind, "x"), version, asked) {
                    Ok(_) => "result with isError".to_owned(),
                    Err(error) => error.code.to_string(),
                };
                writeln!(table, "{:<26} {version} {asked:<5?} {words}", kind.as_str()).unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }
}
