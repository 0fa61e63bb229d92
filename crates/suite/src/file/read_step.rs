//! Reads the steps of a test.

use std::time::Duration;

use serde_json::{Value, json};
use toolyard_upstream::ServerListKind;

use super::keys;
use super::read::{Members, TestFileReader};
use super::yaml::{YamlNode, YamlValue};
use super::{CaptureSource, CompletionStep, CompletionTargetSpec, StepAction, TestStep, ValueCapture};

/// The keys that say what a step does.
const ACTIONS: [&str; 10] =
    ["call", "read", "prompt", "complete", "list", "subscribe", "unsubscribe", "wait", "cancel", "reconnect"];
/// How long a call runs before it is canceled.
const CANCEL_AFTER: Duration = Duration::from_millis(100);

impl TestFileReader<'_> {
    pub(super) fn step(&mut self, node: &YamlNode) -> Option<TestStep> {
        let members = self.members(node, &[&keys::STEP])?;
        self.step_members(&members)
    }

    /// Reads a step whose keys were checked.
    pub(super) fn step_members(&mut self, members: &Members<'_>) -> Option<TestStep> {
        let actions: Vec<_> =
            members.iter().filter(|(key, _)| ACTIONS.contains(&key.name.as_str())).collect();
        let (key, node) = match actions.as_slice() {
            [only] => *only,
            [] => {
                self.problem(members.at, format!("the step does nothing: add one of {}", ACTIONS.join(", ")));
                return None;
            }
            [_, (second, _), ..] => {
                self.problem(second.at, "a step does one thing: use `steps` for several");
                return None;
            }
        };
        let action = self.action(&key.name, node, members);
        if let Some((arguments, _)) = members.entry("arguments")
            && !["call", "prompt"].contains(&key.name.as_str())
        {
            self.problem(arguments.at, format!("`arguments` has no meaning for `{}`", key.name));
        }
        let expect = members.get("expect").and_then(|node| self.expectations(node));
        let timeout = self.optional(members, "timeout", Self::duration);
        let captures = members.get("capture").map(|node| self.captures(node)).unwrap_or_default();
        Some(TestStep { at: key.at, action: action?, timeout, expect: expect.unwrap_or_default(), captures })
    }

    fn action(&mut self, name: &str, node: &YamlNode, members: &Members<'_>) -> Option<StepAction> {
        match name {
            "call" => {
                Some(StepAction::Call { tool: self.text_of(node)?, arguments: self.arguments(members)? })
            }
            "read" => Some(StepAction::Read { uri: self.text_of(node)? }),
            "prompt" => {
                Some(StepAction::Prompt { name: self.text_of(node)?, arguments: self.arguments(members)? })
            }
            "complete" => self.completion(node).map(StepAction::Complete),
            "list" => Some(StepAction::List(match self.choice_of(node, &keys::LISTS)? {
                "tools" => ServerListKind::Tools,
                "resources" => ServerListKind::Resources,
                "templates" => ServerListKind::Templates,
                _ => ServerListKind::Prompts,
            })),
            "subscribe" => Some(StepAction::Subscribe {
                uris: match &node.value {
                    YamlValue::Flag(true) => Vec::new(),
                    _ => self.texts_of(node),
                },
            }),
            "unsubscribe" => Some(StepAction::Unsubscribe { uris: self.texts_of(node) }),
            "wait" => {
                let wait = self.members(node, &[&keys::WAIT])?;
                let method = self.required(&wait, "notification")?;
                Some(StepAction::Wait { method, params: wait.get("params").map(YamlNode::to_json) })
            }
            "cancel" => {
                let cancel = self.members(node, &[&keys::CANCEL])?;
                let tool = self.required(&cancel, "call");
                let arguments = self.arguments(&cancel);
                let after = self.optional(&cancel, "after", Self::duration).unwrap_or(CANCEL_AFTER);
                Some(StepAction::Cancel { tool: tool?, arguments: arguments?, after })
            }
            _ => match &node.value {
                YamlValue::Flag(true) => Some(StepAction::Reconnect),
                _ => {
                    self.problem(node.at, "expected `reconnect: true`");
                    None
                }
            },
        }
    }

    /// Returns the arguments, or an empty object.
    fn arguments(&mut self, members: &Members<'_>) -> Option<Value> {
        let Some(node) = members.get("arguments") else { return Some(json!({})) };
        match &node.value {
            YamlValue::Null => Some(json!({})),
            _ => self.any_members(node).map(|_| node.to_json()),
        }
    }

    fn completion(&mut self, node: &YamlNode) -> Option<CompletionStep> {
        let members = self.members(node, &[&keys::COMPLETE])?;
        let argument = self.required(&members, "argument");
        let prompt = self.optional(&members, "prompt", Self::text_of);
        let template = self.optional(&members, "template", Self::text_of);
        let reference = match (prompt, template) {
            (Some(prompt), None) => CompletionTargetSpec::Prompt(prompt),
            (None, Some(template)) => CompletionTargetSpec::Template(template),
            _ => {
                self.problem(node.at, "`complete` needs either `prompt` or `template`");
                return None;
            }
        };
        let context = members.get("context").and_then(|node| self.any_members(node).map(|_| node.to_json()));
        Some(CompletionStep {
            reference,
            argument: argument?,
            value: self.optional(&members, "value", Self::text_of).unwrap_or_default(),
            context,
        })
    }

    fn captures(&mut self, node: &YamlNode) -> Vec<ValueCapture> {
        let Some(members) = self.any_members(node) else { return Vec::new() };
        let mut captures = Vec::new();
        for (key, value) in members.iter() {
            self.check_variable_name(&key.name, key.at);
            let source = match &value.value {
                YamlValue::Text(_) => self.json_path(value).map(CaptureSource::Result),
                _ => self.capture_source(value),
            };
            captures.extend(source.map(|source| ValueCapture { name: key.name.clone(), at: key.at, source }));
        }
        captures
    }

    fn capture_source(&mut self, node: &YamlNode) -> Option<CaptureSource> {
        let members = self.members(node, &[&keys::CAPTURE])?;
        match (members.get("json"), members.get("matches")) {
            (Some(path), None) => self.json_path(path).map(CaptureSource::TextJson),
            (None, Some(pattern)) => self.pattern(pattern).map(CaptureSource::Text),
            _ => {
                self.problem(node.at, "a capture is a JSONPath, or has either `json` or `matches`");
                None
            }
        }
    }
}
