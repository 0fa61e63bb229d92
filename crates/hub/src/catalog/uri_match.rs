//! Which source answers for an address: an exact resource first, then the most specific template. The order of the
//! sources decides only between resources with the very same address.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Catalog, ResourceEntry, TemplateEntry};
use crate::name::SourceName;
use crate::principal::Principal;
use crate::scope::YardScope;
use crate::visibility::CatalogEntry;

/// What answers for an address.
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
    /// What answers for this address, of what the reach covers and the principal's lists include. The address may be
    /// the text of a template, as it is where its arguments are completed.
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

    /// The first resource with this very address of those that the reach covers and the lists include.
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

    /// By address, of one source: also one that another source answers for in the yard as a whole.
    pub fn resource_in_source(&self, source: &SourceName, uri: &str) -> Option<&Arc<ResourceEntry>> {
        self.match_exact_uri(uri, &Principal::owner(), &YardScope::Source(source.clone()))
    }

    /// The template of this very text, else the most specific that fits, of one source.
    pub fn template_in_source(&self, source: &SourceName, uri: &str) -> Option<&Arc<TemplateEntry>> {
        most_specific(self.by_specificity.iter().filter(|template| template.source == *source), uri)
    }

    /// The template of this very text, else the most specific that the address can come from.
    pub fn template_for(&self, uri: &str) -> Option<&Arc<TemplateEntry>> {
        most_specific(self.by_specificity.iter(), uri)
    }
}

/// Templates with the most specific first. What is equally specific is ordered by names, so that the order of the sources
/// does not matter.
pub(super) fn sort_by_specificity(templates: &mut [Arc<TemplateEntry>]) {
    templates.sort_by(|a, b| {
        rank(a).cmp(&rank(b)).then_with(|| (&a.source, &a.template).cmp(&(&b.source, &b.template)))
    });
}

/// Smaller is more specific: a longer literal beginning, then more literal text in all, then fewer variables that stand
/// for anything.
fn rank(template: &TemplateEntry) -> (Reverse<usize>, Reverse<usize>, usize) {
    let matcher = &template.matcher;
    (Reverse(matcher.prefix().len()), Reverse(matcher.literal_bytes()), matcher.catch_alls())
}

/// The first of these that fits; they come with the most specific first. A template without a literal beginning fits
/// addresses of everybody: where another source has one that is no less specific, neither answers.
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
