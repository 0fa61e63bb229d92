//! `[lint]`: thresholds of `toolyard lint`, and findings that it does not report.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_definitions::lint::{LINT_RULES, LintIgnore, LintSettings};
use toolyard_hub::Glob;

use super::limits::SettingProblem;

/// Settings of `toolyard lint`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct LintKeys {
    /// Minimum length of the description of a tool, in characters. Default: 10.
    description_min: Option<usize>,
    /// Maximum length of the description of a tool, in characters. Default: 4096.
    description_max: Option<usize>,
    /// Maximum number of tools of a server. Default: 128.
    tools_max: Option<usize>,
    /// Maximum size of the definition of a tool, in bytes. Default: 16384.
    tool_bytes_max: Option<usize>,
    /// Maximum size of all tools of a server, in bytes. Default: 131072.
    list_bytes_max: Option<usize>,
    /// Findings that are not reported. Default: none.
    ignore: Option<Vec<LintIgnoreKeys>>,
}

/// Findings that are not reported: those of a rule, for the servers and items that match.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(crate) struct LintIgnoreKeys {
    /// Name of the rule. Required.
    rule: String,
    /// Glob pattern of server names. Default: all servers.
    server: Option<String>,
    /// Glob pattern of the names of tools and prompts, and of the URIs of resources. Default: all
    /// items.
    item: Option<String>,
}

impl LintKeys {
    pub(super) fn with_fallback(self, earlier: Self) -> Self {
        let ignore: Vec<LintIgnoreKeys> = earlier.ignore.into_iter().chain(self.ignore).flatten().collect();
        Self {
            description_min: self.description_min.or(earlier.description_min),
            description_max: self.description_max.or(earlier.description_max),
            tools_max: self.tools_max.or(earlier.tools_max),
            tool_bytes_max: self.tool_bytes_max.or(earlier.tool_bytes_max),
            list_bytes_max: self.list_bytes_max.or(earlier.list_bytes_max),
            ignore: Some(ignore),
        }
    }

    /// Rules that this version does not have. A newer version may have them.
    pub(super) fn validate(&self) -> Vec<SettingProblem> {
        let is_known = |rule: &str| LINT_RULES.iter().any(|known| known.id == rule);
        let entries = self.ignore.iter().flatten().enumerate().filter(|(_, entry)| !is_known(&entry.rule));
        let problem = |(index, _): (usize, &LintIgnoreKeys)| {
            let place = ["lint", "ignore", &index.to_string(), "rule"];
            SettingProblem::warning(
                &place,
                "is not a rule of `toolyard lint`",
                "see docs/reference/lint.md for the rules",
            )
        };
        entries.map(problem).collect()
    }

    pub fn settings(&self) -> LintSettings {
        let usual = LintSettings::default();
        let glob = |pattern: &Option<String>| pattern.as_deref().map(Glob::from);
        let ignore = self.ignore.iter().flatten().map(|entry| LintIgnore {
            rule: entry.rule.clone(),
            server: glob(&entry.server),
            item: glob(&entry.item),
        });
        LintSettings {
            description_min: self.description_min.unwrap_or(usual.description_min),
            description_max: self.description_max.unwrap_or(usual.description_max),
            tools_max: self.tools_max.unwrap_or(usual.tools_max),
            tool_bytes_max: self.tool_bytes_max.unwrap_or(usual.tool_bytes_max),
            list_bytes_max: self.list_bytes_max.unwrap_or(usual.list_bytes_max),
            ignore: ignore.collect(),
        }
    }
}
