//! Whole requests, from operations that are made by hand.

mod bodies;
mod places;

use std::collections::BTreeMap;

use reqwest::Url;
use serde_json::Value;
use toolyard_hub::json::{empty_object, from_text};

use super::{Order, Refusal, order};
use crate::operation::{Argument, Body, Encoding, Method, Operation, Place, Style};

/// An operation with nothing to it.
pub(crate) fn operation(method: Method, path: &str) -> Operation {
    Operation {
        name: "made".to_owned(),
        definition: empty_object(),
        method,
        path: path.to_owned(),
        servers: Vec::new(),
        arguments: Vec::new(),
        body: None,
        wraps_answer: false,
        produces: Vec::new(),
        security: Vec::new(),
        tags: Vec::new(),
        operation_id: None,
    }
}

/// An argument in the style that is usual for its place.
pub(crate) fn argument(place: Place, name: &str) -> Argument {
    let form = matches!(place, Place::Query | Place::Cookie);
    Argument {
        property: name.to_owned(),
        place,
        wire_name: name.to_owned(),
        style: if form { Style::Form } else { Style::Simple },
        explode: form,
        allow_reserved: false,
        required: false,
        content: None,
    }
}

pub(crate) fn body(encoding: Encoding, media_type: &str) -> Body {
    Body { media_type: media_type.to_owned(), encoding, required: false, fields: BTreeMap::new() }
}

fn ordered(operation: &Operation, arguments: &str) -> Result<Order, Refusal> {
    let base = Url::parse("https://api.example.com/v1/").unwrap();
    order(operation, &base, &from_text(arguments.to_owned()))
}

fn url(operation: &Operation, arguments: &Value) -> String {
    ordered(operation, &arguments.to_string()).unwrap().url.to_string()
}
