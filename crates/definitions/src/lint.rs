//! Checks definitions for what confuses models, what clients refuse, and what deceives people. A
//! false alarm is worse than a miss: an error is only what is certainly wrong.

mod annotations;
mod descriptions;
mod lists;
mod names;
mod prompts;
mod resources;
mod rules;
mod sarif;
mod schemas;
mod text;

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Map, Value};
use toolyard_hub::{Glob, Raw};

use crate::offer::{ItemKind, ServerOffer, read_value};

pub use rules::{LINT_RULES, LintRule};
pub use sarif::render_sarif;

/// Further findings of one rule about one item are not reported.
const MOST_PER_RULE: usize = 50;
/// Further findings about one server are not collected.
const MOST: usize = 50_000;

/// How certain it is that something is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LintSeverity {
    /// Could be better.
    Info,
    /// Some clients or models have trouble with it.
    Warning,
    /// Certainly wrong.
    Error,
}

impl LintSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Thresholds, and findings that are not reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintSettings {
    /// Shorter descriptions are reported, in characters.
    pub description_min: usize,
    /// Longer descriptions are reported, in characters.
    pub description_max: usize,
    /// More tools of one server are reported.
    pub tools_max: usize,
    /// Larger definitions of one tool are reported, in bytes.
    pub tool_bytes_max: usize,
    /// Larger lists of tools are reported, in bytes.
    pub list_bytes_max: usize,
    pub ignore: Vec<LintIgnore>,
}

impl Default for LintSettings {
    fn default() -> Self {
        Self {
            description_min: 10,
            description_max: 4096,
            tools_max: 128,
            tool_bytes_max: 16_384,
            list_bytes_max: 131_072,
            ignore: Vec::new(),
        }
    }
}

/// Findings that are not reported: those of a rule, for the servers and items that match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintIgnore {
    pub rule: String,
    pub server: Option<Glob>,
    /// A pattern over the names of tools and prompts, and the URIs of resources.
    pub item: Option<Glob>,
}

impl LintIgnore {
    fn covers(&self, finding: &LintFinding) -> bool {
        let matches = |glob: &Option<Glob>, name: &str| glob.as_ref().is_none_or(|glob| glob.matches(name));
        self.rule == finding.rule
            && matches(&self.server, &finding.server)
            && matches(&self.item, &finding.name)
    }
}

/// Something that is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LintFinding {
    pub rule: &'static str,
    pub severity: LintSeverity,
    pub server: String,
    /// The kind of the item. `None` for the server as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ItemKind>,
    /// The name or URI of the item. Empty for the server as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// A JSON pointer into the definition.
    pub path: String,
    pub message: String,
}

/// Checks everything that a server offers. The most severe findings come first.
pub fn lint(offer: &ServerOffer, settings: &LintSettings) -> Vec<LintFinding> {
    let mut linter = Linter { server: &offer.name, settings, findings: Vec::new() };
    for kind in ItemKind::ALL {
        let Some(list) = offer.items(kind) else { continue };
        let items: Vec<LintItem<'_>> = list.iter().map(|raw| LintItem::read(kind, raw)).collect();
        lists::check(&mut linter, kind, &items);
        for item in &items {
            text::check_item(&mut linter, item);
            match kind {
                ItemKind::Tool => {
                    names::check(&mut linter, item);
                    descriptions::check(&mut linter, item);
                    annotations::check(&mut linter, item);
                    schemas::check(&mut linter, item);
                }
                ItemKind::Prompt => prompts::check(&mut linter, item),
                ItemKind::Resource | ItemKind::Template => resources::check(&mut linter, item),
            }
        }
    }
    if let Some(instructions) = offer.profile.as_ref().and_then(|profile| profile.instructions.as_deref()) {
        text::check_instructions(&mut linter, instructions);
    }
    let mut findings = linter.findings;
    findings.retain(|finding| !settings.ignore.iter().any(|ignore| ignore.covers(finding)));
    findings.sort_by(|one, other| {
        other.severity.cmp(&one.severity).then_with(|| {
            (one.kind, &one.name, one.rule, &one.path).cmp(&(
                other.kind,
                &other.name,
                other.rule,
                &other.path,
            ))
        })
    });
    findings.dedup();
    let mut counts: HashMap<_, usize> = HashMap::new();
    findings.retain(|finding| {
        let count = counts.entry((finding.rule, finding.kind, finding.name.clone())).or_default();
        *count += 1;
        *count <= MOST_PER_RULE
    });
    findings
}

/// One item of a list.
struct LintItem<'a> {
    kind: ItemKind,
    raw: &'a Raw,
    /// The name or URI. Empty if there is none.
    id: String,
    members: Map<String, Value>,
}

impl<'a> LintItem<'a> {
    fn read(kind: ItemKind, raw: &'a Raw) -> Self {
        let members = match read_value(raw) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        };
        let id = members.get(kind.id_key()).and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { kind, raw, id, members }
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.members.get(key).and_then(Value::as_str)
    }
}

/// The findings so far.
struct Linter<'a> {
    server: &'a str,
    settings: &'a LintSettings,
    findings: Vec<LintFinding>,
}

impl Linter<'_> {
    fn report(
        &mut self,
        rule: &LintRule,
        item: &LintItem<'_>,
        path: impl Into<String>,
        message: impl Into<String>,
    ) {
        if self.findings.len() >= MOST {
            return;
        }
        self.findings.push(LintFinding {
            rule: rule.id,
            severity: rule.severity,
            server: self.server.to_owned(),
            kind: Some(item.kind),
            name: item.id.clone(),
            path: path.into(),
            message: message.into(),
        });
    }

    fn report_server(&mut self, rule: &LintRule, path: &str, message: impl Into<String>) {
        self.findings.push(LintFinding {
            rule: rule.id,
            severity: rule.severity,
            server: self.server.to_owned(),
            kind: None,
            name: String::new(),
            path: path.to_owned(),
            message: message.into(),
        });
    }
}

#[cfg(test)]
mod tests;
