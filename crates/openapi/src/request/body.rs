//! The body of a request: JSON as it was written, forms, parts with files, text and bytes.

use bytes::Bytes;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;

use super::escape::Allow;
use super::file::File;
use super::given::{Given, plain};
use super::styles::Writing;
use super::{Refusal, is_json, multipart};
use crate::operation::{Body, Encoding, FieldEncoding, Operation, Place, Style};

/// What is sent, and as what.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Payload {
    pub(crate) content_type: String,
    pub(crate) bytes: Bytes,
}

/// What the arguments say about the body.
pub(super) enum Said<'a> {
    Whole {
        property: &'a str,
        value: &'a RawValue,
    },
    /// Its members, by wire name, and the property that each came from.
    Members(Vec<Member<'a>>),
}

pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) property: &'a str,
    pub(super) value: &'a RawValue,
}

/// The body, if there is one.
pub(super) fn body(operation: &Operation, given: &Object) -> Result<Option<Payload>, Refusal> {
    let Some(body) = &operation.body else { return Ok(None) };
    let Some(said) = said(operation, body, given) else { return Ok(None) };
    let bytes = match body.encoding {
        Encoding::Json => json(&said),
        Encoding::Form => form(body, &said),
        Encoding::Multipart => return multipart::write(body, &said).map(Some),
        Encoding::Text => match &said {
            Said::Whole { value, .. } => plain(value).unwrap_or_default().into_bytes(),
            Said::Members(_) => json(&said),
        },
        Encoding::Bytes => {
            let Said::Whole { property, value } = said else {
                return Err(Refusal::Document("its body is bytes and has members".to_owned()));
            };
            let file = File::read(value).map_err(|why| Refusal::Argument(property.to_owned(), why))?;
            let content_type = concrete(&body.media_type)
                .map(str::to_owned)
                .or(file.content_type)
                .unwrap_or_else(|| "application/octet-stream".to_owned());
            return Ok(Some(Payload { content_type, bytes: file.bytes.into() }));
        }
    };
    let content_type = match (concrete(&body.media_type), body.encoding) {
        (Some(media_type), _) => media_type.to_owned(),
        (None, Encoding::Text) => "text/plain; charset=utf-8".to_owned(),
        (None, _) => "application/json".to_owned(),
    };
    Ok(Some(Payload { content_type, bytes: bytes.into() }))
}

/// A media type that can be sent; one with a wildcard cannot.
pub(super) fn concrete(media_type: &str) -> Option<&str> {
    let fine = !media_type.contains('*') && media_type.contains('/');
    fine.then_some(media_type)
}

/// Nothing where nothing was said and nothing has to be.
fn said<'a>(operation: &'a Operation, body: &Body, given: &'a Object) -> Option<Said<'a>> {
    let whole = operation.arguments.iter().find(|argument| argument.place == Place::Body);
    if let Some(whole) = whole {
        let property = whole.property.as_str();
        return given.get(property).map(|value| Said::Whole { property, value });
    }
    let fields = operation.arguments.iter().filter(|argument| argument.place == Place::BodyField);
    let members: Vec<Member<'_>> = fields
        .filter_map(|argument| {
            let value = given.get(&argument.property)?;
            Some(Member { name: &argument.wire_name, property: &argument.property, value })
        })
        .collect();
    (body.required || !members.is_empty()).then_some(Said::Members(members))
}

fn json(said: &Said<'_>) -> Vec<u8> {
    match said {
        Said::Whole { value, .. } => value.get().as_bytes().to_vec(),
        Said::Members(members) => {
            let mut object = Object::default();
            for member in members {
                object.set(member.name, member.value.to_owned());
            }
            object.to_raw().get().as_bytes().to_vec()
        }
    }
}

fn form(body: &Body, said: &Said<'_>) -> Vec<u8> {
    let usual = FieldEncoding::default();
    let field = |name: &str, value: &RawValue| fields(name, value, body.fields.get(name).unwrap_or(&usual));
    let pairs: Vec<String> = match said {
        Said::Members(members) => {
            members.iter().flat_map(|member| field(member.name, member.value)).collect()
        }
        Said::Whole { value, .. } => match Given::read(value) {
            Given::Object(members) => members.iter().flat_map(|(name, value)| field(name, value)).collect(),
            // Somebody has written the form already.
            _ => return plain(value).unwrap_or_default().into_bytes(),
        },
    };
    pairs.join("&").into_bytes()
}

/// One member of a form: a list is the name again and again, an object is JSON, unless the document says otherwise.
fn fields(name: &str, value: &RawValue, how: &FieldEncoding) -> Vec<String> {
    let as_json = how.content_type.as_deref().is_some_and(is_json);
    let writing = Writing {
        name,
        style: how.style.unwrap_or(Style::Form),
        explode: how.explode.unwrap_or(how.style.is_none_or(|style| style == Style::Form)),
        allow: Allow::in_query(how.allow_reserved),
    };
    let styled = how.style.is_some() || how.explode.is_some();
    let pair = |(name, value): (String, String)| format!("{name}={value}");
    if as_json || (!styled && value.get().starts_with('{')) {
        let text = super::escape::escaped(value.get(), Allow::Unreserved);
        return vec![pair((super::escape::escaped(name, Allow::Unreserved), text))];
    }
    writing.pairs(value).into_iter().map(pair).collect()
}
