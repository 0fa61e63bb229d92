//! Converts the decoded keys of a server into the settings of an upstream or an OpenAPI document.
//! Errors affect only the server that has them.

use std::collections::BTreeMap;
use std::fmt;

use toolyard_hub::permission::MANAGE;
use toolyard_hub::printable::is_deceptive;
use toolyard_hub::{Secret, SourceName};
use toolyard_openapi::DocumentSettings;
use toolyard_upstream::{
    CommandSettings, EnvInheritance, Era, OAuthSettings, ServerAuthSettings, ServerPlacement, ServerSettings,
    SessionSharing, TransportSettings, UrlKind, UrlSettings,
};

use super::dotenv;
use super::http_syntax::{is_header_name, is_header_value, is_http_url};
use super::keys::{EraKey, OAuthKeys, PlacementKey, ServerKeys, SessionsKey};
use super::openapi;
use super::problem::ConfigProblem;
use super::risk;
use super::server_section::ServerSection;
use super::transport::TransportKind;
use super::values::{PermissionKeys, ScalarText};

/// A server of the configuration.
#[derive(Clone, PartialEq)]
pub enum ServerEntry {
    Ready(Box<ServerSettings>),
    /// An OpenAPI document.
    Document(Box<DocumentSettings>),
    Broken(BrokenServer),
}

/// A server whose configuration has errors.
#[derive(Clone, PartialEq)]
pub struct BrokenServer {
    pub name: SourceName,
    pub enabled: bool,
    /// Permissions needed for everything that it would offer.
    pub permissions: Vec<String>,
    /// Its errors, which are also part of [`Config::problems`](super::Config::problems) if the
    /// server is enabled.
    pub problems: Vec<ConfigProblem>,
}

impl ServerEntry {
    pub fn name(&self) -> &SourceName {
        match self {
            Self::Ready(settings) => &settings.name,
            Self::Document(settings) => &settings.name,
            Self::Broken(broken) => &broken.name,
        }
    }

    pub fn is_enabled(&self) -> bool {
        match self {
            Self::Ready(settings) => settings.enabled,
            Self::Document(settings) => settings.enabled,
            Self::Broken(broken) => broken.enabled,
        }
    }
}

impl BrokenServer {
    /// Returns all errors in one line, for the state of the source.
    pub fn reason(&self) -> String {
        let reasons: Vec<&str> = self.problems.iter().map(|problem| problem.message.as_str()).collect();
        reasons.join("; ")
    }
}

impl fmt::Debug for BrokenServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason())
    }
}

/// Shows only the name, because arguments and URLs can contain secrets from the environment.
impl fmt::Debug for ServerEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ready(settings) => write!(f, "Ready({})", settings.name),
            Self::Document(settings) => write!(f, "Document({})", settings.name),
            Self::Broken(broken) => write!(f, "Broken({broken:?})"),
        }
    }
}

/// Builds the settings of a server. Decoding errors are already in `origin`.
pub(super) fn build_entry(keys: ServerKeys, origin: &mut ServerSection<'_>) -> ServerEntry {
    let name = name(&keys, origin);
    risk::check_server(&keys, origin);
    let enabled = keys.enabled.unwrap_or(true);
    let needed = match (&keys.permissions, origin.has("permissions")) {
        // The permissions are unknown because they could not be decoded, so only callers with the
        // permission to manage servers see this one.
        (None, true) => vec![MANAGE.to_owned()],
        _ => permissions(&keys).0,
    };
    let broken = |problems| {
        let (name, permissions) = (name.clone(), needed.clone());
        ServerEntry::Broken(BrokenServer { name, enabled, permissions, problems })
    };
    if keys.openapi.is_some() || origin.has("openapi") {
        return match openapi::settings(&keys, &name, origin) {
            Some(settings) if origin.errors.is_empty() => ServerEntry::Document(Box::new(settings)),
            _ => broken(std::mem::take(&mut origin.errors)),
        };
    }
    let settings = transport(&keys, origin).zip(auth(&keys, origin));
    let (transport, auth) = match settings {
        Some(settings) if origin.errors.is_empty() => settings,
        _ => return broken(std::mem::take(&mut origin.errors)),
    };
    let (permissions, tool_permissions) = permissions(&keys);
    let usual = ServerSettings::new(name, transport);
    ServerEntry::Ready(Box::new(ServerSettings {
        enabled,
        enabled_tools: keys.enabled_tools,
        disabled_tools: keys.disabled_tools.unwrap_or_default(),
        permissions,
        tool_permissions,
        era: keys.era.map(|era| match era {
            EraKey::Legacy => Era::Legacy,
            EraKey::Modern => Era::Modern,
        }),
        sessions: match keys.sessions {
            Some(SessionsKey::Shared) => SessionSharing::Shared,
            Some(SessionsKey::PerClient) => SessionSharing::PerClient,
            Some(SessionsKey::Auto) | None => SessionSharing::Auto,
        },
        placement: match keys.placement {
            Some(PlacementKey::One) => ServerPlacement::OneReplica,
            Some(PlacementKey::Every) | None => ServerPlacement::EveryReplica,
        },
        start_timeout: keys.start_timeout.map_or(usual.start_timeout, |time| time.0),
        call_timeout: keys.call_timeout.map_or(usual.call_timeout, |time| time.0),
        forward_headers: keys.forward_headers.unwrap_or_default(),
        auth,
        ..usual
    }))
}

/// Returns the permissions needed for everything, and further ones by tool.
pub(super) fn permissions(keys: &ServerKeys) -> (Vec<String>, BTreeMap<String, Vec<String>>) {
    match &keys.permissions {
        Some(PermissionKeys::All(list)) => (list.clone(), BTreeMap::new()),
        Some(PermissionKeys::ByTool(table)) => (Vec::new(), table.clone()),
        None => (Vec::new(), BTreeMap::new()),
    }
}

fn name(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> SourceName {
    if let Some(header) = keys.forward_headers.iter().flatten().find(|header| !is_header_name(header)) {
        let message = format!("{header:?} is not a valid header name");
        origin.add_error(&["forward_headers"], message);
    }
    let fine = |name: &str| !name.trim().is_empty() && !name.contains(|c: char| is_deceptive(c) || c == '/');
    let name = keys.alias.as_deref().unwrap_or(origin.name());
    if fine(name) {
        return SourceName::new(name);
    }
    let message = "a server name must not be empty and must not contain slashes or invisible characters";
    origin.add_error(&["alias"], message.to_owned());
    SourceName::new(origin.name())
}

/// Returns `None` after adding an error to `origin`.
fn transport(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> Option<TransportSettings> {
    let stdio = match (keys.kind, &keys.command, &keys.url) {
        (Some(TransportKind::Stdio), Some(_), _) | (None, Some(_), None) => true,
        (Some(TransportKind::Http | TransportKind::Sse), _, Some(_)) | (None, None, Some(_)) => false,
        (Some(TransportKind::Stdio), None, _) => {
            return report_missing(keys, "`command` is required for this `type`", origin);
        }
        (Some(TransportKind::Http | TransportKind::Sse), _, None) => {
            return report_missing(keys, "`url` is required for this `type`", origin);
        }
        (None, Some(_), Some(_)) => {
            return origin.refuse(
                &["url"],
                "both `command` and `url` are set",
                "remove one of them, or set `type`",
            );
        }
        (None, None, None) => {
            return report_missing(keys, "one of `command`, `url` and `openapi` is required", origin);
        }
    };
    if stdio { command(keys, origin) } else { build_url(keys, origin) }
}

/// Reports a missing key, unless the key is present and invalid, which is already reported.
fn report_missing(
    keys: &ServerKeys,
    message: &str,
    origin: &mut ServerSection<'_>,
) -> Option<TransportSettings> {
    let wrong = keys.command.is_none() && origin.has("command") || keys.url.is_none() && origin.has("url");
    if !wrong && origin.node.is_table() {
        origin.add_error(&[], message.to_owned());
    }
    None
}

fn command(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> Option<TransportSettings> {
    let program = origin.expand(keys.command.as_deref()?, &["command"]);
    if program.as_deref().is_some_and(|program| program.trim().is_empty()) {
        origin.add_error(&["command"], "`command` is empty".to_owned());
    }
    let numbered = keys.args.iter().flatten().enumerate();
    let args: Vec<Option<String>> =
        numbered.map(|(index, arg)| origin.expand(&arg.0, &["args", &index.to_string()])).collect();
    let mut env = match &keys.env_file {
        Some(file) => env_file(file, origin),
        None => BTreeMap::new(),
    };
    for (name, value) in present_entries(keys.env.as_ref()) {
        if name.is_empty() || name.contains(['=', '\0']) {
            origin.add_error(&["env", name], "invalid name of an environment variable".to_owned());
        }
        if let Some(value) = origin.expand(&value.0, &["env", name]) {
            env.insert(name.to_owned(), Secret::new(value));
        }
    }
    for name in &keys.passed_variables {
        if let Some(value) = origin.references.environment.variable(name) {
            env.entry(name.clone()).or_insert_with(|| Secret::new(value));
        }
    }
    let cwd = match &keys.cwd {
        Some(cwd) => Some(origin.path(cwd, &["cwd"])?),
        None => None,
    };
    let args = args.into_iter().collect::<Option<Vec<String>>>()?;
    let inherit = match keys.inherit_env {
        Some(true) => EnvInheritance::Everything,
        Some(false) | None => EnvInheritance::AllowList,
    };
    Some(TransportSettings::Command(CommandSettings { program: program?, args, env, cwd, inherit }))
}

fn env_file(file: &str, origin: &mut ServerSection<'_>) -> BTreeMap<String, Secret> {
    let Some(path) = origin.path(file, &["env_file"]) else { return BTreeMap::new() };
    match origin.read(&path) {
        Ok(text) => dotenv::parse(&text).map(|(name, value)| (name, Secret::new(value))).collect(),
        Err(error) => {
            origin.add_error(&["env_file"], format!("cannot read {}: {error}", path.display()));
            BTreeMap::new()
        }
    }
}

fn build_url(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> Option<TransportSettings> {
    let url = origin.expand(keys.url.as_deref()?, &["url"]);
    if url.as_deref().is_some_and(|url| !is_http_url(url)) {
        origin.add_error(&["url"], "expected an http:// or https:// URL".to_owned());
    }
    let headers = build_headers(keys, origin);
    let kind = match keys.kind {
        Some(TransportKind::Sse) => UrlKind::LegacySse,
        _ => UrlKind::Any,
    };
    Some(TransportSettings::Url(UrlSettings { url: url?, headers, kind }))
}

/// Returns the headers of every request.
pub(super) fn build_headers(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    for (name, value) in present_entries(keys.headers.as_ref()) {
        let value = origin.expand(&value.0, &["headers", name]);
        add_header(&mut headers, name, value, &["headers", name], origin);
    }
    for (name, variable) in &keys.header_variables {
        let place = ["env_http_headers", name];
        let value = origin.variable(variable, &place);
        add_header(&mut headers, name, value, &place, origin);
    }
    headers
}

fn add_header(
    headers: &mut BTreeMap<String, Secret>,
    name: &str,
    value: Option<String>,
    place: &[&str],
    origin: &mut ServerSection<'_>,
) {
    let Some(value) = value else { return };
    if !is_header_name(name) {
        origin.add_error(place, format!("{name:?} is not a valid header name"));
    } else if !is_header_value(&value) {
        let message = format!("the value of the header `{name}` contains a character that is not allowed");
        origin.add_error(place, message);
    } else {
        headers.insert(name.to_owned(), Secret::new(value));
    }
}

fn auth(keys: &ServerKeys, origin: &mut ServerSection<'_>) -> Option<ServerAuthSettings> {
    match (&keys.bearer_token_env_var, &keys.oauth) {
        (None, None) => Some(ServerAuthSettings::OnChallenge),
        (Some(variable), None) => {
            let token = origin.variable(variable, &["bearer_token_env_var"])?;
            if token.is_empty() || !is_header_value(&token) {
                let message = format!("the environment variable `{variable}` does not contain a valid token");
                origin.add_error(&["bearer_token_env_var"], message);
            }
            Some(ServerAuthSettings::Bearer(Secret::new(token)))
        }
        (None, Some(oauth)) => self::oauth(oauth, origin).map(ServerAuthSettings::OAuth),
        (Some(_), Some(_)) => {
            origin.refuse(&["oauth"], "both `bearer_token_env_var` and `oauth` are set", "remove one of them")
        }
    }
}

fn oauth(keys: &OAuthKeys, origin: &mut ServerSection<'_>) -> Option<OAuthSettings> {
    let client_id = keys.client_id.as_ref().map(|id| origin.expand(id, &["oauth", "client_id"]));
    let client_secret =
        keys.client_secret.as_ref().map(|secret| origin.expand(&secret.0, &["oauth", "client_secret"]));
    let client_credentials = keys.client_credentials.unwrap_or(false);
    if client_credentials && (client_id.is_none() || client_secret.is_none()) {
        let message = "`client_credentials` requires `client_id` and `client_secret`";
        origin.add_error(&["oauth", "client_credentials"], message.to_owned());
    }
    Some(OAuthSettings {
        client_id: transpose(client_id)?,
        client_secret: transpose(client_secret)?.map(Secret::new),
        scopes: keys.scopes.clone().unwrap_or_default().0,
        callback_port: keys.callback_port,
        client_credentials,
    })
}

/// Returns `None` if a value is set but could not be expanded.
fn transpose(value: Option<Option<String>>) -> Option<Option<String>> {
    match value {
        Some(None) => None,
        Some(Some(text)) => Some(Some(text)),
        None => Some(None),
    }
}

/// Returns the entries with a value. JSON can contain null.
fn present_entries(
    table: Option<&BTreeMap<String, Option<ScalarText>>>,
) -> impl Iterator<Item = (&str, &ScalarText)> {
    table.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_ref()?)))
}
