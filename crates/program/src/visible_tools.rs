//! Which tools there are for a program: those that its caller may use, without the three that are about programs.

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
    /// The source of the three tools.
    pub(crate) own: &'a SourceName,
}

impl<'a> VisibleTools<'a> {
    pub(crate) fn is_visible(&self, tool: &ToolEntry) -> bool {
        tool.source != *self.own && tool.is_listed_for(self.principal)
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &'a Arc<ToolEntry>> {
        let seen = self.clone();
        self.catalog.tools().iter().filter(move |tool| seen.is_visible(tool))
    }

    /// By full name, or by bare name where that is unique among those that are seen.
    pub(crate) fn tool(&self, name: &str) -> Option<Arc<ToolEntry>> {
        match self.catalog.tool(name) {
            Lookup::Found(tool) if self.is_visible(&tool) => Some(tool),
            Lookup::Unknown => None,
            Lookup::Ambiguous(names) => {
                let each = names.iter().map(|name| self.catalog.tool(name.as_str()));
                let mut shown = each.filter_map(|found| match found {
                    Lookup::Found(tool) if self.is_visible(&tool) => Some(tool),
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

    /// What people write for names that Python cannot spell.
    pub(crate) fn spellings(&self) -> Spellings {
        let mut all: HashMap<String, Option<Arc<ToolEntry>>> = HashMap::new();
        for tool in self.tools() {
            let full = to_identifier(tool.full_name.as_str());
            let bare = to_identifier(&tool.raw_name).filter(|word| is_unreserved(word));
            for word in full.into_iter().chain(bare).filter(|word| !self.is_taken(word)) {
                let one = all.entry(word).or_insert_with(|| Some(Arc::clone(tool)));
                if one.as_ref().is_some_and(|one| one.full_name != tool.full_name) {
                    *one = None;
                }
            }
        }
        Spellings(all)
    }

    /// Whether a tool, or several, have this very name.
    fn is_taken(&self, name: &str) -> bool {
        let shown =
            |name: &str| matches!(self.catalog.tool(name), Lookup::Found(tool) if self.is_visible(&tool));
        match self.catalog.tool(name) {
            Lookup::Ambiguous(names) => names.iter().any(|name| shown(name.as_str())),
            Lookup::Found(_) | Lookup::Unknown => shown(name),
        }
    }

    /// What a program sees of a tool.
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
            let ours = spellings.get(&spelled).is_some_and(|found| found.full_name == tool.full_name);
            if ours && !words.contains(&spelled) {
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

    /// The shortest name under which programs have it: the bare one where it is unique and free, else the full one.
    pub(crate) fn short_name<'t>(&self, tool: &'t ToolEntry) -> &'t str {
        let bare = tool.raw_name.as_str();
        let unique = || self.tool(bare).is_some_and(|found| found.full_name == tool.full_name);
        if is_identifier(bare) && is_unreserved(bare) && unique() { bare } else { tool.full_name.as_str() }
    }
}

/// Tools by what people write for names that Python cannot spell, as far as it is clear which one is meant.
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
    fn bare_names_count_where_they_are_unique_for_this_caller_and_free_in_python() {
        let yard = yard(&[
            FakeSource::with_tools("a", &[named("query"), named("print"), named("with-dash"), named("one")]),
            FakeSource::with_tools("b-c", &[secret("query"), named("other")]),
            FakeSource::with_tools("programs", &[named("one")]),
        ]);
        let catalog = yard.catalog();
        let own = SourceName::new("programs");
        let (owner, ada) = (Principal::owner(), ada());
        let words = |principal: &Principal, name: &str| {
            let seen = VisibleTools { catalog: &catalog, principal, own: &own };
            let found = seen.tool(name).or_else(|| seen.spellings().get(name).cloned());
            found.map(|tool| seen.binding(&tool, &seen.spellings()).words)
        };
        let said = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        assert_eq!(words(&ada, "query"), said(&["mcp__a__query", "query"]));
        assert_eq!(words(&owner, "query"), None);
        assert_eq!(words(&owner, "mcp__a__query"), said(&["mcp__a__query"]));
        assert_eq!(words(&owner, "mcp__b-c__query"), said(&["mcp__b_c__query"]));
        assert_eq!(words(&ada, "mcp__b-c__query"), None);
        assert_eq!(words(&ada, "print"), said(&["mcp__a__print"]));
        assert_eq!(words(&ada, "with-dash"), said(&["mcp__a__with_dash", "with_dash"]));
        assert_eq!(words(&ada, "with_dash"), words(&ada, "with-dash"));
        assert_eq!(words(&ada, "other"), said(&["other", "mcp__b_c__other"]));
        // What the source of programs offers is nothing that a program can call, and takes nobody's name.
        assert_eq!(words(&ada, "one"), said(&["mcp__a__one", "one"]));
        assert_eq!(words(&ada, "mcp__programs__one"), None);
    }

    #[test]
    fn a_spelling_counts_only_where_it_is_clear_which_tool_is_meant() {
        let yard = yard(&[
            FakeSource::with_tools(
                "a",
                &[named("get-sum"), named("to.day"), named("p-rint"), named("set"), named("in-put")],
            ),
            FakeSource::with_tools("b", &[named("get_sum"), named("to-day"), secret("in_put")]),
        ]);
        let (catalog, own, ada) = (yard.catalog(), SourceName::new("programs"), ada());
        let seen = VisibleTools { catalog: &catalog, principal: &ada, own: &own };
        let spellings = seen.spellings();
        let found = |word: &str| spellings.get(word).map(|tool| tool.full_name.to_string());
        // One tool has the name itself, two are spelled alike, and what is not for this caller is in nobody's way.
        assert_eq!(found("get_sum"), None);
        assert_eq!(found("mcp__a__get_sum").as_deref(), Some("mcp__a__get-sum"));
        assert_eq!(found("to_day"), None);
        assert_eq!(found("p_rint").as_deref(), Some("mcp__a__p-rint"));
        assert_eq!(found("in_put").as_deref(), Some("mcp__a__in-put"));
        assert_eq!(found("set"), None);
    }
}
