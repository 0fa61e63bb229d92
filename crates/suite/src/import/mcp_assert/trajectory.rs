//! Trajectories: checks of a recorded sequence of calls, without a server.

use std::fs;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::McpAssertOptions;

/// A recorded call.
#[derive(Debug, Deserialize)]
pub(super) struct TraceEntry {
    #[serde(default)]
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct TrajectoryRule {
    r#type: String,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    tool: String,
    #[serde(default)]
    args: Map<String, Value>,
}

/// Checks the rules in order, and returns why the first one does not hold.
pub(super) fn check(
    rules: &[TrajectoryRule],
    trace: &[TraceEntry],
    audit_log: Option<&str>,
    options: &McpAssertOptions,
) -> Result<(), String> {
    let recorded;
    let trace = match audit_log {
        Some(path) => {
            recorded = read_audit_log(path, options)?;
            &recorded
        }
        None => trace,
    };
    rules.iter().try_for_each(|rule| check_rule(rule, trace))
}

fn read_audit_log(path: &str, options: &McpAssertOptions) -> Result<Vec<TraceEntry>, String> {
    let fixture = options.fixture.as_ref().map(|fixture| fixture.to_string_lossy().into_owned());
    let path = match fixture {
        Some(fixture) => path.replace("{{fixture}}", &fixture),
        None => path.to_owned(),
    };
    let path = options.working_folder.join(path);
    let text =
        fs::read_to_string(&path).map_err(|error| format!("audit_log: {}: {error}", path.display()))?;
    let mut trace = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let entry: TraceEntry = serde_json::from_str(line)
            .map_err(|error| format!("audit_log: line {} is invalid: {error}", index + 1))?;
        if !entry.tool.is_empty() {
            trace.push(entry);
        }
    }
    Ok(trace)
}

fn check_rule(rule: &TrajectoryRule, trace: &[TraceEntry]) -> Result<(), String> {
    let has = |tool: &String| trace.iter().any(|entry| entry.tool == *tool);
    match rule.r#type.as_str() {
        "order" => {
            let mut rest = trace.iter();
            match rule.tools.iter().find(|tool| !rest.any(|entry| entry.tool == **tool)) {
                Some(tool) => Err(format!("order: `{tool}` does not follow the tools before it")),
                None => Ok(()),
            }
        }
        "presence" => match rule.tools.iter().find(|tool| !has(tool)) {
            Some(tool) => Err(format!("presence: `{tool}` was not called")),
            None => Ok(()),
        },
        "absence" => match rule.tools.iter().find(|tool| has(tool)) {
            Some(tool) => Err(format!("absence: `{tool}` was called")),
            None => Ok(()),
        },
        "args_contain" => {
            // Only the first call of the tool counts, as in mcp-assert.
            let call = trace.iter().find(|entry| entry.tool == rule.tool);
            let call = call.ok_or_else(|| format!("args_contain: `{}` was not called", rule.tool))?;
            for (name, wanted) in &rule.args {
                let (wanted, found) =
                    (super::check::go_format(wanted), call.args.get(name).map(super::check::go_format));
                if found.as_ref() != Some(&wanted) {
                    let found = found.unwrap_or_else(|| "nothing".to_owned());
                    return Err(format!(
                        "args_contain: `{name}` of `{}` is {found}, expected {wanted}",
                        rule.tool
                    ));
                }
            }
            Ok(())
        }
        other => Err(format!("unknown trajectory assertion type `{other}`")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{TraceEntry, TrajectoryRule, check};
    use crate::import::mcp_assert::McpAssertOptions;

    #[test]
    fn each_rule_has_its_verdict() {
        let trace: Vec<TraceEntry> =
            serde_json::from_value(json!([{"tool": "a"}, {"tool": "b", "args": {"n": 1}}, {"tool": "c"}]))
                .unwrap();
        let verdict = |rule: serde_json::Value| {
            let rules: Vec<TrajectoryRule> = serde_json::from_value(json!([rule])).unwrap();
            check(&rules, &trace, None, &McpAssertOptions::default()).is_ok()
        };
        assert!(verdict(json!({"type": "order", "tools": ["a", "c"]})));
        assert!(!verdict(json!({"type": "order", "tools": ["c", "a"]})));
        assert!(verdict(json!({"type": "presence", "tools": ["c", "a"]})));
        assert!(!verdict(json!({"type": "presence", "tools": ["d"]})));
        assert!(verdict(json!({"type": "absence", "tools": ["d"]})));
        assert!(!verdict(json!({"type": "absence", "tools": ["a"]})));
        assert!(verdict(json!({"type": "args_contain", "tool": "b", "args": {"n": "1"}})));
        assert!(!verdict(json!({"type": "args_contain", "tool": "b", "args": {"n": 2}})));
        assert!(!verdict(json!({"type": "guess"})));
    }
}
