//! The request's body. One rule: it is the property `body`; a body that is a plain object, and has no member in common with
//! the parameters, is spread out into one property for each member instead.

use std::collections::BTreeMap;

use super::bank::value_at;
use super::draft::{Draft, Fields, fields, object, typed};
use super::files::{Files, file_schema, is_binary};
use super::parameters::{Parameter, dressed, style};
use super::schema::{Direction, Schemas};
use super::spot::{At, follow};
use super::view::View;
use crate::document::{Members, Node, Target};
use crate::operation::{Body, Encoding, FieldEncoding};

/// The body, before its properties have names.
#[derive(Debug)]
pub(super) struct Planned<'d> {
    pub(super) body: Body,
    pub(super) whole: Whole<'d>,
    pub(super) spread: Option<Vec<Member<'d>>>,
}

/// The body as one property.
#[derive(Debug)]
pub(super) struct Whole<'d> {
    /// Where its schema is; the conversion waits until it is known that it is needed.
    source: Option<Target>,
    ready: Draft<'d>,
    words: Fields<'d>,
    /// Whether some of its members are files.
    files: bool,
}

impl Whole<'_> {
    /// Whether there is no whole: Swagger's forms are made of single fields.
    pub(super) fn is_form(&self) -> bool {
        self.source.is_none() && self.ready == typed("object")
    }
}

/// One member of a body that is spread out.
#[derive(Debug)]
pub(super) struct Member<'d> {
    pub(super) wire_name: String,
    pub(super) schema: Draft<'d>,
    pub(super) required: bool,
    /// What the schema refers to.
    pub(super) needs: Vec<usize>,
}

/// How good a media type is to make a body of, and how that is written. Lower is better.
pub(super) fn rank(media_type: &str) -> (u8, Option<Encoding>) {
    let bare = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match bare.as_str() {
        "application/json" => (0, Some(Encoding::Json)),
        "text/json" | "application/*" | "*/*" => (2, Some(Encoding::Json)),
        "application/x-www-form-urlencoded" => (3, Some(Encoding::Form)),
        "multipart/form-data" => (4, Some(Encoding::Multipart)),
        "application/x-ndjson" | "application/jsonl" | "application/json-seq" | "application/x-jsonlines" => {
            (6, Some(Encoding::Text))
        }
        "application/xml" | "application/yaml" | "application/x-yaml" | "application/graphql" => {
            (6, Some(Encoding::Text))
        }
        "application/javascript" | "application/sql" => (6, Some(Encoding::Text)),
        "application/octet-stream" | "application/pdf" | "application/zip" | "application/gzip" => {
            (8, Some(Encoding::Bytes))
        }
        other if other.ends_with("+json") => (1, Some(Encoding::Json)),
        other if other.ends_with("+xml") || other.ends_with("+yaml") => (6, Some(Encoding::Text)),
        other if other.starts_with("text/") => (5, Some(Encoding::Text)),
        other if other.starts_with("multipart/") => (7, Some(Encoding::Multipart)),
        other if ["image/", "audio/", "video/", "font/"].iter().any(|start| other.starts_with(start)) => {
            (8, Some(Encoding::Bytes))
        }
        _ => (9, None),
    }
}

impl<'d> Schemas<'d> {
    /// The body of an OpenAPI 3 operation.
    pub(super) fn request_body(&mut self, operation: &'d Members, at: &At<'_>) -> Option<Planned<'d>> {
        let value = operation.get("requestBody").filter(|value| !value.is_null())?;
        let here = at.key("requestBody");
        let found = follow(self.document, &mut self.report, value, &here, "the body")?;
        let here = At::of(&found.target);
        let required = found.members.get("required") == Some(&Node::Bool(true));
        let mut words = Fields::new();
        super::keywords::words(View::all(found.members), &[], &mut words);
        words.remove("title");
        let content = match found.members.get("content") {
            Some(Node::Object(content)) if !content.is_empty() => content,
            _ => {
                self.report.warn(
                    &here,
                    "no-content",
                    "the body does not say what it is made of; JSON is assumed",
                );
                let whole = Whole { source: None, ready: Draft::anything(), words, files: false };
                return Some(Planned {
                    body: body("application/json", Encoding::Json, required),
                    whole,
                    spread: None,
                });
            }
        };
        let here = here.key("content");
        let (media_type, described) = self.best(content, &here)?;
        let here = here.key(media_type);
        let described = follow(self.document, &mut self.report, described, &here, "a media type");
        let media_target = described.as_ref().map_or_else(|| here.target(), |found| found.target.clone());
        let here = At::of(&media_target);
        static NOTHING: Node = Node::Null;
        let described = value_at(self.document, &media_target).unwrap_or(&NOTHING);
        let schema_target = here.key("schema").target();
        // 3.2 describes the items of a stream; all of them together are an array.
        if described.get("schema").is_none() && described.get("itemSchema").is_some() {
            self.report.note(&here, "item-schema", "a stream of items is one text here");
        }
        let schema = described.get("schema");
        let encoding = rank(media_type).1.unwrap_or_else(|| self.guessed(schema, here.part));
        let sent = if media_type.contains('*') { "application/json" } else { media_type };
        let mut plan = self.planned(body(sent, encoding, required), schema.map(|_| schema_target), words);
        self.fields(described, &here, &mut plan);
        Some(plan)
    }

    /// A media type that nobody knows is JSON if its schema is an object or a list, text if it is a text.
    fn guessed(&mut self, schema: Option<&Node>, part: usize) -> Encoding {
        let kind = schema.and_then(|schema| self.kind_of(schema, part, 8));
        match kind {
            Some("object" | "array") => Encoding::Json,
            Some("string") if schema.is_some_and(|schema| !is_binary(schema)) => Encoding::Text,
            _ => Encoding::Bytes,
        }
    }

    /// The `type` at the end of a schema's references.
    fn kind_of<'s>(&mut self, schema: &'s Node, part: usize, hops: usize) -> Option<&'s str>
    where
        'd: 's,
    {
        if hops == 0 {
            return None;
        }
        if let Some(reference) = schema.get("$ref").and_then(Node::as_str) {
            let key = self.bank.look_up(self.document, part, reference).ok()?;
            return self.kind_of(self.bank.value(key)?, self.bank.part(key), hops - 1);
        }
        let stated = schema.get("type").and_then(Node::as_str);
        stated.or_else(|| schema.get("properties").map(|_| "object"))
    }

    /// The best of several media types; which one it was is noted. A file is sent as one wherever that is possible.
    fn best<'c>(&mut self, content: &'c Members, at: &At<'_>) -> Option<(&'c str, &'c Node)> {
        let parts = content.keys().map(rank).filter(|(_, encoding)| *encoding == Some(Encoding::Multipart));
        let multipart = parts.map(|(rank, _)| rank).min();
        let mut ranked = Vec::with_capacity(content.len());
        for (media_type, described) in content.iter() {
            let (mut place, encoding) = rank(media_type);
            if let Some(multipart) = multipart
                && matches!(encoding, Some(Encoding::Json | Encoding::Form))
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
            let message = format!("the body is sent as {}, one of {}", best.0, all.join(", "));
            self.report.note(at, "one-of-several", message);
        }
        Some(best)
    }

    fn planned(&mut self, mut body: Body, schema: Option<Target>, words: Fields<'d>) -> Planned<'d> {
        let ready = match body.encoding {
            Encoding::Text => Some(text_schema(&body.media_type)),
            Encoding::Bytes => Some(bytes_schema()),
            Encoding::Json | Encoding::Form | Encoding::Multipart => None,
        };
        let Some(target) = schema.filter(|_| ready.is_none()) else {
            let ready = ready.unwrap_or_else(Draft::anything);
            let whole = Whole { source: None, ready, words, files: false };
            return Planned { body, whole, spread: None };
        };
        let spread = self.spread(&target, &mut body);
        let files = body.more_files || body.fields.values().any(|field| field.file);
        let whole = Whole { source: Some(target), ready: Draft::anything(), words, files };
        Planned { body, whole, spread }
    }

    /// The members of a body that is a plain object, if it is one.
    fn spread(&mut self, target: &Target, body: &mut Body) -> Option<Vec<Member<'d>>> {
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
        if body.encoding == Encoding::Multipart {
            let files = self.files_in(value, target.part);
            for name in files.names {
                body.fields.entry(name).or_default().file = true;
            }
            body.more_files = files.more;
        }
        let found = follow(self.document, &mut self.report, value, &At::of(target), "the body's schema")?;
        let schema = found.members;
        let Some(Node::Object(properties)) = schema.get("properties") else { return None };
        let plain = schema.keys().all(|key| FINE.contains(&key) || key.starts_with("x-"));
        let object = matches!(schema.get("type"), None | Some(Node::String(_)))
            && schema.get("type").and_then(Node::as_str).is_none_or(|kind| kind == "object");
        let closed = matches!(schema.get("additionalProperties"), None | Some(Node::Bool(false)));
        let nullable = schema.get("x-nullable") == Some(&Node::Bool(true));
        let names: Vec<&str> = schema
            .get("required")
            .and_then(Node::as_array)
            .into_iter()
            .flatten()
            .filter_map(Node::as_str)
            .collect();
        // If the whole may be left out although it has to have members, only `body` can say so.
        let says = body.required || names.is_empty();
        // A name that has no property is something that only the whole can have.
        let known = names.iter().all(|name| properties.contains_key(name));
        if !plain || !object || !closed || nullable || !says || !known || properties.is_empty() {
            return None;
        }
        let at = At::of(&found.target);
        let here = at.key("properties");
        let mut members = Vec::new();
        for (name, property) in properties.iter() {
            if self.is_hidden(property, at.part, Direction::Input) {
                continue;
            }
            let before = std::mem::take(&mut self.needs);
            let files = match body.encoding {
                Encoding::Multipart => self.files(property, at.part),
                _ => None,
            };
            let schema = match (property, files) {
                (Node::Object(described), Some(files)) => file_schema(View::all(described), files),
                (property, _) => self.inner(property, &here.key(name), Direction::Input),
            };
            let needs = std::mem::replace(&mut self.needs, before);
            members.push(Member {
                wire_name: name.to_owned(),
                schema,
                required: names.contains(&name),
                needs,
            });
        }
        (!members.is_empty()).then_some(members)
    }

    /// What the `encoding` of a form says about its fields.
    fn fields(&mut self, described: &Node, at: &At<'_>, plan: &mut Planned<'_>) {
        let Some(Node::Object(encodings)) = described.get("encoding") else { return };
        for (name, encoding) in encodings.iter() {
            let field: &mut FieldEncoding = plan.body.fields.entry(name.to_owned()).or_default();
            let content_type = encoding.get("contentType").and_then(Node::as_str);
            field.content_type = content_type.map(str::to_owned);
            if let Some(named) = encoding.get("style").and_then(Node::as_str) {
                field.style = style(named);
                if field.style.is_none() {
                    let here = at.key("encoding");
                    self.report.warn(
                        &here.key(name),
                        "unknown-style",
                        format!("`{named}` is no style; it was left out"),
                    );
                }
            }
            field.explode = encoding.get("explode").and_then(Node::as_bool);
            field.allow_reserved = encoding.get("allowReserved") == Some(&Node::Bool(true));
        }
    }

    /// The body of a Swagger operation: one parameter that is all of it, or the fields of a form.
    pub(super) fn swagger_body(
        &mut self,
        parameters: &[Parameter<'d>],
        consumes: &[String],
    ) -> Option<Planned<'d>> {
        use super::parameters::Kind;
        let required =
            |parameter: &Parameter<'_>| parameter.members.get("required") == Some(&Node::Bool(true));
        if let Some(parameter) = parameters.iter().find(|parameter| parameter.kind == Kind::Body) {
            let media_type = consumes
                .iter()
                .min_by_key(|media_type| rank(media_type).0)
                .map_or("application/json", String::as_str);
            let schema = parameter.members.get("schema");
            let at = At::of(&parameter.target);
            let target = schema.map(|_| at.key("schema").target());
            // A Swagger body is JSON unless its schema is a text that is consumed as something else.
            let encoding = match rank(media_type).1 {
                Some(Encoding::Form | Encoding::Multipart) => Encoding::Json,
                Some(encoding) => encoding,
                None => self.guessed(schema, at.part),
            };
            let media_type = if encoding == Encoding::Json && rank(media_type).0 > 1 && rank(media_type).0 < 9
            {
                "application/json"
            } else {
                media_type
            };
            let mut words = Fields::new();
            super::keywords::words(View::all(parameter.members), &[], &mut words);
            return Some(self.planned(body(media_type, encoding, required(parameter)), target, words));
        }
        let fields: Vec<&Parameter<'d>> =
            parameters.iter().filter(|parameter| parameter.kind == Kind::FormField).collect();
        if fields.is_empty() {
            return None;
        }
        let is_file =
            |parameter: &&Parameter<'_>| parameter.members.get("type").and_then(Node::as_str) == Some("file");
        let multipart = fields.iter().any(is_file)
            || (consumes.iter().any(|media_type| media_type.starts_with("multipart/"))
                && !consumes.iter().any(|media_type| rank(media_type).1 == Some(Encoding::Form)));
        let (media_type, encoding) = if multipart {
            ("multipart/form-data", Encoding::Multipart)
        } else {
            ("application/x-www-form-urlencoded", Encoding::Form)
        };
        let mut body = body(media_type, encoding, fields.iter().any(|field| required(field)));
        let mut members = Vec::new();
        for field in fields {
            let before = std::mem::take(&mut self.needs);
            let schema = if is_file(&field) {
                body.fields.entry(field.wire_name.clone()).or_default().file = true;
                file_schema(View::all(field.members), Files::ONE)
            } else {
                let (schema, writing) = self.written(field, crate::operation::Place::Query);
                if schema.as_object().and_then(|schema| schema.text("type")) == Some("array") {
                    let encoding = body.fields.entry(field.wire_name.clone()).or_default();
                    encoding.style = Some(writing.style);
                    encoding.explode = Some(writing.explode);
                }
                dressed(schema, field.members)
            };
            let needs = std::mem::replace(&mut self.needs, before);
            members.push(Member {
                wire_name: field.wire_name.clone(),
                schema,
                required: required(field),
                needs,
            });
        }
        let whole = Whole { source: None, ready: typed("object"), words: Fields::new(), files: false };
        Some(Planned { body, whole, spread: Some(members) })
    }

    /// The schema of a body that stays one property.
    pub(super) fn whole_schema(&mut self, whole: Whole<'d>) -> Draft<'d> {
        let value = whole.source.as_ref().and_then(|target| value_at(self.document, target));
        let schema = match (whole.source, value) {
            (Some(target), Some(value)) => match whole.files {
                true => self.multipart(value, &At::of(&target)),
                false => self.inner(value, &At::of(&target), Direction::Input),
            },
            _ => whole.ready,
        };
        super::parameters::wrapped(schema, whole.words)
    }
}

fn body(media_type: &str, encoding: Encoding, required: bool) -> Body {
    Body { media_type: media_type.to_owned(), encoding, required, fields: BTreeMap::new(), more_files: false }
}

fn text_schema<'d>(media_type: &str) -> Draft<'d> {
    object([("type", "string".into()), ("contentMediaType", media_type.to_owned().into())])
}

/// `format`, which is a hint: `contentEncoding` is checked by some, and would refuse a data: URI.
pub(super) fn bytes<'d>() -> Fields<'d> {
    fields([("type", "string".into()), ("format", "byte".into())])
}

fn bytes_schema<'d>() -> Draft<'d> {
    let mut schema = bytes();
    schema.put("description", "The bytes, as base64 or as a data: URI.");
    Draft::Object(schema)
}
