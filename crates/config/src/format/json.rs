//! Servers in JSON: `mcpServers` in all its variants, and VS Code's `servers`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::keys::{OAuthKeys, ServerKeys};
use super::super::transport::TransportKind;
use super::super::tree::ConfigNode;
use super::super::tree::decode::decode;
use super::super::values::{ConfigDuration, ScalarText};

/// Keys that are documentation, or concern only approvals and the display in other programs.
pub(super) const PASSED_OVER: [&str; 20] = [
    "$schema",
    "_comment",
    "alwaysAllow",
    "alwaysLoad",
    "autoApprove",
    "comment",
    "description",
    "dev",
    "gallery",
    "icon",
    "iconUrl",
    "id",
    "name",
    "provider",
    "sandbox",
    "sandboxEnabled",
    "tags",
    "title",
    "trust",
    "version",
];

/// Some of these files use seconds and others milliseconds. No format that uses seconds allows a
/// larger value than this.
const MOST_SECONDS: f64 = 3600.0;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase", expecting = "an object")]
pub(super) struct JsonKeys {
    command: Option<String>,
    args: Option<Vec<ScalarText>>,
    env: Option<BTreeMap<String, Option<ScalarText>>>,
    env_file: Option<String>,
    #[serde(alias = "inherit_env")]
    inherit_env: Option<bool>,
    cwd: Option<String>,
    url: Option<String>,
    http_url: Option<String>,
    server_url: Option<String>,
    base_url: Option<String>,
    headers: Option<BTreeMap<String, Option<ScalarText>>>,
    #[serde(rename = "type")]
    kind: Option<TransportKind>,
    transport: Option<TransportKind>,
    #[serde(alias = "isActive")]
    enabled: Option<bool>,
    disabled: Option<bool>,
    #[serde(alias = "allowed_tools", alias = "enabledTools", alias = "includeTools", alias = "tools")]
    allowed_tools: Option<Vec<String>>,
    #[serde(alias = "disabled_tools", alias = "excludeTools", alias = "excludedTools")]
    disabled_tools: Option<Vec<String>>,
    timeout: Option<f64>,
    #[serde(alias = "bearerTokenEnv", alias = "bearer_token_env_var")]
    bearer_token_env_var: Option<String>,
    #[serde(alias = "auth")]
    oauth: Option<OAuthKeys>,
}

impl JsonKeys {
    pub(super) fn into_server_keys(self) -> ServerKeys {
        let kind = self.kind.or(self.transport);
        // In Gemini's format, `url` means HTTP+SSE and `httpUrl` Streamable HTTP. Both can be
        // present for the sake of other clients.
        let url = self.http_url.or(self.url).or(self.server_url).or(self.base_url);
        let enabled = self.enabled.unwrap_or(true) && !self.disabled.unwrap_or(false);
        let seconds = self.timeout.map(|time| if time > MOST_SECONDS { time / 1000.0 } else { time });
        ServerKeys {
            command: self.command,
            args: self.args,
            env: self.env,
            env_file: self.env_file,
            inherit_env: self.inherit_env,
            cwd: self.cwd,
            url,
            headers: self.headers,
            kind,
            enabled: Some(enabled),
            enabled_tools: self.allowed_tools,
            disabled_tools: self.disabled_tools,
            call_timeout: seconds.and_then(ConfigDuration::from_seconds),
            bearer_token_env_var: self.bearer_token_env_var,
            oauth: self.oauth,
            ..ServerKeys::default()
        }
    }
}

/// One of VS Code's `inputs`.
#[derive(Default, Deserialize)]
#[serde(default, expecting = "an object")]
struct InputKeys {
    id: String,
    default: Option<ScalarText>,
}

/// Returns the defaults of the inputs. An invalid input is reported when a server refers to it.
pub(super) fn inputs(node: &ConfigNode) -> BTreeMap<String, Option<String>> {
    let read =
        |node| decode::<InputKeys>(node, &[]).0.map(|input| (input.id, input.default.map(|word| word.0)));
    node.children().into_iter().filter_map(read).collect()
}
