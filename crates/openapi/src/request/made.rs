//! Operations that are made by hand, for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_hub::json::empty_object;

use crate::operation::{Argument, Body, Encoding, Method, Operation, Place, Style, Wrapping};

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
        wrapping: Wrapping::Never,
        output: Arc::default(),
        answer_rules: Vec::new(),
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
    Body {
        media_type: media_type.to_owned(),
        encoding,
        required: false,
        fields: BTreeMap::new(),
        more_files: false,
    }
}
