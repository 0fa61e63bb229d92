//! What goes back to an MCP client: results with what the modern era adds to them, and errors of the hub in the words of the
//! protocol. `error_result` is the one table from kinds of errors to JSON-RPC errors.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_hub::json::{Object, contains_text, from_text, to_raw};
use toolyard_hub::{ErrorKind, HubError, SourceError};
use toolyard_wire::{Era, RawJson, RpcError, Version, code};

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// How long, and for whom, a client may keep a result.
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

/// A finished result. One that says itself what kind it is keeps its word.
pub(super) fn ensure_modern_fields(info: &RawValue, result: RawJson) -> RawJson {
    if has_modern_fields(&result) { result } else { add_modern_fields(info, &result, |_| {}) }
}

/// Whether a result says everything already, as that of a modern source does.
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
    // A cheap look first: only a modern source names itself.
    contains_text(result, SERVER_INFO) && serde_json::from_str::<ModernResult<'_>>(result.get()).is_ok()
}

/// A finished result that may be kept.
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

/// A modern source's result for a legacy client: without what that era does not know.
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
    // A result that is no object cannot be added to; it goes out as the source sent it.
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

/// Puts what a tool streamed before what it returned: MCP has no partial results, and nothing may be lost.
pub(super) fn with_chunks(body: &RawValue, chunks: &[Value]) -> RawJson {
    let Ok(mut object) = Object::parse(body) else { return body.to_owned() };
    let kept: Vec<RawJson> = object
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
    let all: Vec<RawJson> = blocks.chain(kept).collect();
    let texts: Vec<&str> = all.iter().map(|block| block.get()).collect();
    object.set("content", from_text(format!("[{}]", texts.join(","))));
    object.to_raw()
}

/// What was asked for. Only a tool's result can say that it failed; everything else needs a JSON-RPC error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorReporting {
    Tool,
    Other,
}

pub(super) fn error_result(
    error: &HubError,
    version: Version,
    asked: ErrorReporting,
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
            return tool_error_result(error, asked, code::INVALID_PARAMS);
        }
        ErrorKind::InvalidArguments => code::INVALID_PARAMS,
        // The door answers these with HTTP 401 and 413; here only stdio is left.
        ErrorKind::Unauthenticated | ErrorKind::TooLarge => code::INVALID_REQUEST,
        ErrorKind::Forbidden
        | ErrorKind::RateLimited
        | ErrorKind::TimedOut
        | ErrorKind::Cancelled
        | ErrorKind::NotConnected
        | ErrorKind::CannotConnect
        | ErrorKind::ConnectionLost
        | ErrorKind::ToolFailed => return tool_error_result(error, asked, code::INTERNAL),
        ErrorKind::ClientCannot if modern => {
            let needed = error.details().cloned().unwrap_or_else(|| json!({}));
            let data = json!({"requiredCapabilities": needed});
            return Err(
                RpcError::new(code::MISSING_CAPABILITY, error.message_with_suggestion()).with_data(data)
            );
        }
        ErrorKind::ClientCannot => return tool_error_result(error, asked, code::INVALID_REQUEST),
        ErrorKind::Bug => code::INTERNAL,
    };
    Err(rpc(code, error))
}

/// A caller that holds too much, or asks too often, for something that is no tool.
pub(super) fn quota_error(error: &HubError) -> RpcError {
    // The request is fine; the status stays that of an answer.
    let data = error
        .retry_after()
        .map(|wait| json!({"retryAfterMs": u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)}));
    let refused = RpcError::new(code::INTERNAL, error.message_with_suggestion()).with_status(200);
    data.into_iter().fold(refused, RpcError::with_data)
}

/// A source's own error, in the codes of the client's era.
fn forward_source_error(origin: &SourceError, modern: bool) -> RpcError {
    let code = match origin.code {
        code::RESOURCE_NOT_FOUND if modern => code::INVALID_PARAMS,
        other => other,
    };
    let error = RpcError::new(code, origin.message.clone());
    // Only this one says something about the request itself; the others are about what it led to.
    let error = if code == code::MISSING_CAPABILITY { error } else { error.with_status(200) };
    origin.data.iter().cloned().fold(error, RpcError::with_data)
}

/// As a result that says it failed, where there is one.
fn tool_error_result(error: &HubError, asked: ErrorReporting, code: i64) -> Result<RawJson, RpcError> {
    match asked {
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
mod tests {
    use std::fmt::Write;

    use toolyard_hub::{ErrorKind, HubError};
    use toolyard_wire::Version;

    use super::{ErrorReporting, error_result};

    #[test]
    fn every_kind_of_error_has_its_words() {
        let mut table = String::new();
        for kind in ErrorKind::ALL {
            for (version, asked) in [
                (Version::V2025_06_18, ErrorReporting::Tool),
                (Version::V2025_11_25, ErrorReporting::Tool),
                (Version::V2026_07_28, ErrorReporting::Tool),
                (Version::V2025_11_25, ErrorReporting::Other),
                (Version::V2026_07_28, ErrorReporting::Other),
            ] {
                let words = match error_result(&HubError::new(kind, "x"), version, asked) {
                    Ok(_) => "result with isError".to_owned(),
                    Err(error) => error.code.to_string(),
                };
                writeln!(table, "{:<26} {version} {asked:<5?} {words}", kind.as_str()).unwrap();
            }
        }
        insta::assert_snapshot!(table);
    }
}
