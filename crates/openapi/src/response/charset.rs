//! Decodes text in the character set of its content type, as browsers do.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, WINDOWS_1252};

/// Decodes text by its content type. A byte order mark takes precedence. Invalid bytes are replaced
/// by `\u{fffd}`, and an unknown character set is treated as UTF-8.
pub(super) fn decode_text(bytes: &[u8], content_type: &str) -> String {
    let encoding = match charset(content_type).as_str() {
        // HTTP treats it as big-endian, browsers do not.
        "utf-16" => UTF_16BE,
        // Not a standard name, but in use.
        "latin-1" => WINDOWS_1252,
        other => Encoding::for_label_no_replacement(other.as_bytes()).unwrap_or(UTF_8),
    };
    // Many servers declare ISO-8859-1 but send UTF-8.
    let is_utf_8 = encoding.is_single_byte() && std::str::from_utf8(bytes).is_ok();
    let (text, ..) = if is_utf_8 { UTF_8 } else { encoding }.decode(bytes);
    text.into_owned()
}

fn charset(content_type: &str) -> String {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let charset = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    charset.map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::decode_text;

    #[test]
    fn text_is_read_in_its_encoding() {
        assert_eq!(decode_text("\u{feff}é".as_bytes(), "text/plain; charset=UTF-8"), "é");
        assert_eq!(decode_text(b"caf\xe9 \x80", "text/plain; charset=ISO-8859-1"), "café €");
        assert_eq!(decode_text("café".as_bytes(), "text/plain; charset=\"latin1\""), "café");
        assert_eq!(decode_text(b"caf\xe9", "text/plain; charset=latin-1"), "café");
        assert_eq!(decode_text(b"\xa4", "text/plain; charset=ISO-8859-15"), "€");
        assert_eq!(decode_text(b"\xcf\xf0\xe8\xe2\xe5\xf2", "text/html; charset=windows-1251"), "Привет");
        assert_eq!(decode_text(b"\x93\xfa\x96{", "text/html; charset=Shift_JIS"), "日本");
        assert_eq!(decode_text(b"\xff\xfeh\0i\0", "text/plain; charset=utf-16"), "hi");
        assert_eq!(decode_text(b"\xff\xfeh\0i\0", "text/plain"), "hi");
        assert_eq!(decode_text(b"\0h\0i", "text/plain;charset=utf-16"), "hi");
        assert_eq!(decode_text(b"\0h\0i", "text/plain;charset=utf-16be"), "hi");
        assert_eq!(decode_text(b"h\0i\0", "text/plain;charset=utf-16le"), "hi");
        assert_eq!(decode_text(b"a\xffb", "text/plain"), "a\u{fffd}b");
        assert_eq!(decode_text(b"a", "text/plain; charset=klingon"), "a");
        assert_eq!(decode_text(b"a", "text/plain; charset=iso-2022-kr"), "a");
    }
}
