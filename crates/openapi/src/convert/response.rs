//! The output of an operation: all of its successful responses, as one schema with an object at its
//! root.

use super::body::rank_media_type;
use super::interner::{SchemaId, value_at};
use super::location::{ResolvedObject, SpecPath, resolve_object};
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode, fields, object};
use crate::document::{ReferenceTarget, SpecNode, SpecObject};
use crate::operation::{BodyEncoding, Method, ResponseRule, ResultWrapping};

/// The schema of a response, before it is bundled.
#[derive(Debug)]
pub(super) struct ResponseSchema<'d> {
    pub(super) root: SchemaFields<'d>,
    pub(super) needs: Vec<SchemaId>,
    pub(super) wrapping: ResultWrapping,
    pub(super) rules: Vec<ResponseRule>,
}

/// What the successful responses of an operation may contain.
#[derive(Debug, Default)]
struct SuccessResponses {
    /// The schemas of JSON bodies, without duplicates.
    json: Vec<ReferenceTarget>,
    rules: Vec<ResponseRule>,
    /// Whether a body may have another type than JSON.
    other: bool,
    /// Whether the body may be absent or any JSON value.
    unknown: bool,
}

impl<'d> SchemaConverter<'d> {
    /// Returns all responses of an operation, with references resolved.
    pub(super) fn responses(
        &mut self,
        operation: &'d SpecObject,
        at: &SpecPath<'_>,
    ) -> Vec<(&'d str, ResolvedObject<'d>)> {
        let location = at.key("responses");
        match operation.get("responses") {
            Some(SpecNode::Object(responses)) => responses
                .iter()
                .filter(|(status, _)| !status.starts_with("x-"))
                .filter_map(|(status, value)| {
                    let found = resolve_object(
                        self.document,
                        &mut self.report,
                        value,
                        &location.key(status),
                        "a response",
                    )?;
                    Some((status, found))
                })
                .collect(),
            None | Some(SpecNode::Null) => Vec::new(),
            Some(other) => {
                let message = format!("`responses` is {}; ignored", crate::document::describe_kind(other));
                self.report.warn(&location, "wrong-type", message);
                Vec::new()
            }
        }
    }

    /// Returns a schema that accepts every successful response. Returns `None` if one of them has
    /// no body or may be any JSON value: clients reject a result without structured content if its
    /// tool declares a schema.
    pub(super) fn response_schema(
        &mut self,
        method: &Method,
        responses: &[(&'d str, ResolvedObject<'d>)],
        produces: &[String],
    ) -> Option<ResponseSchema<'d>> {
        let successes = self.collect_success_responses(method, responses, produces);
        if successes.unknown || successes.json.is_empty() {
            return None;
        }
        let before = std::mem::take(&mut self.needs);
        let answer = match successes.json.as_slice() {
            [only] if !successes.other => self.object_root_schema(only),
            several => self.any_of_schema(several, successes.other),
        };
        let needs = std::mem::replace(&mut self.needs, before);
        let (mut root, wrapping) = answer?;
        let mut whole = any_object();
        root.remove("type");
        for (key, value) in root {
            whole.insert(key, value);
        }
        Some(ResponseSchema { root: whole, needs, wrapping, rules: successes.rules })
    }

    /// Returns a schema that accepts any object, for operations with a JSON response.
    pub(super) fn lenient_response_schema(
        &mut self,
        method: &Method,
        responses: &[(&'d str, ResolvedObject<'d>)],
        produces: &[String],
    ) -> Option<ResponseSchema<'d>> {
        let successes = self.collect_success_responses(method, responses, produces);
        if successes.json.is_empty() {
            return None;
        }
        Some(ResponseSchema {
            root: any_object(),
            needs: Vec::new(),
            wrapping: ResultWrapping::Others,
            rules: Vec::new(),
        })
    }

    fn collect_success_responses(
        &mut self,
        method: &Method,
        responses: &[(&'d str, ResolvedObject<'d>)],
        produces: &[String],
    ) -> SuccessResponses {
        let mut good: Vec<&(&str, ResolvedObject<'_>)> =
            responses.iter().filter(|(status, _)| is_success_status(status)).collect();
        good.sort_by_key(|(status, _)| status_sort_key(status));
        if good.is_empty() && responses.len() == 1 {
            good.extend(responses.iter().filter(|(status, _)| *status == "default"));
        }
        let mut found = SuccessResponses { unknown: *method == Method::Head, ..SuccessResponses::default() };
        for (status, response) in good {
            let bodies = body_kinds(response, produces);
            // These statuses never have a body, whatever the document says.
            found.unknown |= bodies.is_empty() || matches!(*status, "204" | "205");
            for body in bodies {
                match body {
                    ResponseBodyKind::Json(target) => self.add_json(status, target, &mut found),
                    ResponseBodyKind::AnyJson => found.unknown = true,
                    ResponseBodyKind::Other => found.other = true,
                }
            }
        }
        found
    }

    fn add_json(&self, status: &str, target: ReferenceTarget, found: &mut SuccessResponses) {
        let value = value_at(self.document, &target);
        let known =
            |other: &ReferenceTarget| other.part == target.part && value_at(self.document, other) == value;
        found.unknown |= value.is_none_or(|value| value.is_blank() || *value == SpecNode::Bool(true));
        let branch = found.json.iter().position(known).unwrap_or_else(|| {
            found.json.push(target.clone());
            found.json.len() - 1
        });
        let rule = ResponseRule { status: status.to_owned(), pointer: target.pointer, branch };
        if !found.rules.iter().any(|other| other.status == rule.status && other.branch == rule.branch) {
            found.rules.push(rule);
        }
    }

    /// Combines several kinds of responses. If all JSON responses are objects, they stay unchanged,
    /// and only text is wrapped in `{"result": …}`. Otherwise everything is wrapped.
    fn any_of_schema(
        &mut self,
        targets: &[ReferenceTarget],
        other: bool,
    ) -> Option<(SchemaFields<'d>, ResultWrapping)> {
        let mut objects = true;
        let mut branches = Vec::with_capacity(targets.len() + 1);
        for target in targets {
            let value = value_at(self.document, target)?;
            objects &= self.is_object(value, target.part, 16);
            let converted =
                self.convert_child_schema(value, &SpecPath::from_target(target), SchemaDirection::Output);
            if converted.is_anything() {
                return None;
            }
            branches.push(converted);
        }
        // Text is the result itself. Bytes are returned as a content block, so the schema cannot
        // describe them.
        let not_json = object([("type", SchemaNode::texts(["string", "null"]))]);
        if objects {
            if other {
                let properties = object([("result", not_json)]);
                branches.push(object([
                    ("type", "object".into()),
                    ("properties", properties),
                    ("required", SchemaNode::texts(["result"])),
                    ("additionalProperties", false.into()),
                ]));
            }
            let wrapping = if other { ResultWrapping::Others } else { ResultWrapping::Never };
            return Some((fields([("anyOf", branches.into())]), wrapping));
        }
        if other {
            branches.push(not_json);
        }
        let properties = object([("result", object([("anyOf", branches.into())]))]);
        Some((
            fields([("properties", properties), ("required", SchemaNode::texts(["result"]))]),
            ResultWrapping::Always,
        ))
    }

    /// Returns a schema with an object at its root: the schema itself, or an object with the schema
    /// as its only property.
    fn object_root_schema(&mut self, target: &ReferenceTarget) -> Option<(SchemaFields<'d>, ResultWrapping)> {
        let value = value_at(self.document, target)?;
        if self.is_object(value, target.part, 16) {
            let converted = match value.get("$ref").and_then(SpecNode::as_str) {
                // Clients expect `type: object` at the root, which a reference does not have.
                Some(reference) if value.as_object().is_some_and(|members| members.len() == 1) => {
                    let key = self.interner.look_up(self.document, target.part, reference).ok()?;
                    let piece = self.converted_schema(key, SchemaDirection::Output);
                    self.needs.extend(piece.needs.iter().copied());
                    piece.value.clone()
                }
                _ => {
                    self.convert_child_schema(value, &SpecPath::from_target(target), SchemaDirection::Output)
                }
            };
            if let SchemaNode::Object(mut root) = converted
                && root.get("type").is_none_or(|kind| kind.as_str() == Some("object"))
            {
                if let Some(reference) = root.remove("$ref") {
                    root.put("allOf", vec![object([("$ref", reference)])]);
                }
                return Some((root, ResultWrapping::Never));
            }
        }
        let converted =
            self.convert_child_schema(value, &SpecPath::from_target(target), SchemaDirection::Output);
        if converted.is_anything() {
            return None;
        }
        let properties = object([("result", converted)]);
        Some((
            fields([("properties", properties), ("required", SchemaNode::texts(["result"]))]),
            ResultWrapping::Always,
        ))
    }

    /// Whether a schema accepts only objects.
    fn is_object(&mut self, value: &SpecNode, part: usize, hops: usize) -> bool {
        let Some(members) = value.as_object() else { return false };
        let nullable =
            ["nullable", "x-nullable"].iter().any(|key| members.get(key) == Some(&SpecNode::Bool(true)));
        if hops == 0 || nullable {
            return false;
        }
        if let Some(reference) = members.get("$ref").and_then(SpecNode::as_str) {
            let Ok(key) = self.interner.look_up(self.document, part, reference) else { return false };
            let (found, part) = (self.interner.value(key), self.interner.part(key));
            return found.is_some_and(|found| self.is_object(found, part, hops - 1));
        }
        match members.get("type") {
            Some(SpecNode::String(kind)) => return &**kind == "object",
            Some(SpecNode::Array(kinds)) => {
                return matches!(kinds.as_slice(), [SpecNode::String(kind)] if &**kind == "object");
            }
            Some(_) => return false,
            None => {}
        }
        if members.get("properties").is_some_and(SpecNode::is_object) {
            return true;
        }
        if let Some(SpecNode::Array(branches)) = members.get("allOf")
            && branches.iter().any(|branch| self.is_object(branch, part, hops - 1))
        {
            return true;
        }
        ["oneOf", "anyOf"].iter().any(|keyword| {
            let branches = members.get(keyword).and_then(SpecNode::as_array);
            branches.is_some_and(|branches| {
                !branches.is_empty() && branches.iter().all(|branch| self.is_object(branch, part, hops - 1))
            })
        })
    }
}

pub(super) fn is_success_status(status: &str) -> bool {
    status.starts_with('2') && status.len() == 3
}

/// Orders statuses: 200, 201, the others, then `2XX`.
fn status_sort_key(status: &str) -> u16 {
    status.parse().unwrap_or(300)
}

/// One kind of body that a response may have.
enum ResponseBodyKind {
    /// JSON with the schema at this location.
    Json(ReferenceTarget),
    AnyJson,
    Other,
}

/// Returns the bodies that a response may have. Empty if it has none.
fn body_kinds(response: &ResolvedObject<'_>, produces: &[String]) -> Vec<ResponseBodyKind> {
    let at = SpecPath::from_target(&response.target);
    if let Some(schema) = response.members.get("schema") {
        if schema.get("type").and_then(SpecNode::as_str) == Some("file") {
            return vec![ResponseBodyKind::Other];
        }
        let is_other = |media_type: &String| !is_json(media_type);
        let mut found = Vec::new();
        if produces.is_empty() || !produces.iter().all(is_other) {
            found.push(ResponseBodyKind::Json(at.key("schema").target()));
        }
        if produces.iter().any(is_other) {
            found.push(ResponseBodyKind::Other);
        }
        return found;
    }
    let Some(SpecNode::Object(content)) = response.members.get("content") else { return Vec::new() };
    let location = at.key("content");
    let kinds = content.iter().map(|(media_type, described)| match described.get("schema") {
        _ if !is_json(media_type) => ResponseBodyKind::Other,
        Some(_) => ResponseBodyKind::Json(location.key(media_type).key("schema").target()),
        None => ResponseBodyKind::AnyJson,
    });
    kinds.collect()
}

fn is_json(media_type: &str) -> bool {
    matches!(rank_media_type(media_type), (0..=2, Some(BodyEncoding::Json)))
}

/// Returns the media types for `Accept`: JSON first, then the others in document order.
pub(super) fn accepted_media_types(
    responses: &[(&str, ResolvedObject<'_>)],
    produces: &[String],
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for (status, response) in responses {
        let Some(SpecNode::Object(content)) = response.members.get("content") else { continue };
        if is_success_status(status) || *status == "default" {
            found.extend(content.keys().filter(|media_type| media_type.contains('/')).map(str::to_owned));
        }
    }
    found.extend(produces.iter().cloned());
    let mut seen = std::collections::HashSet::new();
    found.retain(|media_type| seen.insert(media_type.clone()));
    found.sort_by_key(|media_type| !is_json(media_type));
    found
}

/// A schema that accepts any object.
fn any_object<'d>() -> SchemaFields<'d> {
    fields([("$schema", super::DRAFT.into()), ("type", "object".into())])
}
