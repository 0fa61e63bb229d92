//! Whole requests, from operations that are made by hand.

mod bodies;
mod places;

use reqwest::Url;
use serde_json::Value;
use toolyard_hub::json::from_text;

pub(crate) use super::made::{argument, body, operation};
use super::{Order, Refusal, order};
use crate::operation::Operation;

fn ordered(operation: &Operation, arguments: &str) -> Result<Order, Refusal> {
    let base = Url::parse("https://api.example.com/v1/").unwrap();
    order(operation, &base, &from_text(arguments.to_owned()))
}

fn url(operation: &Operation, arguments: &Value) -> String {
    ordered(operation, &arguments.to_string()).unwrap().url.to_string()
}
