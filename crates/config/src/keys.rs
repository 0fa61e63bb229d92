//! The keys of `toolyard.toml`: the top level and servers here, every other section in its own file (`limits.rs`,
//! `programs.rs`, …). The reader, `docs/toolyard.schema.json` and the check of `docs/config.md` are made from these types.
//! What has secrets in it has no `Debug`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hub::ResultCheck;

use super::access::{JwtKeys, TokenKeys};
use super::connections::ConnectionKeys;
use super::hook::HookKeys;
use super::limits::{BoundKeys, LimitKeys};
use super::listen::ListenAddress;
use super::openapi::{BudgetKeys, FilterKeys, MissingAuthKey, ReferencesKey, SchemeKeys};
use super::programs::ProgramKeys;
use super::records::{AuditKeys, HistoryKeys};
use super::transport::TransportKind;
use super::values::{ConfigDuration, OutputSchemasKey, PermissionKeys, ScalarText, TextList};
use toolyard_tester::{TesterSettings, TesterSharing};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    Token,
    None,
}

/// The configuration of Toolyard, `toolyard.toml`. Every key is optional.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
#[schemars(title = "toolyard.toml")]
pub(super) struct ConfigKeys {
    /// The address to listen on; a port alone is one of 127.0.0.1, and port 0 picks a free one.
    pub(super) listen: Option<ListenAddress>,
    /// Who may come in: whoever has the token, or everybody on this machine.
    pub(super) auth: Option<AuthMode>,
    /// Host names, beside the loopback ones, under which this server is reached.
    pub(super) hosts: Option<Vec<String>>,
    /// Origins whose pages may use this server.
    pub(super) origins: Option<Vec<String>>,
    /// IP addresses and networks of reverse proxies: the addresses that they forward count instead of their own.
    pub(super) trusted_proxies: Option<Vec<String>>,
    /// What the holder of the token may do; everything if this is not said.
    pub(super) permissions: Option<Vec<String>>,
    /// Who may come in beside the owner, with tokens.
    pub(super) tokens: Option<Vec<TokenKeys>>,
    /// Who may come in beside the owner, with JWTs.
    pub(super) jwt: Option<JwtKeys>,
    /// Endpoints that are asked before calls and told afterwards.
    pub(super) hooks: Option<Vec<HookKeys>>,
    /// One line of JSON for every call.
    pub(super) audit: Option<AuditKeys>,
    /// Past calls in a database, for those who ask.
    pub(super) history: Option<HistoryKeys>,
    /// Whether the embedded demo tools are served too.
    pub(super) demo: Option<bool>,
    /// Other files to read servers from, in any of the forms that are known. A server of the same name in this file wins.
    pub(super) imports: Option<Vec<String>>,
    /// Whether results are checked against the output schemas of their tools.
    pub(super) check_results: Option<CheckKey>,
    /// Limits of the yard.
    pub(super) limits: LimitKeys,
    /// How many connections there may be.
    pub(super) connections: ConnectionKeys,
    /// The tools that test other servers.
    pub(super) tester: TesterKeys,
    /// Scripts over all tools, in a sandbox.
    pub(super) programs: ProgramKeys,
    /// MCP servers and OpenAPI documents by name.
    #[allow(dead_code, reason = "each server is read on its own, so that one mistake costs one server")]
    pub(super) servers: BTreeMap<String, ServerKeys>,
}

/// The tools that test other servers.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct TesterKeys {
    /// How long a server may take to connect, and to answer with a list. One of this configuration has its own.
    connect_timeout: Option<ConfigDuration>,
    /// How long a call may be silent. A server of this configuration has its own.
    call_timeout: Option<ConfigDuration>,
}

impl TesterKeys {
    fn with_fallback(self, earlier: Self) -> Self {
        Self {
            connect_timeout: self.connect_timeout.or(earlier.connect_timeout),
            call_timeout: self.call_timeout.or(earlier.call_timeout),
        }
    }

    pub fn settings(self, sharing: TesterSharing) -> TesterSettings {
        let usual = TesterSettings::new(sharing);
        TesterSettings {
            connect_timeout: self.connect_timeout.map_or(usual.connect_timeout, |time| time.0),
            call_timeout: self.call_timeout.map_or(usual.call_timeout, |time| time.0),
            ..usual
        }
    }
}

/// One server: a `command` to start, a `url` to connect to, or an `openapi` document.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct ServerKeys {
    /// The program to start. `${VAR}`, `${VAR:-default}` and `${env:VAR}` are replaced.
    pub(super) command: Option<String>,
    /// The arguments of the program. Variables are replaced.
    pub(super) args: Option<Vec<ScalarText>>,
    /// Environment variables for the program, beside those that it inherits. Variables are replaced.
    pub(super) env: Option<BTreeMap<String, Option<ScalarText>>>,
    /// A file of lines `NAME=value` with more environment variables; those in `env` win.
    pub(super) env_file: Option<String>,
    /// Whether the program inherits every environment variable of this process, and not only those that programs need to
    /// run. Secrets of other servers are among them.
    pub(super) inherit_env: Option<bool>,
    /// The folder that the program starts in; `~` is the home folder. Seen from the folder of this file.
    pub(super) cwd: Option<String>,
    /// The address of the server. Variables are replaced.
    pub(super) url: Option<String>,
    /// An OpenAPI document whose operations become tools: a file, seen from the folder of this file, or an address.
    /// Variables are replaced.
    pub(super) openapi: Option<String>,
    /// Where the operations of the document are, whatever it says. Variables are replaced.
    pub(super) base_url: Option<String>,
    /// Values for the variables in the document's addresses. Variables of the environment are replaced.
    pub(super) variables: Option<BTreeMap<String, ScalarText>>,
    /// Hosts that the document may name though they are private, with or without a port.
    pub(super) allow_hosts: Option<Vec<String>>,
    /// How to prove who we are, by the name of the document's security scheme.
    pub(super) auth: Option<BTreeMap<String, SchemeKeys>>,
    /// What becomes of calls that need a security scheme for which nothing is configured.
    pub(super) missing_auth: Option<MissingAuthKey>,
    /// Which operations of the document become tools; all of them if this is not said.
    pub(super) include: Option<FilterKeys>,
    /// Which operations of the document do not, whatever `include` says.
    pub(super) exclude: Option<FilterKeys>,
    /// Names for tools, by operationId, by `METHOD /path`, or by the name that the tool would have.
    pub(super) rename: Option<BTreeMap<String, String>>,
    /// Descriptions for tools, by the same keys.
    pub(super) describe: Option<BTreeMap<String, String>>,
    /// Whether the document's tools say what they answer, or `"lenient"`: only that it is an object.
    pub(super) output_schemas: Option<OutputSchemasKey>,
    /// How much room one tool of the document may take.
    pub(super) budgets: Option<BudgetKeys>,
    /// Where references of the document to other documents may lead.
    pub(super) references: Option<ReferencesKey>,
    /// Whether the document's tools are on the list that clients read; if not, they are found by searching.
    pub(super) listed: Option<bool>,
    /// The largest answer that is read from the document's servers, in bytes.
    pub(super) max_answer_bytes: Option<usize>,
    /// How often a document at an address is asked for anew; a file is watched.
    pub(super) reload_every: Option<ConfigDuration>,
    /// Headers for every request to the address. Variables are replaced.
    pub(super) headers: Option<BTreeMap<String, Option<ScalarText>>>,
    /// How to speak to the server; clear from `command` or `url` if this is not said.
    #[serde(rename = "type")]
    pub(super) kind: Option<TransportKind>,
    /// Whether the server is started.
    pub(super) enabled: Option<bool>,
    /// Globs over the names of its tools; all of them if this is not said.
    pub(super) enabled_tools: Option<Vec<String>>,
    /// Globs over the names of its tools that are not offered, whatever `enabled_tools` says.
    pub(super) disabled_tools: Option<Vec<String>>,
    /// The name that the server has in this yard, if not the name of its table.
    pub(super) alias: Option<String>,
    /// Permissions that a caller needs, all of them: a list, or a table from globs over tool names to lists.
    pub(super) permissions: Option<PermissionKeys>,
    /// The era of the protocol that the server is spoken to in; found out by asking if this is not said.
    pub(super) era: Option<EraKey>,
    /// Whether clients share one session with the server.
    pub(super) sessions: Option<SessionsKey>,
    /// How long the server may take to connect and list what it offers.
    pub(super) start_timeout: Option<ConfigDuration>,
    /// How long a call may be silent; progress starts the clock anew.
    pub(super) call_timeout: Option<ConfigDuration>,
    /// Limits of this server, for all callers together.
    pub(super) limits: Option<BoundKeys>,
    /// Whether its results are checked against the output schemas of its tools.
    pub(super) check_results: Option<CheckKey>,
    /// Headers of our own callers that are handed on to the server.
    pub(super) forward_headers: Option<Vec<String>>,
    /// The environment variable that holds a bearer token for the server.
    pub(super) bearer_token_env_var: Option<String>,
    /// How to authorise with OAuth, beyond what the server says about itself.
    pub(super) oauth: Option<OAuthKeys>,
    /// Headers whose values are in environment variables. Only Codex says it like this.
    #[serde(skip)]
    pub(super) header_variables: BTreeMap<String, String>,
    /// Environment variables of this process that the program is given. Only Codex says it like this.
    #[serde(skip)]
    pub(super) passed_variables: Vec<String>,
}

/// `off`: results are not looked at; `warn`: they go out as they are, with a word; `enforce`: the call fails instead.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum CheckKey {
    Off,
    Warn,
    Enforce,
}

impl From<CheckKey> for ResultCheck {
    fn from(key: CheckKey) -> Self {
        match key {
            CheckKey::Off => Self::Off,
            CheckKey::Warn => Self::Warn,
            CheckKey::Enforce => Self::Enforce,
        }
    }
}

/// `legacy`: versions up to 2025-11-25, with `initialize`; `modern`: 2026-07-28 and later.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EraKey {
    Legacy,
    Modern,
}

/// `auto`: clients share a session until the server asks something that cannot be told whose it is; `shared`: they
/// always do; `per-client`: each client has its own.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SessionsKey {
    Auto,
    Shared,
    PerClient,
}

/// How to authorise with OAuth.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct OAuthKeys {
    /// The client that is registered with the server. Variables are replaced.
    #[serde(alias = "clientId", alias = "CLIENT_ID")]
    pub(super) client_id: Option<String>,
    /// The secret of that client. Variables are replaced.
    #[serde(alias = "clientSecret", alias = "CLIENT_SECRET")]
    pub(super) client_secret: Option<ScalarText>,
    /// What to ask for: a list, or one text with spaces.
    #[serde(alias = "scope")]
    pub(super) scopes: Option<TextList>,
    /// The loopback port of the callback; a free one if this is not said.
    #[serde(alias = "callbackPort")]
    pub(super) callback_port: Option<u16>,
    /// Whether the client's own credentials are enough, so that no person is asked.
    #[serde(alias = "clientCredentials")]
    pub(super) client_credentials: Option<bool>,
}

impl ConfigKeys {
    /// These keys, and those of an earlier file where nothing is said here.
    pub(super) fn with_fallback(self, earlier: Self) -> Self {
        Self {
            listen: self.listen.or(earlier.listen),
            auth: self.auth.or(earlier.auth),
            hosts: self.hosts.or(earlier.hosts),
            origins: self.origins.or(earlier.origins),
            trusted_proxies: self.trusted_proxies.or(earlier.trusted_proxies),
            permissions: self.permissions.or(earlier.permissions),
            // These mean what they mean in their own file.
            tokens: None,
            jwt: None,
            hooks: None,
            audit: None,
            history: None,
            demo: self.demo.or(earlier.demo),
            imports: None,
            check_results: self.check_results.or(earlier.check_results),
            limits: self.limits.with_fallback(earlier.limits),
            connections: self.connections.with_fallback(earlier.connections),
            tester: self.tester.with_fallback(earlier.tester),
            programs: self.programs.with_fallback(earlier.programs),
            servers: BTreeMap::new(),
        }
    }
}
