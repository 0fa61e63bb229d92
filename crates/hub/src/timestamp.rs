//! Points in time as RFC 3339 writes them, so that records, answers and settings agree on the form.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: i64 = 86_400;

/// A point in time. Written in UTC with milliseconds: `2024-01-15T10:30:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp(pub SystemTime);

impl Timestamp {
    pub fn now() -> Self {
        Self(SystemTime::now())
    }

    /// Whether this lies in the past.
    pub fn is_over(self) -> bool {
        self.0 <= SystemTime::now()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = match self.0.duration_since(UNIX_EPOCH) {
            Ok(since) => (i64::try_from(since.as_secs()).unwrap_or(i64::MAX / 2), since.subsec_millis()),
            // Nobody has clocks from before that; what comes out is at least a time.
            Err(_) => (0, 0),
        };
        let (year, month, day) = date(seconds.div_euclid(DAY));
        let second = seconds.rem_euclid(DAY);
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// The text is no time of RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a time is written like 2027-01-31T12:00:00Z, or with an offset such as +02:00")]
pub struct NoTimestamp;

impl FromStr for Timestamp {
    type Err = NoTimestamp;

    fn from_str(text: &str) -> Result<Self, NoTimestamp> {
        parse(text).ok_or(NoTimestamp)
    }
}

fn parse(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = bytes.get(from..to)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    };
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let punctuated = is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":");
    // A leap second is taken as the one before it.
    let fine = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !punctuated || !fine {
        return None;
    }
    let mut at = 19;
    let mut nanos = 0;
    if is(at, b".") {
        let digits = bytes[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let kept = digits.min(9);
        nanos = number(at + 1, at + 1 + kept)? * 10_i64.pow(u32::try_from(9 - kept).ok()?);
        at += 1 + digits;
    }
    let offset = match bytes.get(at)? {
        b'Z' | b'z' if bytes.len() == at + 1 => 0,
        sign @ (b'+' | b'-') if bytes.len() == at + 6 && is(at + 3, b":") => {
            let (hours, minutes) = (number(at + 1, at + 3)?, number(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let offset = hours * 3600 + minutes * 60;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    let seconds = days(year, month, day) * DAY + hour * 3600 + minute * 60 + second.min(59) - offset;
    let since = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(nanos).ok()?);
    Some(Timestamp(UNIX_EPOCH + since))
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970. Years begin in March here, so that the odd day of a leap year comes last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The other way round.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year + era * 400 + later, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::proptest;

    use super::{NoTimestamp, Timestamp};

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
        assert_eq!("2016-12-31T23:59:60Z".parse(), Ok(at(1_483_228_799, 0)));
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
            assert_eq!(text.parse::<Timestamp>(), Err(NoTimestamp), "{text}");
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
