//! MCP servers as sources: start them, connect to them, detect failures, and reconnect. The catalog
//! belongs to the hub, and message formats belong to the wire crate.

mod auth;
mod call;
mod child;
mod connect;
mod connection;
mod direct_connection;
mod environment;
mod in_flight;
mod legacy_side;
mod list;
mod login;
mod misconfigured;
mod notifications;
mod private_sessions;
mod process_supervisor;
mod processes;
mod question;
mod settings;
mod sharing;
mod subscribe;
mod supervise;
mod tls;
mod upstream;

pub use auth::{
    AuthContext, AuthError, CredentialStore, LoginPrompt, LoginPrompter, auth_status, login, logout,
};
pub use child::{Child, ChildInput, LineListener, ProcessExit, SpawnError, SupervisorCommand, check_command};
pub use connect::{CredentialPolicy, MESSAGE_BYTES, UpstreamContext};
pub use direct_connection::{DirectCallOutcome, DirectConnection, STOP_GRACE};
pub use environment::ProcessEnvironment;
pub use list::{PagedList, ServerListKind};
pub use misconfigured::MisconfiguredServer;
pub use process_supervisor::{SupervisedCommand, SupervisorError, supervise_process};
pub use settings::{
    CommandSettings, EnvInheritance, OAuthSettings, ServerAuthSettings, ServerPlacement, ServerSettings,
    SessionSharing, TransportSettings, UrlKind, UrlSettings,
};
pub use tls::tls_config;
pub use toolyard_wire::{AddressFilter, Era, ServerProfile, Version};
pub use upstream::{DedicatedClient, Upstream};
