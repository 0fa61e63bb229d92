//! The words for call status and server state: the published descriptions and the clients use
//! exactly those of the hub, in the same order.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_hub::{AuthStatus, CallStatus, SourceState};

use super::workbench;

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

/// Returns the words in double quotes between `start` and the end of its declaration.
fn declared(path: &str, start: &str, end: char) -> Vec<String> {
    let text = file(path);
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("{path} has no {start}"));
    let (declaration, _) = rest.split_once(end).unwrap();
    declaration.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test]
async fn calls_and_servers_have_the_same_words_wherever_they_are_described() {
    let calls = CallStatus::ALL.map(CallStatus::as_str);
    let servers = SourceState::ALL.map(SourceState::as_str);
    let auth = AuthStatus::ALL.map(AuthStatus::as_str);

    let document = workbench(&[]).await.get("/openapi.json").await.json();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Execution"]["properties"]["state"]["enum"], json!(calls));
    let parameters = document["paths"]["/mcp/executions"]["get"]["parameters"].as_array().unwrap();
    let filter = parameters.iter().find(|parameter| parameter["name"] == "state").unwrap();
    assert_eq!(filter["schema"]["enum"], json!(calls));
    assert_eq!(schemas["Server"]["properties"]["state"]["enum"], json!(servers));

    let control: Value = serde_json::from_str(&file("docs/reference/control.schema.json")).unwrap();
    assert_eq!(control["$defs"]["CallStatus"]["enum"], json!(calls));
    assert_eq!(control["$defs"]["State"]["enum"], json!(servers));
    assert_eq!(control["$defs"]["Auth"]["enum"], json!(auth));
    assert_eq!(control["$defs"]["Call"]["properties"]["status"], json!({"$ref": "#/$defs/CallStatus"}));

    assert_eq!(declared("clients/typescript/src/execution.ts", "export type ExecutionState =", ';'), calls);
    assert_eq!(declared("clients/python/src/mcp_client/protocol.py", "\nState = Literal", ']'), calls);
    let page = "web/src/control/messages.ts";
    assert_eq!(declared(page, "export type Status =", ';'), calls);
    assert_eq!(declared(page, "export type State =", ';'), servers);
    assert_eq!(declared(page, "export type Auth =", ';'), auth);
}

#[test]
fn the_page_shows_the_words_of_the_hub() {
    let shown = file("web/src/parts/StateWord.vue");
    let calls = CallStatus::ALL.map(|status| (status.as_str(), status.as_str()));
    let servers = SourceState::ALL.map(|state| (state.as_str(), state.label()));
    for (word, label) in calls.into_iter().chain(servers) {
        assert!(shown.contains(&format!("  {word}: [\"{label}\", ")), "{word} is not shown as {label}");
    }
}
