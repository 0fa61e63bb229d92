//! Hand-written operations for tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use toolyard_hub::json::empty_object;

use crate::operation::{
    Argument, ArgumentLocation, BodyEncoding, Method, Operation, OperationBody, ParameterStyle,
    ResultWrapping,
};

/// A minimal operation.
pub(crate) fn operation(method: Method, path: &str) -> Operation {
    Operation {
        name: "made".to_owned(),
        definition: empty_object(),
        method,
        path: path.to_owned(),
        servers: Vec::new(),
        arguments: Vec::new(),
        body: None,
        wrapping: ResultWrapping::Never,
        output: Arc::default(),
        response_rules: Vec::new(),
        produces: Vec::new(),
        security: Vec::new(),
        tags: Vec::new(),
        operation_id: None,
    }
}

/// An argument in the default style of its location.
pub(crate) fn argument(place: ArgumentLocation, name: &str) -> Argument {
    let form = matches!(place, ArgumentLocation::Query | ArgumentLocation::Cookie);
    Argument {
        property: name.to_owned(),
        place,
        wire_name: name.to_owned(),
        style: if form { ParameterStyle::Form } else { ParameterStyle::Simple },
        explode: form,
        allow_reserved: false,
        required: false,
        content: None,
    }
}

pub(crate) fn body(encoding: BodyEncoding, media_type: &str) -> OperationBody {
    OperationBody {
        media_type: media_type.to_owned(),
        encoding,
        required: false,
        fields: BTreeMap::new(),
        more_files: false,
    }
}
