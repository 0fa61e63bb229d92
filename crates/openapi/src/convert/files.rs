//! Files in multipart bodies: which members are files, wherever the body's schema describes them,
//! and which values a caller may pass for a file.

use super::body::{bytes_schema_fields, rank_media_type};
use super::interner::SchemaId;
use super::keyword_view::KeywordView;
use super::location::SpecPath;
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode, object, type_schema};
use crate::document::{SpecNode, SpecObject};
use crate::operation::BodyEncoding;

/// Maximum depth at which files are searched for in a schema.
const MOST_HOPS: usize = 8;

/// Which values a file member accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileInput {
    one: bool,
    many: bool,
    none: bool,
    /// Whether the file is raw bytes. JSON can represent base64, but not raw bytes.
    raw: bool,
}

impl FileInput {
    pub(super) const ONE: Self = Self { one: true, many: false, none: false, raw: true };
}

/// The file members of a body.
#[derive(Debug, Default)]
pub(super) struct FileMembers {
    pub(super) names: Vec<String>,
    /// Whether additional members are files.
    pub(super) more: bool,
    raw: bool,
}

impl FileMembers {
    fn add(&mut self, name: &str, files: FileInput) {
        self.raw |= files.raw;
        if !self.names.iter().any(|known| known == name) {
            self.names.push(name.to_owned());
        }
    }
}

impl<'d> SchemaConverter<'d> {
    /// Returns the schema of a multipart body that stays one property.
    pub(super) fn convert_multipart_body(
        &mut self,
        value: &'d SpecNode,
        at: &SpecPath<'_>,
    ) -> SchemaNode<'d> {
        let before = std::mem::replace(&mut self.parts, true);
        let converted = self.convert_schema(value, at, SchemaDirection::Input);
        self.parts = before;
        converted
    }

    /// Returns the schema of a member of the current value if the member is a file.
    pub(super) fn file_part(&mut self, property: &'d SpecNode, part: usize) -> Option<SchemaNode<'d>> {
        let described = property.as_object().filter(|_| self.parts)?;
        let files = self.file_input(property, part)?;
        Some(file_schema(KeywordView::all(described), files))
    }

    /// Whether a body contains raw bytes, which JSON cannot represent.
    pub(super) fn has_files(&mut self, schema: &SpecNode, part: usize) -> bool {
        self.file_members(schema, part).raw
    }

    /// Returns the members that are files, in the schema or in any of its branches.
    pub(super) fn file_members(&mut self, schema: &SpecNode, part: usize) -> FileMembers {
        let mut found = FileMembers::default();
        self.collect_file_members(schema, part, MOST_HOPS, &mut found);
        found
    }

    fn collect_file_members(&mut self, schema: &SpecNode, part: usize, hops: usize, found: &mut FileMembers) {
        if hops == 0 {
            return;
        }
        if let Some((value, part)) = self.resolve_reference(schema, part) {
            self.collect_file_members(value, part, hops - 1, found);
        }
        for (name, property) in
            schema.get("properties").and_then(SpecNode::as_object).into_iter().flat_map(SpecObject::iter)
        {
            if let Some(files) = self.file_input(property, part) {
                found.add(name, files);
            }
        }
        let more = schema.get("additionalProperties");
        if let Some(files) = more.and_then(|more| self.file_input(more, part)) {
            found.more = true;
            found.raw |= files.raw;
        }
        let branches = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| schema.get(key));
        for branch in branches.filter_map(SpecNode::as_array).flatten() {
            self.collect_file_members(branch, part, hops - 1, found);
        }
    }

    /// Follows a schema that is a reference.
    fn resolve_reference(&mut self, schema: &SpecNode, part: usize) -> Option<(&'d SpecNode, usize)> {
        let reference = schema.get("$ref").and_then(SpecNode::as_str)?;
        let key: SchemaId = self.interner.look_up(self.document, part, reference).ok()?;
        Some((self.interner.value(key)?, self.interner.part(key)))
    }

    /// Returns whether a value can only be a file or a list of files.
    pub(super) fn file_input(&mut self, schema: &SpecNode, part: usize) -> Option<FileInput> {
        self.detect_file_input(schema, part, MOST_HOPS)
    }

    fn detect_file_input(&mut self, schema: &SpecNode, part: usize, hops: usize) -> Option<FileInput> {
        if hops == 0 {
            return None;
        }
        if let Some((value, part)) = self.resolve_reference(schema, part) {
            return self.detect_file_input(value, part, hops - 1);
        }
        if is_binary(schema) {
            return Some(FileInput { none: allows_null(schema), raw: !is_base64(schema), ..FileInput::ONE });
        }
        if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
            let one = self.detect_file_input(items, part, hops - 1)?;
            return one.one.then_some(FileInput { one: false, many: true, none: allows_null(schema), ..one });
        }
        if let Some(SpecNode::Array(branches)) = schema.get("allOf") {
            return branches.iter().find_map(|branch| self.detect_file_input(branch, part, hops - 1));
        }
        let branches =
            ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key).and_then(SpecNode::as_array))?;
        let mut all = FileInput { none: allows_null(schema), ..FileInput::default() };
        for branch in branches {
            if branch.get("type").and_then(SpecNode::as_str) == Some("null") {
                all.none = true;
                continue;
            }
            let files = self.detect_file_input(branch, part, hops - 1)?;
            all = FileInput {
                one: all.one || files.one,
                many: all.many || files.many,
                none: all.none || files.none,
                raw: all.raw || files.raw,
            };
        }
        (all.one || all.many).then_some(all)
    }
}

fn allows_null(schema: &SpecNode) -> bool {
    let nullable =
        ["nullable", "x-nullable"].iter().any(|key| schema.get(key) == Some(&SpecNode::Bool(true)));
    let types = schema.get("type").and_then(SpecNode::as_array).into_iter().flatten();
    nullable || types.filter_map(SpecNode::as_str).any(|kind| kind == "null")
}

fn is_base64(schema: &SpecNode) -> bool {
    let says = |key: &str, words: &[&str]| {
        schema.get(key).and_then(SpecNode::as_str).is_some_and(|word| words.contains(&word))
    };
    says("format", &["byte", "base64"]) || schema.get("contentEncoding").is_some()
}

/// Whether a value is bytes.
pub(super) fn is_binary(schema: &SpecNode) -> bool {
    let is = |key: &str, values: &[&str]| {
        schema.get(key).and_then(SpecNode::as_str).is_some_and(|value| values.contains(&value))
    };
    let typed = schema.get("contentMediaType").and_then(SpecNode::as_str);
    is("format", &["binary", "base64", "byte", "file"])
        || is("type", &["file"])
        || typed.is_some_and(|media_type| rank_media_type(media_type).1 == Some(BodyEncoding::Bytes))
}

/// Returns the schema of a file: its bytes, or an object with bytes, name and type.
pub(super) fn file_schema<'d>(source: KeywordView<'d>, files: FileInput) -> SchemaNode<'d> {
    let named = object([
        ("type", "object".into()),
        (
            "properties",
            object([
                ("data", bytes_schema_fields().into()),
                ("filename", type_schema("string")),
                ("content_type", type_schema("string")),
            ]),
        ),
        ("required", SchemaNode::texts(["data"])),
        ("additionalProperties", false.into()),
    ]);
    let one: Vec<SchemaNode<'d>> = vec![bytes_schema_fields().into(), named];
    let mut allowed = if files.one { one.clone() } else { Vec::new() };
    if files.many {
        let items = object([("anyOf", one.into())]);
        allowed.push(object([("type", "array".into()), ("items", items)]));
    }
    if files.none {
        allowed.push(type_schema("null"));
    }
    let schema = match (allowed.len(), allowed.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            allowed.extend(last);
            object([("anyOf", allowed.into())])
        }
    };
    let mut words = SchemaFields::new();
    let remarks = [
        "A file: its bytes as base64 or as a data: URI, or an object with `data`, `filename` and `content_type`.",
    ];
    super::keywords::write_annotations(source, &remarks.map(str::to_owned), &mut words);
    super::parameters::with_annotations(schema, words)
}
