//! What an operation answers: the best of its good responses, as a schema whose root is an object.

use super::bank::{Key, value_at};
use super::body::rank;
use super::draft::{Draft, Fields, fields, object};
use super::schema::{Direction, Schemas};
use super::spot::{At, Found, follow};
use crate::document::{Members, Node, Target};
use crate::operation::Encoding;

/// The schema of an answer, before it is packed.
#[derive(Debug)]
pub(super) struct Answer<'d> {
    pub(super) root: Fields<'d>,
    pub(super) needs: Vec<Key>,
    /// Whether the answer is put into `{"result": …}`.
    pub(super) wrapped: bool,
}

impl<'d> Schemas<'d> {
    /// All responses of an operation, each followed to where it really is.
    pub(super) fn responses(&mut self, operation: &'d Members, at: &At<'_>) -> Vec<(&'d str, Found<'d>)> {
        let here = at.key("responses");
        match operation.get("responses") {
            Some(Node::Object(responses)) => responses
                .iter()
                .filter(|(status, _)| !status.starts_with("x-"))
                .filter_map(|(status, value)| {
                    let found =
                        follow(self.document, &mut self.report, value, &here.key(status), "a response")?;
                    Some((status, found))
                })
                .collect(),
            None | Some(Node::Null) => Vec::new(),
            Some(other) => {
                let message = format!("`responses` is {}; they were left out", crate::document::kind(other));
                self.report.warn(&here, "wrong-type", message);
                Vec::new()
            }
        }
    }

    /// The schema of the best good response that is JSON.
    pub(super) fn answer(
        &mut self,
        responses: &[(&'d str, Found<'d>)],
        produces: &[String],
    ) -> Option<Answer<'d>> {
        let mut good: Vec<&(&str, Found<'_>)> =
            responses.iter().filter(|(status, _)| is_good(status)).collect();
        good.sort_by_key(|(status, _)| order(status));
        if good.is_empty() && responses.len() == 1 {
            good.extend(responses.iter().filter(|(status, _)| *status == "default"));
        }
        let described: Vec<Target> =
            good.iter().filter_map(|(_, response)| json_schema(response, produces)).collect();
        let best = described.first()?;
        let value = value_at(self.document, best)?;
        let differs = |other: &Target| value_at(self.document, other) != Some(value);
        if described.iter().any(differs) {
            let message = "good responses differ; the output schema is that of the first of them";
            self.report.note(&At::of(best), "one-of-several", message);
        }
        if value.is_blank() || *value == Node::Bool(true) {
            return None;
        }
        let before = std::mem::take(&mut self.needs);
        let answer = self.rooted(best);
        let needs = std::mem::replace(&mut self.needs, before);
        let (mut root, wrapped) = answer?;
        let mut whole = fields([("$schema", super::DRAFT.into()), ("type", "object".into())]);
        root.remove("type");
        for (key, value) in root {
            whole.insert(key, value);
        }
        Some(Answer { root: whole, needs, wrapped })
    }

    /// The schema with an object at its root: as it is, or as the one property of such an object.
    fn rooted(&mut self, target: &Target) -> Option<(Fields<'d>, bool)> {
        let value = value_at(self.document, target)?;
        if self.is_object(value, target.part, 16) {
            let converted = match value.get("$ref").and_then(Node::as_str) {
                // A root that is a reference would not be an object at first sight.
                Some(reference) if value.as_object().is_some_and(|members| members.len() == 1) => {
                    let key = self.bank.look_up(self.document, target.part, reference).ok()?;
                    let piece = self.piece(key, Direction::Output);
                    self.needs.extend(piece.needs.iter().copied());
                    piece.value.clone()
                }
                _ => self.inner(value, &At::of(target), Direction::Output),
            };
            if let Draft::Object(mut root) = converted
                && root.get("type").is_none_or(|kind| kind.as_str() == Some("object"))
            {
                if let Some(reference) = root.remove("$ref") {
                    root.put("allOf", vec![object([("$ref", reference)])]);
                }
                return Some((root, false));
            }
        }
        let converted = self.inner(value, &At::of(target), Direction::Output);
        if converted.is_anything() {
            return None;
        }
        let properties = object([("result", converted)]);
        Some((fields([("properties", properties), ("required", Draft::texts(["result"]))]), true))
    }

    /// Whether every value that a schema allows is an object.
    fn is_object(&mut self, value: &Node, part: usize, hops: usize) -> bool {
        let Some(members) = value.as_object() else { return false };
        let nullable =
            ["nullable", "x-nullable"].iter().any(|key| members.get(key) == Some(&Node::Bool(true)));
        if hops == 0 || nullable {
            return false;
        }
        if let Some(reference) = members.get("$ref").and_then(Node::as_str) {
            let Ok(key) = self.bank.look_up(self.document, part, reference) else { return false };
            let (found, part) = (self.bank.value(key), self.bank.part(key));
            return found.is_some_and(|found| self.is_object(found, part, hops - 1));
        }
        match members.get("type") {
            Some(Node::String(kind)) => return &**kind == "object",
            Some(Node::Array(kinds)) => {
                return matches!(kinds.as_slice(), [Node::String(kind)] if &**kind == "object");
            }
            Some(_) => return false,
            None => {}
        }
        if members.get("properties").is_some_and(Node::is_object) {
            return true;
        }
        if let Some(Node::Array(branches)) = members.get("allOf")
            && branches.iter().any(|branch| self.is_object(branch, part, hops - 1))
        {
            return true;
        }
        ["oneOf", "anyOf"].iter().any(|keyword| {
            let branches = members.get(keyword).and_then(Node::as_array);
            branches.is_some_and(|branches| {
                !branches.is_empty() && branches.iter().all(|branch| self.is_object(branch, part, hops - 1))
            })
        })
    }
}

pub(super) fn is_good(status: &str) -> bool {
    status.starts_with('2') && status.len() == 3
}

/// 200 before 201 before the others, and `2XX` last.
fn order(status: &str) -> u16 {
    status.parse().unwrap_or(300)
}

/// Where the schema of a response is, if it is JSON.
fn json_schema(response: &Found<'_>, produces: &[String]) -> Option<Target> {
    let at = At::of(&response.target);
    if response.members.contains_key("schema") {
        let speaks_json = produces.is_empty() || produces.iter().any(|media_type| is_json(media_type));
        let kind = response.members.get("schema").and_then(|schema| schema.get("type"));
        let file = kind.and_then(Node::as_str) == Some("file");
        return (speaks_json && !file).then(|| at.key("schema").target());
    }
    let Some(Node::Object(content)) = response.members.get("content") else { return None };
    let json = content
        .iter()
        .filter(|(media_type, described)| is_json(media_type) && described.get("schema").is_some());
    let (media_type, _) = json.min_by_key(|(media_type, _)| rank(media_type).0)?;
    let here = at.key("content");
    let here = here.key(media_type);
    Some(here.key("schema").target())
}

fn is_json(media_type: &str) -> bool {
    matches!(rank(media_type), (0..=2, Some(Encoding::Json)))
}

/// What to ask for: JSON first, then the rest in the document's order.
pub(super) fn accepted(responses: &[(&str, Found<'_>)], produces: &[String]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (status, response) in responses {
        let Some(Node::Object(content)) = response.members.get("content") else { continue };
        if is_good(status) || *status == "default" {
            found.extend(content.keys().filter(|media_type| media_type.contains('/')).map(str::to_owned));
        }
    }
    found.extend(produces.iter().cloned());
    let mut seen = std::collections::HashSet::new();
    found.retain(|media_type| seen.insert(media_type.clone()));
    found.sort_by_key(|media_type| !is_json(media_type));
    found
}
