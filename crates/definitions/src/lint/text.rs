//! Texts that models read: instructions that do not belong there, parts that people do not see, and
//! secrets.

mod injection;
mod secret;

use serde_json::Value;
use toolyard_hub::printable::is_deceptive;

use self::injection::find_injection;
use self::secret::find_secret;
use super::rules::{NAME_INVISIBLE, NAME_MIXED_SCRIPTS, TEXT_HIDDEN, TEXT_INJECTION, TEXT_SECRET};
use super::{LintItem, Linter};

/// Longer texts are checked only up to here.
const LONGEST: usize = 262_144;
/// Text after this much white space on one line is out of sight.
const WIDE_SPACE: usize = 120;
/// Text after this many empty lines is out of sight.
const EMPTY_LINES: usize = 25;
/// Letters of other scripts that look like Latin letters.
const LOOKALIKES: &str = "аеорсухіјѕһԁɡӏАВЕКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧανορ";

pub(super) fn check_item(linter: &mut Linter<'_>, item: &LintItem<'_>) {
    let path = format!("/{}", item.kind.id_key());
    if let Some(letter) = item.id.chars().find(|letter| is_deceptive(*letter)) {
        let message =
            format!("the name contains the character U+{:04X}, which people do not see", letter as u32);
        linter.report(&NAME_INVISIBLE, item, path.clone(), message);
    }
    if let Some(letter) = find_lookalike(&item.id) {
        let message = format!(
            "the name contains {letter:?} (U+{:04X}), which looks like a Latin letter",
            letter as u32
        );
        linter.report(&NAME_MIXED_SCRIPTS, item, path, message);
    }
    for (key, value) in &item.members {
        if key == item.kind.id_key() {
            continue;
        }
        visit(value, &format!("/{}", escape(key)), &mut |text, path| {
            check_text(linter, Some(item), text, path)
        });
    }
}

pub(super) fn check_instructions(linter: &mut Linter<'_>, text: &str) {
    check_text(linter, None, text, "/instructions");
}

/// Calls `check` for every string of a value, and for every name of a property.
fn visit(value: &Value, path: &str, check: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => check(text, path),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| visit(item, &format!("{path}/{index}"), check));
        }
        Value::Object(members) => {
            for (key, value) in members {
                let path = format!("{path}/{}", escape(key));
                check(key, &path);
                visit(value, &path, check);
            }
        }
        _ => {}
    }
}

fn escape(key: &str) -> String {
    key.chars().take(200).collect::<String>().replace('~', "~0").replace('/', "~1")
}

fn check_text(linter: &mut Linter<'_>, item: Option<&LintItem<'_>>, text: &str, path: &str) {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    let mut report = |rule, message: String| match item {
        Some(item) => linter.report(rule, item, path, message),
        None => linter.report_server(rule, path, message),
    };
    // A pattern or an example value is not read as prose.
    let is_prose = text.contains(' ');
    if let Some(why) = find_injection(text).filter(|_| is_prose) {
        report(&TEXT_INJECTION, why);
    }
    if let Some(why) = find_hidden(text) {
        report(&TEXT_HIDDEN, why);
    }
    if let Some(what) = find_secret(text) {
        report(&TEXT_SECRET, format!("the text contains what looks like {what}"));
    }
}

/// Finds a part of a text that people do not see.
fn find_hidden(text: &str) -> Option<String> {
    let hidden = |letter: char| {
        format!("the text contains the character U+{:04X}, which people do not see", letter as u32)
    };
    let mut before = ' ';
    let mut in_flag = false;
    for letter in text.chars() {
        // The flags of England, Scotland and Wales are a black flag with tag characters.
        let is_tag = matches!(letter, '\u{e0020}'..='\u{e007f}');
        in_flag = is_tag && (in_flag || before == '\u{1f3f4}');
        let is_harmless = match letter {
            '\n' | '\t' | '\r' => true,
            // A mark at the start of a text, joiners and forms of letters, soft hyphens, direction
            // marks, and bidirectional isolates, which right-to-left text needs.
            '\u{feff}' => before == ' ',
            '\u{ad}'
            | '\u{200c}'..='\u{200f}'
            | '\u{61c}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{2066}'..='\u{2069}' => true,
            '\u{2028}' | '\u{2029}' | '\u{3164}' | '\u{115f}' | '\u{1160}' | '\u{180b}'..='\u{180f}' => true,
            _ => in_flag || !is_deceptive(letter),
        };
        if !is_harmless {
            return Some(hidden(letter));
        }
        before = letter;
    }
    if let Some(start) = text.find("<!--")
        && text[start..].find("-->").is_some_and(|end| end > 4)
    {
        return Some("the text contains an HTML comment".to_owned());
    }
    let trimmed = text.trim_end();
    let wide = " ".repeat(WIDE_SPACE);
    let tall = "\n".repeat(EMPTY_LINES);
    (trimmed.contains(&wide) || trimmed.contains(&tall))
        .then(|| "the text continues after white space that moves it out of sight".to_owned())
}

/// Finds a letter of another script in a word with Latin letters.
fn find_lookalike(name: &str) -> Option<char> {
    let words = name.split(|letter: char| !letter.is_alphanumeric());
    let mixed = words.filter(|word| word.contains(|letter: char| letter.is_ascii_alphabetic()));
    mixed.flat_map(str::chars).find(|letter| {
        // Full-width forms look the same as well.
        LOOKALIKES.contains(*letter) || matches!(letter, '\u{ff21}'..='\u{ff3a}' | '\u{ff41}'..='\u{ff5a}')
    })
}
