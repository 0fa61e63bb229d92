//! The one corridor that every call walks through, whatever front it came in by and whatever source it is
//! for: name, permission, rate, payload, schema, place, before-hooks, source, after-hooks, event.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::value::RawValue;
use tokio::time::Instant;

use self::resolve::{Resolved, resolve};
use crate::catalog::Tool;
use crate::error::{Error, Kind};
use crate::events::{CallId, Ended, Event};
use crate::hooks::{HookCall, Hooks};
use crate::name::SourceName;
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::request::{CallContext, Request};
use crate::slot::Slot;
use crate::source::{Call, Target};
use crate::yard::Yard;

mod resolve;

/// How long hooks may take once the outcome is known: the caller waits for them, so they get no more than this.
const AFTERWARDS: Duration = Duration::from_secs(10);

impl Yard {
    /// Carries one call out. Dropping the future cancels the call, all the way to the source.
    pub async fn call(&self, request: Request) -> Result<Outcome, Error> {
        let catalog = self.catalog();
        let Resolved { source, target, subject, permissions, tool } =
            resolve(&catalog, request.what, &request.principal, &request.context)?;
        if let Some(missing) = request.principal.lacks(&permissions) {
            return Err(Error::new(Kind::Forbidden, format!("{subject} needs the permission {missing}"))
                .suggest("ask whoever runs this yard for a token that has it"));
        }
        if let Some(rate) = self.limits.rate {
            self.rates.take(request.principal.id(), rate)?;
        }
        let size = target.size();
        if size > self.limits.payload {
            let message =
                format!("{size} bytes of arguments for {subject}; {} are allowed", self.limits.payload);
            return Err(Error::new(Kind::TooLarge, message));
        }
        if let (Some(tool), Target::Tool { arguments, .. }) = (&tool, &target) {
            tool.check(arguments)?;
        }

        let deadline = request.deadline;
        deadline.no_later_than(self.limits.call_time);
        let name = source.name().clone();
        let mut watch = Watch::start(self, &subject, &name, request.principal.id());
        let cancel = request.cancel.child_token();
        // However this future ends, whatever the source started for it learns that nobody waits any more.
        let tell_the_source = cancel.clone().drop_guard();
        let hooks = tool
            .as_ref()
            .and_then(|tool| Around::of(&self.hooks, tool, &target, &request.principal, &request.context));
        let mut call = Call {
            target,
            principal: request.principal,
            context: request.context,
            deadline: deadline.clone(),
            cancel: cancel.clone(),
            meta: request.meta,
            client: request.client,
        };
        let carried = async {
            let slot = Slot::take(self.places(&name).into_iter().collect(), request.priority).await;
            let _free = EndOnDrop(slot.clone());
            if deadline.remaining().is_zero() {
                return Err(too_slow(&subject));
            }
            call.client = call.client.while_asking(deadline.clone(), slot);
            if let Some(hooks) = &hooks {
                guarded(&subject, &name, hooks.before()).await.flatten()?;
            }
            // The source is called inside the guard: it may crash before it has made its future.
            guarded(&subject, &name, async { source.call(call).await }).await.flatten()
        };
        let outcome = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Error::new(Kind::Cancelled, format!("{subject} was cancelled"))),
            outcome = carried => outcome,
            () = deadline.passed() => Err(too_slow(&subject)),
        };
        drop(tell_the_source);
        let outcome = match &hooks {
            Some(hooks) => match guarded(&subject, &name, hooks.afterwards(&outcome)).await {
                Ok(()) => outcome,
                Err(crash) => Err(crash),
            },
            None => outcome,
        };
        watch.ended = match &outcome {
            Ok(outcome) if outcome.failed => Ended::Failed,
            Ok(_) => Ended::Answered,
            Err(error) => Ended::Error(error.kind()),
        };
        outcome
    }
}

fn too_slow(subject: &str) -> Error {
    Error::new(Kind::TimedOut, format!("{subject} did not answer in time"))
        .suggest("allow it more time, or ask it for less")
}

/// The hooks around one call: the yard's own outside, the tool's inside.
struct Around<'a> {
    all: &'a [Arc<dyn Hooks>],
    tool: &'a Tool,
    arguments: Box<RawValue>,
    principal: Principal,
    context: CallContext,
}

impl<'a> Around<'a> {
    /// None where there are no hooks: most calls then copy nothing.
    fn of(
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

    async fn before(&self) -> Result<(), Error> {
        for hooks in self.all.iter().chain(&self.tool.hooks) {
            hooks.before(self.call()).await?;
        }
        Ok(())
    }

    /// Tells every hook how it ended, also when the time was up or the caller cancelled.
    async fn afterwards(&self, outcome: &Result<Outcome, Error>) {
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

/// A source or a hook that panics fails this call and nothing else.
async fn guarded<T>(subject: &str, source: &SourceName, work: impl Future<Output = T>) -> Result<T, Error> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
        tracing::error!(%source, subject, panic = text, "a call crashed");
        Error::new(Kind::Bug, format!("{subject} crashed"))
    })
}

impl Target {
    fn size(&self) -> usize {
        match self {
            Self::Tool { arguments, .. } | Self::Prompt { arguments, .. } => arguments.get().len(),
            Self::Resource { uri } => uri.len(),
            Self::PromptCompletion { argument, value, context, .. }
            | Self::TemplateCompletion { argument, value, context, .. } => {
                argument.len() + value.len() + context.as_ref().map_or(0, |context| context.get().len())
            }
        }
    }
}

struct EndOnDrop(Slot);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Tells watchers that a call began and, however it ends, that it ended.
struct Watch<'a> {
    yard: &'a Yard,
    id: CallId,
    began: Instant,
    ended: Ended,
}

impl<'a> Watch<'a> {
    fn start(yard: &'a Yard, subject: &str, source: &SourceName, principal: &str) -> Self {
        let id = yard.events().next_call();
        yard.events().tell(|| Event::CallStarted {
            id,
            subject: subject.to_owned(),
            source: source.clone(),
            principal: principal.to_owned(),
        });
        Self { yard, id, began: Instant::now(), ended: Ended::Dropped }
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let (id, ended, duration) = (self.id, self.ended, self.began.elapsed());
        self.yard.events().tell(|| Event::CallEnded { id, ended, duration });
    }
}

#[cfg(test)]
mod tests;
