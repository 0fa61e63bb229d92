//! Tells watchers that a call came in and, however it ends, that it ended; and has it recorded.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt;
use tokio::time::Instant;

use super::resolve::ResolvedCall;
use crate::BoxFuture;
use crate::catalog::ToolEntry;
use crate::error::HubError;
use crate::events::{CallEndReason, YardEvent};
use crate::execution::ExecutionId;
use crate::json::{self, Raw};
use crate::name::SourceName;
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::record::CallRecord;
use crate::request::{CallOrigin, CallRequest, EntryKind, FrontName, Priority};
use crate::yard::Yard;

/// What is known of a call from the start.
pub(super) struct CallTracker<'a> {
    yard: &'a Yard,
    id: ExecutionId,
    thing: EntryKind,
    /// What the caller said, until it is known what that stands for.
    subject: String,
    source: Option<SourceName>,
    tool: Option<Arc<ToolEntry>>,
    principal: Principal,
    session_id: Option<Arc<str>>,
    user_id: Option<Arc<str>>,
    priority: Priority,
    made_by: CallOrigin,
    front: Option<FrontName>,
    arguments: Option<Raw>,
    at: SystemTime,
    began: Instant,
    over: bool,
}

impl<'a> CallTracker<'a> {
    pub(super) fn new(yard: &'a Yard, request: &CallRequest) -> Result<Self, HubError> {
        let wanted = yard.recorder.as_ref().is_some_and(|recorder| recorder.wants_arguments());
        let arguments = if wanted { request.what.arguments().map(ToOwned::to_owned) } else { None };
        let id = match request.id {
            Some(id) => id,
            None => ExecutionId::fresh()?,
        };
        Ok(Self {
            yard,
            id,
            thing: request.what.kind(),
            subject: json::truncate_for_message(request.what.subject()).into_owned(),
            source: None,
            tool: None,
            principal: request.principal.clone(),
            session_id: request.context.session_id.clone(),
            user_id: request.context.user_id.clone(),
            priority: request.priority,
            made_by: request.context.made_by,
            front: request.context.front,
            arguments,
            at: SystemTime::now(),
            began: Instant::now(),
            over: false,
        })
    }

    /// Says that the call came in, under the name that was found if one was.
    pub(super) fn start(&mut self, resolved: Option<&ResolvedCall>) {
        if let Some(resolved) = resolved {
            self.subject.clone_from(&resolved.subject);
        }
        // The name of a tool is one that the yard gave; addresses, and names that lead nowhere, can be anything.
        let is_name = resolved.is_some_and(|resolved| resolved.tool.is_some());
        if !is_name && let Cow::Owned(hidden) = self.yard.redaction().text(&self.subject) {
            self.subject = hidden;
        }
        if let Some(resolved) = resolved {
            self.source = Some(resolved.source.name().clone());
            self.tool.clone_from(&resolved.tool);
        }
        self.yard.metrics().record_start(self.source_name());
        self.yard.events().publish_call(|| YardEvent::CallStarted {
            id: self.id,
            thing: self.thing,
            subject: self.subject.clone(),
            source: self.source.clone(),
            principal: self.principal.id().to_owned(),
            session_id: self.session_id.clone(),
            user_id: self.user_id.clone(),
            front: self.front,
            at: self.at,
        });
    }

    /// The name of the source; nothing where the name led nowhere.
    fn source_name(&self) -> &str {
        self.source.as_ref().map_or("", SourceName::as_str)
    }

    pub(super) fn id(&self) -> ExecutionId {
        self.id
    }

    /// Says how it ended, and waits until that is on record; an error if it must not be answered without.
    pub(super) async fn end(mut self, outcome: &Result<Outcome, HubError>) -> Result<(), HubError> {
        let Some(recorded) = self.finish(Some(outcome)) else { return Ok(()) };
        AssertUnwindSafe(recorded).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(id = %self.id, "the recorder crashed");
            Ok(())
        })
    }

    fn finish(
        &mut self,
        outcome: Option<&Result<Outcome, HubError>>,
    ) -> Option<BoxFuture<'static, Result<(), HubError>>> {
        self.over = true;
        let (ended, error, outcome) = match outcome {
            None => (CallEndReason::Abandoned, None, None),
            Some(Ok(outcome)) if outcome.failed => (CallEndReason::Failed, None, Some(outcome)),
            Some(Ok(outcome)) => (CallEndReason::Succeeded, None, Some(outcome)),
            Some(Err(error)) => (CallEndReason::Error(error.kind()), Some(error), None),
        };
        let duration = self.began.elapsed();
        let tool = self.tool.as_ref().map_or("", |tool| tool.full_name.as_str());
        self.yard.metrics().record_end(self.source_name(), tool, ended, duration);
        let message = || error.map(|error| self.yard.redaction().text(error.message()).into_owned());
        self.yard.events().publish_call(|| YardEvent::CallEnded {
            id: self.id,
            ended,
            error: message(),
            duration,
        });
        let recorder = self.yard.recorder.as_ref()?;
        let record = CallRecord {
            id: self.id,
            thing: self.thing,
            subject: &self.subject,
            source: self.source.as_ref(),
            principal: self.principal.id(),
            session_id: self.session_id.as_deref(),
            user_id: self.user_id.as_deref(),
            priority: self.priority,
            made_by: self.made_by,
            at: self.at,
            duration,
            ended,
            error,
            outcome,
            redaction: self.yard.redaction(),
            arguments: self.arguments.as_deref(),
        };
        // A recorder that crashes costs a record and nothing else; this may run while a crash is cleaned up.
        let recorded = catch_unwind(AssertUnwindSafe(|| recorder.record(record)));
        recorded.inspect_err(|_| tracing::error!(id = %self.id, "the recorder crashed")).ok()
    }
}

impl Drop for CallTracker<'_> {
    fn drop(&mut self) {
        if !self.over {
            drop(self.finish(None));
        }
    }
}
