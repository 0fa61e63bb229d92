//! MCP servers as sources: start them, connect to them, notice when they break, and come back. What they offer
//! is the hub's business, how messages look is the wire's.

mod auth;
mod broken;
mod call;
mod calls;
mod child;
mod connect;
mod environment;
mod hear;
mod keeper;
mod link;
mod list;
mod live;
mod login;
mod other_era;
mod own;
mod question;
mod settings;
mod sharing;
mod subscribe;
mod supervise;
mod tree;
mod trust;
mod upstream;

pub use auth::{AuthError, AuthShared, CredentialStore, Person, Visit, auth_status, login, logout};
pub use broken::Broken;
pub use child::{Child, Fate, Input, Keeper, SpawnError, check_command};
pub use connect::{Common, Credentials, MESSAGE_BYTES};
pub use environment::ProcessEnvironment;
pub use keeper::{KeepError, Kept, keep};
pub use link::{Exchange, Link};
pub use list::{Lists, Pages};
pub use settings::{
    AuthSettings, CommandSettings, EnvInheritance, OAuthSettings, ServerSettings, SessionSharing,
    TransportSettings, UrlKind, UrlSettings,
};
pub use toolyard_wire::{AddressFilter, Era, Version};
pub use trust::tls;
pub use upstream::{Upstream, Visitor};
