//! Determines which source serves a URI: an exact resource first, then the most specific template.
//! The order of the sources only decides between resources with the same URI.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Catalog, ResourceEntry, TemplateEntry};
use crate::name::SourceName;
use crate::principal::Principal;
use crate::scope::YardScope;
use crate::visibility::CatalogEntry;

/// The entry that serves a URI.
#[derive(Debug, Clone, Copy)]
pub(crate) enum UriMatch<'a> {
    Resource(&'a Arc<ResourceEntry>),
    Template(&'a Arc<TemplateEntry>),
}

impl<'a> UriMatch<'a> {
    pub(crate) fn source(&self) -> &'a SourceName {
        match self {
            Self::Resource(resource) => &resource.source,
            Self::Template(template) => &template.source,
        }
    }

    pub(crate) fn permissions(&self) -> &'a [String] {
        match self {
            Self::Resource(resource) => &resource.permissions,
            Self::Template(template) => &template.permissions,
        }
    }
}

impl Catalog {
    /// Returns the entry that serves this URI, within the scope and the allow list of the
    /// principal. The URI may be the text of a template, as used for argument completion.
    pub(crate) fn match_uri(
        &self,
        uri: &str,
        principal: &Principal,
        reach: &YardScope,
    ) -> Option<UriMatch<'_>> {
        if let Some(resource) = self.match_exact_uri(uri, principal, reach) {
            return Some(UriMatch::Resource(resource));
        }
        let known = |template: &&Arc<TemplateEntry>| {
            reach.covers(&template.source) && template.is_accessible_to(principal)
        };
        most_specific(self.by_specificity.iter().filter(known), uri).map(UriMatch::Template)
    }

    /// Returns the first resource with exactly this URI within the scope and the allow list.
    pub(crate) fn match_exact_uri(
        &self,
        uri: &str,
        principal: &Principal,
        reach: &YardScope,
    ) -> Option<&Arc<ResourceEntry>> {
        let known = |resource: &&Arc<ResourceEntry>| {
            reach.covers(&resource.source) && resource.is_accessible_to(principal)
        };
        let first = self.resource(uri)?;
        let same = self.hidden_resources.iter().filter(|resource| resource.uri == uri);
        std::iter::once(first).chain(same).find(known)
    }

    /// Finds a resource of one source by URI, including one that another source serves in the whole
    /// yard.
    pub fn resource_in_source(&self, source: &SourceName, uri: &str) -> Option<&Arc<ResourceEntry>> {
        self.match_exact_uri(uri, &Principal::owner(), &YardScope::Source(source.clone()))
    }

    /// Finds the template with exactly this text, or else the most specific match, within one
    /// source.
    pub fn template_in_source(&self, source: &SourceName, uri: &str) -> Option<&Arc<TemplateEntry>> {
        most_specific(self.by_specificity.iter().filter(|template| template.source == *source), uri)
    }

    /// Finds the template with exactly this text, or else the most specific template that matches
    /// the URI.
    pub fn template_for(&self, uri: &str) -> Option<&Arc<TemplateEntry>> {
        most_specific(self.by_specificity.iter(), uri)
    }
}

/// Sorts templates, most specific first. Equally specific ones are ordered by name, so that the
/// order of the sources does not matter.
pub(super) fn sort_by_specificity(templates: &mut [Arc<TemplateEntry>]) {
    templates.sort_by(|a, b| {
        rank(a).cmp(&rank(b)).then_with(|| (&a.source, &a.template).cmp(&(&b.source, &b.template)))
    });
}

/// The sort key; smaller is more specific: a longer literal prefix, then more literal text, then
/// fewer variables that match any text.
fn rank(template: &TemplateEntry) -> (Reverse<usize>, Reverse<usize>, usize) {
    let matcher = &template.matcher;
    (Reverse(matcher.prefix().len()), Reverse(matcher.literal_bytes()), matcher.catch_alls())
}

/// Returns the first match; the templates are sorted with the most specific first. A template
/// without a literal prefix matches URIs of any source: if another source has one that is equally
/// specific, neither serves the URI.
fn most_specific<'a>(
    templates: impl Iterator<Item = &'a Arc<TemplateEntry>> + Clone,
    uri: &str,
) -> Option<&'a Arc<TemplateEntry>> {
    if let Some(exact) = templates.clone().find(|template| template.template == uri) {
        return Some(exact);
    }
    let mut fitting = templates.filter(|template| template.matcher.matches(uri));
    let first = fitting.next()?;
    if !first.matcher.prefix().is_empty() {
        return Some(first);
    }
    let mut alike = fitting.take_while(|template| rank(template) == rank(first));
    alike.all(|template| template.source == first.source).then_some(first)
}
