//! Responses to MCP clients: results with the fields of the modern era, and hub errors as protocol
//! errors. `error_result` is the only mapping from error kinds to JSON-RPC errors.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_hub::json::{Object, contains_text, from_text, to_raw};
use toolyard_hub::{ErrorKind, HubError, SourceError};
use toolyard_wire::{Era, RawJson, RpcError, Version, code};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// How long a client may cache a result, and whether it may share the cached result.
#[derive(Debug, Clone, Copy)]
pub(super) struct CachePolicy {
    ttl: Duration,
    scope: &'static str,
}

impl CachePolicy {
    pub(super) fn public(ttl: Duration) -> Self {
        Self { ttl, scope: "public" }
    }

    pub(super) fn private(ttl: Duration) -> Self {
        Self { ttl, scope: "private" }
    }
}

/// Adds the fields of the modern era to a result. A result that already has them stays unchanged.
pub(super) fn ensure_modern_fields(info: &RawValue, result: RawJson) -> RawJson {
    if has_modern_fields(&result) { result } else { add_modern_fields(info, &result, |_| {}) }
}

/// Returns whether a result already has the fields of the modern era, as that of a modern source
/// does.
fn has_modern_fields(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct ModernResult<'a> {
        #[serde(borrow, rename = "resultType")]
        _kind: &'a RawValue,
        #[serde(borrow, rename = "_meta")]
        _meta: Meta<'a>,
    }
    #[derive(Deserialize)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/serverInfo")]
        _info: &'a RawValue,
    }
    // A cheap check first: only a modern source sends its server information.
    contains_text(result, SERVER_INFO) && serde_json::from_str::<ModernResult<'_>>(result.get()).is_ok()
}

/// Adds the fields of the modern era and the cache policy to a result.
pub(super) fn cacheable(info: &RawValue, result: &RawValue, cache: CachePolicy) -> RawJson {
    add_modern_fields(info, result, |object| {
        let ttl = u64::try_from(cache.ttl.as_millis()).unwrap_or(u64::MAX);
        for (key, value) in [("ttlMs", to_raw(&ttl)), ("cacheScope", to_raw(cache.scope))] {
            if !object.contains(key) {
                object.set(key, value);
            }
        }
    })
}

/// Removes the fields of the modern era from a result for a legacy client.
pub(super) fn strip_modern_fields(result: &RawValue) -> RawJson {
    let Ok(mut object) = Object::parse(result) else { return result.to_owned() };
    for key in ["resultType", "ttlMs", "cacheScope"] {
        object.remove(key);
    }
    if let Some(Ok(mut meta)) = object.get("_meta").map(Object::parse) {
        meta.remove(SERVER_INFO);
        if meta.is_empty() { drop(object.remove("_meta")) } else { object.set("_meta", meta.to_raw()) }
    }
    object.to_raw()
}

fn add_modern_fields(info: &RawValue, result: &RawValue, more: impl FnOnce(&mut Object)) -> RawJson {
    // A result that is not an object cannot be extended. It is passed on unchanged.
    let Ok(mut object) = Object::parse(result) else { return result.to_owned() };
    if !object.contains("resultType") {
        object.set("resultType", to_raw("complete"));
    }
    more(&mut object);
    let mut meta = object.get("_meta").and_then(|meta| Object::parse(meta).ok()).unwrap_or_default();
    if !meta.contains(SERVER_INFO) {
        meta.set(SERVER_INFO, info.to_owned());
        object.set("_meta", meta.to_raw());
    }
    object.to_raw()
}

/// Puts the chunks that a tool streamed before its result. MCP has no partial results, and nothing
/// may be lost.
pub(super) fn with_chunks(body: &RawValue, chunks: &[Value]) -> RawJson {
    let Ok(mut object) = Object::parse(body) else { return body.to_owned() };
    let content: Vec<RawJson> = object
        .get("content")
        .and_then(|content| serde_json::from_str(content.get()).ok())
        .unwrap_or_default();
    let blocks = chunks.iter().map(|chunk| {
        let text = match chunk {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        to_raw(&serde_json::json!({"type": "text", "text": text}))
    });
    let all: Vec<RawJson> = blocks.chain(content).collect();
    let texts: Vec<&str> = all.iter().map(|block| block.get()).collect();
    object.set("content", from_text(format!("[{}]", texts.join(","))));
    object.to_raw()
}

/// How an error is reported. Only the result of a tool can report a failure; all other requests
/// need a JSON-RPC error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorReporting {
    Tool,
    Other,
}

pub(super) fn error_result(
    error: &HubError,
    version: Version,
    reporting: ErrorReporting,
) -> Result<RawJson, RpcError> {
    let modern = version.era() == Era::Modern;
    if let Some(origin) = error.source_error() {
        return Err(forward_source_error(origin, modern));
    }
    let code = match error.kind() {
        ErrorKind::UnknownTool | ErrorKind::UnknownPrompt => code::INVALID_PARAMS,
        ErrorKind::UnknownResource if modern => code::INVALID_PARAMS,
        ErrorKind::UnknownResource => code::RESOURCE_NOT_FOUND,
        ErrorKind::InvalidArguments if version >= Version::V2025_11_25 => {
            return tool_error_result(error, reporting, code::INVALID_PARAMS);
        }
        ErrorKind::InvalidArguments => code::INVALID_PARAMS,
        // Over HTTP these become status 401 and 413 earlier. Only stdio gets here.
        ErrorKind::Unauthenticated | ErrorKind::TooLarge => code::INVALID_REQUEST,
        ErrorKind::Forbidden
        | ErrorKind::RateLimited
        | ErrorKind::TimedOut
        | ErrorKind::Cancelled
        | ErrorKind::NotConnected
        | ErrorKind::CannotConnect
        | ErrorKind::ConnectionLost
        | ErrorKind::ToolFailed => return tool_error_result(error, reporting, code::INTERNAL),
        ErrorKind::ClientCannot if modern => {
            let required = error.details().cloned().unwrap_or_else(|| json!({}));
            let data = json!({"requiredCapabilities": required});
            return Err(
                RpcError::new(code::MISSING_CAPABILITY, error.message_with_suggestion()).with_data(data)
            );
        }
        ErrorKind::ClientCannot => return tool_error_result(error, reporting, code::INVALID_REQUEST),
        ErrorKind::Bug => code::INTERNAL,
    };
    Err(rpc(code, error))
}

/// Returns the error for an exceeded quota or rate limit of a request other than a tool call.
pub(super) fn quota_error(error: &HubError) -> RpcError {
    // The request itself is valid, so the HTTP status stays 200.
    let data = error
        .retry_after()
        .map(|wait| json!({"retryAfterMs": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)}));
    let error = RpcError::new(code::INTERNAL, error.message_with_suggestion()).with_status(200);
    data.into_iter().fold(error, RpcError::with_data)
}

/// Forwards an error of a source, with the codes of the client's era.
fn forward_source_error(origin: &SourceError, modern: bool) -> RpcError {
    let code = match origin.code {
        code::RESOURCE_NOT_FOUND if modern => code::INVALID_PARAMS,
        other => other,
    };
    let error = RpcError::new(code, origin.message.clone());
    // Only this code concerns the request itself. The others concern its execution.
    let error = if code == code::MISSING_CAPABILITY { error } else { error.with_status(200) };
    origin.data.iter().cloned().fold(error, RpcError::with_data)
}

/// Reports an error as a failed tool result, or as a JSON-RPC error if the request is not a tool
/// call.
fn tool_error_result(error: &HubError, reporting: ErrorReporting, code: i64) -> Result<RawJson, RpcError> {
    match reporting {
        ErrorReporting::Tool => Ok(to_raw(&json!({
            "content": [{"type": "text", "text": error.message_with_suggestion()}],
            "isError": true,
        }))),
        ErrorReporting::Other => Err(rpc(code, error)),
    }
}

fn rpc(code: i64, error: &HubError) -> RpcError {
    let rpc = RpcError::new(code, error.message_with_suggestion());
    match error.details() {
        Some(details) if *details != Value::Null => rpc.with_data(details.clone()),
        _ => rpc,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fmt::Write;

    use toolyard_hub::{ErrorKind, HubError};
    use toolyard_wire::Version;

    use super::{ErrorReporting, error_result};

    /// Describes how an error of this kind is reported to a client.
    fn describe_error_response(kind: ErrorKind, version: Version, reporting: ErrorReporting) -> String {
        match error_result(&HubError::new(kind, "x"), version, reporting) {
            Ok(_) => "result with isError".to_owned(),
            Err(error) => error.code.to_string(),
        }
    }

    /// Describes how an error of a tool call is reported, for the manual.
    pub(crate) fn describe_tool_error(kind: ErrorKind, version: Version) -> String {
        describe_error_response(kind, version, ErrorReporting::Tool)
    }

    #[test]
    fn every_kind_of_error_has_its_words() {
        let mut table = String::new();
        for kind in ErrorKind::ALL {
            for (version, reporting) in [
                (Version::V2025_06_18, ErrorReporting::Tool),
                (Version::V2025_11_25, ErrorReporting::Tool),
                (Version::V2026_07_28, ErrorReporting::Tool),
                (Version::V2025_11_25, ErrorReporting::Other),
                (Version::V2026_07_28, ErrorReporting::Other),
            ] {
                let response = describe_error_response(kind, version, reporting);
                writeln!(table, "{:<26} {version} {reporting:<5?} {response}", kind.as_str()).unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }
}
