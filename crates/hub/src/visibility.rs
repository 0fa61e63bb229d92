//! What a principal can see: entries, sources, and calls of others. Every list of every front uses
//! this module, and no front has rules of its own. `docs/concepts/access.md` states the rules for operators.

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

/// Number of history rows to read at a time when searching for visible calls.
const HISTORY_PAGE: usize = 500;

/// What one principal can see of a yard, based on the catalog at one point in time.
#[derive(Debug, Clone)]
pub struct Visibility {
    catalog: Arc<Catalog>,
    principal: Principal,
}

/// The caller and target of a call, as far as they determine who may see it.
#[derive(Debug, Clone, Copy)]
pub struct RecordedCall<'a> {
    pub principal: &'a str,
    pub kind: EntryKind,
    /// The full name, or the raw name if the source was served alone. For a resource, its URI.
    pub subject: &'a str,
    /// `None` if the name was unknown.
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

/// Any entry that a source offers.
pub trait CatalogEntry {
    /// Returns whether the allow list of the principal includes the entry. Otherwise it is unknown
    /// to the principal.
    fn is_accessible_to(&self, principal: &Principal) -> bool;

    /// All of these are required to see and to use the entry.
    fn needed_permissions(&self) -> &[String];

    /// Returns whether lists show the entry to this principal.
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

    /// Returns whether the allow list includes an entry of this source, or could include one once
    /// the source offers any. A source outside the list does not exist for the principal.
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

    /// Returns whether the source, its status and its failures are shown. `observe` and `manage`
    /// show every source within the allow list. Otherwise an entry of it must be visible or, if it
    /// has none, the principal must hold the permissions of the source.
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

    /// Returns whether the transcript and the standard error output of the source may be read.
    pub fn observes_source(&self, source: &SourceName) -> bool {
        self.principal.has_permission(OBSERVE) && self.can_access_source(source)
    }

    /// Returns whether a change in the offer of these sources is announced to a front with this
    /// scope.
    pub fn sees_changes(&self, sources: &[SourceName], reach: &YardScope) -> bool {
        sources.iter().any(|source| reach.covers(source) && self.sees_changes_of(source))
    }

    /// Returns whether a change in the offer of this source is announced. This does not depend on
    /// the current offer: a client that saw the last tool of a source must learn that it was
    /// removed.
    pub fn sees_changes_of(&self, source: &SourceName) -> bool {
        let lists = self.principal.allow_list();
        let inside = self.principal.can_access_source(source)
            && match (&lists.sources, &lists.tools) {
                (None, Some(globs)) => self.could_offer(source, globs),
                _ => true,
            };
        inside && (self.principal.has_permission(OBSERVE) || self.holds_permissions_of(source))
    }

    /// Returns the source whose resource or template serves this URI, if it is visible to the
    /// principal.
    pub fn source_for_uri(&self, uri: &str, reach: &YardScope) -> Option<&SourceName> {
        let holder = self.catalog.match_uri(uri, &self.principal, reach)?;
        self.principal.first_missing_permission(holder.permissions()).is_none().then(|| holder.source())
    }

    /// Returns whether the principal may be notified that this source updated this URI.
    pub fn sees_update(&self, source: &SourceName, uri: &str) -> bool {
        let reach = YardScope::Source(source.clone());
        self.source_for_uri(uri, &reach).is_some()
    }

    /// Returns whether a running or finished call is shown. Own calls always are; calls of others
    /// require `observe` and must be within the allow list.
    pub fn sees_call(&self, call: &RecordedCall<'_>) -> bool {
        self.is_own(call) || (self.principal.has_permission(OBSERVE) && self.can_access_call(call))
    }

    /// Returns whether the principal may cancel a call. Own calls always; calls of others require
    /// `manage` and must be within the allow list.
    pub fn may_stop_call(&self, call: &RecordedCall<'_>) -> bool {
        self.is_own(call) || (self.principal.has_permission(MANAGE) && self.can_access_call(call))
    }

    /// Returns whether a call counter is shown, by its source and tool names in the metrics.
    /// Requires `observe`.
    pub fn sees_counter(&self, source: &str, tool: &str) -> bool {
        if !self.principal.has_permission(OBSERVE) {
            return false;
        }
        if !self.principal.is_restricted() {
            return true;
        }
        let lists = self.principal.allow_list();
        match (source, tool) {
            // These two names stand for calls of several sources, or of none.
            ("" | OTHER, _) => false,
            (source, "") => lists.allows_non_tools(source),
            (source, tool) => lists.allows_tool(source, tool),
        }
    }

    /// Returns whether totals over all calls of a source are shown. They would reveal tools outside
    /// a tool allow list.
    pub fn sees_totals(&self, source: &str) -> bool {
        self.sees_counter(source, "") && self.principal.allow_list().tools.is_none()
    }

    /// Returns whether a line of the yard's own log is shown. A line that names no source may be
    /// about anything, so it is hidden from principals with an allow list.
    pub fn sees_log_line(&self, source: Option<&str>) -> bool {
        let inside = |source: &str| self.can_access_source(&SourceName::new(source));
        self.principal.has_permission(OBSERVE)
            && (!self.principal.is_restricted() || source.is_some_and(inside))
    }

    /// Returns the latest calls of a history that match the query and are visible to the principal.
    pub async fn recent_calls(
        &self,
        history: &dyn History,
        query: HistoryQuery,
    ) -> Result<Vec<PastCall>, HistoryError> {
        let mut query = query;
        if !self.principal.has_permission(OBSERVE) {
            let own = self.principal.id();
            if query.principal.as_deref().is_some_and(|requested| requested != own) {
                return Ok(Vec::new());
            }
            query.principal = Some(own.to_owned());
        }
        if !self.principal.is_restricted() || !self.principal.has_permission(OBSERVE) {
            return history.recent(query).await;
        }
        let (limit, mut found) = (query.limit, Vec::new());
        query.limit = HISTORY_PAGE.max(limit);
        loop {
            let page = history.recent(query.clone()).await?;
            let last = page.last().map(PastCall::cursor);
            let is_whole = page.len() >= query.limit;
            found.extend(page.into_iter().filter(|call| self.sees_call(&call.into())));
            match last {
                // A history whose cursor does not advance has no more calls.
                Some(mark) if is_whole && found.len() < limit && query.after != Some(mark) => {
                    query.after = Some(mark);
                }
                _ => break,
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    /// Removes warnings that mention a source that the principal does not see.
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
        // A name that a caller typed may belong to an entry that this principal must not learn
        // about.
        let Some(source) = call.source else { return false };
        let lists = self.principal.allow_list();
        match call.kind {
            EntryKind::Tool => lists.allows_tool(source, &self.full_name(source, call.subject)),
            EntryKind::Resource | EntryKind::Prompt | EntryKind::Completion => lists.allows_non_tools(source),
        }
    }

    /// Returns the full name of a tool from the name in a record, which is the raw name if the
    /// source was served alone.
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

    /// Returns whether a tool of this source could be on an allow list, based on the prefix of its
    /// tools.
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
    /// Returns what this principal can see of the yard at the moment.
    pub fn visibility(&self, principal: &Principal) -> Visibility {
        Visibility::new(self.catalog(), principal.clone())
    }

    /// Returns the status of the sources that this principal sees, in the order of the yard.
    pub fn statuses_for(&self, principal: &Principal) -> Vec<(SourceName, SourceStatus)> {
        let visibility = self.visibility(principal);
        let mut statuses = self.statuses();
        statuses.retain(|(name, _)| visibility.sees_source(name));
        for (_, status) in &mut statuses {
            visibility.hide_warnings_about_others(status);
        }
        statuses
    }

    /// Returns the status of one source, if this principal sees it.
    pub fn status_for(&self, principal: &Principal, name: &SourceName) -> Option<SourceStatus> {
        let visibility = self.visibility(principal);
        let mut status = self.status(name).filter(|_| visibility.sees_source(name))?;
        visibility.hide_warnings_about_others(&mut status);
        Some(status)
    }
}
