//! The one way to write a JSON text: keys sorted, one member per line, numbers as they arrived,
//! invisible characters escaped. Two definitions with the same content give the same bytes.

use serde_json::value::RawValue;
use toolyard_hub::Raw;
use toolyard_hub::json::{Object, from_text};
use toolyard_hub::printable::escape_json;

/// Deeper values are written on one line as they arrived.
const DEEPEST: usize = 100;
const STEP: &str = "  ";

/// Writes a value at this indentation. The first line is not indented.
pub(crate) fn write_canonical(raw: &RawValue, depth: usize, out: &mut String) {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') if depth < DEEPEST => match Object::parse(raw) {
            Ok(object) => {
                let mut members: Vec<(&str, &RawValue)> = object.members().collect();
                members.sort_by_key(|(key, _)| *key);
                write_members(&members, depth, out);
            }
            Err(_) => out.push_str(&escape_json(text)),
        },
        Some(b'[') if depth < DEEPEST => match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(items) if items.is_empty() => out.push_str("[]"),
            Ok(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    start_line(index, depth + 1, out);
                    write_canonical(item, depth + 1, out);
                }
                end_lines(depth, out);
                out.push(']');
            }
            Err(_) => out.push_str(&escape_json(text)),
        },
        Some(b'"') => match serde_json::from_str::<String>(text) {
            Ok(words) => write_string(&words, out),
            Err(_) => out.push_str(&escape_json(text)),
        },
        _ => out.push_str(&escape_json(text)),
    }
}

/// Writes members in this order.
pub(crate) fn write_members(members: &[(&str, &RawValue)], depth: usize, out: &mut String) {
    if members.is_empty() {
        out.push_str("{}");
        return;
    }
    out.push('{');
    for (index, (key, value)) in members.iter().enumerate() {
        start_line(index, depth + 1, out);
        write_string(key, out);
        out.push_str(": ");
        write_canonical(value, depth + 1, out);
    }
    end_lines(depth, out);
    out.push('}');
}

pub(crate) fn write_string(words: &str, out: &mut String) {
    out.push_str(&escape_json(&serde_json::Value::from(words).to_string()));
}

/// Starts the line of a member or an item.
pub(crate) fn start_line(index: usize, depth: usize, out: &mut String) {
    out.push_str(if index == 0 { "\n" } else { ",\n" });
    out.push_str(&STEP.repeat(depth));
}

pub(crate) fn end_lines(depth: usize, out: &mut String) {
    out.push('\n');
    out.push_str(&STEP.repeat(depth));
}

/// A value in canonical form.
pub(crate) fn canonical_text(raw: &RawValue) -> String {
    let mut out = String::new();
    write_canonical(raw, 0, &mut out);
    out
}

/// Replaces texts inside the strings of a value. Returns `None` if the value contains none of them.
pub(crate) fn mask_text(raw: &RawValue, secrets: &[(String, String)]) -> Option<Raw> {
    let mut text = raw.get().to_owned();
    let mut changed = false;
    for (secret, label) in secrets {
        // As it is written inside a JSON string.
        let spelled = serde_json::Value::from(secret.as_str()).to_string();
        let spelled = spelled.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default();
        // Some servers escape slashes.
        for spelled in [spelled.to_owned(), spelled.replace('/', "\\/")] {
            if !spelled.is_empty() && text.contains(&spelled) {
                text = text.replace(&spelled, label);
                changed = true;
            }
        }
    }
    changed.then(|| from_text(text))
}

#[cfg(test)]
mod tests {
    use toolyard_hub::json::from_text;

    use super::{canonical_text, mask_text};

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let one = from_text(r#"{"b":[1e400, 1.0 ,{}],"a":{"y":"\u00e9","x":null}}"#.to_owned());
        let other = from_text("{\"a\": {\"x\":null, \"y\":\"é\"},\n\"b\":[1e400,1.0,{ }]}".to_owned());
        let text = canonical_text(&one);
        assert_eq!(text, canonical_text(&other));
        assert_eq!(
            text,
            "{\n  \"a\": {\n    \"x\": null,\n    \"y\": \"é\"\n  },\n  \"b\": [\n    1e400,\n    1.0,\n    {}\n  ]\n}"
        );
    }

    #[test]
    fn characters_that_hide_in_a_review_are_written_as_escapes() {
        let raw = from_text("{\"d\": \"a\u{202e}b\u{200b}\"}".to_owned());
        assert_eq!(canonical_text(&raw), "{\n  \"d\": \"a\\u202eb\\u200b\"\n}");
    }

    #[test]
    fn values_nested_beyond_reason_are_kept_as_they_are() {
        let deep = format!("{}1{}", "[".repeat(120), "]".repeat(120));
        let text = canonical_text(&from_text(deep));
        assert_eq!(text.split_whitespace().collect::<String>().matches('[').count(), 120);
    }

    #[test]
    fn secrets_are_replaced_wherever_they_stand() {
        let secrets = [("a\"b/c".to_owned(), "[env:KEY]".to_owned())];
        let raw = from_text(r#"{"d":"uses a\"b/c twice: a\"b\/c"}"#.to_owned());
        let masked = mask_text(&raw, &secrets).unwrap();
        assert_eq!(masked.get(), r#"{"d":"uses [env:KEY] twice: [env:KEY]"}"#);
        assert!(mask_text(&from_text("{}".to_owned()), &secrets).is_none());
    }
}
