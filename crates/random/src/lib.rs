//! Random bytes from the operating system, for everything that must be unguessable: tokens, keys,
//! and the IDs of sessions, calls and parked calls. A failure is always an error and never yields a
//! constant. Tests can simulate a failure.

use std::cell::Cell;
use std::marker::PhantomData;

use data_encoding::HEXLOWER;

/// The operating system returned no random bytes. The operation that needs them must fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system's random number generator failed")]
pub struct RandomError;

/// Fills the whole buffer. After an error, its contents must not be used.
pub fn fill(buffer: &mut [u8]) -> Result<(), RandomError> {
    if OUTAGES.get() > 0 {
        return Err(RandomError);
    }
    getrandom::fill(buffer).map_err(|_| RandomError)
}

/// Returns an array of random bytes.
pub fn bytes<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// Returns 128 random bits as 32 hexadecimal digits.
pub fn hex_id() -> Result<String, RandomError> {
    Ok(HEXLOWER.encode(&bytes::<16>()?))
}

thread_local! {
    static OUTAGES: Cell<usize> = const { Cell::new(0) };
}

/// A simulated failure of the random source on the current thread, until dropped. It is limited to
/// one thread because tests share their process with other tests.
#[derive(Debug)]
pub struct SimulatedOutage {
    /// Only the thread that started the outage may end it.
    _not_send: PhantomData<*const ()>,
}

impl SimulatedOutage {
    #[must_use = "the outage ends when this is dropped"]
    pub fn begin() -> Self {
        OUTAGES.set(OUTAGES.get() + 1);
        Self { _not_send: PhantomData }
    }
}

impl Drop for SimulatedOutage {
    fn drop(&mut self) {
        OUTAGES.set(OUTAGES.get().saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::{RandomError, SimulatedOutage, bytes, fill, hex_id};

    #[test]
    fn ids_have_128_bits_and_are_unique() {
        let (one, two) = (hex_id().unwrap(), hex_id().unwrap());
        assert_ne!(one, two);
        assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()));
        assert_ne!(bytes::<32>().unwrap(), [0; 32]);
    }

    #[test]
    fn an_outage_is_an_error_and_never_zeros() {
        let outage = SimulatedOutage::begin();
        assert_eq!(fill(&mut [0; 4]), Err(RandomError));
        assert_eq!(bytes::<16>(), Err(RandomError));
        assert_eq!(hex_id(), Err(RandomError));
        assert!(std::thread::spawn(|| hex_id().is_ok()).join().unwrap(), "other threads are not affected");
        drop(outage);
        assert!(hex_id().is_ok());
    }
}
