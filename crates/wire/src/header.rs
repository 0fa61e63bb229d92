//! The HTTP headers that mirror a modern request: both must say the same, or whoever routes by header and
//! whoever acts on the body would see two different requests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::meta::Meta;
use crate::rpc_error::RpcError;

pub(crate) const VERSION: &str = "mcp-protocol-version";
pub(crate) const SESSION: &str = "mcp-session-id";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// `MCP-Protocol-Version` against `_meta`.
pub(crate) fn check_version(headers: &HeaderMap, meta: &Meta) -> Result<(), RpcError> {
    match (text(headers, VERSION)?, meta.version.as_deref()) {
        (Some(header), Some(body)) if header != body => Err(differs(VERSION, header, body)),
        (None, Some(_)) => Err(missing(VERSION)),
        _ => Ok(()),
    }
}

/// `Mcp-Method` against the method.
pub(crate) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    match text(headers, METHOD)? {
        Some(header) if header == method => Ok(()),
        Some(header) => Err(differs(METHOD, header, method)),
        None => Err(missing(METHOD)),
    }
}

/// `Mcp-Name` against the name or URI, for the methods that have one.
pub(crate) fn check_name(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
) -> Result<(), RpcError> {
    #[derive(Deserialize)]
    struct Named {
        name: Option<Value>,
        uri: Option<Value>,
    }
    let of = |named: Named| match method {
        "tools/call" | "prompts/get" => named.name,
        "resources/read" => named.uri,
        _ => None,
    };
    let named = params.and_then(|params| serde_json::from_str(params.get()).ok()).and_then(of);
    // A request without a name has nothing to mirror; the service says what is wrong with it.
    let Some(Value::String(body)) = named else { return Ok(()) };
    let header = text(headers, NAME)?.ok_or_else(|| missing(NAME))?;
    let decoded = decode(header).ok_or_else(|| unreadable(NAME))?;
    if decoded == body { Ok(()) } else { Err(differs(NAME, &decoded, &body)) }
}

/// `Mcp-Param-*` against the arguments, for the parameters that the schema marks with `x-mcp-header`.
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
        // A value that cannot be mirrored is not expected to be; the schema says whether it may be there.
        Value::Null | Value::Array(_) | Value::Object(_) => return Ok(()),
    };
    let said = text(headers, header)?.ok_or_else(|| missing(header))?;
    let said = decode(said).ok_or_else(|| unreadable(header))?;
    let same = match value {
        // 42.0 and 42 are the same number.
        Value::Number(number) => {
            said == body || said.parse().is_ok_and(|said: f64| number.as_f64() == Some(said))
        }
        _ => said == body,
    };
    if same { Ok(()) } else { Err(differs(header, &said, &body)) }
}

/// The value of a header without the white space around it.
pub(crate) fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, RpcError> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    value.to_str().map(|text| Some(text.trim_matches([' ', '\t']))).map_err(|_| unreadable(name))
}

/// Undoes `=?base64?…?=`; anything else is itself. `None` if the base64 is wrong.
fn decode(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}

fn missing(header: &str) -> RpcError {
    RpcError::header_mismatch(format!("the header {header} is missing"))
}

fn unreadable(header: &str) -> RpcError {
    RpcError::header_mismatch(format!("the header {header} cannot be read"))
}

fn differs(header: &str, said: &str, body: &str) -> RpcError {
    RpcError::header_mismatch(format!("the header {header} says {said:?}, the body says {body:?}"))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue};
    use serde_json::value::RawValue;

    use super::{check_name, check_params};

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
            check_name(&headers, method, Some(&raw(params))).is_ok()
        };
        assert!(name("  echo ", "tools/call", r#"{"name":"echo"}"#));
        assert!(name("=?base64?w6k=?=", "prompts/get", r#"{"name":"é"}"#));
        assert!(!name("Echo", "tools/call", r#"{"name":"echo"}"#));
        assert!(name("anything", "tools/list", "{}"));
        assert!(!name("x", "resources/read", r#"{"uri":"y"}"#));
    }
}
