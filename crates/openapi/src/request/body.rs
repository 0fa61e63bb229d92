//! The body of a request: JSON, forms, multipart, text and bytes.

use bytes::Bytes;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;

use super::escape::EncodeSet;
use super::file::FileArgument;
use super::shallow_value::{ShallowValue, to_plain_text};
use super::styles::ParameterSerializer;
use super::{RequestBuildError, is_json, multipart};
use crate::operation::{
    ArgumentLocation, BodyEncoding, FieldEncoding, Operation, OperationBody, ParameterStyle,
};

/// The encoded body and its content type.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Payload {
    pub(crate) content_type: String,
    pub(crate) bytes: Bytes,
}

/// The arguments that form the body.
pub(super) enum BodyInput<'a> {
    Whole {
        property: &'a str,
        value: &'a RawValue,
    },
    /// Its members by wire name, and the property that each came from.
    Members(Vec<BodyInputMember<'a>>),
}

pub(super) struct BodyInputMember<'a> {
    pub(super) name: &'a str,
    pub(super) property: &'a str,
    pub(super) value: &'a RawValue,
}

/// Builds the body, if there is one.
pub(super) fn build_body(
    operation: &Operation,
    given: &Object,
) -> Result<Option<Payload>, RequestBuildError> {
    let Some(body) = &operation.body else { return Ok(None) };
    let Some(input) = body_input(operation, body, given) else { return Ok(None) };
    let bytes = match body.encoding {
        BodyEncoding::Json => encode_json(&input),
        BodyEncoding::Form => encode_form(body, &input),
        BodyEncoding::Multipart => return multipart::write(body, &input).map(Some),
        BodyEncoding::Text => match &input {
            BodyInput::Whole { value, .. } => to_plain_text(value).unwrap_or_default().into_bytes(),
            BodyInput::Members(_) => encode_json(&input),
        },
        BodyEncoding::Bytes => {
            let BodyInput::Whole { property, value } = input else {
                return Err(RequestBuildError::Document("its body is binary but has members".to_owned()));
            };
            let file = FileArgument::read(value)
                .map_err(|why| RequestBuildError::Argument(property.to_owned(), why))?;
            let content_type = concrete_media_type(&body.media_type)
                .map(str::to_owned)
                .or(file.content_type)
                .unwrap_or_else(|| "application/octet-stream".to_owned());
            return Ok(Some(Payload { content_type, bytes: file.bytes.into() }));
        }
    };
    let content_type = match (concrete_media_type(&body.media_type), body.encoding) {
        (Some(media_type), _) => media_type.to_owned(),
        (None, BodyEncoding::Text) => "text/plain; charset=utf-8".to_owned(),
        (None, _) => "application/json".to_owned(),
    };
    Ok(Some(Payload { content_type, bytes: bytes.into() }))
}

/// Returns a media type that can be sent. One with a wildcard cannot.
pub(super) fn concrete_media_type(media_type: &str) -> Option<&str> {
    let fine = !media_type.contains('*') && media_type.contains('/');
    fine.then_some(media_type)
}

/// Returns the JSON body. `None` if there are no arguments for an optional body.
fn body_input<'a>(
    operation: &'a Operation,
    body: &OperationBody,
    given: &'a Object,
) -> Option<BodyInput<'a>> {
    let whole = operation.arguments.iter().find(|argument| argument.place == ArgumentLocation::Body);
    if let Some(whole) = whole {
        let property = whole.property.as_str();
        return given.get(property).map(|value| BodyInput::Whole { property, value });
    }
    let fields = operation.arguments.iter().filter(|argument| argument.place == ArgumentLocation::BodyField);
    let members: Vec<BodyInputMember<'_>> = fields
        .filter_map(|argument| {
            let value = given.get(&argument.property)?;
            Some(BodyInputMember { name: &argument.wire_name, property: &argument.property, value })
        })
        .collect();
    (body.required || !members.is_empty()).then_some(BodyInput::Members(members))
}

fn encode_json(input: &BodyInput<'_>) -> Vec<u8> {
    match input {
        BodyInput::Whole { value, .. } => value.get().as_bytes().to_vec(),
        BodyInput::Members(members) => {
            let mut object = Object::default();
            for member in members {
                object.set(member.name, member.value.to_owned());
            }
            object.to_raw().get().as_bytes().to_vec()
        }
    }
}

fn encode_form(body: &OperationBody, input: &BodyInput<'_>) -> Vec<u8> {
    let usual = FieldEncoding::default();
    let field =
        |name: &str, value: &RawValue| encode_field(name, value, body.fields.get(name).unwrap_or(&usual));
    let pairs: Vec<String> = match input {
        BodyInput::Members(members) => {
            members.iter().flat_map(|member| field(member.name, member.value)).collect()
        }
        BodyInput::Whole { value, .. } => match ShallowValue::read(value) {
            ShallowValue::Object(members) => {
                members.iter().flat_map(|(name, value)| field(name, value)).collect()
            }
            // The argument is an already encoded form.
            _ => return to_plain_text(value).unwrap_or_default().into_bytes(),
        },
    };
    pairs.join("&").into_bytes()
}

/// Encodes one member of a form. By default, a list repeats the name and an object is JSON.
fn encode_field(name: &str, value: &RawValue, how: &FieldEncoding) -> Vec<String> {
    let as_json = how.content_type.as_deref().is_some_and(is_json);
    let writing = ParameterSerializer {
        name,
        style: how.style.unwrap_or(ParameterStyle::Form),
        explode: how.explode.unwrap_or(how.style.is_none_or(|style| style == ParameterStyle::Form)),
        allow: EncodeSet::in_query(how.allow_reserved),
    };
    let styled = how.style.is_some() || how.explode.is_some();
    let pair = |(name, value): (String, String)| format!("{name}={value}");
    if as_json || (!styled && value.get().starts_with('{')) {
        let text = super::escape::percent_encode(value.get(), EncodeSet::Unreserved);
        return vec![pair((super::escape::percent_encode(name, EncodeSet::Unreserved), text))];
    }
    writing.serialize_pairs(value).into_iter().map(pair).collect()
}
