//! Reads the assertions of a step.

use super::keys;
use super::read::{Members, TestFileReader};
use super::units::parse_size;
use super::yaml::{FilePosition, YamlNode, YamlValue};
use super::{FailureExpectation, StepExpectations};
use crate::expect::{
    Condition, ConditionKind, CountBounds, Expectation, ExpectationCheck, FileCheck, JsonType,
    LogExpectation, Matcher, NotificationExpectation, ProgressExpectation, SortOrder, ValueTarget,
};
use crate::snapshot::SnapshotRequest;

impl TestFileReader<'_> {
    pub(super) fn expectations(&mut self, node: &YamlNode) -> Option<StepExpectations> {
        let members = self.members(node, &[&keys::EXPECT])?;
        let mut expect = StepExpectations::default();
        for (key, value) in members.iter() {
            let check = |check| Expectation { at: key.at, label: key.name.clone(), check };
            let target = |target| move |matcher| ExpectationCheck::Value { target, matcher };
            match key.name.as_str() {
                "isError" => {
                    expect.failure = match self.flag(&members, "isError") {
                        Some(true) => FailureExpectation::ToolError,
                        Some(false) | None => expect.failure,
                    };
                }
                "error" => self.error(value, key.at, &mut expect),
                "text" => self.push(&mut expect, value, key.at, "text", target(ValueTarget::Text)),
                "json" => self.push(&mut expect, value, key.at, "json", target(ValueTarget::Json)),
                "structured" => {
                    self.push(&mut expect, value, key.at, "structured", target(ValueTarget::Structured));
                }
                "result" => self.push(&mut expect, value, key.at, "result", target(ValueTarget::Result)),
                "names" => self.push(&mut expect, value, key.at, "names", target(ValueTarget::Names)),
                "questions" => {
                    self.push(&mut expect, value, key.at, "questions", target(ValueTarget::Questions));
                }
                "stderr" => self.push(&mut expect, value, key.at, "stderr", target(ValueTarget::Stderr)),
                "jsonpath" => {
                    for (path, matcher) in self.paths(value) {
                        let at = path.1;
                        let label = path.0.clone();
                        let check = ExpectationCheck::Path { path: path.0, matcher };
                        expect.items.push(Expectation { at, label, check });
                    }
                }
                "output_schema" => {
                    expect.skip_output_schema = self.flag(&members, "output_schema") == Some(false);
                }
                "progress" => {
                    if let Some(progress) = self.progress(value) {
                        expect.items.push(check(ExpectationCheck::Progress(progress)));
                    }
                }
                "notifications" => {
                    for notification in self.list(value, Self::notification) {
                        let at = notification.at;
                        let label = format!("notifications: {}", notification.method);
                        let check = ExpectationCheck::Notification(notification);
                        expect.items.push(Expectation { at, label, check });
                    }
                }
                "log" => {
                    for log in self.list(value, Self::log_expectation) {
                        let at = log.at;
                        let check = ExpectationCheck::Log(log);
                        expect.items.push(Expectation { at, label: "log".to_owned(), check });
                    }
                }
                "latency" => {
                    if let Some(most) = self.duration(value) {
                        expect.items.push(check(ExpectationCheck::Latency(most)));
                    }
                }
                "size" => {
                    let size = self.scalar_text(value).as_deref().and_then(parse_size);
                    match size {
                        Some(most) => expect.items.push(check(ExpectationCheck::Size(most))),
                        None => self.problem(value.at, "expected a number of bytes, such as 512 or 10kB"),
                    }
                }
                "files" => self.files(value, &mut expect),
                "snapshot" => expect.snapshot = self.snapshot(value, key.at),
                _ => {}
            }
        }
        Some(expect)
    }

    fn push(
        &mut self,
        expect: &mut StepExpectations,
        node: &YamlNode,
        at: FilePosition,
        label: &str,
        check: impl Fn(Matcher) -> ExpectationCheck,
    ) {
        if let Some(matcher) = self.matcher(node) {
            expect.items.push(Expectation { at, label: label.to_owned(), check: check(matcher) });
        }
    }

    fn error(&mut self, node: &YamlNode, at: FilePosition, expect: &mut StepExpectations) {
        match &node.value {
            YamlValue::Flag(true) => expect.failure = FailureExpectation::ProtocolError,
            YamlValue::Flag(false) => {}
            _ => {
                let Some(members) = self.members(node, &[&keys::ERROR]) else { return };
                expect.failure = FailureExpectation::ProtocolError;
                if let Some(code) = members.get("code") {
                    match self.number(code) {
                        Some(number) if number.fract() == 0.0 => expect.items.push(Expectation {
                            at: code.at,
                            label: "error code".to_owned(),
                            check: ExpectationCheck::ErrorCode(number as i64),
                        }),
                        Some(_) => self.problem(code.at, "an error code is a whole number"),
                        None => {}
                    }
                }
                for (name, target) in
                    [("message", ValueTarget::ErrorMessage), ("data", ValueTarget::ErrorData)]
                {
                    if let Some(value) = members.get(name) {
                        let label = format!("error {name}");
                        self.push(expect, value, at.max(value.at), &label, move |matcher| {
                            ExpectationCheck::Value { target, matcher }
                        });
                    }
                }
            }
        }
    }

    fn paths(&mut self, node: &YamlNode) -> Vec<((String, FilePosition), Matcher)> {
        let Some(members) = self.any_members(node) else { return Vec::new() };
        let mut paths = Vec::new();
        for (key, value) in members.iter() {
            let valid = self.check_json_path(&key.name, key.at);
            if let (true, Some(matcher)) = (valid, self.matcher(value)) {
                paths.push(((key.name.clone(), key.at), matcher));
            }
        }
        paths
    }

    /// Reads conditions on a value. A value that is not a map must be equal.
    pub(super) fn matcher(&mut self, node: &YamlNode) -> Option<Matcher> {
        let YamlValue::Map(entries) = &node.value else {
            let kind = ConditionKind::Equals(node.to_json());
            return Some(Matcher { conditions: vec![Condition { at: node.at, kind }] });
        };
        let known = |name: &str| keys::MATCH.keys.iter().any(|key| key.name == name);
        if entries.is_empty() || !entries.iter().any(|(key, _)| known(&key.name)) {
            let message = "this map has no condition".to_owned();
            let hint = "to compare with an object, write `equals: {…}`".to_owned();
            self.problem_with_hint(node.at, message, hint);
            return None;
        }
        let members = self.members(node, &[&keys::MATCH])?;
        let mut conditions = Vec::new();
        for (key, value) in members.iter() {
            let kind = self.condition(&key.name, value, &members);
            conditions.extend(kind.map(|kind| Condition { at: key.at, kind }));
        }
        Some(Matcher { conditions })
    }

    fn condition(&mut self, name: &str, node: &YamlNode, members: &Members<'_>) -> Option<ConditionKind> {
        let several = |node: &YamlNode| match &node.value {
            YamlValue::List(items) => items.iter().map(YamlNode::to_json).collect(),
            _ => vec![node.to_json()],
        };
        Some(match name {
            "equals" => ConditionKind::Equals(node.to_json()),
            "not_equals" => ConditionKind::NotEquals(node.to_json()),
            "one_of" => ConditionKind::OneOf(self.list(node, |_, item| Some(item.to_json()))),
            "contains" => ConditionKind::Contains(several(node)),
            "not_contains" => ConditionKind::NotContains(several(node)),
            "matches" => ConditionKind::Matches(self.patterns(node)),
            "not_matches" => ConditionKind::NotMatches(self.patterns(node)),
            "in_order" => ConditionKind::InOrder(self.list(node, |_, item| Some(item.to_json()))),
            "type" => ConditionKind::Type(JsonType::parse(self.choice_of(node, &keys::KINDS)?)?),
            "length" => ConditionKind::Length(self.bounds(node)?),
            "min" => ConditionKind::Min(self.number(node)?),
            "max" => ConditionKind::Max(self.number(node)?),
            "order" => ConditionKind::Order(match self.choice_of(node, &["ascending", "descending"])? {
                "ascending" => SortOrder::Ascending,
                _ => SortOrder::Descending,
            }),
            "schema" => ConditionKind::Schema(node.to_json()),
            "exists" => ConditionKind::Exists(self.flag(members, "exists")?),
            "jsonpath" => {
                let paths = self.paths(node).into_iter();
                ConditionKind::Paths(paths.map(|((path, _), matcher)| (path, matcher)).collect())
            }
            _ => return None,
        })
    }

    fn patterns(&mut self, node: &YamlNode) -> Vec<String> {
        match &node.value {
            YamlValue::List(_) => self.list(node, Self::pattern),
            _ => self.pattern(node).into_iter().collect(),
        }
    }

    fn bounds(&mut self, node: &YamlNode) -> Option<CountBounds> {
        let YamlValue::Map(_) = &node.value else { return self.count(node).map(CountBounds::exactly) };
        let members = self.members(node, &[&keys::BOUNDS])?;
        let min = self.optional(&members, "min", Self::count);
        Some(CountBounds { min, max: self.optional(&members, "max", Self::count) })
    }

    fn progress(&mut self, node: &YamlNode) -> Option<ProgressExpectation> {
        let members = self.members(node, &[&keys::PROGRESS])?;
        let count = self.optional(&members, "count", Self::count);
        let bounds = match count {
            Some(count) => CountBounds::exactly(count),
            None => CountBounds {
                min: self.optional(&members, "min", Self::count),
                max: self.optional(&members, "max", Self::count),
            },
        };
        Some(ProgressExpectation {
            bounds,
            increasing: self.flag(&members, "increasing").unwrap_or(true),
            last: self.optional(&members, "last", Self::number),
            messages: members.get("messages").and_then(|node| self.matcher(node)),
        })
    }

    fn notification(&mut self, node: &YamlNode) -> Option<NotificationExpectation> {
        let members = self.members(node, &[&keys::NOTIFICATION])?;
        let method = self.required(&members, "method");
        Some(NotificationExpectation {
            at: node.at,
            method: method?,
            params: members.get("params").and_then(|node| self.matcher(node)),
            bounds: self.occurrences(&members),
        })
    }

    fn log_expectation(&mut self, node: &YamlNode) -> Option<LogExpectation> {
        let members = self.members(node, &[&keys::LOG])?;
        Some(LogExpectation {
            at: node.at,
            level: self.choice(&members, "level", &keys::LEVELS).map(str::to_owned),
            logger: self.optional(&members, "logger", Self::text_of),
            data: members.get("data").and_then(|node| self.matcher(node)),
            bounds: self.occurrences(&members),
        })
    }

    fn occurrences(&mut self, members: &Members<'_>) -> CountBounds {
        let bounds = members.get("count").and_then(|node| self.bounds(node));
        bounds.unwrap_or(CountBounds { min: Some(1), max: None })
    }

    fn files(&mut self, node: &YamlNode, expect: &mut StepExpectations) {
        let Some(files) = self.any_members(node) else { return };
        for (path, value) in files.iter() {
            let Some(members) = self.members(value, &[&keys::FILES]) else { continue };
            let label = format!("file {}", path.name);
            let mut add = |at, check| {
                let check = ExpectationCheck::File { path: path.name.clone(), check };
                expect.items.push(Expectation { at, label: label.clone(), check });
            };
            match self.flag(&members, "exists") {
                Some(false) => add(path.at, FileCheck::Missing),
                _ => add(path.at, FileCheck::Exists),
            }
            if let Some(matcher) = members.get("content").and_then(|node| self.matcher(node)) {
                add(path.at, FileCheck::Text(matcher));
            }
            if let Some(matcher) = members.get("json").and_then(|node| self.matcher(node)) {
                add(path.at, FileCheck::Json(matcher));
            }
        }
    }

    fn snapshot(&mut self, node: &YamlNode, at: FilePosition) -> Option<SnapshotRequest> {
        match &node.value {
            YamlValue::Flag(false) => None,
            YamlValue::Flag(true) => Some(SnapshotRequest { at, name: None, redact: Vec::new() }),
            YamlValue::Map(_) => {
                let members = self.members(node, &[&keys::SNAPSHOT])?;
                let name = self.optional(&members, "name", Self::text_of);
                Some(SnapshotRequest { at, name, redact: self.redactors(&members) })
            }
            _ => Some(SnapshotRequest { at, name: Some(self.text_of(node)?), redact: Vec::new() }),
        }
    }
}
