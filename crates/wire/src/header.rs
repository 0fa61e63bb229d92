//! The HTTP headers that mirror a modern request. Headers and body must agree. Otherwise, a proxy
//! that routes by header and the server that acts on the body would see different requests.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::meta::{Meta, RoutingParams};
use crate::rpc_error::RpcError;

pub(crate) const VERSION: &str = "mcp-protocol-version";
pub(crate) const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Checks `MCP-Protocol-Version` against `_meta`.
pub(crate) fn check_version(headers: &HeaderMap, meta: &Meta) -> Result<(), RpcError> {
    match (header_text(headers, VERSION)?, meta.version.as_deref()) {
        (Some(header), Some(body)) if header != body => Err(mismatched_header(VERSION, header, body)),
        (None, Some(_)) => Err(missing(VERSION)),
        _ => Ok(()),
    }
}

/// Checks `Mcp-Method` against the method.
pub(crate) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    match header_text(headers, METHOD)? {
        Some(header) if header == method => Ok(()),
        Some(header) => Err(mismatched_header(METHOD, header, method)),
        None => Err(missing(METHOD)),
    }
}

/// Checks `Mcp-Name` against the name or URI, for the methods that have one.
pub(crate) fn check_name(
    headers: &HeaderMap,
    method: &str,
    heading: &RoutingParams<'_>,
) -> Result<(), RpcError> {
    let named = match method {
        "tools/call" | "prompts/get" => heading.name,
        "resources/read" => heading.uri,
        _ => None,
    };
    let body = named.and_then(|name| serde_json::from_str::<Cow<'_, str>>(name.get()).ok());
    // A request without a name has nothing to mirror. The service reports the missing name.
    let Some(body) = body else { return Ok(()) };
    let header = header_text(headers, NAME)?.ok_or_else(|| missing(NAME))?;
    let decoded = decode(header).ok_or_else(|| unreadable(NAME))?;
    if decoded == body { Ok(()) } else { Err(mismatched_header(NAME, &decoded, &body)) }
}

/// Checks `Mcp-Param-*` against the arguments, for the parameters that the schema marks with
/// `x-mcp-header`.
pub fn check_params(
    headers: &HeaderMap,
    schema: &RawValue,
    arguments: Option<&RawValue>,
) -> Result<(), RpcError> {
    if memchr::memmem::find(schema.get().as_bytes(), b"x-mcp-header").is_none() {
        return Ok(());
    }
    let schema: Value = serde_json::from_str(schema.get()).unwrap_or_default();
    let arguments: Value = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    check_properties(headers, &schema, &arguments)
}

fn check_properties(headers: &HeaderMap, schema: &Value, arguments: &Value) -> Result<(), RpcError> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, property) in properties {
        let value = arguments.get(name).unwrap_or(&Value::Null);
        if let Some(suffix) = property.get("x-mcp-header").and_then(Value::as_str) {
            check_param(headers, &format!("mcp-param-{}", suffix.to_ascii_lowercase()), value)?;
        }
        check_properties(headers, property, value)?;
    }
    Ok(())
}

fn check_param(headers: &HeaderMap, header: &str, value: &Value) -> Result<(), RpcError> {
    let body = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        // Values of these types cannot be mirrored. The schema decides whether they are allowed.
        Value::Null | Value::Array(_) | Value::Object(_) => return Ok(()),
    };
    let actual = header_text(headers, header)?.ok_or_else(|| missing(header))?;
    let actual = decode(actual).ok_or_else(|| unreadable(header))?;
    let same = match value {
        // 42.0 and 42 are the same number.
        Value::Number(number) => {
            actual == body || actual.parse().is_ok_and(|actual: f64| number.as_f64() == Some(actual))
        }
        _ => actual == body,
    };
    if same { Ok(()) } else { Err(mismatched_header(header, &actual, &body)) }
}

/// Adds `Mcp-Method` to the headers of an outgoing request.
pub fn mirror_method(headers: &mut HeaderMap, method: &'static str) {
    headers.insert(HeaderName::from_static(METHOD), HeaderValue::from_static(method));
}

/// Adds `Mcp-Name` to the headers of an outgoing request.
pub fn mirror_name(headers: &mut HeaderMap, name: &str) {
    headers.insert(HeaderName::from_static(NAME), encode(name));
}

/// Adds `Mcp-Param-*` to the headers of an outgoing request. Fails if the schema cannot be
/// mirrored: clients must not call such a tool.
pub fn mirror_params(headers: &mut HeaderMap, schema: &RawValue, arguments: &RawValue) -> Result<(), String> {
    if memchr::memmem::find(schema.get().as_bytes(), b"x-mcp-header").is_none() {
        return Ok(());
    }
    let schema: Value = serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
    let arguments: Value = serde_json::from_str(arguments.get()).unwrap_or_default();
    mirror_properties(headers, &schema, &arguments)
}

fn mirror_properties(headers: &mut HeaderMap, schema: &Value, arguments: &Value) -> Result<(), String> {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return Ok(()) };
    for (name, property) in properties {
        let value = arguments.get(name).unwrap_or(&Value::Null);
        if let Some(suffix) = property.get("x-mcp-header").and_then(Value::as_str) {
            let header = HeaderName::try_from(format!("mcp-param-{suffix}"))
                .map_err(|_| format!("`x-mcp-header` {suffix:?} is not a valid header name"))?;
            let text = match value {
                Value::String(text) => Some(text.clone()),
                Value::Number(number) => Some(number.to_string()),
                Value::Bool(flag) => Some(flag.to_string()),
                Value::Null | Value::Array(_) | Value::Object(_) => None,
            };
            if let Some(text) = text {
                headers.insert(header, encode(&text));
            }
        }
        mirror_properties(headers, property, value)?;
    }
    Ok(())
}

/// Checks the `x-mcp-header` annotations of a schema against the rules of the protocol.
pub fn check_annotations(schema: &RawValue) -> Result<(), String> {
    let schema: Value = serde_json::from_str(schema.get()).map_err(|error| error.to_string())?;
    let mut seen = std::collections::HashSet::new();
    check_schema_annotations(&schema, AnnotationPosition::Root, &mut seen)
}

/// A position in a schema. Annotations are valid only on properties that are reached through
/// `properties` alone.
#[derive(Clone, Copy, PartialEq)]
enum AnnotationPosition {
    Root,
    Property,
    Elsewhere,
}

fn check_schema_annotations(
    schema: &Value,
    place: AnnotationPosition,
    seen: &mut std::collections::HashSet<String>,
) -> Result<(), String> {
    let Some(members) = schema.as_object() else {
        return match schema {
            Value::Array(items) => items
                .iter()
                .try_for_each(|item| check_schema_annotations(item, AnnotationPosition::Elsewhere, seen)),
            _ => Ok(()),
        };
    };
    if let Some(annotation) = members.get("x-mcp-header") {
        let suffix = annotation.as_str().filter(|suffix| !suffix.is_empty());
        let suffix = suffix.ok_or("`x-mcp-header` must be a non-empty string")?;
        let token =
            suffix.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        if !token {
            return Err(format!("`x-mcp-header` {suffix:?} is not a valid header name"));
        }
        if place != AnnotationPosition::Property {
            return Err(format!("`x-mcp-header` {suffix:?} is not on a plain property"));
        }
        if !matches!(members.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean")) {
            return Err(format!(
                "`x-mcp-header` {suffix:?} is on a parameter that is not a string, integer or boolean"
            ));
        }
        if !seen.insert(suffix.to_ascii_lowercase()) {
            return Err(format!("`x-mcp-header` {suffix:?} is used more than once"));
        }
    }
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) if place != AnnotationPosition::Elsewhere => {
                for property in properties.values() {
                    check_schema_annotations(property, AnnotationPosition::Property, seen)?;
                }
            }
            ("const" | "default" | "enum" | "examples" | "x-mcp-header", _) => {}
            (_, value) => check_schema_annotations(value, AnnotationPosition::Elsewhere, seen)?,
        }
    }
    Ok(())
}

/// Returns the value of a header without surrounding whitespace.
pub(crate) fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    value.to_str().map(|text| Some(text.trim_matches([' ', '\t']))).map_err(|_| unreadable(name))
}

/// Encodes a value as `=?base64?…?=` unless a header can carry it unmodified.
fn encode(text: &str) -> HeaderValue {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let encoded = if plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) };
    HeaderValue::try_from(encoded).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Decodes `=?base64?…?=` and returns any other value unmodified. `None` if the base64 is invalid.
fn decode(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn missing(header: &str) -> RpcError {
    RpcError::header_mismatch(format!("header `{header}` is missing"))
}

fn unreadable(header: &str) -> RpcError {
    RpcError::header_mismatch(format!("header `{header}` has an invalid value"))
}

fn mismatched_header(header: &str, actual: &str, body: &str) -> RpcError {
    RpcError::header_mismatch(format!("header `{header}` is {actual:?}, but the body has {body:?}"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use serde_json::value::RawValue;

    use super::{check_name, check_params, mirror_name, mirror_params};
    use crate::meta::RoutingParams;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn param(header: Option<&str>, arguments: &str) -> bool {
        let schema = r#"{"properties":{"region":{"type":"string","x-mcp-header":"Region"},
            "deep":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}"#;
        let mut headers = HeaderMap::new();
        if let Some(value) = header {
            headers.insert("mcp-param-region", HeaderValue::from_str(value).unwrap());
        }
        headers.insert("mcp-param-n", HeaderValue::from_static("42.0"));
        check_params(&headers, &raw(schema), Some(&raw(arguments))).is_ok()
    }

    #[test]
    fn marked_parameters_must_be_mirrored() {
        assert!(param(Some("us"), r#"{"region":"us"}"#));
        assert!(!param(Some("eu"), r#"{"region":"us"}"#));
        assert!(!param(None, r#"{"region":"us"}"#));
        assert!(param(None, r#"{"region":null}"#));
        assert!(param(None, "{}"));
        assert!(param(Some("=?base64?SGVsbG8=?="), r#"{"region":"Hello"}"#));
        assert!(!param(Some("=?base64?SGVsbG8?="), r#"{"region":"Hello"}"#));
        assert!(param(Some("=?base64?SGVsbG8="), r#"{"region":"=?base64?SGVsbG8="}"#));
        assert!(param(None, r#"{"deep":{"n":42}}"#));
        assert!(!param(None, r#"{"deep":{"n":43}}"#));
    }

    #[test]
    fn names_are_compared_decoded_and_trimmed() {
        let name = |header: &'static str, method: &str, params: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("mcp-name", HeaderValue::from_static(header));
            check_name(&headers, method, &RoutingParams::read(Some(&raw(params))).unwrap()).is_ok()
        };
        assert!(name("  echo ", "tools/call", r#"{"name":"echo"}"#));
        assert!(name("=?base64?w6k=?=", "prompts/get", r#"{"name":"é"}"#));
        assert!(!name("Echo", "tools/call", r#"{"name":"echo"}"#));
        assert!(name("anything", "tools/list", "{}"));
        assert!(!name("x", "resources/read", r#"{"uri":"y"}"#));
    }

    #[test]
    fn what_we_mirror_passes_our_own_check() {
        let schema = raw(
            r#"{"properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":"integer","x-mcp-header":"N"}}}"#,
        );
        for text in ["plain", " padded ", "héé", "a\nb", "=?base64?x?=", ""] {
            let arguments = raw(&serde_json::json!({"s": text, "n": -7}).to_string());
            let mut headers = HeaderMap::new();
            mirror_params(&mut headers, &schema, &arguments).unwrap();
            assert!(check_params(&headers, &schema, Some(&arguments)).is_ok(), "{text:?} {headers:?}");
            mirror_name(&mut headers, text);
            let params = raw(&serde_json::json!({"name": text}).to_string());
            let heading = RoutingParams::read(Some(&params)).unwrap();
            assert!(check_name(&headers, "tools/call", &heading).is_ok(), "{text:?}");
        }
        let bad = raw(r#"{"properties":{"s":{"type":"string","x-mcp-header":"a b"}}}"#);
        assert!(mirror_params(&mut HeaderMap::new(), &bad, &raw("{}")).is_err());
    }
}
