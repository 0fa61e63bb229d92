//! The permissions defined by the yard itself. Tools may require permissions with other names.

/// See the calls, status and logs of other principals.
pub const OBSERVE: &str = "observe";
/// Enable, disable and reconnect servers, log in to them, and cancel calls of other principals.
pub const MANAGE: &str = "manage";
/// Let the tester start a command on this machine.
pub const SPAWN: &str = "spawn";
/// Let the tester connect to a public internet address.
pub const CONNECT: &str = "connect";
/// In combination with [`CONNECT`]: also connect to loopback, private, link-local and other special
/// addresses.
pub const CONNECT_INSIDE: &str = "connect-inside";

/// Permissions that go beyond calling tools. A token of an external issuer never gets them from a
/// scope with the same name: the configuration has to map them.
pub const PRIVILEGED: [&str; 5] = [OBSERVE, MANAGE, SPAWN, CONNECT, CONNECT_INSIDE];

/// Returns whether `name` is one of [`PRIVILEGED`].
pub fn is_privileged(name: &str) -> bool {
    PRIVILEGED.contains(&name)
}

/// The suggestion of every permission error.
pub const ASK_FOR_PERMISSION: &str = "ask the administrator of this yard for a token with this permission";

/// Returns the message of every permission error.
pub fn missing_message(subject: impl std::fmt::Display, permission: &str) -> String {
    format!("{subject} needs the permission `{permission}`")
}
