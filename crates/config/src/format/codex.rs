//! Codex: `[mcp_servers.NAME]`. Strings are not expanded; separate keys name environment variables.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::super::keys::{OAuthKeys, ServerKeys};
use super::super::values::{ConfigDuration, ScalarText, TextList};

/// Keys that concern only Codex itself.
pub(super) const PASSED_OVER: [&str; 9] = [
    "auth",
    "default_tools_approval_mode",
    "environment_id",
    "experimental_environment",
    "name",
    "oauth_resource",
    "required",
    "supports_parallel_tool_calls",
    "tools",
];

#[derive(Default, Deserialize)]
#[serde(default, expecting = "a table")]
pub(super) struct CodexKeys {
    command: Option<String>,
    args: Option<Vec<ScalarText>>,
    env: Option<BTreeMap<String, Option<ScalarText>>>,
    env_vars: Vec<PassedVariable>,
    cwd: Option<String>,
    url: Option<String>,
    bearer_token_env_var: Option<String>,
    http_headers: Option<BTreeMap<String, Option<ScalarText>>>,
    env_http_headers: BTreeMap<String, String>,
    enabled: Option<bool>,
    enabled_tools: Option<Vec<String>>,
    disabled_tools: Option<Vec<String>>,
    startup_timeout_sec: Option<ConfigDuration>,
    startup_timeout_ms: Option<f64>,
    tool_timeout_sec: Option<ConfigDuration>,
    scopes: Option<TextList>,
    oauth: Option<OAuthKeys>,
}

/// An environment variable of this process that the program inherits: its name, or a table with its
/// name.
#[derive(Deserialize)]
#[serde(untagged, expecting = "the name of an environment variable")]
enum PassedVariable {
    Name(String),
    Table { name: String },
}

impl PassedVariable {
    fn into_name(self) -> String {
        match self {
            Self::Name(name) | Self::Table { name } => name,
        }
    }
}

impl CodexKeys {
    pub(super) fn into_server_keys(self) -> ServerKeys {
        let oauth = match (self.oauth, self.scopes) {
            (None, None) => None,
            (oauth, scopes) => {
                let oauth = oauth.unwrap_or_default();
                Some(OAuthKeys { scopes: scopes.or(oauth.scopes), ..oauth })
            }
        };
        let milliseconds =
            self.startup_timeout_ms.and_then(|time| ConfigDuration::from_seconds(time / 1000.0));
        ServerKeys {
            command: self.command,
            args: self.args,
            env: self.env,
            cwd: self.cwd,
            url: self.url,
            headers: self.http_headers,
            header_variables: self.env_http_headers,
            passed_variables: self.env_vars.into_iter().map(PassedVariable::into_name).collect(),
            enabled: self.enabled,
            enabled_tools: self.enabled_tools,
            disabled_tools: self.disabled_tools,
            start_timeout: self.startup_timeout_sec.or(milliseconds),
            call_timeout: self.tool_timeout_sec,
            // A bearer token takes precedence. Scopes matter only for an OAuth login.
            oauth: oauth.filter(|_| self.bearer_token_env_var.is_none()),
            bearer_token_env_var: self.bearer_token_env_var,
            ..ServerKeys::default()
        }
    }
}
