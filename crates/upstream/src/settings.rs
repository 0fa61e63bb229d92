//! The settings of one server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toolyard_hub::{Secret, SourceName};
use toolyard_wire::Era;

/// The settings of one server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSettings {
    /// The name in this yard: the alias, if there is one.
    pub name: SourceName,
    pub enabled: bool,
    pub transport: TransportSettings,
    /// Globs over raw names. `None` enables all tools.
    pub enabled_tools: Option<Vec<String>>,
    /// Globs over raw names. These take precedence.
    pub disabled_tools: Vec<String>,
    /// Permissions required for everything that this server offers.
    pub permissions: Vec<String>,
    /// Additional permissions for the tools that match a glob over raw names.
    pub tool_permissions: BTreeMap<String, Vec<String>>,
    /// The era of the protocol to use. `None` detects it.
    pub era: Option<Era>,
    pub sessions: SessionSharing,
    /// Where the server runs if the yard has several replicas.
    pub placement: ServerPlacement,
    /// Timeout for connecting and reading the lists.
    pub start_timeout: Duration,
    /// Idle timeout of a call. Progress restarts it.
    pub call_timeout: Duration,
    /// Names of caller headers that are forwarded to the server.
    pub forward_headers: Vec<String>,
    pub auth: ServerAuthSettings,
}

impl ServerSettings {
    /// Creates settings with the defaults.
    pub fn new(name: SourceName, transport: TransportSettings) -> Self {
        Self {
            name,
            enabled: true,
            transport,
            enabled_tools: None,
            disabled_tools: Vec::new(),
            permissions: Vec::new(),
            tool_permissions: BTreeMap::new(),
            era: None,
            sessions: SessionSharing::Auto,
            placement: ServerPlacement::EveryReplica,
            start_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(120),
            forward_headers: Vec::new(),
            auth: ServerAuthSettings::default(),
        }
    }
}

/// Whether clients share one session with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionSharing {
    /// Clients share a session until the server asks a question that may be about the calls of
    /// several clients. From then on, clients that can answer get private sessions.
    #[default]
    Auto,
    /// Clients always share one session.
    Shared,
    /// Each client has a private session.
    PerClient,
}

/// Which replicas of the yard run a server. A yard that runs as one process ignores this.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerPlacement {
    #[default]
    EveryReplica,
    /// One replica runs it, and the others use it there.
    OneReplica,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TransportSettings {
    /// A local process, connected through its standard streams.
    Command(CommandSettings),
    Url(UrlSettings),
}

impl TransportSettings {
    /// Returns the program that downloads the server before it starts it, if the command is one.
    pub fn downloader(&self) -> Option<&str> {
        const DOWNLOADERS: [&str; 10] =
            ["npx", "uvx", "bunx", "pnpx", "pnpm", "yarn", "npm", "uv", "docker", "podman"];
        let Self::Command(command) = self else { return None };
        let name = command.program.rsplit('/').next().unwrap_or_default();
        DOWNLOADERS.contains(&name).then_some(name)
    }

    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// Returns the name of the transport, for use before a connection exists.
    pub(crate) fn transport_name(&self) -> &'static str {
        match self {
            Self::Command(_) => "stdio",
            Self::Url(UrlSettings { kind: UrlKind::Any, .. }) => "streamable-http",
            Self::Url(UrlSettings { kind: UrlKind::LegacySse, .. }) => "sse",
        }
    }
}

#[derive(Clone, PartialEq)]
pub struct CommandSettings {
    pub program: String,
    pub args: Vec<String>,
    /// Variables in addition to the inherited ones.
    pub env: BTreeMap<String, Secret>,
    pub cwd: Option<PathBuf>,
    pub inherit: EnvInheritance,
}

/// Which environment variables of this process a server process inherits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvInheritance {
    /// Variables that programs need to run, and none that may be a secret.
    #[default]
    AllowList,
    Everything,
}

/// Omits the arguments, which may contain secrets.
impl fmt::Debug for CommandSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandSettings").field("program", &self.program).finish_non_exhaustive()
    }
}

#[derive(Clone, PartialEq)]
pub struct UrlSettings {
    pub url: String,
    pub headers: BTreeMap<String, Secret>,
    pub kind: UrlKind,
}

/// Omits the URL and the headers, which may contain secrets.
impl fmt::Debug for UrlSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlSettings").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// The transport behind a URL.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UrlKind {
    /// Streamable HTTP, with HTTP+SSE as the fallback.
    #[default]
    Any,
    /// The legacy HTTP+SSE transport.
    LegacySse,
}

/// How the yard authenticates with a server, besides static headers.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ServerAuthSettings {
    /// OAuth with discovery, if the server sends a challenge.
    #[default]
    OnChallenge,
    Bearer(Secret),
    OAuth(OAuthSettings),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct OAuthSettings {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    /// The loopback port of the callback. `None` selects a free port.
    pub callback_port: Option<u16>,
    /// Whether to use the client credentials grant, which needs no user.
    pub client_credentials: bool,
}
