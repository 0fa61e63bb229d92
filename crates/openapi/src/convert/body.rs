//! The request body. By default it is the property `body`. If the body is a plain object whose
//! members do not collide with parameters, each member becomes a property of its own instead.

use std::collections::BTreeMap;

use super::files::{FileInput, file_schema, is_binary};
use super::interner::value_at;
use super::keyword_view::KeywordView;
use super::location::{SpecPath, resolve_object};
use super::parameters::{SpecParameter, parse_style, with_parameter_docs};
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode, fields, object, type_schema};
use crate::document::{ReferenceTarget, SpecNode, SpecObject};
use crate::operation::{BodyEncoding, FieldEncoding, OperationBody};

/// The body, before its properties have names.
#[derive(Debug)]
pub(super) struct BodyPlan<'d> {
    pub(super) body: OperationBody,
    pub(super) whole: BodyProperty<'d>,
    pub(super) spread: Option<Vec<BodyMember<'d>>>,
}

/// The body as a single property.
#[derive(Debug)]
pub(super) struct BodyProperty<'d> {
    /// The location of its schema, which is converted only when it is needed.
    source: Option<ReferenceTarget>,
    ready: SchemaNode<'d>,
    annotations: SchemaFields<'d>,
    /// Whether some of its members are files.
    files: bool,
}

impl BodyProperty<'_> {
    /// Whether the body exists only as single fields, like a Swagger form.
    pub(super) fn is_form(&self) -> bool {
        self.source.is_none() && self.ready == type_schema("object")
    }
}

/// One member of a body whose members are separate properties.
#[derive(Debug)]
pub(super) struct BodyMember<'d> {
    pub(super) wire_name: String,
    pub(super) schema: SchemaNode<'d>,
    pub(super) required: bool,
    /// The definitions that the schema refers to.
    pub(super) needs: Vec<usize>,
}

/// Returns the preference of a media type for a body (lower is better) and its encoding.
pub(super) fn rank_media_type(media_type: &str) -> (u8, Option<BodyEncoding>) {
    let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "application/json" => (0, Some(BodyEncoding::Json)),
        "text/json" | "application/*" | "*/*" => (2, Some(BodyEncoding::Json)),
        "application/x-www-form-urlencoded" => (3, Some(BodyEncoding::Form)),
        "multipart/form-data" => (4, Some(BodyEncoding::Multipart)),
        "application/x-ndjson" | "application/jsonl" | "application/json-seq" | "application/x-jsonlines" => {
            (6, Some(BodyEncoding::Text))
        }
        "application/xml" | "application/yaml" | "application/x-yaml" | "application/graphql" => {
            (6, Some(BodyEncoding::Text))
        }
        "application/javascript" | "application/sql" => (6, Some(BodyEncoding::Text)),
        "application/octet-stream" | "application/pdf" | "application/zip" | "application/gzip" => {
            (8, Some(BodyEncoding::Bytes))
        }
        other if other.ends_with("+json") => (1, Some(BodyEncoding::Json)),
        other if other.ends_with("+xml") || other.ends_with("+yaml") => (6, Some(BodyEncoding::Text)),
        other if other.starts_with("text/") => (5, Some(BodyEncoding::Text)),
        other if other.starts_with("multipart/") => (7, Some(BodyEncoding::Multipart)),
        other if ["image/", "audio/", "video/", "font/"].iter().any(|start| other.starts_with(start)) => {
            (8, Some(BodyEncoding::Bytes))
        }
        _ => (9, None),
    }
}

impl<'d> SchemaConverter<'d> {
    /// Plans the body of an OpenAPI 3 operation.
    pub(super) fn request_body(
        &mut self,
        operation: &'d SpecObject,
        at: &SpecPath<'_>,
    ) -> Option<BodyPlan<'d>> {
        let value = operation.get("requestBody").filter(|value| !value.is_null())?;
        let location = at.key("requestBody");
        let found = resolve_object(self.document, &mut self.report, value, &location, "the body")?;
        let location = SpecPath::from_target(&found.target);
        let required = found.members.get("required") == Some(&SpecNode::Bool(true));
        let mut words = SchemaFields::new();
        super::keywords::write_annotations(KeywordView::all(found.members), &[], &mut words);
        words.remove("title");
        let content = match found.members.get("content") {
            Some(SpecNode::Object(content)) if !content.is_empty() => content,
            _ => {
                self.report.warn(&location, "no-content", "the body has no media type; assuming JSON");
                let whole = BodyProperty {
                    source: None,
                    ready: SchemaNode::anything(),
                    annotations: words,
                    files: false,
                };
                return Some(BodyPlan {
                    body: new_body("application/json", BodyEncoding::Json, required),
                    whole,
                    spread: None,
                });
            }
        };
        let location = location.key("content");
        let (media_type, described) = self.choose_media_type(content, &location)?;
        let location = location.key(media_type);
        let described = resolve_object(self.document, &mut self.report, described, &location, "a media type");
        let media_target = described.as_ref().map_or_else(|| location.target(), |found| found.target.clone());
        let location = SpecPath::from_target(&media_target);
        static NOTHING: SpecNode = SpecNode::Null;
        let described = value_at(self.document, &media_target).unwrap_or(&NOTHING);
        let schema_target = location.key("schema").target();
        // OpenAPI 3.2 describes the items of a stream. Together they form an array.
        if described.get("schema").is_none() && described.get("itemSchema").is_some() {
            self.report.note(&location, "item-schema", "a stream of items is passed as one string");
        }
        let schema = described.get("schema");
        let encoding =
            rank_media_type(media_type).1.unwrap_or_else(|| self.guess_encoding(schema, location.part));
        let sent = if media_type.contains('*') { "application/json" } else { media_type };
        let mut plan =
            self.plan_body(new_body(sent, encoding, required), schema.map(|_| schema_target), words);
        self.read_field_encodings(described, &location, &mut plan);
        Some(plan)
    }

    /// An unknown media type is JSON if its schema is an object or an array, and text if it is a
    /// string.
    fn guess_encoding(&mut self, schema: Option<&SpecNode>, part: usize) -> BodyEncoding {
        let kind = schema.and_then(|schema| self.resolved_type(schema, part, 8));
        match kind {
            Some("object" | "array") => BodyEncoding::Json,
            Some("string") if schema.is_some_and(|schema| !is_binary(schema)) => BodyEncoding::Text,
            _ => BodyEncoding::Bytes,
        }
    }

    /// Returns the `type` at the end of a chain of references.
    fn resolved_type<'s>(&mut self, schema: &'s SpecNode, part: usize, hops: usize) -> Option<&'s str>
    where
        'd: 's,
    {
        if hops == 0 {
            return None;
        }
        if let Some(reference) = schema.get("$ref").and_then(SpecNode::as_str) {
            let key = self.interner.look_up(self.document, part, reference).ok()?;
            return self.resolved_type(self.interner.value(key)?, self.interner.part(key), hops - 1);
        }
        let stated = schema.get("type").and_then(SpecNode::as_str);
        stated.or_else(|| schema.get("properties").map(|_| "object"))
    }

    /// Selects the best of several media types and reports the choice. A body with files is sent as
    /// multipart if possible.
    fn choose_media_type<'c>(
        &mut self,
        content: &'c SpecObject,
        at: &SpecPath<'_>,
    ) -> Option<(&'c str, &'c SpecNode)> {
        let parts = content
            .keys()
            .map(rank_media_type)
            .filter(|(_, encoding)| *encoding == Some(BodyEncoding::Multipart));
        let multipart = parts.map(|(rank, _)| rank).min();
        let mut ranked = Vec::with_capacity(content.len());
        for (media_type, described) in content.iter() {
            let (mut place, encoding) = rank_media_type(media_type);
            if let Some(multipart) = multipart
                && matches!(encoding, Some(BodyEncoding::Json | BodyEncoding::Form))
                && let Some(schema) = described.get("schema")
                && self.has_files(schema, at.part)
            {
                place = place.max(multipart + 1);
            }
            ranked.push((place, media_type, described));
        }
        let (_, media_type, described) = ranked.into_iter().min_by_key(|(place, ..)| *place)?;
        let best = (media_type, described);
        if content.len() > 1 {
            let all: Vec<&str> = content.keys().collect();
            let message = format!("the body is sent as {} (available: {})", best.0, all.join(", "));
            self.report.note(at, "one-of-several", message);
        }
        Some(best)
    }

    fn plan_body(
        &mut self,
        mut body: OperationBody,
        schema: Option<ReferenceTarget>,
        words: SchemaFields<'d>,
    ) -> BodyPlan<'d> {
        let ready = match body.encoding {
            BodyEncoding::Text => Some(text_schema(&body.media_type)),
            BodyEncoding::Bytes => Some(bytes_schema()),
            BodyEncoding::Json | BodyEncoding::Form | BodyEncoding::Multipart => None,
        };
        let Some(target) = schema.filter(|_| ready.is_none()) else {
            let ready = ready.unwrap_or_else(SchemaNode::anything);
            let whole = BodyProperty { source: None, ready, annotations: words, files: false };
            return BodyPlan { body, whole, spread: None };
        };
        let spread = self.flatten_body(&target, &mut body);
        let files = body.more_files || body.fields.values().any(|field| field.file);
        let whole =
            BodyProperty { source: Some(target), ready: SchemaNode::anything(), annotations: words, files };
        BodyPlan { body, whole, spread }
    }

    /// Returns the members of a body that is a plain object.
    fn flatten_body(
        &mut self,
        target: &ReferenceTarget,
        body: &mut OperationBody,
    ) -> Option<Vec<BodyMember<'d>>> {
        const FINE: [&str; 14] = [
            "type",
            "properties",
            "required",
            "title",
            "description",
            "example",
            "examples",
            "additionalProperties",
            "externalDocs",
            "xml",
            "default",
            "$schema",
            "$id",
            "deprecated",
        ];
        let value = value_at(self.document, target)?;
        if body.encoding == BodyEncoding::Multipart {
            let files = self.file_members(value, target.part);
            for name in files.names {
                body.fields.entry(name).or_default().file = true;
            }
            body.more_files = files.more;
        }
        let found = resolve_object(
            self.document,
            &mut self.report,
            value,
            &SpecPath::from_target(target),
            "the body's schema",
        )?;
        let schema = found.members;
        let Some(SpecNode::Object(properties)) = schema.get("properties") else { return None };
        let plain = schema.keys().all(|key| FINE.contains(&key) || key.starts_with("x-"));
        let object = matches!(schema.get("type"), None | Some(SpecNode::String(_)))
            && schema.get("type").and_then(SpecNode::as_str).is_none_or(|kind| kind == "object");
        let closed = matches!(schema.get("additionalProperties"), None | Some(SpecNode::Bool(false)));
        let nullable = schema.get("x-nullable") == Some(&SpecNode::Bool(true));
        let names: Vec<&str> = schema
            .get("required")
            .and_then(SpecNode::as_array)
            .into_iter()
            .flatten()
            .filter_map(SpecNode::as_str)
            .collect();
        // An optional body with required members can only be expressed by `body` as a whole.
        let says = body.required || names.is_empty();
        // A required name without a property can only be part of the whole body.
        let known = names.iter().all(|name| properties.contains_key(name));
        if !plain || !object || !closed || nullable || !says || !known || properties.is_empty() {
            return None;
        }
        let at = SpecPath::from_target(&found.target);
        let location = at.key("properties");
        let mut members = Vec::new();
        for (name, property) in properties.iter() {
            if self.is_hidden(property, at.part, SchemaDirection::Input) {
                continue;
            }
            let before = std::mem::take(&mut self.needs);
            let files = match body.encoding {
                BodyEncoding::Multipart => self.file_input(property, at.part),
                _ => None,
            };
            let schema = match (property, files) {
                (SpecNode::Object(described), Some(files)) => file_schema(KeywordView::all(described), files),
                (property, _) => {
                    self.convert_child_schema(property, &location.key(name), SchemaDirection::Input)
                }
            };
            let needs = std::mem::replace(&mut self.needs, before);
            members.push(BodyMember {
                wire_name: name.to_owned(),
                schema,
                required: names.contains(&name),
                needs,
            });
        }
        (!members.is_empty()).then_some(members)
    }

    /// Reads the `encoding` of a form's fields.
    fn read_field_encodings(&mut self, described: &SpecNode, at: &SpecPath<'_>, plan: &mut BodyPlan<'_>) {
        let Some(SpecNode::Object(encodings)) = described.get("encoding") else { return };
        for (name, encoding) in encodings.iter() {
            let field: &mut FieldEncoding = plan.body.fields.entry(name.to_owned()).or_default();
            let content_type = encoding.get("contentType").and_then(SpecNode::as_str);
            field.content_type = content_type.map(str::to_owned);
            if let Some(named) = encoding.get("style").and_then(SpecNode::as_str) {
                field.style = parse_style(named);
                if field.style.is_none() {
                    let location = at.key("encoding");
                    self.report.warn(
                        &location.key(name),
                        "unknown-style",
                        format!("`{named}` is not a valid style; ignored"),
                    );
                }
            }
            field.explode = encoding.get("explode").and_then(SpecNode::as_bool);
            field.allow_reserved = encoding.get("allowReserved") == Some(&SpecNode::Bool(true));
        }
    }

    /// Plans the body of a Swagger operation: one body parameter, or the fields of a form.
    pub(super) fn swagger_body(
        &mut self,
        parameters: &[SpecParameter<'d>],
        consumes: &[String],
    ) -> Option<BodyPlan<'d>> {
        use super::parameters::ParameterKind;
        let required =
            |parameter: &SpecParameter<'_>| parameter.members.get("required") == Some(&SpecNode::Bool(true));
        if let Some(parameter) = parameters.iter().find(|parameter| parameter.kind == ParameterKind::Body) {
            let media_type = consumes
                .iter()
                .min_by_key(|media_type| rank_media_type(media_type).0)
                .map_or("application/json", String::as_str);
            let schema = parameter.members.get("schema");
            let at = SpecPath::from_target(&parameter.target);
            let target = schema.map(|_| at.key("schema").target());
            // A Swagger body is JSON unless its schema is a string and the operation consumes
            // another type.
            let encoding = match rank_media_type(media_type).1 {
                Some(BodyEncoding::Form | BodyEncoding::Multipart) => BodyEncoding::Json,
                Some(encoding) => encoding,
                None => self.guess_encoding(schema, at.part),
            };
            let media_type = if encoding == BodyEncoding::Json
                && rank_media_type(media_type).0 > 1
                && rank_media_type(media_type).0 < 9
            {
                "application/json"
            } else {
                media_type
            };
            let mut words = SchemaFields::new();
            super::keywords::write_annotations(KeywordView::all(parameter.members), &[], &mut words);
            return Some(self.plan_body(new_body(media_type, encoding, required(parameter)), target, words));
        }
        let fields: Vec<&SpecParameter<'d>> =
            parameters.iter().filter(|parameter| parameter.kind == ParameterKind::FormField).collect();
        if fields.is_empty() {
            return None;
        }
        let is_file = |parameter: &&SpecParameter<'_>| {
            parameter.members.get("type").and_then(SpecNode::as_str) == Some("file")
        };
        let multipart = fields.iter().any(is_file)
            || (consumes.iter().any(|media_type| media_type.starts_with("multipart/"))
                && !consumes
                    .iter()
                    .any(|media_type| rank_media_type(media_type).1 == Some(BodyEncoding::Form)));
        let (media_type, encoding) = if multipart {
            ("multipart/form-data", BodyEncoding::Multipart)
        } else {
            ("application/x-www-form-urlencoded", BodyEncoding::Form)
        };
        let mut body = new_body(media_type, encoding, fields.iter().any(|field| required(field)));
        let mut members = Vec::new();
        for field in fields {
            let before = std::mem::take(&mut self.needs);
            let schema = if is_file(&field) {
                body.fields.entry(field.wire_name.clone()).or_default().file = true;
                file_schema(KeywordView::all(field.members), FileInput::ONE)
            } else {
                let (schema, writing) =
                    self.parameter_schema(field, crate::operation::ArgumentLocation::Query);
                if schema.as_object().and_then(|schema| schema.text("type")) == Some("array") {
                    let encoding = body.fields.entry(field.wire_name.clone()).or_default();
                    encoding.style = Some(writing.style);
                    encoding.explode = Some(writing.explode);
                }
                with_parameter_docs(schema, field.members)
            };
            let needs = std::mem::replace(&mut self.needs, before);
            members.push(BodyMember {
                wire_name: field.wire_name.clone(),
                schema,
                required: required(field),
                needs,
            });
        }
        let whole = BodyProperty {
            source: None,
            ready: type_schema("object"),
            annotations: SchemaFields::new(),
            files: false,
        };
        Some(BodyPlan { body, whole, spread: Some(members) })
    }

    /// Returns the schema of a body that stays one property.
    pub(super) fn whole_schema(&mut self, whole: BodyProperty<'d>) -> SchemaNode<'d> {
        let value = whole.source.as_ref().and_then(|target| value_at(self.document, target));
        let schema = match (whole.source, value) {
            (Some(target), Some(value)) => match whole.files {
                true => self.convert_multipart_body(value, &SpecPath::from_target(&target)),
                false => {
                    self.convert_child_schema(value, &SpecPath::from_target(&target), SchemaDirection::Input)
                }
            },
            _ => whole.ready,
        };
        super::parameters::with_annotations(schema, whole.annotations)
    }
}

fn new_body(media_type: &str, encoding: BodyEncoding, required: bool) -> OperationBody {
    OperationBody {
        media_type: media_type.to_owned(),
        encoding,
        required,
        fields: BTreeMap::new(),
        more_files: false,
    }
}

fn text_schema<'d>(media_type: &str) -> SchemaNode<'d> {
    object([("type", "string".into()), ("contentMediaType", media_type.to_owned().into())])
}

/// Uses `format`, which is only a hint. Some validators check `contentEncoding` and would reject a
/// data: URI.
pub(super) fn bytes_schema_fields<'d>() -> SchemaFields<'d> {
    fields([("type", "string".into()), ("format", "byte".into())])
}

fn bytes_schema<'d>() -> SchemaNode<'d> {
    let mut schema = bytes_schema_fields();
    schema.put("description", "Bytes as base64 or as a data: URI.");
    SchemaNode::Object(schema)
}
