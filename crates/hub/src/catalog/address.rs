//! Which source answers for an address: an exact resource first, then the most specific template. The order of the
//! sources decides only between resources with the very same address.

use std::cmp::Reverse;
use std::sync::Arc;

use super::{Catalog, Resource, Template};
use crate::name::SourceName;
use crate::principal::Principal;
use crate::reach::Reach;
use crate::visibility::Offered;

/// What answers for an address.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Holder<'a> {
    Resource(&'a Arc<Resource>),
    Template(&'a Arc<Template>),
}

impl<'a> Holder<'a> {
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
    pub(crate) fn holder(&self, uri: &str, principal: &Principal, reach: &Reach) -> Option<Holder<'_>> {
        if let Some(resource) = self.exact_holder(uri, principal, reach) {
            return Some(Holder::Resource(resource));
        }
        let known = |template: &&Arc<Template>| {
            reach.covers(&template.source) && template.is_inside_lists_of(principal)
        };
        most_specific(self.by_specificity.iter().filter(known), uri).map(Holder::Template)
    }

    /// The first resource with this very address of those that the reach covers and the lists include.
    pub(crate) fn exact_holder(
        &self,
        uri: &str,
        principal: &Principal,
        reach: &Reach,
    ) -> Option<&Arc<Resource>> {
        let known = |resource: &&Arc<Resource>| {
            reach.covers(&resource.source) && resource.is_inside_lists_of(principal)
        };
        let first = self.resource(uri)?;
        let same = self.hidden_resources.iter().filter(|resource| resource.uri == uri);
        std::iter::once(first).chain(same).find(known)
    }

    /// By address, of one source: also one that another source answers for in the yard as a whole.
    pub fn resource_of(&self, source: &SourceName, uri: &str) -> Option<&Arc<Resource>> {
        self.exact_holder(uri, &Principal::owner(), &Reach::Source(source.clone()))
    }

    /// The template of this very text, else the most specific that fits, of one source.
    pub fn template_of(&self, source: &SourceName, uri: &str) -> Option<&Arc<Template>> {
        most_specific(self.by_specificity.iter().filter(|template| template.source == *source), uri)
    }

    /// The template of this very text, else the most specific that the address can come from.
    pub fn template_for(&self, uri: &str) -> Option<&Arc<Template>> {
        most_specific(self.by_specificity.iter(), uri)
    }
}

/// Templates with the most specific first. What is equally specific is ordered by names, so that the order of the sources
/// does not matter.
pub(super) fn sort_by_specificity(templates: &mut [Arc<Template>]) {
    templates.sort_by(|a, b| {
        rank(a).cmp(&rank(b)).then_with(|| (&a.source, &a.template).cmp(&(&b.source, &b.template)))
    });
}

/// Smaller is more specific: a longer literal beginning, then more literal text in all, then fewer variables that stand
/// for anything.
fn rank(template: &Template) -> (Reverse<usize>, Reverse<usize>, usize) {
    let matcher = &template.matcher;
    (Reverse(matcher.prefix().len()), Reverse(matcher.literal_bytes()), matcher.catch_alls())
}

/// The first of these that fits; they come with the most specific first. A template without a literal beginning fits
/// addresses of everybody: where another source has one that is no less specific, neither answers.
fn most_specific<'a>(
    templates: impl Iterator<Item = &'a Arc<Template>> + Clone,
    uri: &str,
) -> Option<&'a Arc<Template>> {
    if let Some(exact) = templates.clone().find(|template| template.template == uri) {
        return Some(exact);
    }
    let mut fitting = templates.filter(|template| template.matcher.fits(uri));
    let first = fitting.next()?;
    if !first.matcher.prefix().is_empty() {
        return Some(first);
    }
    let mut alike = fitting.take_while(|template| rank(template) == rank(first));
    alike.all(|template| template.source == first.source).then_some(first)
}
