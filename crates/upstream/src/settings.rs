//! What is configured about one server.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use toolyard_hub::{Secret, SourceName};
use toolyard_wire::Era;

/// One server.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSettings {
    /// Its name in this yard: the alias where there is one.
    pub name: SourceName,
    pub enabled: bool,
    pub transport: TransportSettings,
    /// Globs over raw names; everything where this is not said.
    pub enabled_tools: Option<Vec<String>>,
    /// Globs over raw names; these win.
    pub disabled_tools: Vec<String>,
    /// Needed for everything that this server offers.
    pub permissions: Vec<String>,
    /// Needed beside those for the tools that a glob over raw names picks.
    pub tool_permissions: BTreeMap<String, Vec<String>>,
    /// The era of the protocol that it is spoken to in; found out by asking where this is not said.
    pub era: Option<Era>,
    /// Whether clients share one session with it.
    pub sessions: SessionSharing,
    /// How long it may take until it has connected and listed what it offers.
    pub start_timeout: Duration,
    /// How long a call may be silent; progress starts the clock anew.
    pub call_timeout: Duration,
    /// Headers of our own callers that are handed on to it. None unless named.
    pub forward_headers: Vec<String>,
    pub auth: ServerAuthSettings,
}

impl ServerSettings {
    /// A server with nothing out of the ordinary.
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
    /// They do until the server asks something that may be about several clients' calls. From then on clients that can
    /// answer have private sessions.
    #[default]
    Auto,
    /// They always do.
    Shared,
    /// Each client has a private session.
    PerClient,
}

#[derive(Debug, Clone, PartialEq)]
pub enum TransportSettings {
    /// A process of our own, spoken to over its standard streams.
    Command(CommandSettings),
    Url(UrlSettings),
}

impl TransportSettings {
    /// The transport as it is called before there is a connection.
    /// The program that downloads the server before it starts it, if it is started by such a one.
    pub(crate) fn downloader(&self) -> Option<&str> {
        const DOWNLOADERS: [&str; 10] =
            ["npx", "uvx", "bunx", "pnpx", "pnpm", "yarn", "npm", "uv", "docker", "podman"];
        let Self::Command(command) = self else { return None };
        let name = command.program.rsplit('/').next().unwrap_or_default();
        DOWNLOADERS.contains(&name).then_some(name)
    }

    pub(crate) fn is_command(&self) -> bool {
        matches!(self, Self::Command(_))
    }

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
    /// Added to what it inherits.
    pub env: BTreeMap<String, Secret>,
    pub cwd: Option<PathBuf>,
    pub inherit: EnvInheritance,
}

/// What of the environment of this process a server's process is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EnvInheritance {
    /// What programs need to run, and nothing that may be a secret.
    #[default]
    AllowList,
    Everything,
}

/// Arguments may hold secrets, so they are not shown.
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

/// An address may hold secrets, so it is not shown.
impl fmt::Debug for UrlSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UrlSettings").field("kind", &self.kind).finish_non_exhaustive()
    }
}

/// Which transport is behind an address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum UrlKind {
    /// Streamable HTTP, and the old one where that fails.
    #[default]
    Any,
    /// The old HTTP+SSE transport.
    LegacySse,
}

/// How we prove who we are to a server, beside static headers.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum ServerAuthSettings {
    /// Only if the server asks: OAuth, with what it says about itself.
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
    /// The loopback port of the callback; a free one where this is not said.
    pub callback_port: Option<u16>,
    /// No person is asked: the client's own credentials are enough.
    pub client_credentials: bool,
}
