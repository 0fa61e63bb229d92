//! The hooks around one call: the yard's own outside, the tool's inside.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use crate::catalog::Tool;
use crate::error::Error;
use crate::hooks::{HookCall, Hooks};
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::request::CallContext;
use crate::source::Target;

/// How long hooks may take once the outcome is known: the caller waits for them, so they get no more than this.
pub(super) const AFTERWARDS: Duration = Duration::from_secs(10);

/// The hooks around one call: the yard's own outside, the tool's inside.
pub(super) struct Around<'a> {
    all: &'a [Arc<dyn Hooks>],
    tool: &'a Tool,
    arguments: Box<RawValue>,
    principal: Principal,
    context: CallContext,
}

impl<'a> Around<'a> {
    /// None where there are no hooks: most calls then copy nothing.
    pub(super) fn of(
        all: &'a [Arc<dyn Hooks>],
        tool: &'a Tool,
        target: &Target,
        principal: &Principal,
        context: &CallContext,
    ) -> Option<Self> {
        let Target::Tool { arguments, .. } = target else { return None };
        if all.is_empty() && tool.hooks.is_empty() {
            return None;
        }
        let (arguments, principal, context) = (arguments.clone(), principal.clone(), context.clone());
        Some(Self { all, tool, arguments, principal, context })
    }

    fn call(&self) -> HookCall<'_> {
        HookCall {
            tool: self.tool.full_name.as_str(),
            source: &self.tool.source,
            arguments: &self.arguments,
            principal: &self.principal,
            context: &self.context,
        }
    }

    pub(super) async fn before(&self) -> Result<(), Error> {
        for hooks in self.all.iter().chain(&self.tool.hooks) {
            hooks.before(self.call()).await?;
        }
        Ok(())
    }

    /// Tells every hook how it ended, also when the time was up or the caller cancelled.
    pub(super) async fn afterwards(&self, outcome: &Result<Outcome, Error>) {
        let told = async {
            for hooks in self.tool.hooks.iter().chain(self.all) {
                match outcome {
                    Ok(outcome) => hooks.after(self.call(), outcome).await,
                    Err(error) => hooks.on_error(self.call(), error).await,
                }
            }
        };
        if tokio::time::timeout(AFTERWARDS, told).await.is_err() {
            tracing::warn!(tool = %self.tool.full_name, "hooks took too long after the call and were stopped");
        }
    }
}
