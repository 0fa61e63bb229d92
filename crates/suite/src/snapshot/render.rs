//! Renders a value as YAML that reads well in a review: long texts as blocks, one member per line.

use serde_json::{Map, Value};

/// Renders a snapshot with its name as a comment.
pub(crate) fn render_snapshot(name: &str, value: &Value) -> String {
    let name: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("# Snapshot of: {name}\n{}", render_value(value))
}

/// Renders a value without a name.
pub(crate) fn render_value(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value, 0);
    text
}

/// Writes a value at the start of a line.
fn write_value(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            indent(text, depth);
            write_members(text, members, depth);
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                indent(text, depth);
                match item {
                    // The first member stands behind the dash.
                    Value::Object(members) if !members.is_empty() => {
                        text.push_str("- ");
                        write_members(text, members, depth + 1);
                    }
                    other => {
                        text.push('-');
                        write_member(text, other, depth);
                    }
                }
            }
        }
        other => {
            indent(text, depth);
            write_scalar(text, other, depth);
        }
    }
}

/// Writes the members of an object. The first one is where the text ends.
fn write_members(text: &mut String, members: &Map<String, Value>, depth: usize) {
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            indent(text, depth);
        }
        text.push_str(&scalar_text(key));
        text.push(':');
        write_member(text, value, depth);
    }
}

/// Writes a value after a key or a dash.
fn write_member(text: &mut String, value: &Value, depth: usize) {
    let is_collection = match value {
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if is_collection {
        text.push('\n');
        write_value(text, value, depth + 1);
    } else {
        text.push(' ');
        write_scalar(text, value, depth + 1);
    }
}

fn write_scalar(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::String(block) if is_block(block) => {
            // The indicator says whether the text ends with a newline.
            text.push_str(if block.ends_with('\n') { "|\n" } else { "|-\n" });
            for line in block.strip_suffix('\n').unwrap_or(block).split('\n') {
                if !line.is_empty() {
                    indent(text, depth.max(1));
                    text.push_str(line);
                }
                text.push('\n');
            }
        }
        Value::String(line) => {
            text.push_str(&scalar_text(line));
            text.push('\n');
        }
        other => {
            text.push_str(&other.to_string());
            text.push('\n');
        }
    }
}

/// Whether a block represents the text exactly. A block cannot start with a space, end with empty
/// lines, or contain control characters.
fn is_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with([' ', '\n', '\t'])
        && !text.ends_with("\n\n")
        && text != "\n"
        && text.chars().all(|letter| letter == '\n' || is_plain(letter))
        && text.lines().all(|line| line == line.trim_end())
}

/// Whether a character is visible as it is. Others are escaped, so that a review shows them.
fn is_plain(letter: char) -> bool {
    !letter.is_control() && !toolyard_hub::printable::is_deceptive(letter)
}

/// Quotes a text like JSON, unless it is obvious without quotes.
fn scalar_text(text: &str) -> String {
    let is_word = text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./".contains(letter))
        && !["true", "false", "null", "yes", "no", "on", "off"].contains(&text.to_ascii_lowercase().as_str());
    if is_word {
        return text.to_owned();
    }
    quote_text(text)
}

/// Writes a text in double quotes.
pub(crate) fn quote_text(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            letter if is_plain(letter) => quoted.push(letter),
            letter if u32::from(letter) <= 0xffff => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)))
            }
            letter => quoted.push_str(&format!("\\U{:08x}", u32::from(letter))),
        }
    }
    quoted.push('"');
    quoted
}

fn indent(text: &mut String, depth: usize) {
    text.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::render_snapshot;
    use crate::file::yaml::parse_yaml;

    #[test]
    fn a_snapshot_reads_well() {
        let value =
            json!({"content": [{"type": "text", "text": "a: 1\n\nb"}], "ok": true, "n": 1.5, "none": {}});
        let text = "# Snapshot of: x\ncontent:\n  - type: text\n    text: |-\n      a: 1\n\n      b\nok: true\n\
                    n: 1.5\nnone: {}\n";
        assert_eq!(render_snapshot("x", &value), text);
    }

    #[test]
    fn a_snapshot_is_yaml_with_the_same_value() {
        for value in [
            json!({"a": ["x\ny\n", " x\ny", "x \ny", "x\n\n", "\n", "", "true", "5", "a: b", "# c", "- d"]}),
            json!([[], {}, [[1, [2]]], {"a": {"b": [{"c": null}]}}, "\u{202e}x", "\u{1f600}", "\t\"\\"]),
            json!({"": 1, "a b": 2, "true": 3, "\n": 4}),
            json!("x\ny"),
            json!(5),
        ] {
            let text = render_snapshot("n\nx", &value);
            let read =
                parse_yaml(&text).unwrap_or_else(|error| panic!("{}\n{text}", error.message)).to_json();
            assert_eq!(read, value, "{text}");
        }
        assert_eq!(parse_yaml(&render_snapshot("x", &Value::Null)).unwrap().to_json(), Value::Null);
    }
}
