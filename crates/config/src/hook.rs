//! `[[hooks]]`: HTTP endpoints that are called before and after tool calls.

use std::collections::BTreeMap;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hooks::{HookEvent, HookFailurePolicy, HookSettings};

use super::access::globs;
use super::expand::VariableExpander;
use super::http_syntax::is_http_url;
use super::limits::SettingProblem;
use super::risk;
use super::values::{ConfigDuration, ScalarText};

const USUAL_TIME: Duration = Duration::from_secs(5);

/// An HTTP endpoint that receives calls as JSON.
// Not `Debug`: URLs and headers can contain secrets.
#[derive(Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(super) struct HookKeys {
    /// URL that calls are posted to. Variables are expanded. Required.
    url: String,
    /// Name of the hook in messages. Default: the host of `url`.
    name: Option<String>,
    /// HTTP headers of every request to the hook. Variables are expanded. Default: none.
    #[serde(default)]
    headers: BTreeMap<String, ScalarText>,
    /// Events that the hook receives. Default: ["before"].
    events: Option<Vec<HookEvent>>,
    /// Glob patterns of the full tool names that the hook applies to. Default: all tools.
    tools: Option<Vec<String>>,
    /// Maximum time for the hook to respond. Default: 5s.
    timeout: Option<ConfigDuration>,
    /// What happens to a call if the hook fails or responds with an invalid answer. `closed`: the
    /// call is refused. `open`: the call proceeds. Default: "closed".
    #[serde(default)]
    on_failure: HookFailurePolicy,
}

/// Builds the hooks and appends invalid settings to `wrong`.
pub(super) fn build_hooks(
    keys: Vec<HookKeys>,
    references: &VariableExpander<'_>,
    wrong: &mut Vec<SettingProblem>,
) -> Vec<HookSettings> {
    let mut hooks = Vec::new();
    for (index, keys) in keys.into_iter().enumerate() {
        let index = index.to_string();
        let mut expand = |text: &str, place: &[&str]| match references.expand_secret(text) {
            Ok(text) => Some(text),
            Err(missing) => {
                let place = [&["hooks", index.as_str()], place].concat();
                wrong.extend(missing.into_iter().map(|missing| {
                    SettingProblem::new(&place, format!("cannot be expanded: {}", missing.message))
                }));
                None
            }
        };
        let url = expand(&keys.url, &["url"]);
        let mut headers = Vec::new();
        for (name, value) in keys.headers {
            let Some(value) = expand(&value.0, &["headers", &name]) else { continue };
            headers.push((name, value));
        }
        let place = |key: &'static str| ["hooks", index.as_str(), key];
        let parsed = url.as_deref().filter(|url| is_http_url(url)).and_then(|url| Url::parse(url).ok());
        if url.is_some() && parsed.is_none() {
            wrong.push(SettingProblem::new(&place("url"), "must be an http:// or https:// URL"));
        }
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value)) {
                (Ok(name), Ok(value)) => drop(map.insert(name, value)),
                _ => wrong.push(SettingProblem::new(
                    &place("headers"),
                    format!("contains an invalid header: {name:?}"),
                )),
            }
        }
        if keys.events.as_ref().is_some_and(Vec::is_empty) {
            wrong.push(SettingProblem::new(
                &place("events"),
                "must contain at least one of before, after and error",
            ));
        }
        let Some(url) = parsed else { continue };
        wrong.extend(risk::check_hook_url(&url, &place("url")));
        hooks.push(HookSettings {
            name: keys.name.unwrap_or_else(|| url.host_str().unwrap_or("hook").to_owned()),
            url,
            headers: map,
            events: keys.events.unwrap_or_else(|| vec![HookEvent::Before]),
            tools: keys.tools.map_or_else(|| vec!["*".into()], globs),
            timeout: keys.timeout.map_or(USUAL_TIME, |time| time.0),
            on_failure: keys.on_failure,
        });
    }
    hooks
}
