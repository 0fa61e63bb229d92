//! Makes untrusted text safe to print: control sequences, characters that reorder or hide text, and
//! line separators are removed or made visible. Audit lines, the log, the command line and the
//! terminal UI all use this module, so that there is one list of characters. Data written to a file
//! or a pipe does not pass through here.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns whether a character can mislead a reader: it controls a terminal, changes the text
/// direction, separates lines, or is invisible.
pub fn is_deceptive(letter: char) -> bool {
    // Most text is ASCII, for which one comparison is enough.
    if letter.is_ascii() { letter.is_ascii_control() } else { letter.is_control() || is_invisible(letter) }
}

/// Unicode's Default_Ignorable_Code_Point, line separators, and interlinear annotation marks.
fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Invisible characters that ordinary text needs: they join letters or select the form of a
/// character. In a name they would make two names look the same, so only [`clean`] keeps them.
fn is_allowed_in_prose(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{200c}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}')
}

/// Removes every control sequence and escapes other deceptive characters, such as `\u{202e}`. Line
/// breaks and the characters that ordinary text needs are kept.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|letter| letter == '\n' || letter == '\t' || is_harmless(letter)) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.chars();
    // Searched once: otherwise a text with many unterminated sequences would be scanned to its end
    // for each of them.
    let last_end = text
        .rfind(is_string_terminator)
        .map_or(0, |at| at + 1)
        .max(text.rfind("\u{1b}\\").map_or(0, |at| at + 2));
    while let Some(letter) = rest.next() {
        let left = text.len() - rest.as_str().len();
        match letter {
            '\n' | '\t' => cleaned.push(letter),
            '\r' if rest.as_str().starts_with('\n') => {}
            '\u{1b}' => match escape_sequence_len(rest.as_str(), last_end.saturating_sub(left)) {
                Some(length) => rest = rest.as_str()[length..].chars(),
                None => push_visible(&mut cleaned, letter),
            },
            '\u{9b}' => match csi_sequence_len(rest.as_str()) {
                Some(length) => rest = rest.as_str()[length..].chars(),
                None => push_visible(&mut cleaned, letter),
            },
            letter if is_harmless(letter) => cleaned.push(letter),
            letter => push_visible(&mut cleaned, letter),
        }
    }
    Cow::Owned(cleaned)
}

/// Like [`clean`], but on one line: for names, titles and table cells.
pub fn clean_line(text: &str) -> String {
    let cleaned = clean(text);
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    words.join(" ")
}

/// Like [`clean_line`], truncated: for untrusted text of any length, such as the reason of an
/// error.
pub fn clean_excerpt(text: &str, longest: usize) -> String {
    clean_line(text).chars().take(longest).collect()
}

/// A name, or a value on one log line, with every deceptive character escaped, so that two
/// different names never look the same.
pub fn clean_name(text: &str) -> Cow<'_, str> {
    if !text.contains(is_deceptive) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 8);
    for letter in text.chars() {
        match letter {
            '\n' => cleaned.push_str("\\n"),
            '\t' => cleaned.push_str("\\t"),
            letter if is_deceptive(letter) => push_visible(&mut cleaned, letter),
            letter => cleaned.push(letter),
        }
    }
    Cow::Owned(cleaned)
}

/// JSON on one line, with every deceptive character escaped. The JSON value stays the same. Control
/// characters outside strings are whitespace.
pub fn escape_json(json: &str) -> Cow<'_, str> {
    if !json.contains(is_deceptive) {
        return Cow::Borrowed(json);
    }
    let mut text = String::with_capacity(json.len() + 16);
    for letter in json.chars() {
        match letter {
            '\n' | '\r' | '\t' => text.push(' '),
            letter if is_deceptive(letter) => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    let _ = write!(text, "\\u{unit:04x}");
                }
            }
            letter => text.push(letter),
        }
    }
    Cow::Owned(text)
}

fn push_visible(cleaned: &mut String, letter: char) {
    cleaned.extend(letter.escape_unicode());
}

fn is_harmless(letter: char) -> bool {
    !is_deceptive(letter) || is_allowed_in_prose(letter)
}

/// Terminators of a control string, in addition to `ESC \`.
fn is_string_terminator(letter: char) -> bool {
    matches!(letter, '\u{7}' | '\u{9c}')
}

/// Returns the length of the control sequence at the start, not counting the escape character.
/// Control strings end within `last_end`, if at all.
fn escape_sequence_len(rest: &str, last_end: usize) -> Option<usize> {
    let first = rest.chars().next()?;
    match first {
        '[' => csi_sequence_len(&rest[1..]).map(|length| length + 1),
        // Titles, links and other control strings, up to a bell or a string terminator.
        ']' | 'P' | 'X' | '^' | '_' if last_end > 0 => {
            let end = rest
                .find(is_string_terminator)
                .map(|at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
            let other = rest.find("\u{1b}\\").map(|at| at + 2);
            match (end, other) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            }
        }
        ']' | 'P' | 'X' | '^' | '_' => None,
        ' '..='/' => rest.chars().nth(1).filter(char::is_ascii).map(|_| 2),
        '0'..='~' => Some(1),
        _ => None,
    }
}

/// Finds the end of a sequence after `ESC [`: parameters, then one letter.
fn csi_sequence_len(rest: &str) -> Option<usize> {
    let at = rest.find(|letter: char| !matches!(letter, ' '..='?'))?;
    rest[at..].starts_with(|letter: char| matches!(letter, '@'..='~')).then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{clean, clean_line, clean_name, escape_json, is_deceptive};

    #[test]
    fn control_sequences_are_taken_out() {
        for (dirty, cleaned) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}rest", "rest"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}2Jall", "all"),
            ("\u{1b}Pq#0\u{1b}\\after", "after"),
            ("\u{1b}creset", "reset"),
            ("\u{1b}(Bascii", "ascii"),
        ] {
            assert_eq!(clean(dirty), cleaned, "{dirty:?}");
        }
    }

    #[test]
    fn what_is_left_of_control_characters_can_be_seen() {
        for (dirty, cleaned) in [
            ("a\u{8}b\u{0}c\u{7f}d\u{85}e", "a\\u{8}b\\u{0}c\\u{7f}d\\u{85}e"),
            ("user\u{202e}gpj.exe\u{2066}", "user\\u{202e}gpj.exe\\u{2066}"),
            ("zero\u{200b}width\u{feff}", "zero\\u{200b}width\\u{feff}"),
            ("never closed \u{1b}]0;title", "never closed \\u{1b}]0;title"),
            ("cut \u{1b}[31", "cut \\u{1b}[31"),
            ("over\rwritten", "over\\u{d}written"),
        ] {
            assert_eq!(clean(dirty), cleaned, "{dirty:?}");
        }
    }

    #[test]
    fn a_text_full_of_beginnings_takes_no_longer_than_another() {
        let dirty = "\u{1b}]0;".repeat(300_000);
        assert_eq!(clean(&dirty).len(), 300_000 * "\\u{1b}]0;".len());
        assert_eq!(clean(&format!("{dirty}\u{7}after")), "after");
    }

    #[test]
    fn ordinary_text_of_all_scripts_stays() {
        for text in ["two\nlines\tand a tab", "عربي עברית 日本語 👩‍👩‍👧 é", "", "a\u{a0}b"]
        {
            assert_eq!(clean(text), text);
        }
        assert_eq!(clean("windows\r\nlines"), "windows\nlines");
        assert_eq!(clean_line(" two\n  lines\t"), "two lines");
        assert_eq!(clean_name("a\nb c\u{1b}[1m"), "a\\nb c\\u{1b}[1m");
    }

    /// Every character that reorders, hides or ends text, by group.
    const DECEPTIVE: &str = "\u{0}\u{1b}\u{7f}\u{85}\u{9b}\u{61c}\u{200b}\u{200c}\u{200d}\u{200e}\u{200f}\u{2028}\u{2029}\
        \u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2060}\u{2066}\u{2067}\u{2068}\u{2069}\u{ad}\u{34f}\u{115f}\u{180e}\
        \u{3164}\u{fe0f}\u{feff}\u{ffa0}\u{fffa}\u{1d173}\u{e0041}\u{e0100}";

    #[test]
    fn a_name_shows_every_character_that_reorders_or_hides_text() {
        for letter in DECEPTIVE.chars() {
            assert!(is_deceptive(letter), "{letter:?}");
            assert_eq!(clean_name(&format!("a{letter}b")), format!("a{}b", letter.escape_unicode()));
        }
        for letter in "aé\u{a0}日👩".chars() {
            assert!(!is_deceptive(letter), "{letter:?}");
        }
    }

    #[test]
    fn escaped_json_is_the_same_value_without_a_deceptive_character() {
        let value = json!({DECEPTIVE: [format!("x{DECEPTIVE}\n\t\r\"\\é👩"), 1]});
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap().replace('\n', "\r\n\t")]
        {
            let escaped = escape_json(&text);
            assert_eq!(escaped.find(is_deceptive), None, "{escaped}");
            assert_eq!(escaped.find(|letter| DECEPTIVE.contains(letter)), None, "{escaped}");
            assert_eq!(serde_json::from_str::<Value>(&escaped).unwrap(), value);
        }
        assert_eq!(escape_json(r#"{"a":"é"}"#), r#"{"a":"é"}"#);
    }
}
