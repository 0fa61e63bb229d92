//! Text of strangers on its way to a terminal: what the terminal would obey is taken out or made visible. Nothing else
//! is changed, and what goes into a file or a pipe as data does not come through here. The one place for it: the command
//! line has no other.

use std::borrow::Cow;

/// The text with every control sequence taken out. Other control characters, and those that turn the direction of
/// text or hide in it, become visible: `\u{202e}`. Lines stay lines.
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.chars().all(|letter| letter == '\n' || letter == '\t' || is_harmless(letter)) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text.chars();
    // Looked for once: a text full of beginnings without an end would be read to its end for each of them.
    let last_end =
        text.rfind(is_end).map_or(0, |at| at + 1).max(text.rfind("\u{1b}\\").map_or(0, |at| at + 2));
    while let Some(letter) = rest.next() {
        let left = text.len() - rest.as_str().len();
        match letter {
            '\n' | '\t' => cleaned.push(letter),
            '\r' if rest.as_str().starts_with('\n') => {}
            '\u{1b}' => match after_escape(rest.as_str(), last_end.saturating_sub(left)) {
                Some(length) => rest = rest.as_str()[length..].chars(),
                None => push_visible(&mut cleaned, letter),
            },
            '\u{9b}' => match parameters_end(rest.as_str()) {
                Some(length) => rest = rest.as_str()[length..].chars(),
                None => push_visible(&mut cleaned, letter),
            },
            letter if is_harmless(letter) => cleaned.push(letter),
            letter => push_visible(&mut cleaned, letter),
        }
    }
    Cow::Owned(cleaned)
}

/// The same on one line: for names, titles, and what stands in a table.
pub fn clean_line(text: &str) -> String {
    let cleaned = clean(text);
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    words.join(" ")
}

/// A name with everything visible that could hide in it: two names that differ must not look the same.
pub fn clean_name(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => cleaned.push_str("\\n"),
            '\t' => cleaned.push_str("\\t"),
            letter if is_harmless(letter) => cleaned.push(letter),
            letter => push_visible(&mut cleaned, letter),
        }
    }
    cleaned
}

fn push_visible(cleaned: &mut String, letter: char) {
    cleaned.extend(letter.escape_unicode());
}

fn is_harmless(letter: char) -> bool {
    !letter.is_control() && !deceives(letter)
}

/// Marks that turn the direction of text, separate lines, or cannot be seen at all.
fn deceives(letter: char) -> bool {
    matches!(
        letter,
        '\u{061c}'
            | '\u{200b}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// What ends a string for the terminal, beside `ESC \`.
fn is_end(letter: char) -> bool {
    matches!(letter, '\u{7}' | '\u{9c}')
}

/// How long the sequence is that this begins with, the escape before it not counted. Strings end within `last_end`, if at
/// all.
fn after_escape(rest: &str, last_end: usize) -> Option<usize> {
    let first = rest.chars().next()?;
    match first {
        '[' => parameters_end(&rest[1..]).map(|length| length + 1),
        // Titles, links and other strings, up to a bell or a string terminator.
        ']' | 'P' | 'X' | '^' | '_' if last_end > 0 => {
            let end = rest.find(is_end).map(|at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
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

/// The end of what follows `ESC [`: parameters, then one letter.
fn parameters_end(rest: &str) -> Option<usize> {
    let at = rest.find(|letter: char| !matches!(letter, ' '..='?'))?;
    rest[at..].starts_with(|letter: char| matches!(letter, '@'..='~')).then_some(at + 1)
}

#[cfg(test)]
mod tests {
    use super::{clean, clean_line, clean_name};

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
}
