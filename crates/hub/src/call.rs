//! The path of every call, from any front to any source: resolve the name, accept the call, check
//! permissions, limits and arguments, wait for a permit, run the hooks, call the source, validate
//! the result, record. `call` and `perform` follow this list; each step is a separate function or
//! type.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt;
use tokio::time::Instant;

use self::admission::AdmissionControl;
use self::hook_chain::HookChain;
use self::resolve::{CallRoute, resolve};
use self::result_validation::ResultValidator;
use self::tracker::CallTracker;
use crate::call_details::CallDetails;
use crate::call_permits::{CallPermits, PermitLoss};
use crate::error::{ErrorKind, HubError};
use crate::execution::ExecutionId;
use crate::json::Raw;
use crate::outcome::Outcome;
use crate::record::CallRecord;
use crate::request::{CallContext, CallOrigin, CallRequest, CallTarget};
use crate::result_check::ResultCheck;
use crate::shared_limits::store_unavailable_error;
use crate::source::{SourceCall, SourceTarget};
use crate::yard::Yard;

mod admission;
mod hook_chain;
mod resolve;
mod result_validation;
mod tracker;

impl Yard {
    /// Executes one call. Dropping the future cancels the call, including the request to the
    /// source.
    pub async fn call(&self, request: CallRequest) -> Result<Outcome, HubError> {
        let started = Instant::now();
        let id = match request.id {
            Some(id) => id,
            None => ExecutionId::generate()?,
        };
        let resolved = resolve(&self.catalog_for_era(request.context.era), &request);
        let arguments = self.arguments_to_record(&request.target);
        let route = resolved.as_ref().ok();
        let tool = route.and_then(|route| route.tool.as_ref());
        let record = CallRecord {
            id,
            kind: request.target.kind(),
            subject: route.map_or_else(|| request.target.short_subject(), |route| Arc::clone(&route.subject)),
            source: route.map(|route| route.source.name().clone()),
            tool: tool.map(|tool| tool.full_name.clone()),
            principal: request.principal,
            context: CallContext {
                version_asked: request.context.version.is_some(),
                version: tool.and_then(|tool| tool.version()).map(ToOwned::to_owned),
                ..request.context
            },
            priority: request.priority,
            accepted_at: SystemTime::now(),
        };
        let tracker = CallTracker::start(self, record, arguments, started);
        let record = Arc::clone(tracker.record());
        let may_call = self.recorder.as_ref().map_or(Ok(()), |recorder| recorder.admit());
        let is_recordable = may_call.is_ok();
        let (result, route) = match may_call.and(resolved) {
            Ok(route) => {
                let call = SourceCall {
                    record: Arc::clone(&record),
                    target: request.target.into_source_target(&route),
                    deadline: request.deadline,
                    cancel: request.cancel.child_token(),
                    headers: request.headers,
                    meta: request.meta,
                    client: request.client,
                };
                // Boxed to keep the futures of all callers small.
                (Box::pin(self.perform(&route, call, request.details.as_deref())).await, Some(route))
            }
            Err(error) => (Err(error), None),
        };
        let recorded = tracker.end(&result).await;
        // The source was never called, so the refusal may be returned even if it was not recorded.
        let result = if is_recordable { recorded.and(result) } else { result };
        match (result, route) {
            (Err(error), Some(route)) => route.render_error(error, &record),
            (result, _) => result,
        }
    }

    /// Runs the steps between accepting a call and recording it.
    async fn perform(
        &self,
        route: &CallRoute,
        mut call: SourceCall,
        details: Option<&CallDetails>,
    ) -> Result<Outcome, HubError> {
        let (record, deadline, cancel) =
            (Arc::clone(&call.record), call.deadline.clone(), call.cancel.clone());
        if let (Some(details), Some(tool)) = (details, &route.tool) {
            let _ = details.tool.set(Arc::clone(tool));
        }
        let limits = self.limits();
        let admission = AdmissionControl::for_call(self, &limits, route, &record);
        deadline.shorten_to(admission.call_time());
        let permits = admission.permits();
        // Expensive argument checks run on another thread, bounded by the deadline of the call.
        tokio::select! {
            biased;
            admitted = admission.admit(&call.target, &permits, details) => admitted?,
            () = cancel.cancelled() => return Err(cancelled(&record)),
            () = deadline.passed() => return Err(timed_out(&record)),
        }
        let max_payload = admission.max_payload();
        drop(admission);

        // However this future ends, everything that the source started for the call is canceled.
        let cancel_source = cancel.clone().drop_guard();
        let mut hooks = HookChain::for_call(&self.hooks, route, &call);
        let to_source = async {
            let _released_at_end = ReleaseOnDrop(permits.clone());
            permits.ensure_held().await.map_err(|error| store_unavailable_error(&error))?;
            if deadline.remaining().is_zero() {
                return Err(timed_out(&record));
            }
            call.client =
                call.client.for_call(&record, deadline.clone(), permits.clone(), self.shared_events());
            if let Some(hooks) = &mut hooks
                && let Some(changed) = catch_panic(&record, hooks.run_before(max_payload)).await.flatten()?
                && let SourceTarget::Tool { arguments, .. } = &mut call.target
            {
                *arguments = changed;
            }
            // Called inside the async block because the source may panic before it returns its
            // future.
            catch_panic(&record, async { route.source.call(call).await }).await.flatten()
        };
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(cancelled(&record)),
            result = to_source => result,
            loss = permits.lost() => Err(permits_lost(&record, &loss)),
            () = deadline.passed() => Err(timed_out(&record)),
        };
        drop(cancel_source);

        let check = match record.context.origin {
            CallOrigin::Caller => limits.results.for_source(route.source.name()),
            CallOrigin::Program => ResultCheck::Off,
        };
        let validator = ResultValidator { yard: self, record: &record, tool: route.tool.as_ref(), check };
        let result = match result {
            Ok(outcome) => validator.validate(outcome, &deadline, details).await,
            Err(error) => Err(error),
        };
        match &hooks {
            Some(hooks) => catch_panic(&record, hooks.run_after(&result)).await.and(result),
            None => result,
        }
    }

    /// Returns a copy of the arguments if the recorder needs them.
    fn arguments_to_record(&self, target: &CallTarget) -> Option<Raw> {
        let is_wanted = self.recorder.as_ref().is_some_and(|recorder| recorder.wants_arguments());
        target.arguments().filter(|_| is_wanted).map(ToOwned::to_owned)
    }
}

fn cancelled(record: &CallRecord) -> HubError {
    HubError::new(ErrorKind::Cancelled, format!("`{}` was canceled", record.subject))
}

fn timed_out(record: &CallRecord) -> HubError {
    let message = format!("`{}` did not answer within the time limit of the call", record.subject);
    HubError::new(ErrorKind::TimedOut, message)
        .with_suggestion("increase the timeout of the call or `limits.call_seconds`, or request less data")
}

/// The call was running, so it may have had an effect.
fn permits_lost(record: &CallRecord, loss: &PermitLoss) -> HubError {
    match loss {
        PermitLoss::Expired => {
            let message = format!(
                "`{}` was canceled because its permit expired: this replica did not reach the shared store in time",
                record.subject
            );
            HubError::new(ErrorKind::ConnectionLost, message)
                .with_suggestion("find out whether the call had an effect before you repeat it")
        }
        PermitLoss::Unavailable(error) => store_unavailable_error(error).with_kind(ErrorKind::ConnectionLost),
    }
}

/// Runs `work` and converts a panic of a source or hook into an error of this call.
async fn catch_panic<T>(record: &CallRecord, work: impl Future<Output = T>) -> Result<T, HubError> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        let (source, subject) = (record.source_name(), &*record.subject);
        tracing::error!(source, subject, panic = text, "call panicked");
        HubError::new(ErrorKind::Bug, format!("`{subject}` crashed"))
    })
}

struct ReleaseOnDrop(CallPermits);

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[cfg(test)]
mod tests;
