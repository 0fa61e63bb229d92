//! Which tools there are for a program: those that its caller may use, without the three that are about programs.

use std::sync::Arc;

use toolyard_hub::{Catalog, Lookup, Principal, SourceName, Tool};

use crate::program::Face;
use crate::python::{is_free, is_word};
use crate::signature::Signature;

/// The tools of one catalog as one caller sees them.
#[derive(Debug, Clone)]
pub(crate) struct Seen<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) principal: &'a Principal,
    /// The source of the three tools.
    pub(crate) own: &'a SourceName,
}

impl<'a> Seen<'a> {
    pub(crate) fn shows(&self, tool: &Tool) -> bool {
        tool.source != *self.own && tool.is_listed_for(self.principal)
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &'a Arc<Tool>> {
        let seen = self.clone();
        self.catalog.tools().iter().filter(move |tool| seen.shows(tool))
    }

    /// By full name, or by bare name where that is unique among those that are seen.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<Tool>> {
        match self.catalog.tool(name) {
            Lookup::Found(tool) if self.shows(&tool) => Some(tool),
            Lookup::Unknown => None,
            Lookup::Ambiguous(names) => {
                let each = names.iter().map(|name| self.catalog.tool(name.as_str()));
                let mut shown = each.filter_map(|found| match found {
                    Lookup::Found(tool) if self.shows(&tool) => Some(tool),
                    _ => None,
                });
                let first = shown.next()?;
                shown.next().is_none().then_some(first)
            }
            // Others of this bare name may be there where this one is of somebody else only, or one of the three.
            Lookup::Found(_) => {
                let mut all = self.tools().filter(|tool| tool.raw_name == name);
                let first = all.next()?;
                all.next().is_none().then(|| Arc::clone(first))
            }
        }
    }

    /// What a program sees of a tool.
    pub(crate) fn face(&self, tool: &Tool) -> Face {
        let full = tool.full_name.as_str();
        let signature = Signature::of(tool);
        let name = self.name(tool);
        let mut words = Vec::new();
        if is_word(full) {
            words.push(full.to_owned());
        }
        if name != full && is_word(name) {
            words.push(name.to_owned());
        }
        Face {
            full_name: full.to_owned(),
            words,
            parameters: signature.keys().map(ToOwned::to_owned).collect(),
            required: signature.required(),
            about: signature.definition(name),
        }
    }

    /// The shortest name under which programs have it: the bare one where it is unique and free, else the full one.
    pub(crate) fn name<'t>(&self, tool: &'t Tool) -> &'t str {
        let bare = tool.raw_name.as_str();
        let unique = || self.tool(bare).is_some_and(|found| found.full_name == tool.full_name);
        if is_word(bare) && is_free(bare) && unique() { bare } else { tool.full_name.as_str() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_hub::{Principal, SourceName};

    use super::Seen;
    use crate::fixture::{Fake, ada, yard};

    fn named(name: &str) -> serde_json::Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    fn secret(name: &str) -> serde_json::Value {
        json!({"name": name, "inputSchema": {"type": "object"}, "_meta": {"permissions": ["admin"]}})
    }

    #[test]
    fn bare_names_count_where_they_are_unique_for_this_caller_and_free_in_python() {
        let yard = yard(&[
            Fake::offering("a", &[named("query"), named("print"), named("with-dash"), named("one")]),
            Fake::offering("b-c", &[secret("query"), named("other")]),
            Fake::offering("programs", &[named("one")]),
        ]);
        let catalog = yard.catalog();
        let own = SourceName::new("programs");
        let (owner, ada) = (Principal::owner(), ada());
        let words = |principal: &Principal, name: &str| {
            let seen = Seen { catalog: &catalog, principal, own: &own };
            seen.tool(name).map(|tool| seen.face(&tool).words)
        };
        let said = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&ada, "query"), said(&["mcp__a__query", "query"]));
        assert_eq!(words(&owner, "query"), None);
        assert_eq!(words(&owner, "mcp__a__query"), said(&["mcp__a__query"]));
        assert_eq!(words(&owner, "mcp__b-c__query"), said(&[]));
        assert_eq!(words(&ada, "mcp__b-c__query"), None);
        assert_eq!(words(&ada, "print"), said(&["mcp__a__print"]));
        assert_eq!(words(&ada, "with-dash"), said(&[]));
        assert_eq!(words(&ada, "other"), said(&["other"]));
        // What the source of programs offers is nothing that a program can call, and takes nobody's name.
        assert_eq!(words(&ada, "one"), said(&["mcp__a__one", "one"]));
        assert_eq!(words(&ada, "mcp__programs__one"), None);
    }
}
