//! The identifier of a call, used by fronts, events and records.

use std::fmt;
use std::str::FromStr;

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use toolyard_random::RandomError;

use crate::error::{ErrorKind, HubError};

/// 128 random bits, written as 32 hexadecimal digits. It cannot be guessed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExecutionId([u8; 16]);

impl ExecutionId {
    /// Generates a new ID. Fails if the system has no random numbers, because IDs must be
    /// unpredictable.
    pub fn generate() -> Result<Self, RandomError> {
        STOCK.lock().take().map(Self)
    }

    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The external form, used by callers, hooks and `GET /mcp/executions/{id}`: `exec-` and the
    /// digits.
    pub fn public_id(self) -> String {
        format!("exec-{self}")
    }

    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// Buffered random bits for the next IDs. They are drawn in batches because the system call costs
/// more than the rest of creating an ID.
static STOCK: Mutex<IdPool> = Mutex::new(IdPool { ids: [[0; 16]; 64], left: 0 });

struct IdPool {
    ids: [[u8; 16]; 64],
    left: usize,
}

impl IdPool {
    fn take(&mut self) -> Result<[u8; 16], RandomError> {
        if self.left == 0 {
            toolyard_random::fill(self.ids.as_flattened_mut())?;
            self.left = self.ids.len();
        }
        self.left -= 1;
        self.ids.get(self.left).copied().ok_or(RandomError)
    }
}

impl From<RandomError> for HubError {
    fn from(error: RandomError) -> Self {
        Self::new(ErrorKind::Bug, error.to_string())
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        HEXLOWER.encode_display(&self.0).fmt(f)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecutionId({self})")
    }
}

/// The text is not 32 lowercase hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an execution ID must be 32 lowercase hexadecimal digits")]
pub struct InvalidExecutionId;

impl FromStr for ExecutionId {
    type Err = InvalidExecutionId;

    fn from_str(text: &str) -> Result<Self, InvalidExecutionId> {
        if text.len() != 32 {
            return Err(InvalidExecutionId);
        }
        let mut id = [0; 16];
        HEXLOWER.decode_mut(text.as_bytes(), &mut id).map_err(|_| InvalidExecutionId)?;
        Ok(Self(id))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use toolyard_random::{RandomError, SimulatedOutage};

    use super::{ExecutionId, IdPool, InvalidExecutionId};

    #[test]
    fn an_id_is_read_back_as_it_was_written() {
        let id = ExecutionId::from_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        assert_eq!(id.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!("000102030405060708090a0b0c0d0eff".parse(), Ok(id));
        for wrong in
            ["", "0", "+00102030405060708090a0b0c0d0eff", "000102030405060708090A0B0C0D0EFF", &"é".repeat(16)]
        {
            assert_eq!(wrong.parse::<ExecutionId>(), Err(InvalidExecutionId), "{wrong}");
        }
    }

    #[test]
    fn no_two_are_alike() {
        let many: HashSet<ExecutionId> = (0..1_000).map(|_| ExecutionId::generate().unwrap()).collect();
        assert_eq!(many.len(), 1_000);
    }

    #[test]
    fn without_random_numbers_no_id_is_generated() {
        let _outage = SimulatedOutage::begin();
        let mut stock = IdPool { ids: [[0; 16]; 64], left: 0 };
        assert_eq!(stock.take(), Err(RandomError));
        // Random bits that were drawn earlier are still usable.
        stock.left = 1;
        assert!(stock.take().is_ok());
        assert_eq!(stock.take(), Err(RandomError));
    }
}
