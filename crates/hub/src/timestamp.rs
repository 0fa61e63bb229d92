//! Points in time in RFC 3339 format, so that records, responses and settings use the same format.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use chrono::{DateTime, SecondsFormat, Utc};

/// A point in time, written in UTC with milliseconds: `2024-01-15T10:30:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub SystemTime);

impl Timestamp {
    pub fn now() -> Self {
        Self(SystemTime::now())
    }

    /// Returns whether this time is in the past.
    pub fn is_past(self) -> bool {
        self.0 <= SystemTime::now()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&DateTime::<Utc>::from(self.0).to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

/// The text is not an RFC 3339 time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected an RFC 3339 time such as 2027-01-31T12:00:00Z or 2027-01-31T12:00:00+02:00")]
pub struct InvalidTimestamp;

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let read = DateTime::parse_from_rfc3339(text).map_err(|_| InvalidTimestamp)?;
        // Earlier times do not occur here, and not every clock can represent them.
        if read.timestamp() < 0 { Err(InvalidTimestamp) } else { Ok(Self(read.into())) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::proptest;

    use super::{InvalidTimestamp, Timestamp};

    fn at(seconds: u64, millis: u64) -> Timestamp {
        Timestamp(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(millis))
    }

    #[test]
    fn times_are_written_as_the_standard_says() {
        for (time, text) in [
            (at(0, 0), "1970-01-01T00:00:00.000Z"),
            (at(951_782_399, 999), "2000-02-28T23:59:59.999Z"),
            (at(951_782_400, 0), "2000-02-29T00:00:00.000Z"),
            (at(1_705_314_600, 7), "2024-01-15T10:30:00.007Z"),
            (at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(time.to_string(), text);
            assert_eq!(text.parse(), Ok(time));
        }
    }

    #[test]
    fn times_are_read_with_offsets_and_fractions_and_nothing_else_is() {
        let noon = at(1_705_320_000, 0);
        for text in
            ["2024-01-15T12:00:00Z", "2024-01-15t14:00:00.000000000000+02:00", "2024-01-15 06:30:00-05:30"]
        {
            assert_eq!(text.parse(), Ok(noon), "{text}");
        }
        assert_eq!("2024-01-15T12:00:00.25Z".parse(), Ok(at(1_705_320_000, 250)));
        assert_eq!("2016-12-31T23:59:60Z".parse(), Ok(at(1_483_228_800, 0)));
        for text in [
            "",
            "2024-01-15",
            "2024-01-15T12:00:00",
            "2024-02-30T12:00:00Z",
            "2023-02-29T12:00:00Z",
            "2024-13-01T12:00:00Z",
            "2024-01-15T24:00:00Z",
            "2024-01-15T12:00:00.Z",
            "2024-01-15T12:00:00Z ",
            "2024-01-15T12:00:00+2:00",
            "1969-12-31T23:59:59Z",
            "２024-01-15T12:00:00Z",
        ] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(seconds in 0_u64..250_000_000_000, millis in 0_u64..1000) {
            let time = at(seconds, millis);
            assert_eq!(time.to_string().parse(), Ok(time));
        }

        #[test]
        fn any_text_can_be_tried(text in ".*") {
            let _ = text.parse::<Timestamp>();
        }
    }
}
