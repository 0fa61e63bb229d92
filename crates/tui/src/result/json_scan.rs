//! Navigates JSON text that is known to be well formed, without parsing it into values.

use memchr::memchr2;

/// Returns the first byte at or after this one that is not whitespace.
pub(super) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Returns the byte after the value that starts here.
pub(super) fn end_of_value(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => end_of_string(text, at),
        Some(b'{' | b'[') => end_of_nested(text, at),
        _ => {
            let rest = &text[at.min(text.len())..];
            let end =
                rest.iter().position(|byte| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace());
            end.map_or(text.len(), |end| at + end)
        }
    }
}

fn end_of_string(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        match text[at + found] {
            b'"' => return at + found + 1,
            _ => at += found + 2,
        }
    }
    text.len()
}

fn end_of_nested(text: &[u8], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(text, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::end_of_value;

    #[test]
    fn the_end_of_a_value_is_found() {
        for (text, value) in [
            (r#""a\"]\\" , 1"#, r#""a\"]\\""#),
            (r#"{"a":[{"}":"]"}]},2"#, r#"{"a":[{"}":"]"}]}"#),
            ("-1.5e3]", "-1.5e3"),
            ("true\n", "true"),
            ("[]", "[]"),
        ] {
            assert_eq!(&text[..end_of_value(text.as_bytes(), 0)], value);
        }
        // Malformed text must terminate too.
        for odd in ["\"abc", "[[", "\"\\", ""] {
            assert!(end_of_value(odd.as_bytes(), 0) <= odd.len());
        }
    }
}
