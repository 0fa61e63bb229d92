//! The hooks around one call: the hooks of the yard outside, those of the tool inside.

use std::sync::Arc;
use std::time::Duration;

use super::resolve::CallRoute;
use crate::catalog::ToolEntry;
use crate::error::{ErrorKind, HubError};
use crate::hooks::{HookCall, HookDecision, Hooks};
use crate::json::Raw;
use crate::outcome::Outcome;
use crate::record::CallRecord;
use crate::source::{SourceCall, SourceTarget};

/// Maximum duration of hooks after the outcome is known, because the caller is waiting for them.
pub(super) const AFTERWARDS: Duration = Duration::from_secs(10);

pub(super) struct HookChain<'a> {
    yard_hooks: Vec<Arc<dyn Hooks>>,
    tool_hooks: Vec<Arc<dyn Hooks>>,
    record: Arc<CallRecord>,
    tool: &'a ToolEntry,
    arguments: Raw,
}

impl<'a> HookChain<'a> {
    /// Returns `None` if there are no hooks, so that most calls copy nothing.
    pub(super) fn for_call(
        yards: &[Arc<dyn Hooks>],
        route: &'a CallRoute,
        call: &SourceCall,
    ) -> Option<Self> {
        let (Some(tool), SourceTarget::Tool { arguments, .. }) = (&route.tool, &call.target) else {
            return None;
        };
        let wanting = |hooks: &&Arc<dyn Hooks>| hooks.applies_to(tool.full_name.as_str());
        let pick = |hooks: &[Arc<dyn Hooks>]| hooks.iter().filter(wanting).cloned().collect::<Vec<_>>();
        let (yards, tools) = (pick(yards), pick(&tool.hooks));
        if yards.is_empty() && tools.is_empty() {
            return None;
        }
        Some(Self {
            yard_hooks: yards,
            tool_hooks: tools,
            record: Arc::clone(&call.record),
            tool,
            arguments: arguments.clone(),
        })
    }

    fn call(&self) -> HookCall<'_> {
        HookCall { record: &self.record, arguments: &self.arguments }
    }

    /// Runs every hook before the call. Later hooks see the changes of earlier ones. Returns the
    /// arguments to continue with, if a hook changed them.
    pub(super) async fn run_before(&mut self, largest: usize) -> Result<Option<Raw>, HubError> {
        let mut changed = false;
        let all: Vec<_> = self.yard_hooks.iter().chain(&self.tool_hooks).cloned().collect();
        for hooks in all {
            if let HookDecision::Change(arguments) = hooks.before(self.call()).await? {
                self.check_arguments(&arguments, largest).await?;
                self.arguments = arguments;
                changed = true;
            }
        }
        Ok(changed.then(|| self.arguments.clone()))
    }

    /// Applies the same checks to arguments from a hook as to arguments from callers.
    async fn check_arguments(&self, arguments: &Raw, largest: usize) -> Result<(), HubError> {
        let size = arguments.get().len();
        if size > largest {
            let name = &self.tool.full_name;
            let message = format!(
                "a hook changed the arguments for `{name}` to {size} bytes, which exceeds the limit of {largest} bytes"
            );
            return Err(HubError::new(ErrorKind::TooLarge, message));
        }
        self.tool.check(arguments).await.map_err(|error| {
            let changed =
                HubError::new(error.kind(), format!("a hook changed the arguments: {}", error.message()));
            error.details().cloned().into_iter().fold(changed, HubError::with_details)
        })
    }

    /// Notifies every hook of the end of the call, including timeouts and cancellation.
    pub(super) async fn run_after(&self, outcome: &Result<Outcome, HubError>) {
        let notifications = async {
            for hooks in self.tool_hooks.iter().chain(&self.yard_hooks) {
                match outcome {
                    Ok(outcome) => hooks.after(self.call(), outcome).await,
                    Err(error) => hooks.on_error(self.call(), error).await,
                }
            }
        };
        if tokio::time::timeout(AFTERWARDS, notifications).await.is_err() {
            tracing::warn!(tool = %self.tool.full_name, "hooks after the call timed out");
        }
    }
}
