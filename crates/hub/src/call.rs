//! The one corridor that every call walks through, whatever front it came in by and whatever source it is
//! for: name, permission, rate, payload, schema, place, before-hooks, source, after-hooks, event, record.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use self::admission::AdmissionControl;
use self::hook_chain::HookChain;
use self::resolve::{ResolvedCall, resolve};
use self::result_validation::ResultValidator;
use self::tracker::CallTracker;
use crate::call_details::CallDetails;
use crate::call_permits::CallPermits;
use crate::caller_channel::CallerChannel;
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::execution::ExecutionId;
use crate::json::Raw;
use crate::name::SourceName;
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::request::{CallContext, CallOrigin, CallRequest, Priority};
use crate::result_check::ResultCheck;
use crate::source::{CallerIdentity, SourceCall, SourceTarget};
use crate::yard::Yard;

mod admission;
mod hook_chain;
mod resolve;
mod result_validation;
mod tracker;

impl Yard {
    /// Carries one call out. Dropping the future cancels the call, all the way to the source.
    pub async fn call(&self, request: CallRequest) -> Result<Outcome, HubError> {
        let mut watch = CallTracker::new(self, &request)?;
        let CallRequest { what, principal, deadline, cancel, priority, context, meta, client, id: _, notes } =
            request;
        let resolved = resolve(&self.catalog_in(context.era), what, &principal, &context);
        watch.start(resolved.as_ref().ok());
        let admitted = self.recorder.as_ref().map_or(Ok(()), |recorder| recorder.admit());
        let made = admitted.is_ok();
        let mut own = None;
        let outcome = match admitted.and(resolved) {
            Ok(resolved) => {
                if let Some(tool) = resolved.tool.clone().filter(|_| resolved.source.renders_errors()) {
                    let caller = (principal.clone(), context.session_id.clone());
                    // In a box, because hardly any call needs it.
                    own = Some(Box::new((Arc::clone(&resolved.source), tool, caller)));
                }
                let id = watch.id();
                let asked =
                    RequestParts { id, principal, deadline, cancel, priority, context, meta, client, notes };
                // In a box, because every future that waits for a call would be as large as this one.
                Box::pin(self.carry(resolved, asked)).await
            }
            Err(error) => Err(error),
        };
        let recorded = watch.end(&outcome).await;
        // That a call was not made may be said without a record of it.
        let outcome = if made { recorded.and(outcome) } else { outcome };
        match (outcome, own) {
            (Err(error), Some(own)) => {
                let (source, tool, (principal, session_id)) = &*own;
                let caller = CallerIdentity { principal, session_id: session_id.as_ref() };
                source.render_error(&tool.raw_name, &error, &caller).ok_or(error)
            }
            (outcome, _) => outcome,
        }
    }

    async fn carry(&self, resolved: ResolvedCall, request: RequestParts) -> Result<Outcome, HubError> {
        if let (Some(notes), Some(tool)) = (&request.notes, &resolved.tool) {
            let _ = notes.tool.set(Arc::clone(tool));
        }
        let name = resolved.source.name().clone();
        let limits = self.limits();
        let gates =
            AdmissionControl::for_call(self, &limits, &request.principal, &name, resolved.tool.as_ref());
        let deadline = request.deadline;
        deadline.no_later_than(gates.call_time());
        // Arguments that take long to check are checked beside this task, for as long as the call has.
        tokio::select! {
            biased;
            passed = gates.pass(&resolved, request.notes.as_deref()) => passed?,
            () = request.cancel.cancelled() => return Err(was_cancelled(&resolved.subject)),
            () = deadline.passed() => return Err(too_slow(&resolved.subject)),
        }
        let places = gates.places(&request.context);
        let largest = gates.payload();
        drop(gates);
        let check = match request.context.made_by {
            CallOrigin::Caller => limits.results.for_source(&name),
            CallOrigin::Program => ResultCheck::Off,
        };

        let ResolvedCall { source, target, subject, tool, .. } = resolved;
        let cancel = request.cancel.child_token();
        // However this future ends, whatever the source started for it learns that nobody waits any more.
        let tell_the_source = cancel.clone().drop_guard();
        let mut hooks = tool.as_ref().and_then(|tool| {
            HookChain::for_call(&self.hooks, request.id, tool, &target, &request.principal, &request.context)
        });
        let found = tool.as_ref().and_then(|tool| tool.version());
        let version_asked = request.context.version.is_some();
        let context = CallContext { version: found.map(ToOwned::to_owned), version_asked, ..request.context };
        let mut call = SourceCall {
            target,
            principal: request.principal,
            context,
            deadline: deadline.clone(),
            cancel: cancel.clone(),
            priority: request.priority,
            meta: request.meta,
            client: request.client,
        };
        let carried = async {
            let slot = CallPermits::acquire(places, request.priority).await;
            let _free = ReleaseOnDrop(slot.clone());
            if deadline.remaining().is_zero() {
                return Err(too_slow(&subject));
            }
            call.client = call.client.for_call(request.id, deadline.clone(), slot, self.shared_events());
            if let Some(hooks) = &mut hooks
                && let Some(changed) = guarded(&subject, &name, hooks.before(largest)).await.flatten()?
                && let SourceTarget::Tool { arguments, .. } = &mut call.target
            {
                *arguments = changed;
            }
            // The source is called inside the guard: it may crash before it has made its future.
            guarded(&subject, &name, async { source.call(call).await }).await.flatten()
        };
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(was_cancelled(&subject)),
            outcome = carried => outcome,
            () = deadline.passed() => Err(too_slow(&subject)),
        };
        drop(tell_the_source);
        let notes = request.notes.as_deref();
        let promise = ResultValidator { yard: self, id: request.id, tool: tool.as_ref(), check, notes };
        let outcome = match outcome {
            Ok(outcome) => promise.validate(outcome, &deadline).await,
            Err(error) => Err(error),
        };
        match &hooks {
            Some(hooks) => match guarded(&subject, &name, hooks.run_after(&outcome)).await {
                Ok(()) => outcome,
                Err(crash) => Err(crash),
            },
            None => outcome,
        }
    }
}

/// A request once it is known what it is for.
struct RequestParts {
    id: ExecutionId,
    principal: Principal,
    deadline: Deadline,
    cancel: CancellationToken,
    priority: Priority,
    context: CallContext,
    meta: Option<Raw>,
    client: CallerChannel,
    notes: Option<Arc<CallDetails>>,
}

fn was_cancelled(subject: &str) -> HubError {
    HubError::new(ErrorKind::Cancelled, format!("{subject} was cancelled"))
}

fn too_slow(subject: &str) -> HubError {
    HubError::new(ErrorKind::TimedOut, format!("{subject} did not answer in time"))
        .suggest("allow it more time, or ask it for less")
}

/// A source or a hook that panics fails this call and nothing else.
async fn guarded<T>(
    subject: &str,
    source: &SourceName,
    work: impl Future<Output = T>,
) -> Result<T, HubError> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        tracing::error!(%source, subject, panic = text, "a call crashed");
        HubError::new(ErrorKind::Bug, format!("{subject} crashed"))
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
