//! What of the catalog one caller sees. Lists are made from a view, never from the catalog itself.

use std::sync::Arc;

use crate::catalog::{Catalog, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use crate::name::SourceName;
use crate::principal::Principal;
use crate::scope::YardScope;
use crate::visibility::CatalogEntry;

/// The part of one catalog that a principal may see, of all sources or of some.
#[derive(Debug, Clone)]
pub struct CatalogView {
    catalog: Arc<Catalog>,
    principal: Principal,
    scope: YardScope,
    callers: CallerAccess,
}

/// Whether there are callers for whom there are other things than for the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallerAccess {
    Uniform,
    Restricted,
}

impl CatalogView {
    pub fn new(catalog: Arc<Catalog>, principal: Principal) -> Self {
        let callers =
            if principal.is_restricted() { CallerAccess::Restricted } else { CallerAccess::Uniform };
        Self { catalog, principal, scope: YardScope::All, callers }
    }

    /// The same in a yard with such callers.
    #[must_use]
    pub(crate) fn with_caller_access(mut self, callers: CallerAccess) -> Self {
        if callers == CallerAccess::Restricted {
            self.callers = callers;
        }
        self
    }

    /// The same, of a part of the yard.
    #[must_use]
    pub fn with_scope(mut self, reach: YardScope) -> Self {
        self.scope = reach;
        self
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Whether somebody else may see other lists than these.
    pub fn is_private(&self) -> bool {
        self.callers == CallerAccess::Restricted || self.catalog.has_permissions()
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.catalog.tools().iter().filter(|tool| self.is_visible(&tool.source, &***tool))
    }

    /// Of resources with one address, the one that answers for it where this principal asks.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<ResourceEntry>> {
        let hidden = self.catalog.hidden_resources().iter().filter(|resource| self.owns_uri(resource));
        let all = self.catalog.resources().iter().chain(hidden);
        all.filter(|resource| self.is_visible(&resource.source, &***resource))
    }

    fn owns_uri(&self, resource: &Arc<ResourceEntry>) -> bool {
        let first = self.catalog.match_exact_uri(&resource.uri, &self.principal, &self.scope);
        first.is_some_and(|first| Arc::ptr_eq(first, resource))
    }

    pub fn templates(&self) -> impl Iterator<Item = &Arc<TemplateEntry>> {
        self.catalog.templates().iter().filter(|template| self.is_visible(&template.source, &***template))
    }

    pub fn prompts(&self) -> impl Iterator<Item = &Arc<PromptEntry>> {
        self.catalog.prompts().iter().filter(|prompt| self.is_visible(&prompt.source, &***prompt))
    }

    fn is_visible(&self, source: &SourceName, thing: &impl CatalogEntry) -> bool {
        self.scope.covers(source) && thing.is_visible_to(&self.principal)
    }
}
