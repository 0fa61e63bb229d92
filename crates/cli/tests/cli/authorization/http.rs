//! The plain HTTP routes.

use serde_json::json;

use super::answer::{Lens, join_letters, letters, of_status};
use super::callers::Caller;
use super::table::Row;
use super::yard::World;

impl World {
    pub(super) async fn http(&self, row: &Row, caller: &Caller) -> (String, String) {
        let yard = self.yard(caller.yard);
        let operation = self.fill(row.operation, caller.yard);
        let (method, path) = operation.split_once(' ').unwrap();
        let bearer = caller.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut headers: Vec<(&str, &str)> =
            bearer.iter().map(|bearer| ("authorization", bearer.as_str())).collect();
        let body = match method {
            "POST" => {
                headers.push(("content-type", "application/json"));
                json!({"params": {}}).to_string()
            }
            _ => String::new(),
        };
        if path.ends_with("/mcp") {
            headers.push(("accept", "application/json, text/event-stream"));
        }
        if path == "/mcp/executions/{own}" {
            return self.own_execution(method, caller, &headers).await;
        }
        let answer = yard.server.request(method, path, &headers, body.as_bytes()).await.read_body().await;
        let word = match (answer.status, row.operation) {
            (200, "GET /mcp/tools" | "GET /openapi.json") => letters(Lens::Tools, &answer.text),
            (200, "GET /mcp/servers") => letters(Lens::Servers, &answer.text),
            (200, "GET /metrics") => letters(Lens::Sources, &answer.text),
            (200, "GET /mcp/executions?limit=500") => self.executions(caller, &answer.text),
            (status, _) => of_status(status),
        };
        (word, answer.text)
    }

    /// Returns which executions of the other caller a text names.
    pub(super) fn executions(&self, caller: &Caller, text: &str) -> String {
        let ids = &self.yard(caller.yard).executions;
        let named = |name: &str| ids.get(name).is_some_and(|id| text.contains(id.as_str()));
        let both = |server: &&str| {
            let (done, running) = (named(&format!("done-{server}")), named(&format!("run-{server}")));
            assert_eq!(done, running, "{}: {server} is only partly shown: {text}", caller.column);
            done
        };
        join_letters(["a", "b", "l"].into_iter().filter(both))
    }

    /// Executes a tool and then gets that execution.
    async fn own_execution(
        &self,
        method: &str,
        caller: &Caller,
        headers: &[(&str, &str)],
    ) -> (String, String) {
        let server = &self.yard(caller.yard).server;
        let executed = server.post_with("/mcp/tools/mcp__a__echo/execute", headers, &json!({})).await;
        let id = executed.header("x-execution-id").unwrap_or("exec-none").to_owned();
        let path = format!("/mcp/executions/{id}");
        let answer = server.request(method, &path, headers, b"").await.read_body().await;
        (of_status(answer.status), answer.text)
    }
}
