//! What a principal can see: of what is offered, of the sources, and of the calls of others. Every list of every front
//! asks here, and no front has a rule of its own. `docs/access.md` states the rule for operators.

use std::borrow::Cow;
use std::sync::Arc;

use crate::catalog::{Catalog, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use crate::glob::Glob;
use crate::history::{History, HistoryError, HistoryQuery, PastCall};
use crate::metrics::OTHER;
use crate::name::{Prefix, SourceName};
use crate::principal::Principal;
use crate::request::EntryKind;
use crate::scope::YardScope;
use crate::status::SourceStatus;
use crate::yard::Yard;
use crate::{MANAGE, OBSERVE};

#[cfg(test)]
mod tests;

/// Rows of the history that are read at once while those that a principal may see are looked for.
const HISTORY_PAGE: usize = 500;

/// What one principal can see of one yard, by the catalog of one moment.
#[derive(Debug, Clone)]
pub struct Visibility {
    catalog: Arc<Catalog>,
    principal: Principal,
}

/// Who made a call and what it was of, as far as that decides who may see it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedCall<'a> {
    pub principal: &'a str,
    pub kind: EntryKind,
    /// The full name, or the raw one where the source was served alone; of a resource its address.
    pub subject: &'a str,
    /// Nothing where the name led nowhere.
    pub source: Option<&'a str>,
}

impl<'a> From<&'a PastCall> for RecordedCall<'a> {
    fn from(call: &'a PastCall) -> Self {
        Self {
            principal: &call.principal,
            kind: call.kind,
            subject: &call.subject,
            source: call.source.as_deref(),
        }
    }
}

/// Anything that a source offers.
pub trait CatalogEntry {
    /// Whether the principal's lists of servers and tools include it. To others it is unknown.
    fn is_accessible_to(&self, principal: &Principal) -> bool;

    /// All of these are needed to see and to use it.
    fn needed_permissions(&self) -> &[String];

    /// Whether lists show it to this principal.
    fn is_visible_to(&self, principal: &Principal) -> bool {
        self.is_accessible_to(principal)
            && principal.first_missing_permission(self.needed_permissions()).is_none()
    }
}

macro_rules! offered {
    ($($kind:ty => |$thing:ident, $principal:ident| $inside:expr;)*) => {$(
        impl CatalogEntry for $kind {
            fn is_accessible_to(&self, $principal: &Principal) -> bool {
                let $thing = self;
                $inside
            }

            fn needed_permissions(&self) -> &[String] {
                &self.permissions
            }
        }
    )*};
}
offered! {
    ToolEntry => |tool, principal| principal.can_access_tool(&tool.source, &tool.full_name);
    PromptEntry => |prompt, principal| principal.can_access_non_tools(&prompt.source);
    ResourceEntry => |resource, principal| principal.can_access_non_tools(&resource.source);
    TemplateEntry => |template, principal| principal.can_access_non_tools(&template.source);
}

impl Visibility {
    pub(crate) fn new(catalog: Arc<Catalog>, principal: Principal) -> Self {
        Self { catalog, principal }
    }

    /// Whether the principal's lists include something of this source, or could once it offers anything. A source
    /// outside the lists does not exist for the principal.
    pub fn can_access_source(&self, source: &SourceName) -> bool {
        let lists = self.principal.allow_list();
        if !self.principal.can_access_source(source) {
            return false;
        }
        let (None, Some(globs)) = (&lists.sources, &lists.tools) else { return true };
        let offered = self.catalog.tools_in_source(source);
        if offered.is_empty() {
            return self.could_offer(source, globs);
        }
        offered.iter().any(|tool| tool.is_accessible_to(&self.principal))
    }

    /// Whether the source, its status and its failures are shown. `observe` and `manage` show every source inside the
    /// lists; otherwise something of it must be visible or, where it offers nothing, its own permissions be held.
    pub fn sees_source(&self, source: &SourceName) -> bool {
        if !self.can_access_source(source) {
            return false;
        }
        if self.principal.has_permission(OBSERVE) || self.principal.has_permission(MANAGE) {
            return true;
        }
        match self.catalog.has_visible_entries(source, &self.principal) {
            Some(something) => something,
            None => self.holds_permissions_of(source),
        }
    }

    /// Whether what was said with the source, and what it wrote to standard error, may be read.
    pub fn observes_source(&self, source: &SourceName) -> bool {
        self.principal.has_permission(OBSERVE) && self.can_access_source(source)
    }

    /// Whether a change of what these sources offer is announced, where a front shows so much of the yard.
    pub fn sees_changes(&self, sources: &[SourceName], reach: &YardScope) -> bool {
        sources.iter().any(|source| reach.covers(source) && self.sees_changes_of(source))
    }

    /// Whether a change of what this source offers is announced. Depends on nothing that the source offers just now:
    /// whoever saw its last tool go must be told.
    pub fn sees_changes_of(&self, source: &SourceName) -> bool {
        let lists = self.principal.allow_list();
        let inside = self.principal.can_access_source(source)
            && match (&lists.sources, &lists.tools) {
                (None, Some(globs)) => self.could_offer(source, globs),
                _ => true,
            };
        inside && (self.principal.has_permission(OBSERVE) || self.holds_permissions_of(source))
    }

    /// The source whose resource or template answers for this address, where the principal may see that.
    pub fn source_for_uri(&self, uri: &str, reach: &YardScope) -> Option<&SourceName> {
        let holder = self.catalog.match_uri(uri, &self.principal, reach)?;
        self.principal.first_missing_permission(holder.permissions()).is_none().then(|| holder.source())
    }

    /// Whether the principal may be told that this source updated this address.
    pub fn sees_update(&self, source: &SourceName, uri: &str) -> bool {
        let reach = YardScope::Source(source.clone());
        self.source_for_uri(uri, &reach).is_some()
    }

    /// Whether a call, under way or over, is shown: one's own always, others' with `observe` inside one's lists.
    pub fn sees_call(&self, call: &RecordedCall<'_>) -> bool {
        self.is_own(call) || (self.principal.has_permission(OBSERVE) && self.can_access_call(call))
    }

    /// Whether the principal may stop a call: its own always, others' with `manage` inside its lists.
    pub fn may_stop_call(&self, call: &RecordedCall<'_>) -> bool {
        self.is_own(call) || (self.principal.has_permission(MANAGE) && self.can_access_call(call))
    }

    /// Whether a counter of calls is shown, by the names that the tally has for source and tool. Needs `observe`.
    pub fn sees_counter(&self, source: &str, tool: &str) -> bool {
        if !self.principal.has_permission(OBSERVE) {
            return false;
        }
        if !self.principal.is_restricted() {
            return true;
        }
        let lists = self.principal.allow_list();
        match (source, tool) {
            // These two stand for calls of several sources, or of none.
            ("" | OTHER, _) => false,
            (source, "") => lists.allows_non_tools(source),
            (source, tool) => lists.allows_tool(source, tool),
        }
    }

    /// Whether numbers over all calls of a source are shown. They would tell of tools outside a list of tools.
    pub fn sees_totals(&self, source: &str) -> bool {
        self.sees_counter(source, "") && self.principal.allow_list().tools.is_none()
    }

    /// Whether a line of the yard's own log is shown. One that names no source may be about anything, so principals
    /// with lists are not shown it.
    pub fn sees_log_line(&self, source: Option<&str>) -> bool {
        let inside = |source: &str| self.can_access_source(&SourceName::new(source));
        self.principal.has_permission(OBSERVE)
            && (!self.principal.is_restricted() || source.is_some_and(inside))
    }

    /// The latest calls of a history that fit the query and that the principal may see.
    pub async fn recent_calls(
        &self,
        history: &dyn History,
        query: HistoryQuery,
    ) -> Result<Vec<PastCall>, HistoryError> {
        let mut query = query;
        if !self.principal.has_permission(OBSERVE) {
            let own = self.principal.id();
            if query.principal.as_deref().is_some_and(|wanted| wanted != own) {
                return Ok(Vec::new());
            }
            query.principal = Some(own.to_owned());
        }
        if !self.principal.is_restricted() || !self.principal.has_permission(OBSERVE) {
            return history.recent(query).await;
        }
        let (wanted, mut found) = (query.limit, Vec::new());
        query.limit = HISTORY_PAGE.max(wanted);
        loop {
            let page = history.recent(query.clone()).await?;
            let last = page.last().map(PastCall::cursor);
            let is_whole = page.len() >= query.limit;
            found.extend(page.into_iter().filter(|call| self.sees_call(&call.into())));
            match last {
                // A history that does not move on has no more to tell.
                Some(mark) if is_whole && found.len() < wanted && query.after != Some(mark) => {
                    query.after = Some(mark);
                }
                _ => break,
            }
        }
        found.truncate(wanted);
        Ok(found)
    }

    /// Leaves out warnings that name a source which the principal does not see.
    pub fn hide_warnings_about_others(&self, status: &mut SourceStatus) {
        let hidden = |text: &String| {
            self.catalog.source_in_warning(text).is_some_and(|other| !self.sees_source(other))
        };
        status.warnings.retain(|text| !hidden(text));
    }

    fn is_own(&self, call: &RecordedCall<'_>) -> bool {
        call.principal == self.principal.id()
    }

    fn can_access_call(&self, call: &RecordedCall<'_>) -> bool {
        if !self.principal.is_restricted() {
            return true;
        }
        // What somebody typed may be the name of something that this principal must not learn of.
        let Some(source) = call.source else { return false };
        let lists = self.principal.allow_list();
        match call.kind {
            EntryKind::Tool => lists.allows_tool(source, &self.full_name(source, call.subject)),
            EntryKind::Resource | EntryKind::Prompt | EntryKind::Completion => lists.allows_non_tools(source),
        }
    }

    /// The full name of a tool by what a record calls it, which is the raw name where the source was served alone.
    fn full_name<'a>(&self, source: &str, subject: &'a str) -> Cow<'a, str> {
        let source = SourceName::new(source);
        if self.catalog.tool_by_full_name(subject).is_some_and(|tool| tool.source == source) {
            return Cow::Borrowed(subject);
        }
        if let Some(tool) = self.catalog.tool_in_source(&source, subject) {
            return Cow::Owned(tool.full_name.to_string());
        }
        let prefix = source.prefix();
        if subject.starts_with(&prefix) { Cow::Borrowed(subject) } else { Cow::Owned(prefix + subject) }
    }

    /// Whether a tool of this source could be on a list, by what the full names of its tools begin with.
    fn could_offer(&self, source: &SourceName, globs: &[Glob]) -> bool {
        let plain = self.catalog.source(source).is_some_and(|source| source.prefix() == Prefix::Plain);
        let prefix = if plain { String::new() } else { source.prefix() };
        globs.iter().any(|glob| glob.matches_some_with_prefix(&prefix))
    }

    fn holds_permissions_of(&self, source: &SourceName) -> bool {
        let source = self.catalog.source(source);
        source.is_none_or(|source| self.principal.first_missing_permission(source.permissions()).is_none())
    }
}

impl Yard {
    /// What this principal can see of the yard as it is now.
    pub fn visibility(&self, principal: &Principal) -> Visibility {
        Visibility::new(self.catalog(), principal.clone())
    }

    /// How the sources are doing that this principal sees, in the order of the yard.
    pub fn statuses_for(&self, principal: &Principal) -> Vec<(SourceName, SourceStatus)> {
        let visibility = self.visibility(principal);
        let mut statuses = self.statuses();
        statuses.retain(|(name, _)| visibility.sees_source(name));
        for (_, status) in &mut statuses {
            visibility.hide_warnings_about_others(status);
        }
        statuses
    }

    /// How one source is doing, if this principal sees it.
    pub fn status_for(&self, principal: &Principal, name: &SourceName) -> Option<SourceStatus> {
        let visibility = self.visibility(principal);
        let mut status = self.status(name).filter(|_| visibility.sees_source(name))?;
        visibility.hide_warnings_about_others(&mut status);
        Some(status)
    }
}
