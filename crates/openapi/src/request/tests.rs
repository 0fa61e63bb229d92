//! Complete requests of hand-written operations.

mod bodies;
mod places;

use reqwest::Url;
use serde_json::Value;
use toolyard_hub::json::from_text;

pub(crate) use super::fixtures::{argument, body, operation};
use super::{OperationRequest, RequestBuildError, build_request};
use crate::operation::Operation;

fn ordered(operation: &Operation, arguments: &str) -> Result<OperationRequest, RequestBuildError> {
    let base = Url::parse("https://api.example.com/v1/").unwrap();
    build_request(operation, &base, &from_text(arguments.to_owned()))
}

fn url(operation: &Operation, arguments: &Value) -> String {
    ordered(operation, &arguments.to_string()).unwrap().url.to_string()
}
