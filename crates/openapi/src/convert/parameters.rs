//! Parameters of an operation: found in two places, in any version's form, and described as properties.

use super::draft::{Draft, Fields, fields};
use super::keywords;
use super::schema::{Direction, Schemas};
use super::spot::{At, follow};
use super::view::View;
use crate::document::{Members, Node, Target};
use crate::operation::{Place, Style};
use crate::request::is_no_argument;

/// A parameter as the document has it.
#[derive(Debug)]
pub(super) struct Parameter<'d> {
    pub(super) wire_name: String,
    pub(super) kind: Kind,
    pub(super) members: &'d Members,
    pub(super) target: Target,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    At(Place),
    /// Swagger's body and forms.
    Body,
    FormField,
}

/// How a parameter is written into the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Writing {
    pub(super) style: Style,
    pub(super) explode: bool,
    pub(super) allow_reserved: bool,
    pub(super) content: Option<String>,
}

impl<'d> Schemas<'d> {
    /// All parameters of an operation: its own, and those of its path that it does not repeat.
    pub(super) fn parameters(&mut self, lists: [(&'d Members, &Target); 2]) -> Vec<Parameter<'d>> {
        let mut found: Vec<Parameter<'d>> = Vec::new();
        for (owner, target) in lists {
            let at = At::of(target);
            let here = at.key("parameters");
            let list = match owner.get("parameters") {
                None | Some(Node::Null) => continue,
                Some(Node::Array(list)) => list,
                Some(other) => {
                    let message =
                        format!("`parameters` is {}; it was left out", crate::document::kind(other));
                    self.report.warn(&here, "wrong-type", message);
                    continue;
                }
            };
            for (n, value) in list.iter().enumerate() {
                let at = here.index(n);
                let Some(parameter) = self.parameter(value, &at) else { continue };
                let same = |other: &&mut Parameter<'_>| {
                    other.kind == parameter.kind && other.wire_name == parameter.wire_name
                };
                match found.iter_mut().find(same) {
                    Some(before) => {
                        if before.target.pointer.starts_with(&target.pointer) && target.pointer.len() > 1 {
                            let message = format!(
                                "the parameter `{}` is there twice; the last one counts",
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

    fn parameter(&mut self, value: &'d Node, at: &At<'_>) -> Option<Parameter<'d>> {
        let found = follow(self.document, &mut self.report, value, at, "a parameter")?;
        let here = At::of(&found.target);
        let name = match found.members.get("name") {
            Some(Node::String(name)) if !name.is_empty() => name.to_string(),
            Some(Node::Number(name)) => name.to_string(),
            Some(Node::Bool(name)) => name.to_string(),
            _ => {
                self.report.warn(&here, "no-name", "a parameter has no name; it was left out");
                return None;
            }
        };
        let place = found.members.get("in").and_then(Node::as_str).unwrap_or_default();
        let kind = match place.to_ascii_lowercase().as_str() {
            "path" => Kind::At(Place::Path),
            "query" => Kind::At(Place::Query),
            "querystring" => Kind::At(Place::QueryString),
            "header" => Kind::At(Place::Header),
            "cookie" => Kind::At(Place::Cookie),
            "body" => Kind::Body,
            "formdata" | "form" => Kind::FormField,
            other => {
                let message =
                    format!("the parameter `{name}` is in `{other}`, which is no place; it was left out");
                self.report.warn(&here, "no-place", message);
                return None;
            }
        };
        if kind == Kind::At(Place::Header) && is_no_argument(&name) {
            let message = format!("the header `{name}` is not for a parameter to say; it was left out");
            self.report.note(&here, "reserved-header", message);
            return None;
        }
        Some(Parameter { wire_name: name, kind, members: found.members, target: found.target })
    }

    /// The property's schema and how the value is written.
    pub(super) fn written(&mut self, parameter: &Parameter<'d>, place: Place) -> (Draft<'d>, Writing) {
        let target = parameter.target.clone();
        let at = At::of(&target);
        let members = parameter.members;
        let default_style = match place {
            Place::Query | Place::QueryString | Place::Cookie => Style::Form,
            Place::Path | Place::Header | Place::Body | Place::BodyField => Style::Simple,
        };
        if let Some((media_type, schema)) = self.content(members, &at) {
            let explode = default_style == Style::Form;
            let writing =
                Writing { style: default_style, explode, allow_reserved: false, content: Some(media_type) };
            return (schema, writing);
        }
        let schema = match members.get("schema") {
            Some(schema) => self.inner(schema, &at.key("schema"), Direction::Input),
            None => self.inline(View::of_parameter(members), &at, Direction::Input),
        };
        let (style, explode) = match members.get("collectionFormat").and_then(Node::as_str) {
            Some(format) => self.collected(format, default_style, &at),
            None => self.styled(members, default_style, place, &at),
        };
        let swagger_default = members.get("schema").is_none() && members.contains_key("type");
        let explode =
            if swagger_default && !members.contains_key("collectionFormat") && !members.contains_key("style")
            {
                false
            } else {
                explode
            };
        let allow_reserved = members.get("allowReserved") == Some(&Node::Bool(true));
        (schema, Writing { style, explode, allow_reserved, content: None })
    }

    /// A parameter that is described by a media type: the first one counts.
    fn content(&mut self, members: &'d Members, at: &At<'_>) -> Option<(String, Draft<'d>)> {
        let Some(Node::Object(content)) = members.get("content") else { return None };
        let (media_type, described) = content.iter().next()?;
        let here = at.key("content");
        let here = here.key(media_type);
        let schema = match described.get("schema") {
            Some(schema) => self.inner(schema, &here.key("schema"), Direction::Input),
            None => Draft::anything(),
        };
        Some((media_type.to_owned(), schema))
    }

    fn collected(&mut self, format: &str, default: Style, at: &At<'_>) -> (Style, bool) {
        match format {
            "csv" => (default, false),
            "ssv" => (Style::SpaceDelimited, false),
            "tsv" => (Style::TabDelimited, false),
            "pipes" => (Style::PipeDelimited, false),
            "multi" => (Style::Form, true),
            other => {
                let message = format!("`{other}` is no collectionFormat; commas are used");
                self.report.warn(&at.key("collectionFormat"), "unknown-style", message);
                (default, false)
            }
        }
    }

    fn styled(&mut self, members: &Members, default: Style, place: Place, at: &At<'_>) -> (Style, bool) {
        let style = match members.get("style").and_then(Node::as_str) {
            None => default,
            Some(name) => match style(name) {
                Some(style) if fits(style, place) => style,
                _ => {
                    let message = format!("`{name}` is no style for this place; the usual one is used");
                    self.report.warn(&at.key("style"), "unknown-style", message);
                    default
                }
            },
        };
        let explode = members.get("explode").and_then(Node::as_bool).unwrap_or(style == Style::Form);
        (style, explode)
    }
}

pub(super) fn style(name: &str) -> Option<Style> {
    Some(match name {
        "form" | "cookie" => Style::Form,
        "simple" => Style::Simple,
        "label" => Style::Label,
        "matrix" => Style::Matrix,
        "spaceDelimited" => Style::SpaceDelimited,
        "pipeDelimited" => Style::PipeDelimited,
        "deepObject" => Style::DeepObject,
        _ => return None,
    })
}

fn fits(style: Style, place: Place) -> bool {
    match style {
        Style::Label | Style::Matrix => place == Place::Path,
        Style::Simple => place == Place::Path || place == Place::Header,
        Style::Form => place != Place::Path && place != Place::Header,
        Style::SpaceDelimited | Style::PipeDelimited | Style::DeepObject | Style::TabDelimited => {
            place == Place::Query
        }
    }
}

/// A property's schema with the words and examples of its parameter, which say more than those of a shared schema.
pub(super) fn dressed<'d>(schema: Draft<'d>, members: &'d Members) -> Draft<'d> {
    let mut words = Fields::new();
    keywords::words(View::all(members), &[], &mut words);
    words.remove("title");
    keywords::examples(View::all(members), &mut words);
    wrapped(schema, words)
}

/// Words about a schema, beside it, or around it where it is a reference.
pub(super) fn wrapped<'d>(schema: Draft<'d>, words: Fields<'d>) -> Draft<'d> {
    let mut out = match schema {
        Draft::Object(schema) => schema,
        other => return other,
    };
    if words.is_empty() {
        return Draft::Object(out);
    }
    if out.contains_key("$ref") {
        out = fields([("allOf", vec![Draft::Object(out)].into())]);
    }
    for (key, value) in words {
        if key == "examples" && out.contains_key("examples") {
            continue;
        }
        out.insert(key, value);
    }
    Draft::Object(out)
}
