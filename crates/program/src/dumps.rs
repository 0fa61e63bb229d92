//! Writes JSON like Python's `json.dumps(value, indent=2)`: two spaces, keys in their order,
//! non-ASCII characters escaped. It works on the text, so that numbers keep their exact form and
//! lone surrogates survive.

use std::collections::HashMap;

use serde_json::value::RawValue;

/// The depth below which values are copied without indentation. Python has a limit too.
const DEEPEST: usize = 200;

/// Formats a value, indented as if it were nested `level` deep.
pub(crate) fn dumps(value: &RawValue, level: usize) -> String {
    let mut text = String::with_capacity(value.get().len() * 2);
    Writer { rest: value.get() }.write_value(level, level + DEEPEST, &mut text);
    text
}

/// Formats a string, with quotes and escapes.
pub(crate) fn dumps_text(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    text.encode_utf16().for_each(|unit| write_escaped(unit, &mut quoted));
    quoted.push('"');
    quoted
}

/// Returns a line break and the indentation of a level.
pub(crate) fn newline_indent(level: usize) -> String {
    format!("\n{}", "  ".repeat(level))
}

/// Reads JSON that is known to be well-formed and writes it with indentation.
struct Writer<'a> {
    rest: &'a str,
}

impl<'a> Writer<'a> {
    fn write_value(&mut self, level: usize, deepest: usize, into: &mut String) {
        match self.peek() {
            Some('{') if level < deepest => self.write_object(level, deepest, into),
            Some('[') if level < deepest => self.write_array(level, deepest, into),
            Some('{' | '[') => into.push_str(self.take_raw_value()),
            Some('"') => self.write_string(into),
            _ => {
                let end = self.rest.find([',', '}', ']', ' ', '\n', '\r', '\t']).unwrap_or(self.rest.len());
                into.push_str(self.take(end));
            }
        }
    }

    fn write_object(&mut self, level: usize, deepest: usize, into: &mut String) {
        self.take(1);
        // For a duplicate key, Python keeps the first position and the last value.
        let mut members: Vec<(String, String)> = Vec::new();
        let mut positions: HashMap<String, usize> = HashMap::new();
        while self.peek() == Some('"') {
            let (mut key, mut value) = (String::new(), String::new());
            self.write_string(&mut key);
            self.peek();
            self.take(1);
            self.peek();
            self.write_value(level + 1, deepest, &mut value);
            match positions.get(&key) {
                Some(index) => members[*index].1 = value,
                None => {
                    positions.insert(key.clone(), members.len());
                    members.push((key, value));
                }
            }
            if self.peek() == Some(',') {
                self.take(1);
            }
        }
        self.take(1);
        let members = members.iter().map(|(key, value)| format!("{key}: {value}"));
        enclose(into, ('{', '}'), level, members);
    }

    fn write_array(&mut self, level: usize, deepest: usize, into: &mut String) {
        self.take(1);
        let mut items = Vec::new();
        while self.peek().is_some_and(|next| next != ']') {
            let mut item = String::new();
            self.write_value(level + 1, deepest, &mut item);
            items.push(item);
            if self.peek() == Some(',') {
                self.take(1);
            }
        }
        self.take(1);
        enclose(into, ('[', ']'), level, items.into_iter());
    }

    /// Copies a string and normalizes its escapes.
    fn write_string(&mut self, into: &mut String) {
        self.take(1);
        into.push('"');
        loop {
            let plain = self.rest.find(['"', '\\']).unwrap_or(self.rest.len());
            self.take(plain).encode_utf16().for_each(|unit| write_escaped(unit, into));
            if !self.rest.starts_with('\\') {
                break;
            }
            let escape = self.take(2).as_bytes().get(1).copied();
            match escape {
                Some(b'u') => {
                    let digits = self.take(4);
                    write_escaped(u16::from_str_radix(digits, 16).unwrap_or_default(), into);
                }
                Some(b'n') => write_escaped(10, into),
                Some(b't') => write_escaped(9, into),
                Some(b'r') => write_escaped(13, into),
                Some(b'b') => write_escaped(8, into),
                Some(b'f') => write_escaped(12, into),
                Some(other) => write_escaped(other.into(), into),
                None => break,
            }
        }
        self.take(1);
        into.push('"');
    }

    /// Takes the next value unparsed.
    fn take_raw_value(&mut self) -> &'a str {
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<&'a RawValue>();
        let is_valid = stream.next().is_some_and(|value| value.is_ok());
        let end = if is_valid { stream.byte_offset() } else { self.rest.len() };
        self.take(end)
    }

    /// Skips whitespace and returns the next character without taking it.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
        self.rest.chars().next()
    }

    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(self.rest.floor_char_boundary(bytes));
        self.rest = rest;
        taken
    }
}

fn enclose(
    into: &mut String,
    (open, close): (char, char),
    level: usize,
    items: impl ExactSizeIterator<Item = String>,
) {
    into.push(open);
    let has_items = items.len() > 0;
    for (index, item) in items.enumerate() {
        if index > 0 {
            into.push(',');
        }
        into.push_str(&newline_indent(level + 1));
        into.push_str(&item);
    }
    if has_items {
        into.push_str(&newline_indent(level));
    }
    into.push(close);
}

/// Writes one UTF-16 unit. Like Python, characters beyond the basic plane are two escapes.
fn write_escaped(unit: u16, into: &mut String) {
    match u8::try_from(unit) {
        Ok(b'"') => into.push_str("\\\""),
        Ok(b'\\') => into.push_str("\\\\"),
        Ok(b'\n') => into.push_str("\\n"),
        Ok(b'\r') => into.push_str("\\r"),
        Ok(b'\t') => into.push_str("\\t"),
        Ok(8) => into.push_str("\\b"),
        Ok(12) => into.push_str("\\f"),
        Ok(byte @ b' '..=b'~') => into.push(char::from(byte)),
        _ => into.push_str(&format!("\\u{unit:04x}")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use toolyard_hub::json::from_text;

    use super::{dumps, dumps_text};

    fn formatted(text: &str) -> String {
        dumps(&from_text(text.to_owned()), 0)
    }

    /// Returns the output of `json.dumps` itself.
    fn python(text: &str) -> String {
        let script = "import json, sys; sys.stdout.write(json.dumps(json.load(sys.stdin), indent=2))";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed for comparison");
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{text}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn the_output_equals_that_of_python() {
        let cases = [
            "{}",
            "[]",
            " [ ] ",
            "null",
            "\"plain\"",
            "-0.5",
            "[1, -2, 3.5, 12345678901234567890123, true,false , null]",
            r#"{"b":1,"a":{"z":[],"y":{}},"c":[[1],[{}],[]]}"#,
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"a":{"x":1,"x":{"y":2}},"\u0061":9}"#,
            r#"["ä€😀", "\ud83d\ude00", "\u00e4", "\/", "\"\\\b\f\n\r\t", "\u0000\u001f\u007f\u0080"]"#,
            r#"["\ud800", "\udc00x", "a\uD83D"]"#,
            "[\"\u{7f}\u{80}\u{2028}\u{ffff}\u{10ffff}\"]",
            "{\n\t\"a\" : [ 1 ,\r\n 2 ] , \"\" : { \"b\" : \"c\" }\n}",
            r#"{"type":"object","properties":{"größe":{"type":"string","enum":["klein","groß"]}},"required":[]}"#,
        ];
        for case in cases {
            assert_eq!(formatted(case), python(case), "{case}");
        }
    }

    #[test]
    fn numbers_keep_their_exact_form() {
        assert_eq!(formatted("[1e5,1.10,1E400,-0]"), "[\n  1e5,\n  1.10,\n  1E400,\n  -0\n]");
    }

    #[test]
    fn strings_are_formatted_like_strings_in_values() {
        for text in ["", "a\"b\\c\n", "ä😀\u{7f}"] {
            let quoted = serde_json::to_string(text).unwrap();
            assert_eq!(dumps_text(text), formatted(&quoted));
        }
    }

    #[test]
    fn deep_nesting_does_not_overflow_the_stack() {
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let text = formatted(&deep);
        assert!(text.contains(&format!("{}1{}", "[".repeat(99_000), "]".repeat(99_000))));
    }
}
