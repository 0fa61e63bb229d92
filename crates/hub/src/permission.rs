//! The permissions that the yard itself defines. Tools may ask for any other name.

/// See the calls, status and logs of other principals.
pub const OBSERVE: &str = "observe";
/// Enable, disable and reconnect servers, log in to them, and cancel calls of other principals.
pub const MANAGE: &str = "manage";
/// Have the tester start a command line on this machine.
pub const SPAWN: &str = "spawn";
/// Have the tester connect to an address on the internet.
pub const CONNECT: &str = "connect";
/// Together with [`CONNECT`]: also to loopback, private, link-local and other special addresses.
pub const CONNECT_INSIDE: &str = "connect-inside";

/// Permissions that go beyond calling tools. A token of another issuer never gets them by carrying a scope of the same
/// name: the configuration has to map them.
pub const PRIVILEGED: [&str; 5] = [OBSERVE, MANAGE, SPAWN, CONNECT, CONNECT_INSIDE];

/// Whether `name` is one of [`PRIVILEGED`].
pub fn is_privileged(name: &str) -> bool {
    PRIVILEGED.contains(&name)
}

/// The text of every permission error: what a caller is told who lacks a permission.
pub fn missing_message(subject: impl std::fmt::Display, permission: &str) -> String {
    format!("{subject} needs the permission {permission}")
}
