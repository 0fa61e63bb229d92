//! The checks before a call reaches its source: permissions, rate, size and arguments, and the
//! limiters that the call has to wait for.

use std::sync::Arc;
use std::time::Duration;

use super::resolve::CallRoute;
use crate::call_details::CallDetails;
use crate::concurrency::ConcurrencyLimiter;
use crate::error::{ErrorKind, HubError};
use crate::glob::Glob;
use crate::limits::{RateLimit, ScopedLimits, YardLimits};
use crate::rate_limit::RateKey;
use crate::record::CallRecord;
use crate::request::CallOrigin;
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
    /// rate.
    pub(super) async fn admit(
        &self,
        target: &SourceTarget,
        details: Option<&CallDetails>,
    ) -> Result<(), HubError> {
        let principal = &self.record.principal;
        if let Some(missing) = principal.first_missing_permission(&self.route.permissions) {
            return Err(HubError::forbidden(&self.record.subject, missing));
        }
        let rates = self.rates();
        if !rates.is_empty() {
            let (state, taken) = self.yard.rates.take(rates);
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

    /// Returns the limiters whose permits the call needs. The limiter of the source is last, so
    /// that a call waiting for it does not block other sources.
    pub(super) fn limiters(&self) -> Vec<Arc<ConcurrencyLimiter>> {
        let mut needed = Vec::with_capacity(1);
        let (principal, source) = (&self.record.principal, self.route.source.name());
        if let (Some(most), CallOrigin::Caller) = (principal.limits().calls, self.record.context.origin) {
            let key = LimiterKey::Caller(Arc::clone(principal.shared_id()));
            needed.push(self.yard.limiter(key, most));
        }
        let of_tool = self.tool_limits.iter().filter_map(|(_, bounds)| bounds.calls).min();
        if let (Some(most), Some(tool)) = (of_tool, &self.record.tool) {
            needed.push(self.yard.limiter(LimiterKey::Tool(source.clone(), tool.clone()), most));
        }
        if let Some(most) = self.source_limits.and_then(|bounds| bounds.calls).or(self.limits.per_source) {
            needed.push(self.yard.limiter(LimiterKey::Source(source.clone()), most));
        }
        needed
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
