//! Converts an HTTP response into a tool result: JSON as text and structured content, text as text,
//! images and audio as their content types, everything else as a blob. A non-success status makes
//! the result an error of the tool.

mod charset;
mod structured_content;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::{CONTENT_TYPE, HeaderMap, LINK};
use http::{Method, StatusCode};
use reqwest::Url;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolyard_hub::Outcome;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::printable::clean_excerpt;

use crate::operation::Operation;
use crate::request::is_json;

/// A response body, complete or truncated at a limit.
#[derive(Debug)]
pub(crate) struct BufferedResponse {
    pub(crate) method: Method,
    /// The final URL after redirects.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    pub(crate) cut: Option<TruncationCause>,
    /// A remark for the user, for example about a redirect that was not followed.
    pub(crate) note: Option<String>,
}

/// Why the rest of a response was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TruncationCause {
    Size,
    Time,
}

/// Response headers that are included in results. Other headers may be private, or are only noise.
const OF_INTEREST: [&str; 29] = [
    "allow",
    "content-disposition",
    "content-length",
    "content-location",
    "content-range",
    "content-type",
    "deprecation",
    "etag",
    "last-modified",
    "link",
    "location",
    "next-page",
    "page",
    "per-page",
    "prev-page",
    "ratelimit",
    "ratelimit-limit",
    "ratelimit-policy",
    "ratelimit-remaining",
    "ratelimit-reset",
    "request-id",
    "retry-after",
    "sunset",
    "total",
    "total-count",
    "total-pages",
    "warning",
    "www-authenticate",
    "x-request-id",
];
/// Prefixes of header names for rate limits and pagination.
const FAMILIES: [&str; 5] = ["x-ratelimit-", "x-rate-limit-", "x-total", "x-pagination", "x-page"];
/// Longer header values are truncated. Links to further pages may be long and are useless when
/// truncated, so they have a higher limit.
const LONGEST: usize = 500;
const LONGEST_LINK: usize = 8_000;

impl BufferedResponse {
    /// Returns the tool result. A response that violates the output schema becomes an error:
    /// clients discard such a result, and the user would not learn that the call was made.
    pub(crate) async fn into_outcome(self, operation: &Operation) -> Outcome {
        let body = self.decode_body();
        if !self.status.is_success() {
            return self.failure(self.summary(&body), &body);
        }
        match structured_content::extract_structured_content(operation, &self, &body).await {
            Ok(structured) => {
                let nothing = body.is_empty() && self.bytes.is_empty();
                let words = if nothing { Some(self.summary(&body)) } else { body.text.clone() };
                let mut result = self.content(words, &body);
                if let Some(structured) = structured {
                    result.set("structuredContent", structured);
                }
                result.set("_meta", self.meta());
                Outcome::success(result.to_raw())
            }
            Err(mut words) => {
                if let Some(text) = &body.text {
                    words.push_str("\n\n");
                    words.push_str(text);
                }
                self.failure(words, &body)
            }
        }
    }

    /// Returns a tool result with `isError`.
    fn failure(&self, words: String, body: &ResponseBody) -> Outcome {
        let mut result = self.content(Some(words), body);
        result.set("isError", to_raw(&true));
        result.set("_meta", self.meta());
        Outcome::failure(result.to_raw())
    }

    fn content(&self, words: Option<String>, body: &ResponseBody) -> Object {
        let mut content: Vec<Value> = words.map(text_block).into_iter().collect();
        content.extend(body.block.clone());
        content.extend(self.remark().map(text_block));
        let mut result = Object::default();
        result.set("content", to_raw(&content));
        result
    }

    fn meta(&self) -> Box<RawValue> {
        let headers = self.notable_headers();
        let headers: Map<String, Value> =
            headers.into_iter().map(|(name, value)| (name, value.into())).collect();
        to_raw(&json!({"dev.toolyard/http": {"status": self.status.as_u16(), "headers": headers}}))
    }

    fn decode_body(&self) -> ResponseBody {
        let content_type_header = content_type(&self.headers);
        let kind = essence(content_type_header);
        if self.bytes.is_empty() {
            return ResponseBody::default();
        }
        if is_json(&kind) || kind.is_empty() {
            // A response without a content type is often JSON.
            let raw = self.json();
            if raw.is_some() {
                return ResponseBody {
                    text: raw.as_ref().map(|raw| raw.get().to_owned()),
                    json: raw,
                    block: None,
                };
            }
        }
        let is_text = is_text(&kind) || is_json(&kind);
        if is_text || (kind.is_empty() && std::str::from_utf8(&self.bytes).is_ok()) {
            return ResponseBody {
                text: Some(charset::decode_text(&self.bytes, content_type_header)),
                ..ResponseBody::default()
            };
        }
        let data = BASE64_STANDARD.encode(&self.bytes);
        let block = if kind.starts_with("image/") {
            json!({"type": "image", "data": data, "mimeType": kind})
        } else if kind.starts_with("audio/") {
            json!({"type": "audio", "data": data, "mimeType": kind})
        } else {
            let kind = if kind.is_empty() { "application/octet-stream".to_owned() } else { kind };
            json!({"type": "resource", "resource": {"uri": self.redacted_url(), "mimeType": kind, "blob": data}})
        };
        ResponseBody { block: Some(block), ..ResponseBody::default() }
    }

    /// Returns the body as JSON if it is valid and complete.
    fn json(&self) -> Option<Box<RawValue>> {
        if self.cut.is_some() {
            return None;
        }
        let bytes = self.bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.bytes);
        serde_json::from_slice(bytes).ok()
    }

    /// Returns the status line, the notable headers and the text of the body.
    fn summary(&self, body: &ResponseBody) -> String {
        let mut text = format!("HTTP {}", self.status.as_u16());
        if let Some(reason) = self.status.canonical_reason() {
            text.push(' ');
            text.push_str(reason);
        }
        for (name, value) in self.notable_headers() {
            text.push_str(&format!("\n{name}: {value}"));
        }
        if let Some(body) = &body.text {
            text.push_str("\n\n");
            text.push_str(body);
        }
        text
    }

    /// Returns the notable headers. Headers with the same name are joined.
    fn notable_headers(&self) -> Vec<(String, String)> {
        let is_notable = |name: &str| {
            let plain = name.strip_prefix("x-").unwrap_or(name);
            OF_INTEREST.contains(&name)
                || (OF_INTEREST.contains(&plain) && plain.contains("page"))
                || FAMILIES.iter().any(|family| name.starts_with(family))
        };
        let head_only = self.method == Method::HEAD;
        let boring = |name: &str| matches!(name, "content-length" | "content-type") && !head_only;
        let shown = self.headers.keys().filter(|name| is_notable(name.as_str()) && !boring(name.as_str()));
        shown
            .filter_map(|name| {
                let longest = if name == LINK { LONGEST_LINK } else { LONGEST };
                let values = self.headers.get_all(name).iter();
                let values: Vec<_> = values.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
                let value = clean_excerpt(&values.join(", "), longest);
                Some((name.as_str().to_owned(), value)).filter(|(_, value)| !value.is_empty())
            })
            .collect()
    }

    fn remark(&self) -> Option<String> {
        let cut = self.cut.map(|cut| match cut {
            TruncationCause::Size => {
                format!("[truncated: only the first {} bytes were read]", self.bytes.len())
            }
            TruncationCause::Time => {
                format!("[truncated: {} bytes were received before the timeout]", self.bytes.len())
            }
        });
        match (cut, &self.note) {
            (Some(cut), Some(note)) => Some(format!("{cut}\n{note}")),
            (cut, note) => cut.or_else(|| note.clone()),
        }
    }

    /// Returns the URL without its query and user info, which may contain secrets.
    fn redacted_url(&self) -> String {
        let mut url = self.url.clone();
        url.set_query(None);
        // Cannot fail for a URL with a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        url.to_string()
    }
}

/// The decoded body of a response.
#[derive(Default)]
struct ResponseBody {
    text: Option<String>,
    json: Option<Box<RawValue>>,
    block: Option<Value>,
}

impl ResponseBody {
    fn is_empty(&self) -> bool {
        self.text.is_none() && self.block.is_none()
    }
}

fn text_block(text: impl AsRef<str>) -> Value {
    json!({"type": "text", "text": text.as_ref()})
}

/// Whether a content type is human-readable text.
pub(crate) fn is_text(content_type: &str) -> bool {
    let kind = essence(content_type);
    let kind = kind.as_str();
    kind.starts_with("text/")
        || kind.ends_with("+xml")
        || kind.ends_with("+yaml")
        || kind.ends_with("+json-seq")
        || matches!(
            kind,
            "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/javascript"
                | "application/ecmascript"
                | "application/x-www-form-urlencoded"
                | "application/x-ndjson"
                | "application/ndjson"
                | "application/jsonl"
                | "application/x-jsonlines"
                | "application/json-seq"
                | "application/graphql"
                | "application/sql"
                | "application/toml"
        )
}

/// Returns the `Content-Type` header.
fn content_type(headers: &HeaderMap) -> &str {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns a media type without its parameters, in lowercase.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Whether a response of this type may be endless. What has been received before the deadline is
/// still returned.
pub(crate) fn is_stream(headers: &HeaderMap) -> bool {
    matches!(
        essence(content_type(headers)).as_str(),
        "text/event-stream"
            | "application/x-ndjson"
            | "application/ndjson"
            | "application/jsonl"
            | "application/x-jsonlines"
            | "application/json-seq"
    )
}

#[cfg(test)]
mod tests;
