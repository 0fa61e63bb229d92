//! What the modern era adds to every result. Legacy results go out as they are.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, from_text, mentions, to_raw};
use toolyard_wire::RawJson;

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
pub(super) fn complete(info: &RawValue, result: RawJson) -> RawJson {
    if is_complete(&result) { result } else { edit(info, &result, |_| {}) }
}

/// Whether a result says everything already, as that of a modern source does.
fn is_complete(result: &RawValue) -> bool {
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
    mentions(result, SERVER_INFO) && serde_json::from_str::<ModernResult<'_>>(result.get()).is_ok()
}

/// A finished result that may be kept.
pub(super) fn cacheable(info: &RawValue, result: &RawValue, cache: CachePolicy) -> RawJson {
    edit(info, result, |object| {
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

fn edit(info: &RawValue, result: &RawValue, more: impl FnOnce(&mut Object)) -> RawJson {
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
pub(super) fn with_chunks(body: &RawValue, chunks: &[serde_json::Value]) -> RawJson {
    let Ok(mut object) = Object::parse(body) else { return body.to_owned() };
    let kept: Vec<RawJson> = object
        .get("content")
        .and_then(|content| serde_json::from_str(content.get()).ok())
        .unwrap_or_default();
    let blocks = chunks.iter().map(|chunk| {
        let text = match chunk {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        to_raw(&serde_json::json!({"type": "text", "text": text}))
    });
    let all: Vec<RawJson> = blocks.chain(kept).collect();
    let texts: Vec<&str> = all.iter().map(|block| block.get()).collect();
    object.set("content", from_text(format!("[{}]", texts.join(","))));
    object.to_raw()
}
