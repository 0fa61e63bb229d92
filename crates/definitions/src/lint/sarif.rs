//! Findings as SARIF 2.1.0, for code scanning.

use serde_json::{Value, json};
use toolyard_hub::printable::clean;

use super::{LINT_RULES, LintFinding, LintRule, LintSeverity};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
const DOCUMENTATION: &str = "https://github.com/toolyard/toolyard/blob/main/docs/reference/lint.md";

/// Renders findings. Definitions are not in a file, so the results point to `artifact`, such as the
/// configuration, and name the definition as a logical location.
pub fn render_sarif(findings: &[LintFinding], artifact: &str, version: &str) -> Value {
    let rules: Vec<Value> = LINT_RULES.iter().map(describe_rule).collect();
    let results: Vec<Value> = findings.iter().map(|finding| describe_finding(finding, artifact)).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "toolyard",
                "version": version,
                "informationUri": "https://github.com/toolyard/toolyard",
                "rules": rules,
            }},
            "results": results,
        }],
    })
}

fn level(severity: LintSeverity) -> &'static str {
    match severity {
        LintSeverity::Error => "error",
        LintSeverity::Warning => "warning",
        LintSeverity::Info => "note",
    }
}

fn describe_rule(rule: &LintRule) -> Value {
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.summary},
        "helpUri": format!("{DOCUMENTATION}#{}", rule.id),
        "defaultConfiguration": {"level": level(rule.severity)},
    })
}

fn describe_finding(finding: &LintFinding, artifact: &str) -> Value {
    let kind = finding.kind.map_or("server", |kind| kind.as_str());
    let name = if finding.name.is_empty() { &finding.server } else { &finding.name };
    let place = format!("{}/{kind}/{name}{}", finding.server, finding.path);
    let text = format!("{kind} `{name}` of server `{}`: {}", finding.server, finding.message);
    json!({
        "ruleId": finding.rule,
        "ruleIndex": LINT_RULES.iter().position(|rule| rule.id == finding.rule),
        "level": level(finding.severity),
        "message": {"text": clean(&text)},
        "locations": [{
            "physicalLocation": {"artifactLocation": {"uri": artifact}, "region": {"startLine": 1}},
            "logicalLocations": [{"name": clean(name), "fullyQualifiedName": clean(&place)}],
        }],
        "partialFingerprints": {"toolyardFinding/v1": format!("{}:{}", finding.rule, clean(&place))},
    })
}
