//! Builds the HTTP request that the document describes from the arguments of a call. This module
//! sends nothing and has no access to configured secrets.

mod body;
mod escape;
mod file;
#[cfg(test)]
pub(crate) mod fixtures;
mod multipart;
mod path;
mod shallow_value;
mod styles;

use http::header::{ACCEPT, COOKIE, HeaderMap, HeaderName, HeaderValue};
use reqwest::Url;
use serde_json::value::RawValue;
use toolyard_hub::json::Object;
use toolyard_hub::{ErrorKind, HubError};

pub(crate) use body::Payload;
pub(crate) use escape::{EncodeSet, percent_encode};

use crate::operation::{Argument, ArgumentLocation, Operation};
use shallow_value::to_plain_text;
use styles::ParameterSerializer;

/// Headers that HTTP itself sets or that the OpenAPI specification excludes from parameters. They
/// are never arguments.
const NOT_ARGUMENTS: [&str; 14] = [
    "accept",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a header cannot be set by an argument.
pub(crate) fn is_reserved_header(header: &str) -> bool {
    NOT_ARGUMENTS.iter().any(|other| other.eq_ignore_ascii_case(header))
}

/// A request as the document describes it, without credentials.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OperationRequest {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// Encoded `name=value` pairs for the `Cookie` header.
    pub(crate) cookies: Vec<String>,
    pub(crate) payload: Option<Payload>,
}

/// Why a request cannot be built.
#[derive(Debug, PartialEq)]
pub(crate) enum RequestBuildError {
    /// The property, and what is wrong with its value.
    Argument(String, String),
    /// The document describes a request that cannot be sent.
    Document(String),
    Internal(String),
}

impl RequestBuildError {
    pub(crate) fn into_error(self, operation: &Operation) -> HubError {
        let place = format!("{} {}", operation.method.as_str(), operation.path);
        match self {
            Self::Argument(property, why) => HubError::new(
                ErrorKind::InvalidArguments,
                format!("the argument `{property}` of `{}` {why}", operation.name),
            ),
            Self::Document(why) => {
                HubError::new(ErrorKind::ToolFailed, format!("cannot build the request {place}: {why}"))
                    .with_suggestion("fix this operation in the OpenAPI document")
            }
            Self::Internal(why) => HubError::new(ErrorKind::Bug, why),
        }
    }
}

/// Builds the request with every argument at its location.
pub(crate) fn build_request(
    operation: &Operation,
    base: &Url,
    arguments: &RawValue,
) -> Result<OperationRequest, RequestBuildError> {
    let given = Object::parse(arguments)
        .map_err(|_| RequestBuildError::Argument("(all)".to_owned(), "must be an object".to_owned()))?;
    let url = build_url(operation, base, &given)?;
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, accept_header(operation));
    let mut cookies = Vec::new();
    for argument in &operation.arguments {
        let Some(raw) = given.get(&argument.property) else { continue };
        match argument.place {
            ArgumentLocation::Header => {
                if let Some((name, value)) = build_header(argument, raw)? {
                    headers.append(name, value);
                }
            }
            ArgumentLocation::Cookie => cookies.extend(argument_pairs(argument, raw)),
            ArgumentLocation::Path
            | ArgumentLocation::Query
            | ArgumentLocation::QueryString
            | ArgumentLocation::Body
            | ArgumentLocation::BodyField => {}
        }
    }
    let payload = body::build_body(operation, &given)?;
    Ok(OperationRequest { url, headers, cookies, payload })
}

impl OperationRequest {
    /// Writes the `Cookie` header. Call it after all cookies have been added.
    pub(crate) fn set_cookie_header(&mut self) -> Result<(), RequestBuildError> {
        if self.cookies.is_empty() {
            return Ok(());
        }
        let value = HeaderValue::from_bytes(self.cookies.join("; ").as_bytes()).map_err(|_| {
            RequestBuildError::Document(
                "a cookie contains characters that are not valid in a header".to_owned(),
            )
        })?;
        self.headers.insert(COOKIE, value);
        Ok(())
    }

    /// Adds a parameter to the query.
    pub(crate) fn add_to_query(&mut self, name: &str, value: &str) {
        let pair = format!(
            "{}={}",
            percent_encode(name, EncodeSet::Unreserved),
            percent_encode(value, EncodeSet::Unreserved)
        );
        let query = match self.url.query().filter(|query| !query.is_empty()) {
            Some(query) => format!("{query}&{pair}"),
            None => pair,
        };
        self.url.set_query(Some(&query));
    }
}

fn build_url(operation: &Operation, base: &Url, given: &Object) -> Result<Url, RequestBuildError> {
    let expanded = path::expand(operation, given)?;
    let mut query: Vec<String> =
        base.query().into_iter().chain(expanded.query.as_deref()).map(str::to_owned).collect();
    for argument in &operation.arguments {
        let Some(raw) = given.get(&argument.property) else { continue };
        match argument.place {
            ArgumentLocation::Query => query.extend(argument_pairs(argument, raw)),
            ArgumentLocation::QueryString => query.extend(serialize_query_string(argument, raw)),
            _ => {}
        }
    }
    query.retain(|part| !part.is_empty());
    let root = base.path().trim_end_matches('/');
    let path = format!("{root}/{}", expanded.path.strip_prefix('/').unwrap_or(&expanded.path));
    let mut url = base.clone();
    url.set_path(&path);
    url.set_fragment(None);
    url.set_query((!query.is_empty()).then(|| query.join("&")).as_deref());
    // The URL parser resolves `..` segments in any encoding. If the path has changed, an argument
    // contained one.
    if url.path() != path || url.origin() != base.origin() {
        let why = "would change the path that the document describes";
        let path_arguments =
            operation.arguments.iter().filter(|argument| argument.place == ArgumentLocation::Path);
        let name = path_arguments.map(|argument| argument.property.as_str()).collect::<Vec<_>>().join(", ");
        return Err(match name.is_empty() {
            true => RequestBuildError::Document("its path changes when it is normalized".to_owned()),
            false => RequestBuildError::Argument(name, why.to_owned()),
        });
    }
    Ok(url)
}

fn argument_pairs(argument: &Argument, raw: &RawValue) -> Vec<String> {
    let (name, allow) = (argument.wire_name.as_str(), EncodeSet::in_query(argument.allow_reserved));
    let pairs = match &argument.content {
        Some(media_type) => serialize_content(media_type, raw)
            .map(|text| (percent_encode(name, EncodeSet::Unreserved), percent_encode(&text, allow)))
            .into_iter()
            .collect(),
        None => ParameterSerializer { name, style: argument.style, explode: argument.explode, allow }
            .serialize_pairs(raw),
    };
    pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect()
}

/// Serializes the whole query string: as a form if its media type says so, else as the text of the
/// value.
fn serialize_query_string(argument: &Argument, raw: &RawValue) -> Option<String> {
    let media_type = argument.content.as_deref().unwrap_or_default();
    let is_form = media_type.starts_with("application/x-www-form-urlencoded") && raw.get().starts_with('{');
    if is_form {
        let writing = ParameterSerializer {
            name: "",
            style: crate::operation::ParameterStyle::Form,
            explode: true,
            allow: EncodeSet::Unreserved,
        };
        let pairs = writing.serialize_pairs(raw).into_iter().map(|(name, value)| format!("{name}={value}"));
        return Some(pairs.collect::<Vec<_>>().join("&"));
    }
    let allow = if is_json(media_type) { EncodeSet::Unreserved } else { EncodeSet::Literal };
    serialize_content(media_type, raw).map(|text| percent_encode(&text, allow))
}

/// Serializes a parameter that is described by a media type: as JSON if the media type is JSON,
/// else as text.
fn serialize_content(media_type: &str, raw: &RawValue) -> Option<String> {
    if is_json(media_type) { Some(raw.get().to_owned()) } else { to_plain_text(raw) }
}

fn build_header(
    argument: &Argument,
    raw: &RawValue,
) -> Result<Option<(HeaderName, HeaderValue)>, RequestBuildError> {
    let name = argument.wire_name.as_str();
    if is_reserved_header(name) {
        return Ok(None);
    }
    let value = match &argument.content {
        Some(media_type) => serialize_content(media_type, raw),
        None => {
            let (style, explode) = (argument.style, argument.explode);
            ParameterSerializer { name, style, explode, allow: EncodeSet::Everything }.serialize_text(raw)
        }
    };
    let Some(value) = value else { return Ok(None) };
    let name = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| RequestBuildError::Document(format!("{name:?} is not a valid header name")))?;
    let wrong = || {
        RequestBuildError::Argument(
            argument.property.clone(),
            "contains characters that are not valid in a header, such as a line break".to_owned(),
        )
    };
    let value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?;
    Ok(Some((name, value)))
}

fn accept_header(operation: &Operation) -> HeaderValue {
    let usual = HeaderValue::from_static("application/json, */*;q=0.5");
    if operation.produces.is_empty() {
        return usual;
    }
    HeaderValue::from_str(&operation.produces.join(", ")).unwrap_or(usual)
}

/// Whether a media type is JSON, including the `+json` suffix.
pub(crate) fn is_json(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind == "text/json" || kind.ends_with("+json")
}

#[cfg(test)]
mod tests;
