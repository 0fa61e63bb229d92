//! `GET /mcp/tools` and `GET /mcp/tools/{name}`: the tools that the caller may use.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};
use toolyard_hub::json::to_raw;
use toolyard_hub::{ErrorKind, HubError};

use super::errors::RestError;
use super::query::{Query, parse_page_size};
use super::response::{VERSION, json};
use super::tool_cache::RestTool;
use super::{PathName, RestCaller, RestFront};

/// Maximum length of a search, in characters.
const LONGEST_SEARCH: usize = 200;

/// The filters of a tool list.
struct Filter {
    server: Option<String>,
    category: Option<String>,
    tags: Vec<String>,
    words: Vec<String>,
}

impl Filter {
    fn matches(&self, shown: &RestTool) -> bool {
        self.server.as_deref().is_none_or(|server| shown.tool.source.as_str() == server)
            && self.category.as_deref().is_none_or(|category| shown.category.as_deref() == Some(category))
            && self.tags.iter().all(|tag| shown.tags.contains(tag))
            && self.words.iter().all(|word| shown.search_text.contains(word))
    }
}

pub(super) async fn list(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    request: Request,
) -> Result<Response<Body>, RestError> {
    let mut query = Query::read(request.uri().query());
    let filter = Filter {
        server: query.one("server"),
        category: query.one("category"),
        tags: query.all("tag"),
        words: query.read_one("q", words).unwrap_or_default(),
    };
    let limit = query.read_one("limit", parse_page_size);
    let after = query.read_one("cursor", |text| read_cursor(text).ok_or_else(|| "invalid cursor".to_owned()));
    query.finish()?;
    rest.admit_list(&principal).await?;

    rest.yard.wait_for_startup(rest.settings.start_wait).await;
    let cached = rest.tool_cache.tools(&rest.yard);
    let mut all = cached.iter().filter(|shown| shown.tool.is_listed_for(&principal) && filter.matches(shown));
    if let Some(after) = after {
        // The last tool of the previous page is gone, so the position is lost and the client must
        // start again.
        if !all.by_ref().any(|shown| shown.tool.full_name.as_str() == after) {
            let failure = RestError::invalid_at(
                "cursor",
                "is no longer valid, because the list has changed; request it again without a cursor",
                Value::Null,
            );
            return Err(RestError { status: StatusCode::CONFLICT, ..failure });
        }
    }
    let tools: Vec<&RestTool> = all.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
    let more = all.next().is_some();
    let next = tools.last().filter(|_| more).map(|last| write_cursor(last.tool.full_name.as_str()));

    let mut digest = Sha256::new();
    digest.update(next.as_deref().unwrap_or_default());
    tools.iter().for_each(|shown| digest.update(shown.digest));
    let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest.finalize()));
    let mut response = if matches_etag(request.headers(), &tag) {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response
    } else {
        json(StatusCode::OK, write(&tools, next.as_deref()))
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    // Lists differ by caller and must be revalidated. The ETag makes that cheap.
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers.insert(header::VARY, HeaderValue::from_static("Authorization"));
    Ok(response)
}

/// Splits a search into words. The length limit bounds the work, because every tool is searched for
/// each word.
fn words(text: &str) -> Result<Vec<String>, String> {
    if text.chars().count() > LONGEST_SEARCH {
        return Err(format!("must not exceed {LONGEST_SEARCH} characters"));
    }
    Ok(text.split_whitespace().map(str::to_lowercase).collect())
}

pub(super) async fn show(
    State(rest): State<Arc<RestFront>>,
    RestCaller(principal): RestCaller,
    PathName(name): PathName,
    request: Request,
) -> Result<Response<Body>, RestError> {
    Query::read(request.uri().query()).finish()?;
    rest.yard.wait_for_startup(rest.settings.start_wait).await;
    let refuse = |error: HubError| RestError::from_hub_error(&error, "");
    let tool = rest.yard.find_tool(&name, &principal).map_err(refuse)?;
    if let Some(missing) = principal.first_missing_permission(&tool.permissions) {
        return Err(RestError::forbidden(&tool.full_name, missing));
    }
    let cached = rest.tool_cache.tools(&rest.yard);
    let shown = cached.iter().find(|shown| shown.tool.full_name == tool.full_name);
    // The tool may have been removed since the lookup.
    let gone = || {
        RestError::from_kind(ErrorKind::UnknownTool, format!("tool `{}` no longer exists", tool.full_name))
    };
    Ok(json(StatusCode::OK, shown.ok_or_else(gone)?.details(&principal).get().to_owned()))
}

fn write(tools: &[&RestTool], next: Option<&str>) -> String {
    let mut text =
        String::with_capacity(64 + tools.iter().map(|shown| shown.json.get().len() + 1).sum::<usize>());
    text.push_str(&format!(r#"{{"version":"{VERSION}","tools":["#));
    for (at, shown) in tools.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(shown.json.get());
    }
    text.push(']');
    if let Some(next) = next {
        text.push_str(&format!(r#","nextCursor":{}"#, to_raw(next)));
    }
    text.push('}');
    text
}

/// Returns whether the client already has this list.
fn matches_etag(headers: &HeaderMap, tag: &str) -> bool {
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    known
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// A cursor names the last tool of the previous page, so it stays valid when tools are added.
fn write_cursor(last: &str) -> String {
    format!("after.{last}")
}

fn read_cursor(cursor: &str) -> Option<String> {
    let fine = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let last = cursor.strip_prefix("after.")?;
    ((1..=64).contains(&last.len()) && last.chars().all(fine)).then(|| last.to_owned())
}
