//! The parameters of an operation: collected from path and operation, in the form of any version,
//! and converted to properties.

use super::keyword_view::KeywordView;
use super::keywords;
use super::location::{SpecPath, resolve_object};
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode, fields};
use crate::document::{ReferenceTarget, SpecNode, SpecObject};
use crate::operation::{ArgumentLocation, ParameterStyle};
use crate::request::is_reserved_header;

/// A parameter of the document.
#[derive(Debug)]
pub(super) struct SpecParameter<'d> {
    pub(super) wire_name: String,
    pub(super) kind: ParameterKind,
    pub(super) members: &'d SpecObject,
    pub(super) target: ReferenceTarget,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParameterKind {
    At(ArgumentLocation),
    /// The body and form fields of Swagger 2.0.
    Body,
    FormField,
}

/// How a parameter is serialized into the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParameterSerialization {
    pub(super) style: ParameterStyle,
    pub(super) explode: bool,
    pub(super) allow_reserved: bool,
    pub(super) content: Option<String>,
}

impl<'d> SchemaConverter<'d> {
    /// Returns all parameters of an operation: its own, and those of its path that it does not
    /// override.
    pub(super) fn collect_parameters(
        &mut self,
        lists: [(&'d SpecObject, &ReferenceTarget); 2],
    ) -> Vec<SpecParameter<'d>> {
        let mut found: Vec<SpecParameter<'d>> = Vec::new();
        for (owner, target) in lists {
            let at = SpecPath::from_target(target);
            let location = at.key("parameters");
            let list = match owner.get("parameters") {
                None | Some(SpecNode::Null) => continue,
                Some(SpecNode::Array(list)) => list,
                Some(other) => {
                    let message =
                        format!("`parameters` is {}; ignored", crate::document::describe_kind(other));
                    self.report.warn(&location, "wrong-type", message);
                    continue;
                }
            };
            for (n, value) in list.iter().enumerate() {
                let at = location.index(n);
                let Some(parameter) = self.read_parameter(value, &at) else { continue };
                let same = |other: &&mut SpecParameter<'_>| {
                    other.kind == parameter.kind && other.wire_name == parameter.wire_name
                };
                match found.iter_mut().find(same) {
                    Some(before) => {
                        if before.target.pointer.starts_with(&target.pointer) && target.pointer.len() > 1 {
                            let message = format!(
                                "duplicate parameter `{}`; the last one applies",
                                parameter.wire_name
                            );
                            self.report.warn(&at, "duplicate-parameter", message);
                        }
                        *before = parameter;
                    }
                    None => found.push(parameter),
                }
            }
        }
        found
    }

    fn read_parameter(&mut self, value: &'d SpecNode, at: &SpecPath<'_>) -> Option<SpecParameter<'d>> {
        let found = resolve_object(self.document, &mut self.report, value, at, "a parameter")?;
        let location = SpecPath::from_target(&found.target);
        let name = match found.members.get("name") {
            Some(SpecNode::String(name)) if !name.is_empty() => name.to_string(),
            Some(SpecNode::Number(name)) => name.to_string(),
            Some(SpecNode::Bool(name)) => name.to_string(),
            _ => {
                self.report.warn(&location, "no-name", "a parameter has no name; ignored");
                return None;
            }
        };
        let place = found.members.get("in").and_then(SpecNode::as_str).unwrap_or_default();
        let kind = match place.to_ascii_lowercase().as_str() {
            "path" => ParameterKind::At(ArgumentLocation::Path),
            "query" => ParameterKind::At(ArgumentLocation::Query),
            "querystring" => ParameterKind::At(ArgumentLocation::QueryString),
            "header" => ParameterKind::At(ArgumentLocation::Header),
            "cookie" => ParameterKind::At(ArgumentLocation::Cookie),
            "body" => ParameterKind::Body,
            "formdata" | "form" => ParameterKind::FormField,
            other => {
                let message = format!("the parameter `{name}` has the invalid location `{other}`; ignored");
                self.report.warn(&location, "no-place", message);
                return None;
            }
        };
        if kind == ParameterKind::At(ArgumentLocation::Header) && is_reserved_header(&name) {
            let message = format!("the header `{name}` cannot be a parameter; ignored");
            self.report.note(&location, "reserved-header", message);
            return None;
        }
        Some(SpecParameter { wire_name: name, kind, members: found.members, target: found.target })
    }

    /// Returns the schema of the property and how its value is serialized.
    pub(super) fn parameter_schema(
        &mut self,
        parameter: &SpecParameter<'d>,
        place: ArgumentLocation,
    ) -> (SchemaNode<'d>, ParameterSerialization) {
        let target = parameter.target.clone();
        let at = SpecPath::from_target(&target);
        let members = parameter.members;
        let default_style = match place {
            ArgumentLocation::Query | ArgumentLocation::QueryString | ArgumentLocation::Cookie => {
                ParameterStyle::Form
            }
            ArgumentLocation::Path
            | ArgumentLocation::Header
            | ArgumentLocation::Body
            | ArgumentLocation::BodyField => ParameterStyle::Simple,
        };
        if let Some((media_type, schema)) = self.content_schema(members, &at) {
            let explode = default_style == ParameterStyle::Form;
            let writing = ParameterSerialization {
                style: default_style,
                explode,
                allow_reserved: false,
                content: Some(media_type),
            };
            return (schema, writing);
        }
        let schema = match members.get("schema") {
            Some(schema) => self.convert_child_schema(schema, &at.key("schema"), SchemaDirection::Input),
            None => {
                self.convert_inline_schema(KeywordView::from_parameter(members), &at, SchemaDirection::Input)
            }
        };
        let (style, explode) = match members.get("collectionFormat").and_then(SpecNode::as_str) {
            Some(format) => self.read_collection_format(format, default_style, &at),
            None => self.read_style(members, default_style, place, &at),
        };
        let swagger_default = members.get("schema").is_none() && members.contains_key("type");
        let explode =
            if swagger_default && !members.contains_key("collectionFormat") && !members.contains_key("style")
            {
                false
            } else {
                explode
            };
        let allow_reserved = members.get("allowReserved") == Some(&SpecNode::Bool(true));
        (schema, ParameterSerialization { style, explode, allow_reserved, content: None })
    }

    /// Converts a parameter that is described by a media type. The first one applies.
    fn content_schema(
        &mut self,
        members: &'d SpecObject,
        at: &SpecPath<'_>,
    ) -> Option<(String, SchemaNode<'d>)> {
        let Some(SpecNode::Object(content)) = members.get("content") else { return None };
        let (media_type, described) = content.iter().next()?;
        let location = at.key("content");
        let location = location.key(media_type);
        let schema = match described.get("schema") {
            Some(schema) => {
                self.convert_child_schema(schema, &location.key("schema"), SchemaDirection::Input)
            }
            None => SchemaNode::anything(),
        };
        Some((media_type.to_owned(), schema))
    }

    fn read_collection_format(
        &mut self,
        format: &str,
        default: ParameterStyle,
        at: &SpecPath<'_>,
    ) -> (ParameterStyle, bool) {
        match format {
            "csv" => (default, false),
            "ssv" => (ParameterStyle::SpaceDelimited, false),
            "tsv" => (ParameterStyle::TabDelimited, false),
            "pipes" => (ParameterStyle::PipeDelimited, false),
            "multi" => (ParameterStyle::Form, true),
            other => {
                let message = format!("`{other}` is not a valid collectionFormat; using commas");
                self.report.warn(&at.key("collectionFormat"), "unknown-style", message);
                (default, false)
            }
        }
    }

    fn read_style(
        &mut self,
        members: &SpecObject,
        default: ParameterStyle,
        place: ArgumentLocation,
        at: &SpecPath<'_>,
    ) -> (ParameterStyle, bool) {
        let style = match members.get("style").and_then(SpecNode::as_str) {
            None => default,
            Some(name) => match parse_style(name) {
                Some(style) if is_style_allowed(style, place) => style,
                _ => {
                    let message =
                        format!("the style `{name}` is not valid for this location; using the default");
                    self.report.warn(&at.key("style"), "unknown-style", message);
                    default
                }
            },
        };
        let explode =
            members.get("explode").and_then(SpecNode::as_bool).unwrap_or(style == ParameterStyle::Form);
        (style, explode)
    }
}

pub(super) fn parse_style(name: &str) -> Option<ParameterStyle> {
    Some(match name {
        "form" | "cookie" => ParameterStyle::Form,
        "simple" => ParameterStyle::Simple,
        "label" => ParameterStyle::Label,
        "matrix" => ParameterStyle::Matrix,
        "spaceDelimited" => ParameterStyle::SpaceDelimited,
        "pipeDelimited" => ParameterStyle::PipeDelimited,
        "deepObject" => ParameterStyle::DeepObject,
        _ => return None,
    })
}

fn is_style_allowed(style: ParameterStyle, place: ArgumentLocation) -> bool {
    match style {
        ParameterStyle::Label | ParameterStyle::Matrix => place == ArgumentLocation::Path,
        ParameterStyle::Simple => place == ArgumentLocation::Path || place == ArgumentLocation::Header,
        ParameterStyle::Form => place != ArgumentLocation::Path && place != ArgumentLocation::Header,
        ParameterStyle::SpaceDelimited
        | ParameterStyle::PipeDelimited
        | ParameterStyle::DeepObject
        | ParameterStyle::TabDelimited => place == ArgumentLocation::Query,
    }
}

/// Adds the description and examples of a parameter to its schema. They are more specific than
/// those of a shared schema.
pub(super) fn with_parameter_docs<'d>(schema: SchemaNode<'d>, members: &'d SpecObject) -> SchemaNode<'d> {
    let mut words = SchemaFields::new();
    keywords::write_annotations(KeywordView::all(members), &[], &mut words);
    words.remove("title");
    keywords::write_examples(KeywordView::all(members), &mut words);
    with_annotations(schema, words)
}

/// Adds annotations to a schema, or wraps a schema that is a reference.
pub(super) fn with_annotations<'d>(schema: SchemaNode<'d>, words: SchemaFields<'d>) -> SchemaNode<'d> {
    let mut out = match schema {
        SchemaNode::Object(schema) => schema,
        other => return other,
    };
    if words.is_empty() {
        return SchemaNode::Object(out);
    }
    if out.contains_key("$ref") {
        out = fields([("allOf", vec![SchemaNode::Object(out)].into())]);
    }
    for (key, value) in words {
        if key == "examples" && out.contains_key("examples") {
            continue;
        }
        out.insert(key, value);
    }
    SchemaNode::Object(out)
}
