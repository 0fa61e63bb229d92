//! Builds the path of a request from the document's template and the arguments. Arguments are data:
//! they can never lead to another path than the one that the document describes.

use toolyard_hub::json::Object;

use super::escape::{EncodeSet, percent_encode, percent_encode_into};
use super::styles::ParameterSerializer;
use super::{RequestBuildError, serialize_content};
use crate::operation::{Argument, ArgumentLocation, Operation};

/// The path and query of a path template. Some documents include a query in the path.
#[derive(Debug, PartialEq)]
pub(super) struct ExpandedPath {
    pub(super) path: String,
    pub(super) query: Option<String>,
}

pub(super) fn expand(operation: &Operation, given: &Object) -> Result<ExpandedPath, RequestBuildError> {
    // The fragment is documentation and is never sent.
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
                        "its path contains `{{{name}}}`, which is not a parameter"
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
        // An empty value would change the path, often to that of the whole collection.
        value
            .filter(|value| !value.is_empty())
            .ok_or_else(|| wrong("must not be empty: it is part of the path"))
    }
}

/// Returns the next `{name}` of a template and the text before and after it.
fn next_placeholder(template: &str) -> Option<(&str, &str, &str)> {
    let start = template.find('{')?;
    let end = start + template[start..].find('}')?;
    Some((&template[..start], &template[start + 1..end], &template[end + 1..]))
}
