//! The tools that a program can use: those that its caller may use, without the three program
//! tools.

use std::collections::HashMap;
use std::sync::Arc;

use toolyard_hub::{Catalog, Lookup, Principal, SourceName, ToolEntry};

use crate::program::ToolBinding;
use crate::python_names::{is_identifier, is_unreserved, to_identifier};
use crate::signature::Signature;

/// The tools of one catalog as one caller sees them.
#[derive(Debug, Clone)]
pub(crate) struct VisibleTools<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) principal: &'a Principal,
    /// The source of the three program tools.
    pub(crate) own: &'a SourceName,
}

impl<'a> VisibleTools<'a> {
    pub(crate) fn is_visible(&self, tool: &ToolEntry) -> bool {
        tool.source != *self.own && tool.is_listed_for(self.principal)
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &'a Arc<ToolEntry>> {
        let visible = self.clone();
        self.catalog.tools().iter().filter(move |tool| visible.is_visible(tool))
    }

    /// Returns a tool by full name, or by bare name if that is unique among the visible tools.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ToolEntry>> {
        match self.catalog.tool(name) {
            Lookup::Found(tool) if self.is_visible(&tool) => Some(tool),
            Lookup::Unknown => None,
            Lookup::Ambiguous(names) => {
                let each = names.iter().map(|name| self.catalog.tool(name.as_str()));
                let mut visible = each.filter_map(|lookup| match lookup {
                    Lookup::Found(tool) if self.is_visible(&tool) => Some(tool),
                    _ => None,
                });
                let first = visible.next()?;
                visible.next().is_none().then_some(first)
            }
            // This tool is hidden or a program tool, but a visible one may have the same bare name.
            Lookup::Found(_) => {
                let mut all = self.tools().filter(|tool| tool.raw_name == name);
                let first = all.next()?;
                all.next().is_none().then(|| Arc::clone(first))
            }
        }
    }

    /// Returns the spellings of names that are not identifiers.
    pub(crate) fn spellings(&self) -> Spellings {
        let mut all: HashMap<String, Option<Arc<ToolEntry>>> = HashMap::new();
        for tool in self.tools() {
            let full = to_identifier(tool.full_name.as_str());
            let bare = to_identifier(&tool.raw_name).filter(|word| is_unreserved(word));
            for word in full.into_iter().chain(bare).filter(|word| !self.is_taken(word)) {
                let entry = all.entry(word).or_insert_with(|| Some(Arc::clone(tool)));
                if entry.as_ref().is_some_and(|other| other.full_name != tool.full_name) {
                    *entry = None;
                }
            }
        }
        Spellings(all)
    }

    /// Returns whether one or more visible tools have exactly this name.
    fn is_taken(&self, name: &str) -> bool {
        let is_visible =
            |name: &str| matches!(self.catalog.tool(name), Lookup::Found(tool) if self.is_visible(&tool));
        match self.catalog.tool(name) {
            Lookup::Ambiguous(names) => names.iter().any(|name| is_visible(name.as_str())),
            Lookup::Found(_) | Lookup::Unknown => is_visible(name),
        }
    }

    /// Returns the tool as a program sees it.
    pub(crate) fn binding(&self, tool: &ToolEntry, spellings: &Spellings) -> ToolBinding {
        let full = tool.full_name.as_str();
        let signature = Signature::from_tool(tool);
        let name = self.short_name(tool);
        let mut words = Vec::new();
        if is_identifier(full) {
            words.push(full.to_owned());
        }
        if name != full && is_identifier(name) {
            words.push(name.to_owned());
        }
        for spelled in [full, tool.raw_name.as_str()].into_iter().filter_map(to_identifier) {
            let is_unique = spellings.get(&spelled).is_some_and(|entry| entry.full_name == tool.full_name);
            if is_unique && !words.contains(&spelled) {
                words.push(spelled);
            }
        }
        ToolBinding {
            full_name: full.to_owned(),
            words,
            parameters: signature.keys().map(ToOwned::to_owned).collect(),
            required: signature.required_count(),
            about: signature.definition(name),
        }
    }

    /// Returns the shortest name of the function in a program: the bare name if it is unique and not
    /// reserved, else the full name.
    pub(crate) fn short_name<'t>(&self, tool: &'t ToolEntry) -> &'t str {
        let bare = tool.raw_name.as_str();
        let is_unique = || self.tool(bare).is_some_and(|entry| entry.full_name == tool.full_name);
        if is_identifier(bare) && is_unreserved(bare) && is_unique() { bare } else { tool.full_name.as_str() }
    }
}

/// Tools by the spelling of names that are not identifiers. An ambiguous spelling maps to `None`.
#[derive(Debug, Default)]
pub(crate) struct Spellings(HashMap<String, Option<Arc<ToolEntry>>>);

impl Spellings {
    pub(crate) fn get(&self, word: &str) -> Option<&Arc<ToolEntry>> {
        self.0.get(word)?.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_hub::{Principal, SourceName};

    use super::VisibleTools;
    use crate::fixtures::{FakeSource, ada, yard};

    fn named(name: &str) -> serde_json::Value {
        json!({"name": name, "inputSchema": {"type": "object"}})
    }

    fn secret(name: &str) -> serde_json::Value {
        json!({"name": name, "inputSchema": {"type": "object"}, "_meta": {"permissions": ["admin"]}})
    }

    #[test]
    fn bare_names_are_bound_if_they_are_unique_for_the_caller_and_not_reserved() {
        let yard = yard(&[
            FakeSource::with_tools("a", &[named("query"), named("print"), named("with-dash"), named("one")]),
            FakeSource::with_tools("b-c", &[secret("query"), named("other")]),
            FakeSource::with_tools("programs", &[named("one")]),
        ]);
        let catalog = yard.catalog();
        let own = SourceName::new("programs");
        let (owner, ada) = (Principal::owner(), ada());
        let words = |principal: &Principal, name: &str| {
            let visible = VisibleTools { catalog: &catalog, principal, own: &own };
            let entry = visible.tool(name).or_else(|| visible.spellings().get(name).cloned());
            entry.map(|tool| visible.binding(&tool, &visible.spellings()).words)
        };
        let names = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&ada, "query"), names(&["mcp__a__query", "query"]));
        assert_eq!(words(&owner, "query"), None);
        assert_eq!(words(&owner, "mcp__a__query"), names(&["mcp__a__query"]));
        assert_eq!(words(&owner, "mcp__b-c__query"), names(&["mcp__b_c__query"]));
        assert_eq!(words(&ada, "mcp__b-c__query"), None);
        assert_eq!(words(&ada, "print"), names(&["mcp__a__print"]));
        assert_eq!(words(&ada, "with-dash"), names(&["mcp__a__with_dash", "with_dash"]));
        assert_eq!(words(&ada, "with_dash"), words(&ada, "with-dash"));
        assert_eq!(words(&ada, "other"), names(&["other", "mcp__b_c__other"]));
        // Programs cannot call the tools of the programs source, and those reserve no names.
        assert_eq!(words(&ada, "one"), names(&["mcp__a__one", "one"]));
        assert_eq!(words(&ada, "mcp__programs__one"), None);
    }

    #[test]
    fn a_spelling_is_bound_only_if_it_is_unambiguous() {
        let yard = yard(&[
            FakeSource::with_tools(
                "a",
                &[named("get-sum"), named("to.day"), named("p-rint"), named("set"), named("in-put")],
            ),
            FakeSource::with_tools("b", &[named("get_sum"), named("to-day"), secret("in_put")]),
        ]);
        let (catalog, own, ada) = (yard.catalog(), SourceName::new("programs"), ada());
        let visible = VisibleTools { catalog: &catalog, principal: &ada, own: &own };
        let spellings = visible.spellings();
        let lookup = |word: &str| spellings.get(word).map(|tool| tool.full_name.to_string());
        // A spelling is not bound if another tool has that name or the same spelling. Hidden tools
        // do not count.
        assert_eq!(lookup("get_sum"), None);
        assert_eq!(lookup("mcp__a__get_sum").as_deref(), Some("mcp__a__get-sum"));
        assert_eq!(lookup("to_day"), None);
        assert_eq!(lookup("p_rint").as_deref(), Some("mcp__a__p-rint"));
        assert_eq!(lookup("in_put").as_deref(), Some("mcp__a__in-put"));
        assert_eq!(lookup("set"), None);
    }
}
