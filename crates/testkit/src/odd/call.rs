//! Tool calls of the misbehaving servers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::Kind;
use super::offer::long_name;
use super::rpc::{Params, Reply, ReplySender, Server};
use crate::probe::ODD_RESULT;

/// How long `out-of-order` delays the first of two calls.
const LATE: Duration = Duration::from_millis(200);

impl Server {
    pub(super) async fn call(&self, params: &Params, channel: &ReplySender) -> Reply {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        match self.kind() {
            Kind::NeverAnswers => return Reply::Silence,
            Kind::OutOfOrder if number.is_multiple_of(2) => tokio::time::sleep(LATE).await,
            _ => {}
        }
        match (self.kind(), params.name.as_str()) {
            (_, "echo") => echo(params),
            (_, "requests") => {
                let (all, methods) = self.seen.requests();
                structured(&all.to_string(), &json!({"total": all, "methods": methods}).to_string())
            }
            (Kind::UnknownKeys, "odd") => Reply::Result(ODD_RESULT.to_owned()),
            (Kind::ArrayOutput, "array") => structured("[1,2,3]", "[1,2,3]"),
            (Kind::WrongOutput, "wrong") => structured("wrong", r#"{"n":"one"}"#),
            (Kind::WrongOutput, "missing") => text("nothing structured"),
            (Kind::Financials, "query_financials") => {
                let list =
                    format!("[{}]", STATEMENTS[..arguments(params).limit.min(STATEMENTS.len())].join(","));
                structured(&list, &list)
            }
            (Kind::Documents, "search_docs") => text(DOCUMENTS),
            (Kind::OddContent, "hologram") => Reply::Result(HOLOGRAM.to_owned()),
            (Kind::OddContent, "list_tools") => Reply::Result(LIST.to_owned()),
            (Kind::ProgressThenSilence, "silence") => {
                progress(params, channel).await;
                Reply::Silence
            }
            (Kind::ProgressThenSilence, "steady") => {
                progress(params, channel).await;
                text("done")
            }
            (Kind::ExitsMidCall | Kind::Changes | Kind::Subscribable, "exit") => Reply::Leave(4),
            (Kind::Subscribable, "subscriptions") => {
                let subscribed = self.seen.subscribed().to_string();
                structured(&subscribed, &subscribed)
            }
            (Kind::Huge, "huge") => huge(arguments(params).megabytes),
            (Kind::CountsSessions, "sessions") => {
                let sessions = self.seen.sessions().to_string();
                structured(&sessions, &sessions)
            }
            (Kind::Asks, tool @ ("elicit" | "sample" | "roots" | "everything")) => {
                self.ask_tool_questions(tool, params, channel).await
            }
            (Kind::Dual, "elicit" | "sample") if params.is_modern() => {
                let why = json!([{"type": "text", "text": "this server asks in the legacy era only"}]);
                Reply::Result(json!({"content": why, "isError": true}).to_string())
            }
            (Kind::Dual, tool @ ("elicit" | "sample")) => {
                self.ask_tool_questions(tool, params, channel).await
            }
            (Kind::Dual, "modern_tool") if params.is_modern() => text("modern"),
            (Kind::Dual, "legacy_tool" | "poll") if !params.is_modern() => text("legacy"),
            (Kind::Asks | Kind::AsksItself, "wait") => {
                tokio::time::sleep(Duration::from_millis(arguments(params).every_ms)).await;
                text("waited")
            }
            (Kind::AsksItself, "told") => {
                let answers = self.unprompted_answers().await;
                structured(&answers, &answers)
            }
            (Kind::Changes, tool) if tool == format!("tool_{}", self.seen.starts) => text(tool),
            (Kind::LongName, tool) if tool == long_name() => text("called"),
            (Kind::NullSchema, "null_schema") | (Kind::BadSchema, "bad_schema") => text("called"),
            (Kind::Hostile, tool) if tool.starts_with("clear") => {
                text("\u{1b}[31mred\u{1b}[0m \u{1b}]0;owned\u{7}title \u{202e}turned\u{8}")
            }
            (Kind::Hostile, tool) if !tool.is_ascii() => text(tool),
            (Kind::ClashingNames, tool @ ("read.file" | "read file")) => text(tool),
            (Kind::Pages, tool @ ("first" | "second" | "third")) => text(tool),
            (_, unknown) => Reply::Error(-32602, format!("unknown tool: {unknown}")),
        }
    }
}

/// Content of an unknown type between content of known types.
const HOLOGRAM: &str = concat!(
    r#"{"content":[{"type":"text","text":"before"},{"type":"hologram","depth":9007199254740993,"data":{"b":1,"a":[]}},"#,
    r#"{"text":"after","x-key":1.0,"type":"text"},{"type":"widget"}]}"#,
);

/// Financial statements, latest first.
const STATEMENTS: [&str; 2] = [
    r#"{"revenue":170000000000,"netIncome":33916000000,"operatingIncome":44000000000,"period":"Q2","date":"2024-06-30"}"#,
    r#"{"revenue":165300000000,"netIncome":31000000000,"operatingIncome":42000000000,"period":"Q1","date":"2024-03-31"}"#,
];

/// The result of a document search.
const DOCUMENTS: &str = r#"[{"title":"Travel","content":"Book early.","score":0.9,"doc_id":"d1"},{"title":"Leave","content":"Ask first.","score":0.4,"doc_id":"d2"}]"#;

/// A result that looks like a list.
const LIST: &str = r#"{"tools":[{"name":"inner","inputSchema":null}],"nextCursor":"7","content":[{"type":"text","text":"a list"}]}"#;

#[derive(Deserialize)]
#[serde(default)]
struct Arguments {
    megabytes: usize,
    steps: u64,
    every_ms: u64,
    limit: usize,
}

impl Default for Arguments {
    fn default() -> Self {
        Self { megabytes: 50, steps: 3, every_ms: 50, limit: usize::MAX }
    }
}

fn arguments(params: &Params) -> Arguments {
    let given = params.arguments.as_ref().and_then(|given| serde_json::from_str(given.get()).ok());
    given.unwrap_or_default()
}

/// Reports every step if the caller requested progress.
async fn progress(params: &Params, channel: &ReplySender) {
    let Arguments { steps, every_ms, .. } = arguments(params);
    for step in 1..=steps {
        tokio::time::sleep(Duration::from_millis(every_ms)).await;
        if let Some(token) = &params.meta.progress {
            let params = format!(
                r#"{{"progressToken":{token},"progress":{step},"total":{steps},"message":"step {step}"}}"#
            );
            channel
                .send(format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{params}}}"#))
                .await;
        }
    }
}

fn echo(params: &Params) -> Reply {
    let given = params.arguments.as_ref().map_or("{}", |given| given.get());
    structured(given, given)
}

/// Formats the result by hand, because a serializer that escapes every character is slow for this
/// size.
fn huge(megabytes: usize) -> Reply {
    let text = "x".repeat(megabytes * 1_000_000);
    Reply::Result(format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#))
}

pub(super) fn text(text: &str) -> Reply {
    Reply::Result(json!({"content": [{"type": "text", "text": text}]}).to_string())
}

/// Returns a result with the same value as text and as structured content. `json` is already
/// serialized.
pub(super) fn structured(text: &str, json: &str) -> Reply {
    let text = Value::from(text);
    Reply::Result(format!(r#"{{"content":[{{"type":"text","text":{text}}}],"structuredContent":{json}}}"#))
}
