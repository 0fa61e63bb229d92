//! Programs over tools, used like an assistant would: the examples of the specification, word for
//! word, and permissions.

mod document;
mod places;
mod running;
mod unlisted;

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use toolyard_testkit::harness::{Client, Line, Over, Scratch, Server, Version};
use toolyard_testkit::odd::{Kind, Nearby, start_in_process};

use super::{SERVE, TOOLYARD};

/// The servers of the document, and a configuration that names them.
struct Upstreams {
    scratch: Scratch,
    _running: [Nearby; 2],
    config: String,
    _turn: MutexGuard<'static, ()>,
}

/// Runs the tests in sequence: every yard probes its own sandbox before the first program, which
/// keeps a small machine busy.
pub(super) static TURN: Mutex<()> = Mutex::const_new(());

impl Upstreams {
    async fn start(more: &str) -> Self {
        let turn = TURN.lock().await;
        let running = [
            start_in_process(Kind::Financials).await.unwrap(),
            start_in_process(Kind::Documents).await.unwrap(),
        ];
        let [finance, documents] = &running;
        let scratch = Scratch::new();
        let text = format!(
            "{more}\n[servers.financial_data]\nurl = {:?}\n[servers.doc_retrieval]\nurl = {:?}\n",
            finance.url, documents.url
        );
        let config = scratch.file("toolyard.toml", &text);
        Self { scratch, _running: running, config, _turn: turn }
    }

    async fn serve(&self) -> Arc<Server> {
        Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none", "--config", &self.config]].concat()).await
    }

    /// Starts a client of the three tools.
    async fn client(&self, over: Over, version: Version) -> Client {
        match over {
            Over::Http => Client::join(&self.serve().await.with_path("/programs/mcp"), version).await,
            Over::Stdio => self.exposing("programs", version).await,
        }
    }

    async fn exposing(&self, what: &str, version: Version) -> Client {
        let arguments = ["stdio", "--expose", what, "--config", &self.config];
        Client::over_stdio(Line::start(TOOLYARD, &arguments, version), version).await
    }
}

/// Returns the texts of an answer, and whether it is an error.
fn texts(result: &Value) -> (Vec<&str>, bool) {
    let blocks = result["content"].as_array().unwrap();
    (blocks.iter().map(|block| block["text"].as_str().unwrap()).collect(), result["isError"] == true)
}

/// Runs a script and returns the one text of its result.
async fn executed(client: &mut Client, code: &str) -> (String, bool) {
    let answer = client.call("execute_program", json!({"code": code})).await.answer;
    let (texts, failed) = texts(answer.result());
    assert_eq!(texts.len(), 1, "{texts:?}");
    (texts[0].to_owned(), failed)
}

async fn names(client: &mut Client) -> Vec<String> {
    let listed = client.ask("tools/list", "{}").await.answer;
    let tools = listed.result()["tools"].as_array().unwrap().clone();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

const THREE: [&str; 3] = ["inspect_tool", "search_tools", "execute_program"];
