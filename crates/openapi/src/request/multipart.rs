//! Multipart bodies. Values of a caller cannot end a part, start another one, or add a header to
//! one.

use serde_json::value::RawValue;

use super::body::{BodyInput, Payload, concrete_media_type};
use super::file::FileArgument;
use super::shallow_value::{ShallowValue, to_plain_text};
use super::{RequestBuildError, is_json};
use crate::operation::{FieldEncoding, OperationBody, ParameterStyle};

pub(super) fn write(body: &OperationBody, input: &BodyInput<'_>) -> Result<Payload, RequestBuildError> {
    let mut parts = MultipartWriter { boundary: boundary()?, bytes: Vec::new() };
    let usual = FieldEncoding { file: body.more_files, ..FieldEncoding::default() };
    let how = |name: &str| body.fields.get(name).unwrap_or(&usual);
    match input {
        BodyInput::Members(members) => {
            for member in members {
                let wrong = |why| RequestBuildError::Argument(member.property.to_owned(), why);
                parts.write_field(member.name, member.value, how(member.name)).map_err(wrong)?;
            }
        }
        BodyInput::Whole { property, value } => {
            let ShallowValue::Object(members) = ShallowValue::read(value) else {
                return Err(RequestBuildError::Argument(
                    (*property).to_owned(),
                    "must be an object".to_owned(),
                ));
            };
            for (name, value) in &members {
                let wrong = |why: String| {
                    RequestBuildError::Argument(
                        (*property).to_owned(),
                        format!("has the member `{name}`, which {why}"),
                    )
                };
                parts.write_field(name, value, how(name)).map_err(wrong)?;
            }
        }
    }
    let kind =
        body.media_type.split(';').next().and_then(concrete_media_type).unwrap_or("multipart/form-data");
    let content_type = format!("{}; boundary={}", kind.trim(), parts.boundary);
    Ok(Payload { content_type, bytes: parts.finish().into() })
}

/// Random, so that no file can contain it.
fn boundary() -> Result<String, RequestBuildError> {
    let id = toolyard_random::hex_id().map_err(|error| RequestBuildError::Internal(error.to_string()))?;
    Ok(format!("toolyard-{id}"))
}

struct MultipartWriter {
    boundary: String,
    bytes: Vec<u8>,
}

impl MultipartWriter {
    /// Writes a list as one part for each item, unless the document encodes it as one.
    fn write_field(&mut self, name: &str, value: &RawValue, how: &FieldEncoding) -> Result<(), String> {
        let as_json = how.content_type.as_deref().is_some_and(is_json);
        if let ShallowValue::List(items) = ShallowValue::read(value)
            && !as_json
        {
            let delimiter = match (how.style, how.explode) {
                _ if how.file => None,
                (Some(ParameterStyle::SpaceDelimited), _) => Some(" "),
                (Some(ParameterStyle::PipeDelimited), _) => Some("|"),
                (Some(ParameterStyle::TabDelimited), _) => Some("\t"),
                (_, Some(false)) => Some(","),
                _ => None,
            };
            if let Some(delimiter) = delimiter {
                let items: Vec<String> = items.into_iter().filter_map(to_plain_text).collect();
                self.write_part(name, None, None, items.join(delimiter).as_bytes());
                return Ok(());
            }
            return items.into_iter().try_for_each(|item| self.write_value(name, item, how));
        }
        self.write_value(name, value, how)
    }

    fn write_value(&mut self, name: &str, value: &RawValue, how: &FieldEncoding) -> Result<(), String> {
        let declared = how.content_type.as_deref().and_then(first_media_type);
        if how.file {
            if value.get() == "null" {
                return Ok(());
            }
            let file = FileArgument::read(value)?;
            let content_type = file.content_type.or(declared.map(str::to_owned));
            let content_type = content_type.as_deref().unwrap_or("application/octet-stream");
            if !content_type.bytes().all(|byte| (b' '..0x7f).contains(&byte)) {
                return Err("has an invalid content type".to_owned());
            }
            let filename = file.filename.unwrap_or_else(|| name.to_owned());
            self.write_part(name, Some(&filename), Some(content_type), &file.bytes);
            return Ok(());
        }
        let is_object = value.get().starts_with(['{', '[']);
        match declared {
            Some(kind) if is_json(kind) => self.write_part(name, None, Some(kind), value.get().as_bytes()),
            None if is_object => {
                self.write_part(name, None, Some("application/json"), value.get().as_bytes())
            }
            kind => {
                if let Some(text) = to_plain_text(value) {
                    self.write_part(name, None, kind, text.as_bytes());
                }
            }
        }
        Ok(())
    }

    fn write_part(&mut self, name: &str, filename: Option<&str>, content_type: Option<&str>, bytes: &[u8]) {
        let mut head = format!(
            "--{}\r\ncontent-disposition: form-data; name=\"{}\"",
            self.boundary,
            escape_quoted(name)
        );
        if let Some(filename) = filename {
            head.push_str(&format!("; filename=\"{}\"", escape_quoted(filename)));
        }
        if let Some(content_type) = content_type {
            head.push_str("\r\ncontent-type: ");
            head.push_str(content_type);
        }
        head.push_str("\r\n\r\n");
        self.bytes.extend_from_slice(head.as_bytes());
        self.bytes.extend_from_slice(bytes);
        self.bytes.extend_from_slice(b"\r\n");
    }

    fn finish(mut self) -> Vec<u8> {
        self.bytes.extend_from_slice(format!("--{}--\r\n", self.boundary).as_bytes());
        self.bytes
    }
}

/// Encodes a name as browsers do: characters that would end the name or the line are
/// percent-encoded.
fn escape_quoted(text: &str) -> String {
    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A").replace('\0', "%00")
}

/// Returns the first media type of a list that can be sent and is a valid header value.
fn first_media_type(list: &str) -> Option<&str> {
    let fine = |kind: &&str| kind.bytes().all(|byte| (b' '..0x7f).contains(&byte));
    list.split(',').map(str::trim).filter(fine).find_map(concrete_media_type)
}

#[cfg(test)]
mod tests {
    use toolyard_random::SimulatedOutage;

    use super::{RequestBuildError, boundary};

    #[test]
    fn without_random_numbers_there_is_no_boundary() {
        let outage = SimulatedOutage::begin();
        let refused = boundary();
        assert!(
            matches!(&refused, Err(RequestBuildError::Internal(why)) if why == "the system's random number generator failed"),
            "{:?}",
            refused.ok()
        );
        drop(outage);
        assert_ne!(boundary().ok(), boundary().ok());
    }
}
