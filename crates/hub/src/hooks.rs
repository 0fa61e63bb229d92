//! Code that runs around a call: for one tool, or for all of them.

use serde_json::value::RawValue;

use crate::BoxFuture;
use crate::error::HubError;
use crate::json::Raw;
use crate::outcome::Outcome;
use crate::record::CallRecord;

/// The call that a hook runs around.
#[derive(Debug, Clone, Copy)]
pub struct HookCall<'a> {
    pub record: &'a CallRecord,
    /// The arguments as the hooks before this one left them.
    pub arguments: &'a RawValue,
}

/// What a hook says before a call.
#[derive(Debug, Clone)]
pub enum HookDecision {
    /// The call goes on as it is.
    Pass,
    /// The call goes on with these arguments, if the tool's schema allows them.
    Change(Raw),
}

/// What may happen around a call; every method does nothing unless it is written.
pub trait Hooks: Send + Sync {
    /// Whether it has anything to do with this tool, by its full name. Where no hook has, calls cost nothing more.
    fn applies_to(&self, _tool: &str) -> bool {
        true
    }

    /// Runs once the arguments are known to be valid. An error stops the call.
    fn before<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
        Box::pin(async { Ok(HookDecision::Pass) })
    }

    /// Runs when the tool answered, also when it answered that it failed.
    fn after<'a>(&'a self, _call: HookCall<'a>, _outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Runs when there is no answer.
    fn on_error<'a>(&'a self, _call: HookCall<'a>, _error: &'a HubError) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}
