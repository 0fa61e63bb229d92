//! The tools of a small shop, with their results. `plain/fixture_tools.py` implements the same tools
//! for plain Python.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolyard_hub::Raw;
use toolyard_program::{
    PendingProgramQuestion, ProgramBlock, ProgramData, ProgramQuestion, ProgramReply, ToolBinding,
    ToolFailure,
};

pub(crate) const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/programs");

static FIXTURE: LazyLock<Value> = LazyLock::new(|| {
    let text = std::fs::read_to_string(format!("{DATA}/fixture.json")).unwrap();
    serde_json::from_str(&text).unwrap()
});

/// Name, parameters, and number of required parameters.
const TOOLS: [(&str, &[&str], usize); 9] = [
    ("list_orders", &["cursor", "limit"], 0),
    ("get_customer", &["customer_id"], 1),
    ("search_docs", &["query", "limit"], 1),
    ("describe", &["topic"], 1),
    ("picture", &["name"], 1),
    ("echo", &["value"], 1),
    ("slow", &["ms", "value"], 2),
    ("flaky", &["key", "fail_times"], 2),
    ("fail", &["message", "type"], 1),
];

pub(crate) fn bindings() -> Vec<ToolBinding> {
    TOOLS.iter().map(|(name, parameters, required)| binding(name, parameters, *required)).collect()
}

fn binding(name: &str, parameters: &[&str], required: usize) -> ToolBinding {
    let full_name = format!("mcp__shop__{name}");
    ToolBinding {
        words: vec![name.to_owned(), full_name.clone()],
        full_name,
        parameters: parameters.iter().map(|&name| name.into()).collect(),
        required,
        about: format!("{name}({})", parameters.join(", ")),
    }
}

/// Answers the requests of one program until it ends.
pub(crate) async fn answer(mut questions: mpsc::Receiver<PendingProgramQuestion>) {
    let failed: Arc<Mutex<HashMap<String, u64>>> = Arc::default();
    while let Some(PendingProgramQuestion { question, mut reply }) = questions.recv().await {
        let failed = Arc::clone(&failed);
        tokio::spawn(async move {
            tokio::select! {
                answer = handle(question, &failed) => drop(reply.send(answer)),
                () = reply.closed() => {}
            }
        });
    }
}

async fn handle(question: ProgramQuestion, failed: &Mutex<HashMap<String, u64>>) -> ProgramReply {
    match question {
        ProgramQuestion::Call { tool, arguments } => {
            let name = tool.strip_prefix("mcp__shop__").unwrap_or(&tool).to_owned();
            if name == "echo" {
                // Unparsed, to keep every digit of numbers.
                let mut members: HashMap<String, Raw> = serde_json::from_str(arguments.get()).unwrap();
                return ProgramReply::Data(ProgramData::Json(members.remove("value").unwrap()));
            }
            let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
            call(&name, &arguments, failed).await
        }
        ProgramQuestion::Binding { tool } => {
            let name = tool.strip_prefix("mcp__shop__").unwrap_or(&tool);
            let entry = TOOLS.iter().find(|(known, ..)| *known == name);
            entry.map_or_else(
                || failure(&format!("unknown tool {tool:?}"), "tool_not_found", &tool, None),
                |(name, parameters, required)| ProgramReply::Binding(binding(name, parameters, *required)),
            )
        }
        ProgramQuestion::Inspect { tool } => {
            ProgramReply::Data(ProgramData::Json(to_raw_value(&json!({ "name": tool })).unwrap()))
        }
        ProgramQuestion::Search { query, server, limit } => {
            let results = json!([{ "query": query, "server": server, "limit": limit }]);
            ProgramReply::Data(ProgramData::Json(to_raw_value(&results).unwrap()))
        }
        ProgramQuestion::Progress { .. } => ProgramReply::Data(ProgramData::Text(String::new())),
    }
}

async fn call(name: &str, arguments: &Value, failed: &Mutex<HashMap<String, u64>>) -> ProgramReply {
    let word = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    let data = |value: Value| ProgramReply::Data(ProgramData::Json(to_raw_value(&value).unwrap()));
    match name {
        "list_orders" => {
            let orders = FIXTURE["orders"].as_array().unwrap();
            let start: usize = word("cursor").parse().unwrap_or(0);
            let end = start + usize::try_from(arguments["limit"].as_u64().unwrap_or(10)).unwrap();
            let next = (end < orders.len()).then(|| end.to_string());
            data(json!({ "orders": orders[start..end.min(orders.len())], "next_cursor": next }))
        }
        "get_customer" => {
            let number = &arguments["customer_id"];
            let mut customers = FIXTURE["customers"].as_array().unwrap().iter();
            let customer = customers.find(|customer| customer["id"] == *number);
            customer.map_or_else(
                || {
                    failure(
                        &format!("no customer {number}"),
                        "execution_error",
                        "mcp__shop__get_customer",
                        None,
                    )
                },
                |customer| data(customer.clone()),
            )
        }
        "search_docs" => {
            let docs = FIXTURE["docs"].as_array().unwrap().iter();
            let matches = docs.filter(|doc| doc["title"].as_str().unwrap().contains(&word("query")));
            let limit =
                arguments["limit"].as_u64().map_or(usize::MAX, |limit| usize::try_from(limit).unwrap());
            data(matches.take(limit).cloned().collect())
        }
        "describe" => {
            ProgramReply::Data(ProgramData::Text(FIXTURE["topics"][word("topic")].as_str().unwrap().into()))
        }
        "picture" => {
            let picture = &FIXTURE["pictures"][word("name")];
            let text = |key: &str| picture[key].as_str().unwrap().to_owned();
            let media = ProgramBlock::Media {
                kind: "image",
                mime_type: text("mime_type"),
                base64: text("base64"),
                uri: None,
            };
            ProgramReply::Data(ProgramData::Blocks(vec![media]))
        }
        "slow" => {
            tokio::time::sleep(Duration::from_millis(arguments["ms"].as_u64().unwrap())).await;
            data(arguments["value"].clone())
        }
        "flaky" => {
            let key = word("key");
            let attempts = {
                let mut failed = failed.lock();
                let attempts = failed.entry(key.clone()).or_default();
                *attempts += 1;
                *attempts
            };
            if attempts <= arguments["fail_times"].as_u64().unwrap() {
                return failure(&format!("{key} is not ready"), "execution_error", "mcp__shop__flaky", None);
            }
            data(json!({ "key": key, "attempts": attempts }))
        }
        "fail" => {
            let kind = arguments["type"].as_str().unwrap_or("execution_error");
            failure(&word("message"), kind, "mcp__shop__fail", Some(json!({ "asked": word("message") })))
        }
        other => failure(&format!("unknown tool {other:?}"), "tool_not_found", other, None),
    }
}

fn failure(message: &str, kind: &str, tool: &str, details: Option<Value>) -> ProgramReply {
    ProgramReply::Failed(ToolFailure {
        message: message.into(),
        kind: kind.into(),
        tool: tool.into(),
        details,
    })
}
