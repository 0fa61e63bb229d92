//! The keys of `toolyard.toml`. The top level and `[servers]` are defined here, every other section
//! in its own file (`limits.rs`, `programs.rs`, …). The decoder, `docs/toolyard.schema.json` and
//! `docs/reference/configuration.md` are derived from these types, so their doc comments are user
//! documentation. Types that can hold secrets do not implement `Debug`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hub::ResultCheck;

use super::access::{JwtKeys, TokenKeys};
use super::cluster::ClusterKeys;
use super::connections::ConnectionKeys;
use super::hook::HookKeys;
use super::limits::{BoundKeys, LimitKeys};
use super::lint::LintKeys;
use super::listen::ListenAddress;
use super::openapi::{BudgetKeys, FilterKeys, MissingAuthKey, ReferencesKey, SchemeKeys};
use super::programs::ProgramKeys;
use super::records::{AuditKeys, HistoryKeys};
use super::transport::TransportKind;
use super::values::{ConfigDuration, OutputSchemasKey, PermissionKeys, ScalarText, TextList};
use toolyard_tester::{TesterSettings, TesterSharing};

/// Authentication of HTTP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AuthMode {
    Token,
    None,
}

/// Configuration of Toolyard (`toolyard.toml`). Every key is optional.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
#[schemars(title = "toolyard.toml")]
pub(super) struct ConfigKeys {
    /// Address and port to listen on. A port alone binds to 127.0.0.1, and port 0 picks a free
    /// port. Default: "127.0.0.1:8080".
    pub(super) listen: Option<ListenAddress>,
    /// Authentication of HTTP clients. `token`: every request needs a bearer token. `none`: no
    /// authentication; allowed on loopback addresses only, and for web pages only from the yard's
    /// own origin and those in `origins`. Default: "token".
    pub(super) auth: Option<AuthMode>,
    /// Host names, in addition to the loopback names, that the `Host` header may contain. Default:
    /// none.
    pub(super) hosts: Option<Vec<String>>,
    /// Web origins that may use this server from a browser (CORS). Default: none.
    pub(super) origins: Option<Vec<String>>,
    /// IP addresses and networks, such as "10.0.0.0/8", of trusted reverse proxies. For their
    /// connections, the client address is the rightmost address in `X-Forwarded-For` (else
    /// `Forwarded`) that is not a trusted proxy. Default: none.
    pub(super) trusted_proxies: Option<Vec<String>>,
    /// Permissions of the owner, that is, the holder of the token from `--token`, `TOOLYARD_TOKEN`
    /// or the startup message. Default: all permissions.
    pub(super) permissions: Option<Vec<String>>,
    /// Bearer tokens of callers other than the owner. Default: none.
    pub(super) tokens: Option<Vec<TokenKeys>>,
    /// Accepts JWTs of one issuer as bearer tokens. Default: JWTs are not accepted.
    pub(super) jwt: Option<JwtKeys>,
    /// HTTP endpoints that are called before and after tool calls, in the given order. Default:
    /// none.
    pub(super) hooks: Option<Vec<HookKeys>>,
    /// Several replicas that serve one yard. Default: this process is the only one.
    pub(super) cluster: Option<ClusterKeys>,
    /// Audit log: one line of JSON for each call. Default: no audit log.
    pub(super) audit: Option<AuditKeys>,
    /// Call history in a SQLite database. The presence of this table enables it. Default: no
    /// history.
    pub(super) history: Option<HistoryKeys>,
    /// Whether to serve the built-in demo tools as well. Default: false, or true if there is no
    /// configuration file.
    pub(super) demo: Option<bool>,
    /// Other files to read servers from, in any supported format. Relative to the directory of this
    /// file; `~` is the home directory. Later imports override earlier ones, and servers in this
    /// file override imported servers of the same name. Default: none.
    pub(super) imports: Option<Vec<String>>,
    /// Whether tool results are validated against the output schema of the tool. Default: "off".
    pub(super) check_results: Option<CheckKey>,
    /// Limits that apply to the whole yard.
    pub(super) limits: LimitKeys,
    /// Limits on HTTP connections.
    pub(super) connections: ConnectionKeys,
    /// Settings of `toolyard lint`.
    pub(super) lint: LintKeys,
    /// Settings of the tester tools.
    pub(super) tester: TesterKeys,
    /// Python programs that call tools from a sandbox.
    pub(super) programs: ProgramKeys,
    /// MCP servers and OpenAPI documents, by name. Default: none.
    #[allow(dead_code, reason = "servers are decoded separately, so that an error affects only one of them")]
    pub(super) servers: BTreeMap<String, ServerKeys>,
}

/// Settings of the tester tools, which connect to and test other MCP servers.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct TesterKeys {
    /// Maximum time to connect to a server and for each list request. Servers of this configuration
    /// use their own timeouts. Default: 30s.
    connect_timeout: Option<ConfigDuration>,
    /// Maximum time without a response or progress notification during a call. Servers of this
    /// configuration use their own timeouts. Default: 120s.
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

/// A server: exactly one of `command` (a process to start), `url` (a remote server) and `openapi`
/// (an OpenAPI document).
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct ServerKeys {
    /// Program to start as an MCP server over stdio. Variables (`${VAR}`, `${VAR:-default}`,
    /// `${env:VAR}`) are expanded. Default: none.
    pub(super) command: Option<String>,
    /// Arguments of `command`. Variables are expanded. Default: none.
    pub(super) args: Option<Vec<ScalarText>>,
    /// Environment variables of the process, in addition to the inherited ones. Variables are
    /// expanded. Default: none.
    pub(super) env: Option<BTreeMap<String, Option<ScalarText>>>,
    /// File with further environment variables, one `NAME=value` per line. Variables in `env`
    /// override it. Relative to the directory of this file. Default: none.
    pub(super) env_file: Option<String>,
    /// Whether the process inherits all environment variables of Toolyard, which can include
    /// secrets of other servers. If false, it inherits only the variables that programs commonly
    /// need to run. Default: false.
    pub(super) inherit_env: Option<bool>,
    /// Working directory of the process. Relative to the directory of this file; `~` is the home
    /// directory. Default: the working directory of Toolyard.
    pub(super) cwd: Option<String>,
    /// URL of the MCP server. Variables are expanded. Default: none.
    pub(super) url: Option<String>,
    /// OpenAPI document whose operations become tools: a file, relative to the directory of this
    /// file, or a URL. Variables are expanded. Default: none.
    pub(super) openapi: Option<String>,
    /// Base URL of all operations of the OpenAPI document, regardless of the document's `servers`.
    /// Credentials are then sent to this URL only. Variables are expanded. Default: the document's
    /// `servers`.
    pub(super) base_url: Option<String>,
    /// Values of the server variables in the OpenAPI document. Environment variables are expanded.
    /// Default: the defaults in the document.
    pub(super) variables: Option<BTreeMap<String, ScalarText>>,
    /// Private, loopback or link-local hosts that the OpenAPI document may refer to, as `host` or
    /// `host:port`. Default: none.
    pub(super) allow_hosts: Option<Vec<String>>,
    /// Credentials for the OpenAPI document, by the name of its security scheme: `token`, or
    /// `username` and `password`, or `client_id` and `client_secret`. Default: none.
    pub(super) auth: Option<BTreeMap<String, SchemeKeys>>,
    /// What happens to calls that need a security scheme without configured credentials. Default:
    /// "refuse".
    pub(super) missing_auth: Option<MissingAuthKey>,
    /// Operations of the OpenAPI document that become tools. An operation must match every list that
    /// is present. Default: all.
    pub(super) include: Option<FilterKeys>,
    /// Operations of the OpenAPI document that do not become tools. One matching list is enough.
    /// Takes precedence over `include`. Default: none.
    pub(super) exclude: Option<FilterKeys>,
    /// Names of tools of the OpenAPI document, by operationId, by `METHOD /path`, or by the
    /// generated tool name. Default: none.
    pub(super) rename: Option<BTreeMap<String, String>>,
    /// Descriptions of tools of the OpenAPI document, by the same keys as `rename`. Default: none.
    pub(super) describe: Option<BTreeMap<String, String>>,
    /// Whether tools of the OpenAPI document declare an output schema. "lenient" declares a schema
    /// that accepts any object. Default: true.
    pub(super) output_schemas: Option<OutputSchemasKey>,
    /// Size limits of the tools of the OpenAPI document.
    pub(super) budgets: Option<BudgetKeys>,
    /// Where `$ref`s of the OpenAPI document to other documents may point. Default: "files".
    pub(super) references: Option<ReferencesKey>,
    /// Whether `tools/list` includes the tools of the OpenAPI document. If false, clients find them
    /// by searching and can still call them by name. Default: true.
    pub(super) listed: Option<bool>,
    /// Maximum size, in bytes, of a response from the API of the OpenAPI document. Default:
    /// 8388608.
    pub(super) max_answer_bytes: Option<usize>,
    /// Interval at which an OpenAPI document at a URL is fetched again. Local files are watched
    /// instead. Default: 5m.
    pub(super) reload_every: Option<ConfigDuration>,
    /// HTTP headers of every request to the server. Variables are expanded. Default: none.
    pub(super) headers: Option<BTreeMap<String, Option<ScalarText>>>,
    /// Transport of the server. Default: "stdio" for a `command`; for a `url` "http", which falls
    /// back to HTTP+SSE.
    #[serde(rename = "type")]
    pub(super) kind: Option<TransportKind>,
    /// Whether to start or connect to the server. Default: true.
    pub(super) enabled: Option<bool>,
    /// Glob patterns (`*`, `?`) of the tool names to offer. Default: all tools.
    pub(super) enabled_tools: Option<Vec<String>>,
    /// Glob patterns of the tool names not to offer. Takes precedence over `enabled_tools`.
    /// Default: none.
    pub(super) disabled_tools: Option<Vec<String>>,
    /// Name of the server in this yard. Default: the name of its table.
    pub(super) alias: Option<String>,
    /// Permissions that a caller needs, all of them: a list for everything that the server offers,
    /// or a table from glob patterns of tool names to lists. Default: none.
    pub(super) permissions: Option<PermissionKeys>,
    /// Protocol era to use with the server. Default: negotiated with the server.
    pub(super) era: Option<EraKey>,
    /// Whether clients share one session with the server. Default: "auto".
    pub(super) sessions: Option<SessionsKey>,
    /// Which replicas run the server, if the yard has several. Default: "every".
    pub(super) placement: Option<PlacementKey>,
    /// Maximum time to connect and to list what the server offers. Default: 30s.
    pub(super) start_timeout: Option<ConfigDuration>,
    /// Maximum time without a response or progress notification during a call. For an OpenAPI
    /// document, the maximum duration of a call. Default: 2m.
    pub(super) call_timeout: Option<ConfigDuration>,
    /// Limits of this server, for all callers together.
    pub(super) limits: Option<BoundKeys>,
    /// Whether results of this server are validated against the output schema of the tool. Default:
    /// the top-level `check_results`.
    pub(super) check_results: Option<CheckKey>,
    /// Names of request headers to forward from the caller to the server. Default: none.
    pub(super) forward_headers: Option<Vec<String>>,
    /// Name of the environment variable that holds the bearer token for the server. Default: none.
    pub(super) bearer_token_env_var: Option<String>,
    /// OAuth settings, in addition to what the server advertises. Default: discovered when the
    /// server requires authorization.
    pub(super) oauth: Option<OAuthKeys>,
    /// Headers whose values are in environment variables. Only the Codex format can express this.
    #[serde(skip)]
    pub(super) header_variables: BTreeMap<String, String>,
    /// Environment variables of this process that the program inherits. Only the Codex format can
    /// express this.
    #[serde(skip)]
    pub(super) passed_variables: Vec<String>,
}

/// `off`: results are not validated. `warn`: an invalid result is passed on unchanged, with a
/// warning. `enforce`: the call fails.
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

/// `legacy`: versions up to 2025-11-25, with `initialize`. `modern`: 2026-07-28 and later.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum EraKey {
    Legacy,
    Modern,
}

/// `auto`: clients share a session until the server sends a request that cannot be attributed to
/// one client; clients that can answer such requests then get private sessions. `shared`: clients
/// always share one session. `per-client`: each client has a session of its own.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SessionsKey {
    Auto,
    Shared,
    PerClient,
}

/// `every`: each replica runs the server. `one`: one replica runs it and the others use it there; if
/// that replica stops, another one starts the server. Without `[cluster]`, both are the same.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PlacementKey {
    Every,
    One,
}

/// OAuth settings of a server.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct OAuthKeys {
    /// ID of the client registered with the authorization server. Variables are expanded. Default:
    /// a client is registered dynamically if the server requires it.
    #[serde(alias = "clientId", alias = "CLIENT_ID")]
    pub(super) client_id: Option<String>,
    /// Secret of the client. Variables are expanded. Default: none.
    #[serde(alias = "clientSecret", alias = "CLIENT_SECRET")]
    pub(super) client_secret: Option<ScalarText>,
    /// Scopes to request: a list, or one string with spaces. Default: the scopes that the server
    /// advertises.
    #[serde(alias = "scope")]
    pub(super) scopes: Option<TextList>,
    /// Loopback port of the redirect URI. Default: a free port.
    #[serde(alias = "callbackPort")]
    pub(super) callback_port: Option<u16>,
    /// Whether to use the client credentials grant, which needs no user interaction. Requires
    /// `client_id` and `client_secret`. Default: false.
    #[serde(alias = "clientCredentials")]
    pub(super) client_credentials: Option<bool>,
}

impl ConfigKeys {
    /// Returns these keys, with missing ones taken from an earlier file.
    pub(super) fn with_fallback(self, earlier: Self) -> Self {
        Self {
            listen: self.listen.or(earlier.listen),
            auth: self.auth.or(earlier.auth),
            hosts: self.hosts.or(earlier.hosts),
            origins: self.origins.or(earlier.origins),
            trusted_proxies: self.trusted_proxies.or(earlier.trusted_proxies),
            permissions: self.permissions.or(earlier.permissions),
            // These apply to the file that contains them and are never merged.
            tokens: None,
            jwt: None,
            hooks: None,
            cluster: None,
            audit: None,
            history: None,
            demo: self.demo.or(earlier.demo),
            imports: None,
            check_results: self.check_results.or(earlier.check_results),
            limits: self.limits.with_fallback(earlier.limits),
            connections: self.connections.with_fallback(earlier.connections),
            lint: self.lint.with_fallback(earlier.lint),
            tester: self.tester.with_fallback(earlier.tester),
            programs: self.programs.with_fallback(earlier.programs),
            servers: BTreeMap::new(),
        }
    }
}
