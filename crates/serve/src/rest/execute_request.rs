//! Parses an execute request: the body, within limits of size and time, the headers and the query.
//! The result is validated and unambiguous.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, StatusCode, header, request};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, empty_object};
use toolyard_hub::{ErrorKind, Priority, Raw, SchemaViolation};

use super::errors::RestError;
use super::query::Query;
use super::{RestSettings, strict_json};

const KEY_HEADER: &str = "idempotency-key";
/// Maximum length of a string in the context, in characters.
const LONGEST: usize = 255;
const CONTENT: &str = "application/vnd.toolyard.content+json";

/// A parsed execute request.
#[derive(Debug)]
pub(super) struct ExecuteRequest {
    /// The tool named in the body, if any.
    pub(super) tool: Option<String>,
    pub(super) params: Raw,
    pub(super) context: ExecuteContext,
    pub(super) response_mode: ResponseMode,
    pub(super) content: ContentDetail,
    pub(super) on_disconnect: DisconnectPolicy,
}

/// The `context` of a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ExecuteContext {
    pub(super) session_id: Option<String>,
    pub(super) user_id: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(super) priority: Priority,
    pub(super) key: Option<String>,
    /// The requested version of the tool.
    pub(super) version: Option<String>,
}

/// The format of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResponseMode {
    Json,
    Events,
}

/// How much of the outcome the response contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentDetail {
    Result,
    /// The result and all content blocks.
    Full,
}

/// What happens to the call when the client disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DisconnectPolicy {
    Cancel,
    /// The call continues, and its outcome can be fetched later.
    Detach,
}

/// Reads and validates a request.
pub(super) async fn read(
    parts: &request::Parts,
    body: Body,
    settings: &RestSettings,
) -> Result<ExecuteRequest, RestError> {
    debug_assert_eq!(parts.method, Method::POST);
    let mut query = Query::read(parts.uri.query());
    let full =
        query.take_keyword("content", &[("full", ContentDetail::Full), ("result", ContentDetail::Result)]);
    let hang_up = query
        .take_keyword("detach", &[("true", DisconnectPolicy::Detach), ("false", DisconnectPolicy::Cancel)]);
    query.finish()?;
    let (form, accepted) = negotiate_response(&parts.headers);
    let bytes = read_body(&parts.headers, body, settings).await?;
    let wrong = |reason: String| RestError::invalid_at("", reason, Value::Null);
    let text = std::str::from_utf8(&bytes)
        .map_err(|error| wrong(format!("the body is not valid UTF-8: {error}")))?;
    strict_json::check(text).map_err(|error| wrong(format!("the body is not valid JSON: {error}")))?;
    let header_key = header_key(&parts.headers)?;
    let (tool, params, context) = read_members(text, header_key)?;
    let content = full.unwrap_or(accepted);
    Ok(ExecuteRequest {
        tool,
        params,
        context,
        response_mode: form,
        content,
        on_disconnect: hang_up.unwrap_or(DisconnectPolicy::Cancel),
    })
}

async fn read_body(
    headers: &HeaderMap,
    body: Body,
    settings: &RestSettings,
) -> Result<hyper::body::Bytes, RestError> {
    if !is_json(headers) {
        let message = "the content type must be application/json in UTF-8, without a content encoding";
        return Err(RestError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UNSUPPORTED_MEDIA_TYPE", message));
    }
    let too_large = || {
        RestError::from_kind(
            ErrorKind::TooLarge,
            format!("the request body exceeds the limit of {} bytes", settings.body),
        )
    };
    let announced =
        headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > settings.body as u64) {
        return Err(too_large());
    }
    match tokio::time::timeout(settings.body_time, Limited::new(body, settings.body).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large()),
        Ok(Err(error)) => {
            Err(RestError::invalid_at("", format!("cannot read the body: {error}"), Value::Null))
        }
        Err(_) => Err(RestError::new(
            StatusCode::REQUEST_TIMEOUT,
            "TIMEOUT_ERROR",
            "the body was not received in time",
        )),
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value: &header::HeaderValue| value.to_str().unwrap_or("?"));
    let mut kind = text(header::CONTENT_TYPE).unwrap_or_default().split(';').map(str::trim);
    let named = kind.next().is_some_and(|name| name.eq_ignore_ascii_case("application/json"));
    let utf8 = kind.filter_map(|parameter| parameter.split_once('=')).all(|(name, value)| {
        !name.trim().eq_ignore_ascii_case("charset")
            || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    let plain =
        text(header::CONTENT_ENCODING).is_none_or(|encoding| encoding.eq_ignore_ascii_case("identity"));
    named && utf8 && plain
}

/// Selects the response format with the highest weight in the Accept header. Among equal weights,
/// the first one wins.
fn negotiate_response(headers: &HeaderMap) -> (ResponseMode, ContentDetail) {
    let mut best = (0.0, (ResponseMode::Json, ContentDetail::Result));
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    for range in values.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = match parts.next().unwrap_or_default().to_ascii_lowercase().as_str() {
            "text/event-stream" => (ResponseMode::Events, ContentDetail::Result),
            CONTENT => (ResponseMode::Json, ContentDetail::Full),
            "application/json" | "application/*" | "*/*" => (ResponseMode::Json, ContentDetail::Result),
            _ => continue,
        };
        let weight =
            parts.find_map(|parameter| parameter.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f32>);
        match weight {
            Ok(weight) if weight > best.0 => best = (weight, kind),
            _ => {}
        }
    }
    best.1
}

fn header_key(headers: &HeaderMap) -> Result<Option<String>, RestError> {
    let mut values = headers.get_all(KEY_HEADER).iter();
    let Some(first) = values.next() else { return Ok(None) };
    let wrong = |reason: &str| RestError::invalid_at("Idempotency-Key", reason, Value::Null);
    if values.next().is_some() {
        return Err(wrong("must not be repeated"));
    }
    let key = first.to_str().map_err(|_| wrong("must be printable ASCII"))?;
    if key.is_empty() || key.len() > LONGEST {
        return Err(wrong("must have 1 to 255 characters"));
    }
    Ok(Some(key.to_owned()))
}

/// Reason for an unknown member.
const UNKNOWN: &str = "unknown member";

/// Reads the members of the body and collects all violations.
fn read_members(
    text: &str,
    header_key: Option<String>,
) -> Result<(Option<String>, Raw, ExecuteContext), RestError> {
    let no_object = |_| RestError::invalid_at("", "the body must be an object", Value::Null);
    let mut members: Object = serde_json::from_str(text).map_err(no_object)?;
    let mut wrong = Vec::new();
    let tool = member(&mut members, "", "tool", "a string", &mut wrong);
    let (params, unknown) = match members.remove("params") {
        Some(params) if params.get().starts_with('{') => (params, UNKNOWN),
        Some(params) => {
            wrong.push(SchemaViolation::new("/params", "must be an object", provided(&params)));
            (params, UNKNOWN)
        }
        None => (empty_object(), "unknown member; tool arguments belong in `params`"),
    };
    let context = match members.remove("context") {
        Some(context) if context.get() == "null" => ExecuteContext::default(),
        Some(context) => read_context(&context, &mut wrong),
        None => ExecuteContext::default(),
    };
    reject_unknown_members(&members, "", unknown, &mut wrong);
    if !wrong.is_empty() {
        return Err(RestError::invalid(&wrong));
    }
    let context = match (header_key, &context.key) {
        (Some(header), Some(key)) if header != *key => {
            let reason = "differs from the Idempotency-Key header";
            let failure = RestError::invalid_at("/context/idempotencyKey", reason, Value::from(key.clone()));
            return Err(RestError { status: StatusCode::CONFLICT, ..failure });
        }
        (Some(header), _) => ExecuteContext { key: Some(header), ..context },
        (None, _) => context,
    };
    Ok((tool, params, context))
}

fn read_context(raw: &RawValue, wrong: &mut Vec<SchemaViolation>) -> ExecuteContext {
    let Ok(mut members) = Object::parse(raw) else {
        wrong.push(SchemaViolation::new("/context", "must be an object", provided(raw)));
        return ExecuteContext::default();
    };
    let mut text = |name: &str, least: usize| {
        let given: Option<String> = member(&mut members, "/context", name, "a string", wrong);
        given.filter(|given| {
            let length = given.chars().count();
            let fits = (least..=LONGEST).contains(&length);
            if !fits {
                let reason = format!("must have {least} to {LONGEST} characters");
                wrong.push(SchemaViolation::new(format!("/context/{name}"), reason, Value::Null));
            }
            fits
        })
    };
    let (session_id, user_id, key) = (text("sessionId", 0), text("userId", 0), text("idempotencyKey", 1));
    let version = text("version", 1);
    let timeout: Option<f64> = member(&mut members, "/context", "timeout", "a number of milliseconds", wrong);
    let priority: Option<PriorityParam> =
        member(&mut members, "/context", "priority", "one of: low, normal, high", wrong);
    let timeout = timeout.and_then(|millis| {
        if millis <= 0.0 {
            wrong.push(SchemaViolation::new(
                "/context/timeout",
                "must be greater than 0",
                Value::from(millis),
            ));
            return None;
        }
        // A value beyond the range of `Duration` means no limit.
        Duration::try_from_secs_f64(millis / 1_000.0).ok()
    });
    reject_unknown_members(&members, "/context", UNKNOWN, wrong);
    let priority = priority.map(PriorityParam::priority).unwrap_or_default();
    ExecuteContext { session_id, user_id, timeout, priority, key, version }
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum PriorityParam {
    Low,
    Normal,
    High,
}

impl PriorityParam {
    fn priority(self) -> Priority {
        match self {
            Self::Low => Priority::Low,
            Self::Normal => Priority::Normal,
            Self::High => Priority::High,
        }
    }
}

/// Reads an optional member. `null` means absent.
fn member<T: for<'de> Deserialize<'de>>(
    members: &mut Object,
    parent: &str,
    name: &str,
    expected: &str,
    wrong: &mut Vec<SchemaViolation>,
) -> Option<T> {
    let raw = members.remove(name)?;
    match serde_json::from_str::<Option<T>>(raw.get()) {
        Ok(value) => value,
        Err(_) => {
            let pointer = format!("{parent}/{name}");
            wrong.push(SchemaViolation::new(pointer, format!("must be {expected}"), provided(&raw)));
            None
        }
    }
}

fn reject_unknown_members(members: &Object, parent: &str, reason: &str, wrong: &mut Vec<SchemaViolation>) {
    /// Further unknown members are not reported.
    const MOST_REPORTED: usize = 20;
    for (name, value) in members.members().take(MOST_REPORTED) {
        let name: String = name.chars().take(200).collect::<String>().replace('~', "~0").replace('/', "~1");
        wrong.push(SchemaViolation::new(format!("{parent}/{name}"), reason, provided(value)));
    }
}

/// Returns the provided value, or null if it is too long to echo.
fn provided(raw: &RawValue) -> Value {
    const LONGEST: usize = 4096;
    if raw.get().len() > LONGEST { Value::Null } else { serde_json::from_str(raw.get()).unwrap_or_default() }
}

#[cfg(test)]
mod tests;
