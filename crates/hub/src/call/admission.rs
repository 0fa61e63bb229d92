//! The gates that need no source: which limits apply to a call, its rate, its size, and the places it waits for.

use std::sync::Arc;
use std::time::Duration;

use super::resolve::ResolvedCall;
use crate::call_details::CallDetails;
use crate::catalog::ToolEntry;
use crate::concurrency::ConcurrencyLimiter;
use crate::error::{ErrorKind, HubError};
use crate::glob::Glob;
use crate::limits::{RateLimit, ScopedLimits, YardLimits};
use crate::name::SourceName;
use crate::principal::Principal;
use crate::rate_limit::RateKey;
use crate::request::{CallContext, CallOrigin};
use crate::source::SourceTarget;
use crate::yard::{LimiterKey, Yard, caller_rates};

/// Everything that limits one call: the yard, its caller, its source and its tool.
pub(super) struct AdmissionControl<'a> {
    yard: &'a Yard,
    limits: &'a YardLimits,
    principal: &'a Principal,
    source: &'a SourceName,
    tool: Option<&'a Arc<ToolEntry>>,
    of_source: Option<&'a ScopedLimits>,
    /// With their places in the list.
    of_tool: Vec<(usize, &'a ScopedLimits)>,
}

impl<'a> AdmissionControl<'a> {
    pub(super) fn for_call(
        yard: &'a Yard,
        limits: &'a YardLimits,
        principal: &'a Principal,
        source: &'a SourceName,
        tool: Option<&'a Arc<ToolEntry>>,
    ) -> Self {
        let fits = |(_, (glob, _)): &(usize, &(Glob, ScopedLimits))| {
            tool.is_some_and(|tool| glob.matches(tool.full_name.as_str()))
        };
        let of_tool = limits.tools.iter().enumerate().filter(fits).map(|(at, (_, bounds))| (at, bounds));
        let of_tool = of_tool.collect();
        Self { yard, limits, principal, source, tool, of_source: limits.sources.get(source), of_tool }
    }

    /// Lets the call pass, or says why not. A call that is forbidden uses up no rate.
    pub(super) async fn pass(
        &self,
        resolved: &ResolvedCall,
        notes: Option<&CallDetails>,
    ) -> Result<(), HubError> {
        let ResolvedCall { target, subject, permissions, .. } = resolved;
        if let Some(missing) = self.principal.first_missing(permissions) {
            return Err(HubError::forbidden(subject, missing));
        }
        let rates = self.rates();
        if !rates.is_empty() {
            let (state, taken) = self.yard.rates.take(rates);
            if let (Some(notes), Some(state)) = (notes, state) {
                let _ = notes.rate.set(state);
            }
            taken?;
        }
        self.yard.quotas().admit(&self.limits.quotas, self.principal)?;
        self.check(target, subject).await
    }

    /// Whether the arguments are small enough and what the schema wants.
    async fn check(&self, target: &SourceTarget, subject: &str) -> Result<(), HubError> {
        let (size, most) = (target.size(), self.payload());
        if size > most {
            let message = format!("{size} bytes of arguments for {subject}; {most} are allowed");
            return Err(HubError::new(ErrorKind::TooLarge, message));
        }
        match (self.tool, target) {
            (Some(tool), SourceTarget::Tool { arguments, .. }) => tool.check(arguments).await,
            _ => Ok(()),
        }
    }

    pub(super) fn call_time(&self) -> Duration {
        self.bounds().filter_map(|bounds| bounds.call_time).fold(self.limits.call_time, Duration::min)
    }

    pub(super) fn payload(&self) -> usize {
        self.bounds().filter_map(|bounds| bounds.payload).fold(self.limits.payload, usize::min)
    }

    /// The places that the call needs, the source's last: whoever waits for a source's place keeps it from nobody.
    pub(super) fn places(&self, context: &CallContext) -> Vec<Arc<ConcurrencyLimiter>> {
        let mut needed = Vec::with_capacity(1);
        if let (Some(most), CallOrigin::Caller) = (self.principal.bounds().calls, context.made_by) {
            let of = LimiterKey::Caller(Arc::clone(self.principal.shared_id()));
            needed.push(self.yard.limiter(of, most));
        }
        let of_tool = self.of_tool.iter().filter_map(|(_, bounds)| bounds.calls).min();
        if let (Some(most), Some(tool)) = (of_tool, self.tool) {
            let of = LimiterKey::Tool(self.source.clone(), tool.full_name.clone());
            needed.push(self.yard.limiter(of, most));
        }
        if let Some(most) = self.of_source.and_then(|bounds| bounds.calls).or(self.limits.per_source) {
            needed.push(self.yard.limiter(LimiterKey::Source(self.source.clone()), most));
        }
        needed
    }

    fn rates(&self) -> Vec<(RateKey, RateLimit)> {
        let mut rates = caller_rates(self.limits, self.principal);
        let of_source = self.of_source.and_then(|bounds| bounds.rate);
        rates.extend(of_source.map(|rate| (RateKey::Source(self.source.clone()), rate)));
        if let Some(tool) = self.tool {
            let of_tool = self.of_tool.iter().filter_map(|(at, bounds)| Some((*at, bounds.rate?)));
            rates.extend(of_tool.map(|(at, rate)| (RateKey::Tool(tool.full_name.clone(), at), rate)));
        }
        rates
    }

    fn bounds(&self) -> impl Iterator<Item = &ScopedLimits> {
        let of_tool = self.of_tool.iter().map(|(_, bounds)| *bounds);
        std::iter::once(self.principal.bounds()).chain(self.of_source).chain(of_tool)
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
