//! Converts schemas of any OpenAPI version to Draft 07. Keywords that Draft 07 lacks are expressed
//! in another way or in the description. Invalid parts are dropped and reported. The conversion
//! never fails.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::allowed_types::{AllowedTypes, write_enum};
use super::hidden_properties::HiddenProperties;
use super::interner::{ReferenceError, SchemaId, SchemaInterner};
use super::keyword_view::{KeywordView, RefSiblings};
use super::keywords;
use super::location::{ConversionReport, SpecPath};
use super::schema_node::{SchemaFields, SchemaNode, fields, object, type_schema};
use crate::document::{SpecDocument, SpecNode};

/// The direction of a schema: requests drop `readOnly` properties, responses drop `writeOnly` ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum SchemaDirection {
    Input = 0,
    Output = 1,
}

/// Maximum depth of a schema. Many JSON parsers, including ours, reject more than 128 levels, and
/// nullable compositions double the depth.
const DEEPEST: usize = 44;

/// Converts the schemas of one document.
#[derive(Debug)]
pub(super) struct SchemaConverter<'d> {
    pub(super) document: &'d SpecDocument,
    pub(super) report: ConversionReport<'d>,
    pub(super) interner: SchemaInterner<'d>,
    /// The definitions that the current schema refers to.
    pub(super) needs: Vec<SchemaId>,
    /// The definition that is being converted, while its own value is described.
    pub(super) own: Option<SchemaId>,
    /// Hidden properties of the value that the current schema describes.
    pub(super) hidden: HashSet<&'d str>,
    /// Whether the current schema describes a multipart body, whose members may be files.
    pub(super) parts: bool,
    /// The definitions that are being inlined, outermost first.
    pub(super) inlined: Vec<SchemaId>,
    pub(super) hidden_cache: HashMap<(SchemaId, SchemaDirection), Rc<HiddenProperties<'d>>>,
    /// Which keywords next to `$ref` apply.
    ref_siblings: RefSiblings,
}

impl<'d> SchemaConverter<'d> {
    pub(super) fn new(document: &'d SpecDocument) -> Self {
        let dialect = document.dialect();
        let old = dialect.starts_with('2') || dialect.starts_with("3.0");
        let report = ConversionReport::new(document);
        Self {
            document,
            report,
            interner: SchemaInterner::default(),
            needs: Vec::new(),
            own: None,
            hidden: HashSet::new(),
            parts: false,
            inlined: Vec::new(),
            hidden_cache: HashMap::new(),
            ref_siblings: if old { RefSiblings::Annotations } else { RefSiblings::Others },
        }
    }

    pub(super) fn in_definition<T>(&mut self, key: SchemaId, work: impl FnOnce(&mut Self) -> T) -> T {
        let own = self.own.replace(key);
        let hidden = std::mem::take(&mut self.hidden);
        let written_out = std::mem::take(&mut self.inlined);
        let parts = std::mem::take(&mut self.parts);
        let done = work(self);
        (self.own, self.hidden, self.inlined, self.parts) = (own, hidden, written_out, parts);
        done
    }

    /// Converts a schema that describes another value than its parent, such as a property.
    pub(super) fn convert_child_schema(
        &mut self,
        value: &'d SpecNode,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
    ) -> SchemaNode<'d> {
        self.in_child_scope(|schemas| schemas.convert_schema(value, at, direction))
    }

    /// Converts the schema of a Swagger parameter, whose keywords are in the parameter itself.
    pub(super) fn convert_inline_schema(
        &mut self,
        parameter: KeywordView<'d>,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
    ) -> SchemaNode<'d> {
        self.in_child_scope(|schemas| schemas.convert_object_schema(parameter, at, direction))
    }

    fn in_child_scope<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let own = self.own.take();
        let hidden = std::mem::take(&mut self.hidden);
        let parts = std::mem::take(&mut self.parts);
        let done = work(self);
        (self.own, self.hidden, self.parts) = (own, hidden, parts);
        done
    }

    pub(super) fn convert_schema(
        &mut self,
        value: &'d SpecNode,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
    ) -> SchemaNode<'d> {
        match value {
            SpecNode::Object(source) => self.convert_object_schema(KeywordView::all(source), at, direction),
            _ if at.depth > DEEPEST => self.warn_too_deep(at),
            SpecNode::Bool(true) => SchemaNode::anything(),
            SpecNode::Bool(false) => object([("not", SchemaNode::anything())]),
            other => {
                let message =
                    format!("a schema is {}; accepting any value", crate::document::describe_kind(other));
                self.report.warn(at, "wrong-type", message);
                SchemaNode::anything()
            }
        }
    }

    fn convert_object_schema(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
    ) -> SchemaNode<'d> {
        if at.depth > DEEPEST {
            return self.warn_too_deep(at);
        }
        let reference = ["$ref", "$dynamicRef", "$recursiveRef"].iter().find_map(|key| source.get(key));
        match reference.and_then(SpecNode::as_str) {
            Some(reference) if source.len() == 1 => self.convert_reference(source, reference, at, direction),
            Some(reference) => self.with_hidden_properties(source, at.part, direction, |schemas| {
                schemas.convert_reference(source, reference, at, direction)
            }),
            None => self.with_hidden_properties(source, at.part, direction, |schemas| {
                SchemaNode::Object(schemas.convert_keywords(source, at, direction))
            }),
        }
    }

    fn warn_too_deep(&mut self, at: &SpecPath<'_>) -> SchemaNode<'d> {
        self.report.warn(at, "too-deep", "the schema is nested too deeply; accepting any value");
        SchemaNode::anything()
    }

    fn convert_reference(
        &mut self,
        source: KeywordView<'d>,
        reference: &str,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
    ) -> SchemaNode<'d> {
        let mut base = SchemaFields::new();
        match self.interner.look_up(self.document, at.part, reference) {
            Ok(key) if self.own.is_some_and(|own| self.is_reference_cycle(key, own)) => {
                let message = format!("`{reference}` refers back to this schema; accepting any value");
                self.report.warn(at, "schema-cycle", message);
            }
            Ok(key) => match self.inline_definition(key, at, direction) {
                Some(SchemaNode::Object(written_out)) => base = written_out,
                _ => {
                    self.needs.push(key);
                    base.put("$ref", format!("#/definitions/{}", self.interner.name(key)));
                }
            },
            Err(ReferenceError::Dangling(reason)) => {
                let message = format!("`{reference}`: {reason}; accepting any value");
                self.report.warn(at, "dangling-reference", message);
            }
            Err(ReferenceError::Cycle) => {
                let message = format!("`{reference}` refers to itself; accepting any value");
                self.report.warn(at, "reference-cycle", message);
            }
        }
        if (source.is_true("nullable") || source.is_true("x-nullable")) && !base.is_empty() {
            base = fields([("anyOf", vec![SchemaNode::Object(base), type_schema("null")].into())]);
        }
        let beside = source.with_ref_siblings(self.ref_siblings);
        if beside.is_empty() {
            return SchemaNode::Object(base);
        }
        let mut out = self.convert_keywords(beside, at, direction);
        if out.is_empty() {
            return SchemaNode::Object(base);
        }
        if !base.is_empty() {
            // Draft 07 ignores keywords next to `$ref`.
            let mut all = vec![SchemaNode::Object(base)];
            if let Some(SchemaNode::List(more)) = out.swap_remove("allOf") {
                all.extend(more);
            }
            out.put("allOf", all);
        }
        SchemaNode::Object(out)
    }

    fn convert_keywords(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
    ) -> SchemaFields<'d> {
        let mut out = SchemaFields::new();
        let mut remarks = Vec::new();
        let mut body = SchemaFields::new();
        if direction == SchemaDirection::Output {
            keywords::add_output_remarks(source, &mut remarks);
        }
        let kinds = AllowedTypes::read(source, at, &mut self.report);
        kinds.write(&mut body);
        write_enum(source, &kinds, at, &mut self.report, &mut body);
        keywords::write_number_bounds(source, at, direction, &mut self.report, &mut body);
        keywords::write_size_limits(source, at, &mut self.report, &mut body);
        keywords::write_pattern(source, at, &mut self.report, &mut body, &mut remarks);
        self.convert_array_keywords(source, at, direction, &mut body);
        self.convert_object_keywords(source, at, direction, &mut body);
        let composed = self.convert_composition(source, at, direction, &mut body, &mut remarks);
        if kinds.file {
            body.put("contentEncoding", "base64");
        }
        // A schema without a type becomes nullable by adding null as an alternative.
        if kinds.nullable && kinds.names.is_empty() && composed {
            body = fields([("anyOf", vec![SchemaNode::Object(body), type_schema("null")].into())]);
        }
        keywords::write_annotations(source, &remarks, &mut out);
        for (key, value) in body {
            out.insert(key, value);
        }
        keywords::write_format_and_default(source, at, direction, &mut self.report, &mut out);
        out
    }
}
