//! Tracks one call: publishes that it started and, however it ends, that it ended, and passes it to
//! the recorder.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures_util::FutureExt;
use tokio::time::Instant;

use crate::BoxFuture;
use crate::error::HubError;
use crate::events::{CallEndReason, YardEvent};
use crate::json::Raw;
use crate::outcome::Outcome;
use crate::record::CallRecord;
use crate::record::FinishedCall;
use crate::yard::Yard;

pub(super) struct CallTracker<'a> {
    yard: &'a Yard,
    record: Arc<CallRecord>,
    /// The caller's arguments, if the recorder needs them.
    arguments: Option<Raw>,
    started: Instant,
    is_over: bool,
}

impl<'a> CallTracker<'a> {
    /// Starts tracking and publishes that the call started.
    pub(super) fn start(
        yard: &'a Yard,
        mut record: CallRecord,
        arguments: Option<Raw>,
        started: Instant,
    ) -> Self {
        // Tool names are assigned by the yard. A URI or an unknown name can contain anything.
        if record.tool.is_none()
            && let Cow::Owned(redacted) = yard.redaction().redact_text(&record.subject)
        {
            record.subject = redacted.into();
        }
        let record = Arc::new(record);
        yard.metrics().record_start(record.source_name());
        yard.events().publish_call(|| YardEvent::CallStarted(Arc::clone(&record)));
        Self { yard, record, arguments, started, is_over: false }
    }

    pub(super) fn record(&self) -> &Arc<CallRecord> {
        &self.record
    }

    /// Publishes how the call ended and waits until that is recorded. On an error, the result must
    /// not be returned to the caller.
    pub(super) async fn end(mut self, result: &Result<Outcome, HubError>) -> Result<(), HubError> {
        let Some(recorded) = self.finish(Some(result)) else { return Ok(()) };
        AssertUnwindSafe(recorded).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(id = %self.record.id, "recorder panicked");
            Ok(())
        })
    }

    fn finish(
        &mut self,
        result: Option<&Result<Outcome, HubError>>,
    ) -> Option<BoxFuture<'static, Result<(), HubError>>> {
        self.is_over = true;
        let (ended, error, outcome) = match result {
            None => (CallEndReason::Abandoned, None, None),
            Some(Ok(outcome)) if outcome.failed => (CallEndReason::Failed, None, Some(outcome)),
            Some(Ok(outcome)) => (CallEndReason::Succeeded, None, Some(outcome)),
            Some(Err(error)) => (CallEndReason::Error(error.kind()), Some(error), None),
        };
        let duration = self.started.elapsed();
        let (source, tool) = (self.record.source_name(), self.record.tool_name());
        self.yard.metrics().record_end(source, tool, ended, duration);
        let message = || error.map(|error| self.yard.redaction().redact_text(error.message()).into_owned());
        self.yard.events().publish_call(|| YardEvent::CallEnded {
            call: Arc::clone(&self.record),
            ended,
            error: message(),
            duration,
        });
        let recorder = self.yard.recorder.as_ref()?;
        let finished = FinishedCall {
            call: &self.record,
            duration,
            ended,
            error,
            outcome,
            redaction: self.yard.redaction(),
            arguments: self.arguments.as_deref(),
        };
        // A panic of the recorder loses only this record. This may run while another panic unwinds.
        let recorded = catch_unwind(AssertUnwindSafe(|| recorder.record(finished)));
        recorded.inspect_err(|_| tracing::error!(id = %self.record.id, "recorder panicked")).ok()
    }
}

impl Drop for CallTracker<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            drop(self.finish(None));
        }
    }
}
