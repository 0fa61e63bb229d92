//! Reads single values of a test file and reports those of the wrong type.

use std::time::Duration;

use regex::Regex;
use serde_json_path::JsonPath;
use toolyard_hub::nearest;

use super::keys::Section;
use super::read::{Members, TestFileReader};
use super::units::parse_duration;
use super::yaml::{FilePosition, YamlNode, YamlValue};

impl TestFileReader<'_> {
    /// Returns the members of a map that may have the keys of these sections.
    pub(super) fn members<'n>(
        &mut self,
        node: &'n YamlNode,
        sections: &[&'static Section],
    ) -> Option<Members<'n>> {
        let members = self.any_members(node)?;
        let known = || sections.iter().flat_map(|section| section.keys).map(|key| key.name);
        for (key, _) in members.iter() {
            if known().any(|known| known == key.name) {
                continue;
            }
            let message = format!("unknown key `{}`", key.name);
            let hint = match nearest(&key.name, known()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("the keys here are {}", known().collect::<Vec<_>>().join(", ")),
            };
            self.problem_with_hint(key.at, message, hint);
        }
        Some(members)
    }

    /// Returns the members of a map with any keys.
    pub(super) fn any_members<'n>(&mut self, node: &'n YamlNode) -> Option<Members<'n>> {
        match &node.value {
            YamlValue::Map(members) => Some(Members { at: node.at, members }),
            _ => {
                self.problem(node.at, format!("expected a map, found {}", node.type_name()));
                None
            }
        }
    }

    pub(super) fn list<T>(
        &mut self,
        node: &YamlNode,
        mut one: impl FnMut(&mut Self, &YamlNode) -> Option<T>,
    ) -> Vec<T> {
        match &node.value {
            YamlValue::List(items) => items.iter().filter_map(|item| one(self, item)).collect(),
            _ => {
                self.problem(node.at, format!("expected a list, found {}", node.type_name()));
                Vec::new()
            }
        }
    }

    /// Reads a list of texts that may be written as one text.
    pub(super) fn texts(&mut self, members: &Members<'_>, name: &str) -> Vec<String> {
        match members.get(name) {
            Some(node) => self.texts_of(node),
            None => Vec::new(),
        }
    }

    pub(super) fn texts_of(&mut self, node: &YamlNode) -> Vec<String> {
        match &node.value {
            YamlValue::List(_) => self.list(node, Self::scalar_text),
            _ => self.scalar_text(node).into_iter().collect(),
        }
    }

    pub(super) fn optional<T>(
        &mut self,
        members: &Members<'_>,
        name: &str,
        read: fn(&mut Self, &YamlNode) -> Option<T>,
    ) -> Option<T> {
        members.get(name).and_then(|node| read(self, node))
    }

    pub(super) fn required(&mut self, members: &Members<'_>, name: &str) -> Option<String> {
        match members.get(name) {
            Some(node) => self.scalar_text(node),
            None => {
                self.problem(members.at, format!("`{name}` is missing"));
                None
            }
        }
    }

    pub(super) fn text_of(&mut self, node: &YamlNode) -> Option<String> {
        self.scalar_text(node)
    }

    /// Reads a text. Numbers and flags are accepted as they are written in JSON.
    pub(super) fn scalar_text(&mut self, node: &YamlNode) -> Option<String> {
        match &node.value {
            YamlValue::Text(text) => Some(text.clone()),
            YamlValue::Number(number) => Some(number.to_string()),
            YamlValue::Flag(flag) => Some(flag.to_string()),
            _ => {
                self.problem(node.at, format!("expected a text, found {}", node.type_name()));
                None
            }
        }
    }

    pub(super) fn flag(&mut self, members: &Members<'_>, name: &str) -> Option<bool> {
        let node = members.get(name)?;
        match &node.value {
            YamlValue::Flag(flag) => Some(*flag),
            _ => {
                self.problem(node.at, format!("expected true or false, found {}", node.type_name()));
                None
            }
        }
    }

    pub(super) fn number(&mut self, node: &YamlNode) -> Option<f64> {
        match &node.value {
            YamlValue::Number(number) => number.as_f64(),
            _ => {
                self.problem(node.at, format!("expected a number, found {}", node.type_name()));
                None
            }
        }
    }

    pub(super) fn count(&mut self, node: &YamlNode) -> Option<usize> {
        let count = match &node.value {
            YamlValue::Number(number) => number.as_u64().and_then(|count| usize::try_from(count).ok()),
            _ => None,
        };
        if count.is_none() {
            self.problem(node.at, format!("expected a whole number, found {}", node.type_name()));
        }
        count
    }

    pub(super) fn duration(&mut self, node: &YamlNode) -> Option<Duration> {
        let text = match &node.value {
            YamlValue::Text(text) => Some(text.as_str()),
            _ => None,
        };
        let duration = text.and_then(parse_duration);
        if duration.is_none() {
            self.problem(node.at, "expected a duration with its unit, such as 500ms, 30s or 2m");
        }
        duration
    }

    pub(super) fn choice(
        &mut self,
        members: &Members<'_>,
        name: &str,
        choices: &'static [&'static str],
    ) -> Option<&'static str> {
        members.get(name).and_then(|node| self.choice_of(node, choices))
    }

    pub(super) fn choice_of(
        &mut self,
        node: &YamlNode,
        choices: &'static [&'static str],
    ) -> Option<&'static str> {
        let text = self.scalar_text(node)?;
        let chosen = choices.iter().find(|choice| **choice == text).copied();
        if chosen.is_none() {
            let message = format!("`{text}` is not one of {}", choices.join(", "));
            match nearest(&text, choices.iter().copied()) {
                Some(close) => self.problem_with_hint(node.at, message, format!("did you mean `{close}`?")),
                None => self.problem(node.at, message),
            }
        }
        chosen
    }

    /// Reads a regular expression. One with variables is compiled when they are known.
    pub(super) fn pattern(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.scalar_text(node)?;
        if !text.contains("${")
            && let Err(error) = Regex::new(&text)
        {
            let reason = error.to_string();
            let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
            self.problem(node.at, format!("invalid regular expression: {reason}"));
            return None;
        }
        Some(text)
    }

    pub(super) fn json_path(&mut self, node: &YamlNode) -> Option<String> {
        let text = self.scalar_text(node)?;
        self.check_json_path(&text, node.at).then_some(text)
    }

    pub(super) fn check_json_path(&mut self, text: &str, at: FilePosition) -> bool {
        if text.contains("${") {
            return true;
        }
        match JsonPath::parse(text) {
            Ok(_) => true,
            Err(error) => {
                let message =
                    format!("invalid JSONPath: {} at character {}", error.message(), error.position() + 1);
                self.problem(at, message);
                false
            }
        }
    }
}
