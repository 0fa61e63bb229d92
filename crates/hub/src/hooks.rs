//! Code that runs before and after calls, for one tool or for all tools.

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
    /// The arguments, including the changes of earlier hooks.
    pub arguments: &'a RawValue,
}

/// The decision of a hook before a call.
#[derive(Debug, Clone)]
pub enum HookDecision {
    /// Continue with the current arguments.
    Pass,
    /// Continue with these arguments, provided that they match the tool's schema.
    Change(Raw),
}

/// A hook around calls. By default, every method does nothing.
pub trait Hooks: Send + Sync {
    /// Returns whether the hook applies to a tool, by its full name. Calls without applicable hooks
    /// have no extra cost.
    fn applies_to(&self, _tool: &str) -> bool {
        true
    }

    /// Runs after the arguments are validated. An error stops the call.
    fn before<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
        Box::pin(async { Ok(HookDecision::Pass) })
    }

    /// Runs when the tool returned a result, including a result that reports a failure.
    fn after<'a>(&'a self, _call: HookCall<'a>, _outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// Runs when the call ended with an error.
    fn on_error<'a>(&'a self, _call: HookCall<'a>, _error: &'a HubError) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}
