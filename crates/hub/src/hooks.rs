//! Code that runs around a call: for one tool, or for all of them.

use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::error::Error;
use crate::name::SourceName;
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::request::CallContext;

/// The call that a hook runs around.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    /// The tool's full name.
    pub tool: &'a str,
    pub source: &'a SourceName,
    pub arguments: &'a RawValue,
    pub principal: &'a Principal,
    pub context: &'a CallContext,
}

/// What may happen around a call; every method does nothing unless it is written.
pub trait Hooks: Send + Sync {
    /// Runs once the arguments are known to be valid. An error stops the call.
    fn before<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<(), Error>> {
        Box::pin(async { Ok(()) })
    }

    /// Runs when the tool answered, also when it answered that it failed.
    fn after<'a>(&'a self, _call: HookCall<'a>, _outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Runs when there is no answer.
    fn on_error<'a>(&'a self, _call: HookCall<'a>, _error: &'a Error) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}
