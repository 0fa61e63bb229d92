//! Durations and sizes as people write them: `500ms`, `2s`, `10kB`.

use std::time::Duration;

/// Parses a duration such as `500ms`, `1.5s`, `2m` or `1h`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split_unit(text)?;
    let seconds = match unit {
        "ms" => number / 1000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(seconds).ok().filter(|duration| *duration <= Duration::from_secs(24 * 3600))
}

/// Parses a size such as `512`, `10kB` or `2MiB`.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let (number, unit) = split_unit(text)?;
    let factor = match unit {
        "" | "B" => 1.0,
        "kB" | "KB" => 1e3,
        "MB" => 1e6,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * factor;
    // Within this range, every integer is a float.
    (bytes.fract() == 0.0 && bytes <= 2f64.powi(53)).then_some(bytes as u64)
}

fn split_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{parse_duration, parse_size};

    #[test]
    fn durations_have_a_unit() {
        let times = ["500ms", "1.5s", "2m", "1 h", "0s"].map(|text| parse_duration(text).unwrap());
        assert_eq!(times.map(|time| time.as_millis()), [500, 1500, 120_000, 3_600_000, 0]);
        for wrong in ["", "5", "s", "-1s", "1d", "1e9s", "25h", "1.2.3s"] {
            assert_eq!(parse_duration(wrong), None::<Duration>, "{wrong}");
        }
    }

    #[test]
    fn sizes_may_have_a_unit() {
        assert_eq!(["512", "10kB", "2MiB"].map(parse_size), [Some(512), Some(10_000), Some(2 << 20)]);
        assert_eq!(["", "-1", "1XB", "0.5", "1e30"].map(parse_size), [None; 5]);
    }
}
