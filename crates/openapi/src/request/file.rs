//! Files in arguments: base64, a data URI, or an object with more information.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;

use super::shallow_value::{ShallowValue, to_plain_text};

/// Accepts both base64 alphabets, with and without padding.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

#[derive(Debug, Default, PartialEq)]
pub(super) struct FileArgument {
    pub(super) bytes: Vec<u8>,
    pub(super) filename: Option<String>,
    pub(super) content_type: Option<String>,
}

impl FileArgument {
    /// Parses a file. Errors do not quote the value, which may be long and private.
    pub(super) fn read(raw: &RawValue) -> Result<Self, String> {
        match ShallowValue::read(raw) {
            ShallowValue::Text(text) => Self::from_text(&text),
            ShallowValue::Object(_) => {
                let object = Object::parse(raw).unwrap_or_default();
                let member_text = |key| object.get(key).and_then(to_plain_text);
                let data = member_text("data").ok_or("is an object without `data`")?;
                let file = Self::from_text(&data)?;
                Ok(Self {
                    filename: member_text("filename").or(file.filename),
                    content_type: member_text("content_type").or(file.content_type),
                    ..file
                })
            }
            _ => Err("must be base64, a data URI, or an object with `data`".to_owned()),
        }
    }

    fn from_text(text: &str) -> Result<Self, String> {
        let is_uri = text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        if !is_uri {
            let bytes = decode(text).ok_or("is neither base64 nor a data URI")?;
            return Ok(Self { bytes, ..Self::default() });
        }
        let (head, data) = text[5..].split_once(',').ok_or("is a data URI without a comma")?;
        let (media_type, in_base64) = match head.rsplit_once(';') {
            Some((media_type, word)) if word.trim().eq_ignore_ascii_case("base64") => (media_type, true),
            _ if head.eq_ignore_ascii_case("base64") => ("", true),
            _ => (head, false),
        };
        let plain: Vec<u8> = percent_decode_str(data).collect();
        let bytes = if in_base64 {
            let text = std::str::from_utf8(&plain).ok().and_then(decode);
            text.ok_or("is a data URI whose data is not base64")?
        } else {
            plain
        };
        // Some programs add the file name as a parameter.
        let mut parameters = media_type.split(';');
        let kind = parameters.next().unwrap_or_default().trim();
        let mut filename = None;
        let mut content_type = kind.to_owned();
        for parameter in parameters {
            match parameter.split_once('=') {
                Some((key, name)) if ["name", "filename"].contains(&key.trim()) => {
                    filename = Some(percent_decode_str(name.trim()).decode_utf8_lossy().into_owned());
                }
                _ => {
                    content_type.push(';');
                    content_type.push_str(parameter);
                }
            }
        }
        Ok(Self { bytes, filename, content_type: Some(content_type).filter(|kind| kind.contains('/')) })
    }
}

fn decode(text: &str) -> Option<Vec<u8>> {
    let dense: String = text.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    let engine = if dense.contains(['-', '_']) { &URL_SAFE } else { &STANDARD };
    engine.decode(dense).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_hub::json::to_raw;

    use super::FileArgument;

    fn file(
        bytes: &[u8],
        filename: Option<&str>,
        content_type: Option<&str>,
    ) -> Result<FileArgument, String> {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok(FileArgument {
            bytes: bytes.to_vec(),
            filename: owned(filename),
            content_type: owned(content_type),
        })
    }

    #[test]
    fn a_file_is_read_however_it_was_written() {
        let read = |value: serde_json::Value| FileArgument::read(&to_raw(&value));
        let bytes = [0xfb, 0xff, 0x00, 0x41];
        for text in ["+/8AQQ==", "+/8AQQ", "-_8AQQ==", "-_8AQQ", "+/8A\r\n QQ=="] {
            assert_eq!(read(json!(text)), file(&bytes, None, None), "{text}");
        }
        assert_eq!(read(json!("")), file(b"", None, None));
        assert_eq!(read(json!("data:image/png;base64,+/8AQQ==")), file(&bytes, None, Some("image/png")));
        assert_eq!(read(json!("DATA:;base64,+/8AQQ==")), file(&bytes, None, None));
        assert_eq!(
            read(json!("data:text/plain;charset=utf-8;name=a%20b.txt,hi%20there%")),
            file(b"hi there%", Some("a b.txt"), Some("text/plain;charset=utf-8"))
        );
        assert_eq!(
            read(json!({"data": "aGk=", "filename": "x.txt", "content_type": "text/x"})),
            file(b"hi", Some("x.txt"), Some("text/x"))
        );
        assert_eq!(read(json!({"data": "data:a/b,hi"})), file(b"hi", None, Some("a/b")));
    }

    #[test]
    fn what_is_no_file_is_refused_without_repeating_it() {
        let read = |value: serde_json::Value| FileArgument::read(&to_raw(&value)).unwrap_err();
        assert_eq!(read(json!("not base64!")), "is neither base64 nor a data URI");
        assert_eq!(read(json!("data:text/plain")), "is a data URI without a comma");
        assert_eq!(read(json!("data:;base64,!!")), "is a data URI whose data is not base64");
        assert_eq!(read(json!({"filename": "x"})), "is an object without `data`");
        assert_eq!(read(json!(5)), "must be base64, a data URI, or an object with `data`");
    }
}
