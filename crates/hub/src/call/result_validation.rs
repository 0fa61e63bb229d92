//! Validates results against the output schema of their tool.

use std::sync::Arc;

use serde_json::json;

use crate::call_details::CallDetails;
use crate::catalog::ToolEntry;
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::events::YardEvent;
use crate::outcome::Outcome;
use crate::record::CallRecord;
use crate::result_check::ResultCheck;
use crate::yard::Yard;

/// Validates the result of one call.
pub(super) struct ResultValidator<'a> {
    pub(super) yard: &'a Yard,
    pub(super) record: &'a Arc<CallRecord>,
    pub(super) tool: Option<&'a Arc<ToolEntry>>,
    pub(super) check: ResultCheck,
}

impl ResultValidator<'_> {
    /// Returns the outcome. If checks are enforced, returns an error when the result violates the
    /// schema or cannot be checked in time.
    pub(super) async fn validate(
        &self,
        outcome: Outcome,
        deadline: &Deadline,
        details: Option<&CallDetails>,
    ) -> Result<Outcome, HubError> {
        let Some(tool) = self.tool else { return Ok(outcome) };
        if self.check == ResultCheck::Off || outcome.failed {
            return Ok(outcome);
        }
        let subject = &tool.full_name;
        let violations = tokio::select! {
            biased;
            violations = tool.result_violations(&outcome.body) => violations,
            () = deadline.passed() => {
                tracing::warn!(tool = %subject, "result check timed out");
                return match self.check {
                    ResultCheck::Enforce => {
                        let message = format!(
                            "the time limit of the call passed before the result of `{subject}` was checked against its output schema"
                        );
                        Err(HubError::new(ErrorKind::TimedOut, message)
                            .with_suggestion("increase the timeout of the call or `limits.call_seconds`"))
                    }
                    ResultCheck::Off | ResultCheck::Warn => Ok(outcome),
                };
            }
        };
        if violations.is_empty() {
            return Ok(outcome);
        }
        self.yard.events().publish_call(|| YardEvent::ResultViolatesSchema {
            call: Arc::clone(self.record),
            violations: violations.clone(),
        });
        if self.check == ResultCheck::Enforce {
            let reasons = violations.join("; ");
            let message = format!("the result of `{subject}` violates its output schema: {reasons}");
            return Err(
                HubError::new(ErrorKind::ToolFailed, message).with_details(json!({"violations": violations}))
            );
        }
        if let Some(details) = details {
            let _ = details.result_violations.set(violations);
        }
        Ok(outcome)
    }
}
