//! Text in the few encodings that are still met; the rest is read as UTF-8, with a mark where that is wrong.

/// The text, by what the content type says.
pub(super) fn decode_text(bytes: &[u8], content_type: &str) -> String {
    match charset(content_type).as_str() {
        "iso-8859-1" | "latin1" | "latin-1" | "iso-8859-15" | "us-ascii" | "ascii" | "windows-1252" | "cp1252"
            // Many say this who mean UTF-8.
            if std::str::from_utf8(bytes).is_err() =>
        {
            bytes.iter().map(|byte| western(*byte)).collect()
        }
        "utf-16" | "utf-16le" | "utf-16be" => wide(bytes, content_type),
        _ => {
            let text = String::from_utf8_lossy(bytes);
            text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
        }
    }
}

fn charset(content_type: &str) -> String {
    let mut parameters = content_type.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    let said = parameters.find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    said.map(|(_, value)| value.trim().trim_matches('"').to_ascii_lowercase()).unwrap_or_default()
}

/// Windows-1252, which is what browsers read for all of these.
fn western(byte: u8) -> char {
    const UPPER: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
        '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..0xa0 => UPPER[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

fn wide(bytes: &[u8], content_type: &str) -> String {
    let little = match bytes {
        [0xff, 0xfe, ..] => true,
        [0xfe, 0xff, ..] => false,
        _ => charset(content_type) == "utf-16le",
    };
    let unit = |pair: &[u8]| {
        let pair = [pair[0], pair.get(1).copied().unwrap_or_default()];
        if little { u16::from_le_bytes(pair) } else { u16::from_be_bytes(pair) }
    };
    let units: Vec<u16> = bytes.chunks(2).map(unit).collect();
    let text = String::from_utf16_lossy(&units);
    text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::decode_text;

    #[test]
    fn text_is_read_in_its_encoding() {
        assert_eq!(decode_text("\u{feff}é".as_bytes(), "text/plain; charset=UTF-8"), "é");
        assert_eq!(decode_text(b"caf\xe9 \x80", "text/plain; charset=ISO-8859-1"), "café €");
        assert_eq!(decode_text("café".as_bytes(), "text/plain; charset=\"latin1\""), "café");
        assert_eq!(decode_text(b"\xff\xfeh\0i\0", "text/plain; charset=utf-16"), "hi");
        assert_eq!(decode_text(b"\0h\0i", "text/plain;charset=utf-16be"), "hi");
        assert_eq!(decode_text(b"h\0i\0", "text/plain;charset=utf-16le"), "hi");
        assert_eq!(decode_text(b"a\xffb", "text/plain"), "a\u{fffd}b");
        assert_eq!(decode_text(b"a", "text/plain; charset=klingon"), "a");
    }
}
