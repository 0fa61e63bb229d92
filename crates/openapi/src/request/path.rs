//! The path of a request: the document's own, with the arguments in their places. An argument is data: it can never
//! lead to another path than the one that the document describes.

use toolyard_hub::json::Object;

use super::escape::{EncodeSet, percent_encode, percent_encode_into};
use super::styles::ParameterSerializer;
use super::{RequestBuildError, serialize_content};
use crate::operation::{Argument, ArgumentLocation, Operation};

/// The path and the query that a document's path makes. Some documents write a query there.
#[derive(Debug, PartialEq)]
pub(super) struct ExpandedPath {
    pub(super) path: String,
    pub(super) query: Option<String>,
}

pub(super) fn expand(operation: &Operation, given: &Object) -> Result<ExpandedPath, RequestBuildError> {
    // What stands behind a hash is for whoever reads the document: it is never sent.
    let template = operation.path.split('#').next().unwrap_or_default();
    let (path, query) = match template.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (template, None),
    };
    let filling = PathExpander { operation, given };
    Ok(ExpandedPath { path: filling.fill(path)?, query: query.map(|query| filling.fill(query)).transpose()? })
}

struct PathExpander<'a> {
    operation: &'a Operation,
    given: &'a Object,
}

impl PathExpander<'_> {
    fn fill(&self, template: &str) -> Result<String, RequestBuildError> {
        let mut filled = String::with_capacity(template.len() + 16);
        let mut rest = template;
        while let Some((before, name, after)) = next_placeholder(rest) {
            percent_encode_into(before, EncodeSet::Literal, &mut filled);
            match self.argument(name) {
                Some(argument) => filled.push_str(&self.serialize_argument(argument)?),
                None => {
                    return Err(RequestBuildError::Document(format!(
                        "its path names {{{name}}}, which is no parameter"
                    )));
                }
            }
            rest = after;
        }
        percent_encode_into(rest, EncodeSet::Literal, &mut filled);
        Ok(filled)
    }

    fn argument(&self, name: &str) -> Option<&Argument> {
        let mut arguments = self.operation.arguments.iter();
        arguments.find(|argument| argument.place == ArgumentLocation::Path && argument.wire_name == name)
    }

    fn serialize_argument(&self, argument: &Argument) -> Result<String, RequestBuildError> {
        let wrong = |why: &str| RequestBuildError::Argument(argument.property.clone(), why.to_owned());
        let raw =
            self.given.get(&argument.property).ok_or_else(|| wrong("is missing: it is part of the path"))?;
        let allow = EncodeSet::in_path(argument.allow_reserved);
        let value = match &argument.content {
            Some(media_type) => serialize_content(media_type, raw).map(|text| percent_encode(&text, allow)),
            None => {
                let (style, explode) = (argument.style, argument.explode);
                ParameterSerializer { name: &argument.wire_name, style, explode, allow }.serialize_text(raw)
            }
        };
        // Without a value the path would be another one: that of the whole collection, often.
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| wrong("must not be empty: it is part of the path"))
    }
}

/// The next `{name}` of a template, with what stands before and after it.
fn next_placeholder(template: &str) -> Option<(&str, &str, &str)> {
    let start = template.find('{')?;
    let end = start + template[start..].find('}')?;
    Some((&template[..start], &template[start + 1..end], &template[end + 1..]))
}
