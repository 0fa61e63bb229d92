//! Reads a test file and reports all of its mistakes. Steps and assertions are in `read_step` and
//! `read_expect`.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use toolyard_hub::LogLevel;
use toolyard_upstream::{EnvInheritance, Era};

use super::keys;
use super::problem::TestFileProblem;
use super::yaml::{FilePosition, YamlKey, YamlNode, YamlValue, parse_yaml};
use super::{
    AnswerSequence, RedactionTarget, Redactor, RunCondition, ScriptedAnswers, ServerSpec, StepAction,
    TestCase, TestFile, TestStep, ViolationPolicy,
};

/// The largest test file.
const LARGEST: usize = 8 << 20;
/// The maximum number of mistakes that are reported.
const MOST_PROBLEMS: usize = 50;
/// The replacement for redacted values.
const REDACTED: &str = "<redacted>";

/// Reads a test file. `path` is used in messages, and its folder for relative paths.
pub fn parse_test_file(path: &Path, text: &str) -> Result<TestFile, Vec<TestFileProblem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > LARGEST {
        let message = format!("the file exceeds the limit of {LARGEST} bytes");
        return Err(vec![TestFileProblem::for_file(path, message)]);
    }
    let root =
        parse_yaml(text).map_err(|error| vec![TestFileProblem::at(path, text, error.at, error.message)])?;
    let mut reader = TestFileReader { path, text, problems: Vec::new() };
    let file = reader.file(&root);
    match file {
        Some(file) if reader.problems.is_empty() => Ok(file),
        _ => {
            let mut problems = reader.problems;
            problems.sort_by_key(|problem| problem.at);
            problems.truncate(MOST_PROBLEMS);
            Err(problems)
        }
    }
}

/// Collects the mistakes of one file.
pub(super) struct TestFileReader<'a> {
    path: &'a Path,
    text: &'a str,
    problems: Vec<TestFileProblem>,
}

/// A map whose keys were checked against its section.
#[derive(Clone, Copy)]
pub(super) struct Members<'n> {
    pub(super) at: FilePosition,
    pub(super) members: &'n [(YamlKey, YamlNode)],
}

impl<'n> Members<'n> {
    pub(super) fn get(&self, name: &str) -> Option<&'n YamlNode> {
        self.entry(name).map(|(_, value)| value)
    }

    pub(super) fn entry(&self, name: &str) -> Option<(&'n YamlKey, &'n YamlNode)> {
        self.members.iter().find(|(key, _)| key.name == name).map(|(key, value)| (key, value))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'n YamlKey, &'n YamlNode)> + use<'n> {
        self.members.iter().map(|(key, value)| (key, value))
    }
}

impl TestFileReader<'_> {
    pub(super) fn problem(&mut self, at: FilePosition, message: impl Into<String>) {
        self.problems.push(TestFileProblem::at(self.path, self.text, at, message));
    }

    pub(super) fn problem_with_hint(&mut self, at: FilePosition, message: String, hint: String) {
        let problem = TestFileProblem::at(self.path, self.text, at, message);
        self.problems.push(TestFileProblem { suggestion: Some(hint), ..problem });
    }

    fn file(&mut self, root: &YamlNode) -> Option<TestFile> {
        let members = self.members(root, &[&keys::FILE])?;
        let tests = match members.get("tests") {
            Some(node) => self.list(node, Self::test),
            None => {
                self.problem(members.at, "`tests` is missing: a test file has a list of tests");
                Vec::new()
            }
        };
        let at = members.get("tests").map_or(members.at, |node| node.at);
        if tests.is_empty() && self.problems.is_empty() {
            self.problem(at, "there are no tests in `tests`");
        }
        let mut names = HashSet::new();
        for test in &tests {
            if !names.insert(test.name.as_str()) {
                self.problem(test.at, format!("another test of this file is named `{}`", test.name));
            }
        }
        Some(TestFile {
            path: self.path.to_owned(),
            name: self.optional(&members, "name", Self::text_of),
            server: members.get("server").and_then(|node| self.server(node)),
            eras: members.get("eras").and_then(|node| self.eras(node)),
            timeout: self.optional(&members, "timeout", Self::duration),
            start_timeout: self.optional(&members, "start_timeout", Self::duration),
            fixtures: self.texts(&members, "fixtures").into_iter().map(PathBuf::from).collect(),
            vars: self.vars(&members),
            answers: members.get("answers").and_then(|node| self.answers(node)).unwrap_or_default(),
            capabilities: None,
            log_level: members.get("log_level").and_then(|node| self.log_level(node)),
            violations: match self.choice(&members, "violations", &["fail", "ignore"]) {
                Some("ignore") => ViolationPolicy::Ignore,
                _ => ViolationPolicy::Fail,
            },
            redact: self.redactors(&members),
            only: self.only(&members),
            tags: self.texts(&members, "tags"),
            setup: self.steps(&members, "setup"),
            teardown: self.steps(&members, "teardown"),
            tests,
        })
    }

    fn server(&mut self, node: &YamlNode) -> Option<ServerSpec> {
        if let YamlValue::Text(name) = &node.value {
            return Some(ServerSpec::Configured(name.clone()));
        }
        let members = self.members(node, &[&keys::SERVER])?;
        let pairs = |reader: &mut Self, name: &str| -> Vec<(String, String)> {
            let Some(node) = members.get(name) else { return Vec::new() };
            let Some(inner) = reader.any_members(node) else { return Vec::new() };
            inner
                .iter()
                .filter_map(|(key, value)| Some((key.name.clone(), reader.scalar_text(value)?)))
                .collect()
        };
        let (env, headers) = (pairs(self, "env"), pairs(self, "headers"));
        let command = self.optional(&members, "command", Self::text_of);
        let url = self.optional(&members, "url", Self::text_of);
        let refused: &[&str] = match (&command, &url) {
            (Some(_), Some(_)) => {
                self.problem(node.at, "a server has either `command` or `url`, not both");
                return None;
            }
            (None, None) => {
                self.problem(node.at, "a server needs `command` or `url`");
                return None;
            }
            (Some(_), None) => &["headers", "transport"],
            (None, Some(_)) => &["args", "env", "cwd", "inherit_env"],
        };
        for name in refused {
            if let Some((key, _)) = members.entry(name) {
                let kind = if command.is_some() { "a command" } else { "a URL" };
                self.problem(key.at, format!("`{name}` has no meaning for {kind}"));
            }
        }
        if let Some(program) = command {
            let args = match members.get("args") {
                Some(node) => self.list(node, Self::scalar_text),
                None => Vec::new(),
            };
            let cwd = self.optional(&members, "cwd", Self::text_of);
            let inherit = match self.flag(&members, "inherit_env") {
                Some(true) => EnvInheritance::Everything,
                _ => EnvInheritance::AllowList,
            };
            return Some(ServerSpec::Command { program, args, env, cwd, inherit });
        }
        let sse = self.choice(&members, "transport", &["http", "sse"]) == Some("sse");
        Some(ServerSpec::Url { url: url?, headers, sse })
    }

    fn eras(&mut self, node: &YamlNode) -> Option<Vec<Era>> {
        let mut eras = self.list(node, Self::era);
        eras.dedup();
        if eras.is_empty() {
            self.problem(node.at, "`eras` needs at least one of `legacy` and `modern`");
        }
        Some(eras).filter(|eras| !eras.is_empty())
    }

    fn era(&mut self, node: &YamlNode) -> Option<Era> {
        match self.choice_of(node, &keys::ERAS)? {
            "legacy" => Some(Era::Legacy),
            _ => Some(Era::Modern),
        }
    }

    pub(super) fn log_level(&mut self, node: &YamlNode) -> Option<LogLevel> {
        let level = self.choice_of(node, &keys::LEVELS)?;
        serde_json::from_value(json!(level)).ok()
    }

    fn vars(&mut self, members: &Members<'_>) -> Map<String, Value> {
        let Some(node) = members.get("vars") else { return Map::new() };
        let Some(inner) = self.any_members(node) else { return Map::new() };
        for (key, _) in inner.iter() {
            self.check_variable_name(&key.name, key.at);
        }
        inner.iter().map(|(key, value)| (key.name.clone(), value.to_json())).collect()
    }

    pub(super) fn check_variable_name(&mut self, name: &str, at: FilePosition) {
        let first = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let is_name =
            first && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-.".contains(letter));
        if !is_name {
            self.problem(at, format!("`{name}` is not a name of a variable: use letters, digits and `_`"));
        }
    }

    fn answers(&mut self, node: &YamlNode) -> Option<ScriptedAnswers> {
        let members = self.members(node, &[&keys::ANSWERS])?;
        let elicitation =
            members.get("elicitation").map(|node| self.answer_sequence(node, Self::elicitation_answer));
        let sampling = members.get("sampling").map(|node| self.answer_sequence(node, Self::sampling_answer));
        let roots = members.get("roots").map(|node| {
            let roots: Vec<Value> =
                self.list(node, Self::text_of).into_iter().map(|uri| json!({"uri": uri})).collect();
            json!({"roots": roots})
        });
        Some(ScriptedAnswers {
            elicitation: elicitation.unwrap_or_default(),
            sampling: sampling.unwrap_or_default(),
            roots,
        })
    }

    fn answer_sequence(
        &mut self,
        node: &YamlNode,
        one: fn(&mut Self, &YamlNode) -> Option<Value>,
    ) -> AnswerSequence {
        match &node.value {
            YamlValue::List(items) => {
                AnswerSequence::InOrder(items.iter().filter_map(|item| one(self, item)).collect())
            }
            _ => one(self, node).map_or(AnswerSequence::None, AnswerSequence::Always),
        }
    }

    fn elicitation_answer(&mut self, node: &YamlNode) -> Option<Value> {
        match &node.value {
            YamlValue::Text(action) if ["accept", "decline", "cancel"].contains(&action.as_str()) => {
                Some(json!({"action": action}))
            }
            YamlValue::Map(members) if members.len() == 1 && members[0].0.name == "accept" => {
                Some(json!({"action": "accept", "content": members[0].1.to_json()}))
            }
            _ => {
                let message = "expected `accept: {field: value}`, `decline` or `cancel`";
                self.problem(node.at, message);
                None
            }
        }
    }

    fn sampling_answer(&mut self, node: &YamlNode) -> Option<Value> {
        let (text, model, stop) = match &node.value {
            YamlValue::Text(text) => (text.clone(), None, None),
            _ => {
                let members = self.members(node, &[&keys::SAMPLING])?;
                let text = self.required(&members, "text")?;
                let model = self.optional(&members, "model", Self::text_of);
                (text, model, self.optional(&members, "stop_reason", Self::text_of))
            }
        };
        Some(json!({
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": model.as_deref().unwrap_or("scripted"),
            "stopReason": stop.as_deref().unwrap_or("endTurn"),
        }))
    }

    pub(super) fn redactors(&mut self, members: &Members<'_>) -> Vec<Redactor> {
        match members.get("redact") {
            Some(node) => self.list(node, Self::redactor),
            None => Vec::new(),
        }
    }

    fn redactor(&mut self, node: &YamlNode) -> Option<Redactor> {
        let members = self.members(node, &[&keys::REDACT])?;
        let replacement =
            self.optional(&members, "with", Self::text_of).unwrap_or_else(|| REDACTED.to_owned());
        let target = match (members.get("jsonpath"), members.get("matches")) {
            (Some(path), None) => RedactionTarget::Path(self.json_path(path)?),
            (None, Some(pattern)) => RedactionTarget::Pattern(self.pattern(pattern)?),
            _ => {
                self.problem(node.at, "a redaction has either `jsonpath` or `matches`");
                return None;
            }
        };
        Some(Redactor { target, replacement })
    }

    fn only(&mut self, members: &Members<'_>) -> RunCondition {
        let Some(node) = members.get("only") else { return RunCondition::default() };
        let Some(members) = self.members(node, &[&keys::ONLY]) else { return RunCondition::default() };
        RunCondition {
            os: self.texts(&members, "os"),
            era: members.get("era").and_then(|node| self.era(node)),
            env: self.texts(&members, "env"),
        }
    }

    fn test(&mut self, node: &YamlNode) -> Option<TestCase> {
        let members = self.members(node, &[&keys::TEST, &keys::STEP])?;
        let name = self.required(&members, "name");
        if name.as_deref().is_some_and(|name| name.trim().is_empty() || name.contains(['\n', '\r'])) {
            self.problem(node.at, "the name of a test is one line of text");
        }
        let inline: Vec<&YamlKey> = members
            .iter()
            .map(|(key, _)| key)
            .filter(|key| keys::TEST.keys.iter().all(|known| known.name != key.name))
            .collect();
        let steps = match (members.get("steps"), inline.first()) {
            (Some(_), Some(key)) => {
                let message = format!("`{}` belongs to a step: move it into `steps`", key.name);
                self.problem(key.at, message);
                Vec::new()
            }
            (Some(steps), None) => {
                let steps_of_list = self.list(steps, Self::step);
                if matches!(&steps.value, YamlValue::List(items) if items.is_empty()) {
                    self.problem(steps.at, "`steps` is empty");
                }
                steps_of_list
            }
            (None, _) => {
                // The time limit of an inline step is that of its test.
                self.step_members(&members)
                    .map(|step| TestStep { timeout: None, ..step })
                    .into_iter()
                    .collect()
            }
        };
        let skip = members.get("skip").and_then(|node| match &node.value {
            YamlValue::Flag(true) => Some("skipped in the file".to_owned()),
            YamlValue::Flag(false) => None,
            _ => self.text_of(node),
        });
        Some(TestCase {
            name: name?,
            at: node.at,
            isolate: self.flag(&members, "isolate").unwrap_or_default()
                // A test that changes its connection must not affect others.
                || steps.iter().any(|step| matches!(step.action, StepAction::Reconnect)),
            skip,
            only: self.only(&members),
            tags: self.texts(&members, "tags"),
            timeout: self.optional(&members, "timeout", Self::duration),
            vars: self.vars(&members),
            answers: members.get("answers").and_then(|node| self.answers(node)),
            redact: self.redactors(&members),
            steps,
        })
    }

    fn steps(&mut self, members: &Members<'_>, name: &str) -> Vec<TestStep> {
        match members.get(name) {
            Some(node) => self.list(node, Self::step),
            None => Vec::new(),
        }
    }
}
