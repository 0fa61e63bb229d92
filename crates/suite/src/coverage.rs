//! What the tests of a run exercised: tools, parameters, enum values and error paths.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::expect::matcher::is_equal;
use crate::run::session::ToolIndex;

/// How many tools of one server are tracked.
const MOST_TOOLS: usize = 10_000;

/// Collects calls while tests run.
#[derive(Debug, Default)]
pub(crate) struct CoverageLog {
    servers: Mutex<BTreeMap<String, BTreeMap<String, ToolCoverage>>>,
}

/// What was exercised of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolCoverage {
    pub calls: usize,
    /// Whether a call failed, which a test expected.
    pub had_error: bool,
    /// Every parameter, and whether it was passed.
    pub parameters: BTreeMap<String, bool>,
    /// Every value of a parameter with an enum, as JSON, and whether it was passed.
    pub enum_values: BTreeMap<(String, String), bool>,
}

/// What was exercised of every server, by its name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CoverageReport {
    pub servers: BTreeMap<String, BTreeMap<String, ToolCoverage>>,
}

/// Covered and existing items of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CoverageCount {
    pub covered: usize,
    pub total: usize,
}

impl CoverageLog {
    /// Records a call of a tool that the server lists.
    pub(crate) fn record(
        &self,
        server: &str,
        index: &ToolIndex,
        tool: &str,
        arguments: &Value,
        failed: bool,
    ) {
        let mut servers = self.servers.lock();
        let tools = servers.entry(server.to_owned()).or_default();
        for (name, listed) in index.tools.iter().take(MOST_TOOLS) {
            if !tools.contains_key(name) {
                tools.insert(name.clone(), ToolCoverage::of_schema(&listed.input));
            }
        }
        let (Some(coverage), Some(listed)) = (tools.get_mut(tool), index.tools.get(tool)) else { return };
        coverage.calls += 1;
        coverage.had_error |= failed;
        for (name, value) in arguments.as_object().into_iter().flatten() {
            if let Some(covered) = coverage.parameters.get_mut(name) {
                *covered = true;
            }
            for choice in enum_values(&listed.input, name) {
                if is_equal(choice, value)
                    && let Some(covered) = coverage.enum_values.get_mut(&(name.clone(), choice.to_string()))
                {
                    *covered = true;
                }
            }
        }
    }

    pub(crate) fn report(&self) -> CoverageReport {
        CoverageReport { servers: self.servers.lock().clone() }
    }
}

impl ToolCoverage {
    fn of_schema(input: &Value) -> Self {
        let names: BTreeSet<&String> = input
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(|all| all.keys())
            .collect();
        let mut coverage = Self::default();
        for name in names {
            coverage.parameters.insert(name.clone(), false);
            for choice in enum_values(input, name) {
                coverage.enum_values.insert((name.clone(), choice.to_string()), false);
            }
        }
        coverage
    }
}

fn enum_values<'a>(input: &'a Value, parameter: &str) -> impl Iterator<Item = &'a Value> {
    let schema = input.get("properties").and_then(|properties| properties.get(parameter));
    schema.and_then(|schema| schema.get("enum")?.as_array()).into_iter().flatten()
}

impl CoverageCount {
    fn count_covered(items: impl Iterator<Item = bool>) -> Self {
        items.fold(Self::default(), |count, covered| Self {
            covered: count.covered + usize::from(covered),
            total: count.total + 1,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self { covered: self.covered + other.covered, total: self.total + other.total }
    }

    /// Returns the share in percent. Nothing to cover is covered.
    pub fn percent(&self) -> f64 {
        match self.total {
            0 => 100.0,
            total => self.covered as f64 * 100.0 / total as f64,
        }
    }
}

impl CoverageReport {
    fn tools(&self) -> impl Iterator<Item = &ToolCoverage> {
        self.servers.values().flat_map(BTreeMap::values)
    }

    pub fn tool_count(&self) -> CoverageCount {
        CoverageCount::count_covered(self.tools().map(|tool| tool.calls > 0))
    }

    pub fn parameter_count(&self) -> CoverageCount {
        CoverageCount::count_covered(self.tools().flat_map(|tool| tool.parameters.values().copied()))
    }

    pub fn enum_count(&self) -> CoverageCount {
        CoverageCount::count_covered(self.tools().flat_map(|tool| tool.enum_values.values().copied()))
    }

    pub fn error_count(&self) -> CoverageCount {
        CoverageCount::count_covered(self.tools().map(|tool| tool.had_error))
    }

    /// Returns the share of tools, parameters and enum values in percent. Error paths are reported,
    /// but not part of it: not every tool can fail.
    pub fn percent(&self) -> f64 {
        self.tool_count().plus(self.parameter_count()).plus(self.enum_count()).percent()
    }

    pub fn to_json(&self) -> Value {
        let count = |count: CoverageCount| json!({"covered": count.covered, "total": count.total});
        let servers: BTreeMap<&String, Value> = self
            .servers
            .iter()
            .map(|(server, tools)| {
                let tools: BTreeMap<&String, Value> =
                    tools.iter().map(|(name, tool)| (name, tool.to_json())).collect();
                (server, json!({"tools": tools}))
            })
            .collect();
        json!({
            "percent": (self.percent() * 10.0).round() / 10.0,
            "tools": count(self.tool_count()),
            "parameters": count(self.parameter_count()),
            "enum_values": count(self.enum_count()),
            "error_paths": count(self.error_count()),
            "servers": servers,
        })
    }
}

impl ToolCoverage {
    /// Returns what was not exercised, in words.
    pub fn gaps(&self) -> Vec<String> {
        if self.calls == 0 {
            return vec!["not called".to_owned()];
        }
        let parameters = self.parameters.iter().filter(|(_, covered)| !**covered);
        let mut gaps: Vec<String> = parameters.map(|(name, _)| format!("{name} is never passed")).collect();
        let values = self.enum_values.iter().filter(|((name, _), covered)| {
            !**covered && self.parameters.get(name).copied().unwrap_or_default()
        });
        gaps.extend(values.map(|((name, value), _)| format!("{name} is never {value}")));
        if !self.had_error {
            gaps.push("no error path".to_owned());
        }
        gaps
    }

    fn to_json(&self) -> Value {
        let missing: Vec<Value> = self
            .enum_values
            .iter()
            .filter(|(_, covered)| !**covered)
            .map(|((name, value), _)| json!(format!("{name}={value}")))
            .collect();
        json!({
            "calls": self.calls,
            "had_error": self.had_error,
            "parameters": self.parameters,
            "missing_enum_values": missing,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::{CoverageCount, CoverageLog};
    use crate::run::session::{ListedTool, ToolIndex};

    #[test]
    fn calls_cover_parameters_and_enum_values() {
        let input = json!({"properties": {"a": {"type": "string", "enum": ["x", "y"]}, "b": {}}});
        let listed = || ListedTool { input: input.clone(), output: None };
        let tools = BTreeMap::from([("one".to_owned(), listed()), ("two".to_owned(), listed())]);
        let index = ToolIndex::with_tools(tools);
        let log = CoverageLog::default();
        log.record("s", &index, "one", &json!({"a": "x", "unknown": 1}), false);
        log.record("s", &index, "three", &json!({}), true);
        let report = log.report();
        assert_eq!(report.tool_count(), CoverageCount { covered: 1, total: 2 });
        assert_eq!(report.parameter_count(), CoverageCount { covered: 1, total: 4 });
        assert_eq!(report.enum_count(), CoverageCount { covered: 1, total: 4 });
        assert_eq!(report.error_count(), CoverageCount { covered: 0, total: 2 });
        assert_eq!(report.percent(), 30.0);
        assert_eq!(
            report.servers["s"]["one"].gaps(),
            ["b is never passed", "a is never \"y\"", "no error path"]
        );
        assert_eq!(report.servers["s"]["two"].gaps(), ["not called"]);
        log.record("s", &index, "one", &json!({"a": "y", "b": 1}), true);
        assert!(log.report().servers["s"]["one"].gaps().is_empty());
    }
}
