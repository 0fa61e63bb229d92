//! The part of the catalog that one caller sees. Lists are created from a view, never from the
//! catalog itself.

use std::sync::Arc;

use crate::catalog::{Catalog, PromptEntry, ResourceEntry, TemplateEntry, ToolEntry};
use crate::name::SourceName;
use crate::principal::Principal;
use crate::scope::YardScope;
use crate::visibility::CatalogEntry;

/// The part of a catalog that a principal may see, for all or some sources.
#[derive(Debug, Clone)]
pub struct CatalogView {
    catalog: Arc<Catalog>,
    principal: Principal,
    scope: YardScope,
    callers: CallerAccess,
}

/// Whether some callers see other entries than the rest.
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

    /// Marks the view as part of a yard with such callers.
    #[must_use]
    pub(crate) fn with_caller_access(mut self, callers: CallerAccess) -> Self {
        if callers == CallerAccess::Restricted {
            self.callers = callers;
        }
        self
    }

    /// Limits the view to a part of the yard.
    #[must_use]
    pub fn with_scope(mut self, reach: YardScope) -> Self {
        self.scope = reach;
        self
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Returns whether another principal may see different lists.
    pub fn is_private(&self) -> bool {
        self.callers == CallerAccess::Restricted || self.catalog.has_permissions()
    }

    pub fn tools(&self) -> impl Iterator<Item = &Arc<ToolEntry>> {
        self.catalog.tools().iter().filter(|tool| self.is_visible(&tool.source, &***tool))
    }

    /// Of several resources with the same URI, returns the one that serves this principal.
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
