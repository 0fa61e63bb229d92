//! Sanitizes, measures, clips and wraps untrusted text. All text from servers passes through
//! [`clean`] before it reaches the screen.

use std::borrow::Cow;

use toolyard_hub::printable;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Sanitizes text for a single line; line breaks become spaces.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(clean_lines(text).replace('\n', " "))
}

/// Sanitizes text and keeps its line breaks.
pub(crate) fn clean_lines(text: &str) -> String {
    printable::clean(text).replace('\t', "    ")
}

/// Returns the number of columns that a text occupies.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// Returns the beginning that fits, with an ellipsis if something was cut.
pub(crate) fn clip(text: &str, columns: usize) -> Cow<'_, str> {
    if text.len() <= columns || width(text) <= columns {
        return Cow::Borrowed(text);
    }
    if columns == 0 {
        return Cow::Borrowed("");
    }
    Cow::Owned(format!("{}…", &text[..fitting_len(text, columns - 1)]))
}

/// Clips text and pads it with spaces: a table cell.
pub(crate) fn cell(text: &str, columns: usize) -> String {
    let clipped = clip(text, columns);
    let missing = columns.saturating_sub(width(&clipped));
    format!("{clipped}{}", " ".repeat(missing))
}

/// Returns how many bytes of the beginning fit into these columns.
pub(crate) fn fitting_len(text: &str, columns: usize) -> usize {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > columns {
            return at;
        }
    }
    text.len()
}

/// Returns the nearest character boundary at or before this byte.
pub(crate) fn floor_char_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Returns the beginning of an overlong text.
pub(crate) fn truncate(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..floor_char_boundary(text, bytes)]))
}

/// Wraps text to the given columns, between words where possible.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(1);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut rest = paragraph.trim_end();
        loop {
            if width(rest) <= columns {
                lines.push(rest.to_owned());
                break;
            }
            let most = fitting_len(rest, columns).max(rest.chars().next().map_or(1, char::len_utf8));
            // The break may be the very space after the last word that fits.
            let room = rest[most..].starts_with(' ').then_some(most);
            let indent = rest.len() - rest.trim_start().len();
            let cut = room.or_else(|| rest[..most].rfind(' ').filter(|at| *at > indent)).unwrap_or(most);
            lines.push(rest[..cut].trim_end().to_owned());
            rest = rest[cut..].trim_start_matches(' ');
            if rest.is_empty() {
                break;
            }
        }
    }
    lines
}

/// Formats a number of bytes.
pub(crate) fn format_size(bytes: usize) -> String {
    #[expect(clippy::cast_precision_loss, reason = "one decimal is shown")]
    let of = |unit: usize| bytes as f64 / unit as f64;
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", of(1_000)),
        _ => format!("{:.1} MB", of(1_000_000)),
    }
}

/// Formats a duration.
pub(crate) fn format_duration(time: std::time::Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Formats a count with its noun, plural if needed.
pub(crate) fn format_count(number: usize, word: &str) -> String {
    format!("{number} {word}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::{cell, clean, clean_lines, clip, wrap};

    #[test]
    fn control_sequences_are_taken_out_and_breaks_become_spaces() {
        for (dirty, expected) in [
            ("plain", "plain"),
            ("a\u{1b}[31mred\u{1b}[0m", "ared"),
            ("\u{1b}]52;c;Zm9v\u{1b}\\after", "after"),
            ("a\r\nb\tc\u{8}", "a b    c\\u{8}"),
            ("gpj\u{202e}exe", "gpj\\u{202e}exe"),
            ("שלום 👩‍👩‍👧 日本", "שלום 👩‍👩‍👧 日本"),
        ] {
            assert_eq!(clean(dirty), expected, "{dirty:?}");
        }
        assert_eq!(clean_lines("a\r\n\u{1b}[1mb"), "a\nb");
    }

    #[test]
    fn text_is_measured_in_columns() {
        assert_eq!(clip("日本語", 6), "日本語");
        assert_eq!(clip("日本語", 5), "日本…");
        assert_eq!(clip("abc", 0), "");
        assert_eq!(cell("日", 4), "日  ");
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("a\n\nb", 5), ["a", "", "b"]);
        assert_eq!(wrap("日本語", 1), ["日", "本", "語"]);
        assert_eq!(wrap("", 5), [""]);
    }
}
