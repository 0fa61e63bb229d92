//! Values of rows.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, accepts, to_sql_checked};
use toolyard_hub::ExecutionId;

/// The latest time that is passed to the database, in microseconds: the end of the year 9999.
const LATEST: u64 = 253_402_300_799_999_999;

/// The ID of a call as a UUID. PostgreSQL also finds it by the 32 digits that other records have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowId(pub(super) ExecutionId);

impl ToSql for RowId {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.put_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    accepts!(UUID);
    to_sql_checked!();
}

impl<'a> FromSql<'a> for RowId {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(ExecutionId::from_bytes(raw.try_into()?)))
    }

    accepts!(UUID);
}

/// Returns text that PostgreSQL can store: it has no zero character.
pub(super) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns the time of a cursor or a filter, which can be any number.
pub(super) fn time_from_micros(micros: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0).min(LATEST))
}

#[cfg(test)]
mod tests {
    use bytes::BytesMut;
    use tokio_postgres::types::{FromSql, ToSql, Type};
    use toolyard_hub::ExecutionId;

    use super::{RowId, storable, time_from_micros};

    #[test]
    fn an_id_is_read_as_it_was_written() {
        let id = RowId(ExecutionId::from_bytes([9; 16]));
        let mut bytes = BytesMut::new();
        id.to_sql(&Type::UUID, &mut bytes).unwrap();
        assert_eq!(RowId::from_sql(&Type::UUID, &bytes).unwrap(), id);
        assert!(RowId::from_sql(&Type::UUID, b"short").is_err());
    }

    #[test]
    fn no_text_and_no_time_is_refused_by_the_database() {
        assert_eq!(storable("a\0b"), "a\u{fffd}b");
        let latest = time_from_micros(i64::MAX);
        latest.to_sql(&Type::TIMESTAMPTZ, &mut BytesMut::new()).unwrap();
        assert_eq!(time_from_micros(-1), std::time::UNIX_EPOCH);
    }
}
