//! The checks before a call reaches its source: permissions, rate, size and arguments, and the
//! limiters that the call has to wait for.

use std::sync::Arc;
use std::time::Duration;

use super::resolve::CallRoute;
use crate::call_details::CallDetails;
use crate::call_permits::CallPermits;
use crate::error::{ErrorKind, HubError};
use crate::glob::Glob;
use crate::limits::{RateLimit, ScopedLimits, YardLimits};
use crate::rate_limit::RateKey;
use crate::record::CallRecord;
use crate::request::CallOrigin;
use crate::shared_limits::{SharedLimit, SharedTake};
use crate::shared_permits::SharedPermitQueue;
use crate::source::SourceTarget;
use crate::yard::{LimiterKey, Yard, caller_rates};

/// Everything that limits one call: the yard, its caller, its source and its tool.
pub(super) struct AdmissionControl<'a> {
    yard: &'a Yard,
    limits: &'a YardLimits,
    route: &'a CallRoute,
    record: &'a CallRecord,
    source_limits: Option<&'a ScopedLimits>,
    /// With their index in the list.
    tool_limits: Vec<(usize, &'a ScopedLimits)>,
}

impl<'a> AdmissionControl<'a> {
    pub(super) fn for_call(
        yard: &'a Yard,
        limits: &'a YardLimits,
        route: &'a CallRoute,
        record: &'a CallRecord,
    ) -> Self {
        let (tool, source) = (route.tool.as_ref(), route.source.name());
        let fits = |(_, (glob, _)): &(usize, &(Glob, ScopedLimits))| {
            tool.is_some_and(|tool| glob.matches(tool.full_name.as_str()))
        };
        let of_tool = limits.tools.iter().enumerate().filter(fits).map(|(at, (_, bounds))| (at, bounds));
        let tool_limits = of_tool.collect();
        Self { yard, limits, route, record, source_limits: limits.sources.get(source), tool_limits }
    }

    /// Admits the call, or returns why it is refused. A forbidden call does not count against the
    /// rate. Takes permits that replicas share if this needs no additional step.
    pub(super) async fn admit(
        &self,
        target: &SourceTarget,
        permits: &CallPermits,
        details: Option<&CallDetails>,
    ) -> Result<(), HubError> {
        let principal = &self.record.principal;
        if let Some(missing) = principal.first_missing_permission(&self.route.permissions) {
            return Err(HubError::forbidden(&self.record.subject, missing));
        }
        let rates = self.rates();
        if !rates.is_empty() {
            let (state, taken) = match (&self.yard.shared_limits, permits.queue()) {
                (Some(shared), Some(queue)) => {
                    let (verdict, taken) = self.yard.count_shared(&**shared, rates, queue).await?;
                    if let (Ok(()), SharedTake::Held(permit)) = (&verdict.1, taken) {
                        permits.store_shared(permit);
                    }
                    verdict
                }
                _ => self.yard.rates.take(rates),
            };
            if let (Some(details), Some(state)) = (details, state) {
                let _ = details.rate.set(state);
            }
            taken?;
        }
        self.yard.quotas().admit(&self.limits.quotas, principal)?;
        self.check(target).await
    }

    /// Checks the size of the arguments and validates them against the schema.
    async fn check(&self, target: &SourceTarget) -> Result<(), HubError> {
        let (size, most, subject) = (target.size(), self.max_payload(), &self.record.subject);
        if size > most {
            let message = format!(
                "the arguments for `{subject}` have {size} bytes, which exceeds the limit of {most} bytes"
            );
            return Err(HubError::new(ErrorKind::TooLarge, message));
        }
        match (&self.route.tool, target) {
            (Some(tool), SourceTarget::Tool { arguments, .. }) => tool.check(arguments).await,
            _ => Ok(()),
        }
    }

    pub(super) fn call_time(&self) -> Duration {
        self.scoped_limits().filter_map(|bounds| bounds.call_time).fold(self.limits.call_time, Duration::min)
    }

    pub(super) fn max_payload(&self) -> usize {
        self.scoped_limits().filter_map(|bounds| bounds.payload).fold(self.limits.payload, usize::min)
    }

    /// Returns the permits that the call needs, before it has any of them.
    pub(super) fn permits(&self) -> CallPermits {
        let (needed, priority) = (self.concurrency_limits(), self.record.priority);
        let Some(shared) = &self.yard.shared_limits else {
            let mut limiters = Vec::with_capacity(1);
            limiters.extend(needed.map(|(key, most)| self.yard.limiter(key, most)));
            return CallPermits::new(limiters, priority);
        };
        // A limit of this size is how the configuration says that there is none.
        let needed = needed.filter(|(_, most)| *most < usize::MAX).map(|(key, most)| {
            (SharedLimit { key: key.shared(), most: most.max(1) }, self.yard.limiter(key, 1))
        });
        CallPermits::new_shared(SharedPermitQueue::new(Arc::clone(shared), needed), priority)
    }

    /// Returns the limits of concurrent calls. The limit of the source is last, so that a call
    /// waiting for it does not block other sources.
    fn concurrency_limits(&self) -> impl Iterator<Item = (LimiterKey, usize)> {
        let (principal, source) = (&self.record.principal, self.route.source.name());
        let of_caller = match self.record.context.origin {
            CallOrigin::Caller => principal.limits().calls,
            CallOrigin::Program => None,
        };
        let of_caller = of_caller.map(|most| (LimiterKey::Caller(Arc::clone(principal.shared_id())), most));
        let of_tool = self.tool_limits.iter().filter_map(|(_, bounds)| bounds.calls).min();
        let of_tool = of_tool
            .zip(self.record.tool.as_ref())
            .map(|(most, tool)| (LimiterKey::Tool(source.clone(), tool.clone()), most));
        let of_source = self.source_limits.and_then(|bounds| bounds.calls).or(self.limits.per_source);
        let of_source = of_source.map(|most| (LimiterKey::Source(source.clone()), most));
        [of_caller, of_tool, of_source].into_iter().flatten()
    }

    fn rates(&self) -> Vec<(RateKey, RateLimit)> {
        let mut rates = caller_rates(self.limits, &self.record.principal);
        let of_source = self.source_limits.and_then(|bounds| bounds.rate);
        rates.extend(of_source.map(|rate| (RateKey::Source(self.route.source.name().clone()), rate)));
        if let Some(tool) = &self.record.tool {
            let of_tool = self.tool_limits.iter().filter_map(|(at, bounds)| Some((*at, bounds.rate?)));
            rates.extend(of_tool.map(|(at, rate)| (RateKey::Tool(tool.clone(), at), rate)));
        }
        rates
    }

    fn scoped_limits(&self) -> impl Iterator<Item = &ScopedLimits> {
        let of_tool = self.tool_limits.iter().map(|(_, bounds)| *bounds);
        std::iter::once(self.record.principal.limits()).chain(self.source_limits).chain(of_tool)
    }
}

impl SourceTarget {
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
