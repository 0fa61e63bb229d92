//! One long session that uses every message. Each is validated against the schema.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Value, json};
use toolyard_hub::{
    AuthStatus, BoxFuture, ErrorKind, HubError, LoginError, Outcome, Source, SourceCall, SourceName,
    SourceOffer, SourceState, SourceStatus,
};
use toolyard_serve::LogEntry;
use toolyard_testkit::harness::every_server_message;

use super::events::overrun;
use super::house::House;

const EVENTS: [&str; 8] =
    ["server", "changed", "resource", "call_started", "call_progress", "call_ended", "log", "stderr"];

/// A source that requires authorization.
struct Locked(SourceName);

impl Source for Locked {
    fn name(&self) -> &SourceName {
        &self.0
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::default()
    }

    fn status(&self) -> SourceStatus {
        SourceStatus {
            authorization: AuthStatus::NotLoggedIn,
            transport: Some("openapi"),
            ..SourceStatus::new(SourceState::NeedsAuthorization, true)
        }
    }

    fn log_in(&self) -> BoxFuture<'_, Result<String, LoginError>> {
        Box::pin(async { Ok("https://login.example/?state=1".to_owned()) })
    }

    fn call<'a>(&'a self, _: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(async { Err(HubError::new(ErrorKind::CannotConnect, "it is locked")) })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_that_can_be_said_is_said_as_the_schema_says() {
    let mut house = House::new().await;
    house.add("pages", "pages").await;
    house.add("old", "legacy-only").await;
    house.add("asks", "asks").await;
    house.yard.add(Arc::new(Locked(SourceName::new("locked"))));
    let mut socket = house.owner().await;
    let subscribed = socket.request("subscribe", json!({"events": EVENTS})).await.unwrap();
    assert_eq!((&subscribed["subscribed"], &subscribed["missed"]), (&json!(EVENTS), &json!(false)));

    // Lists.
    let servers = socket.request("mcp_servers", json!({})).await.unwrap()["servers"].clone();
    let names: Vec<&Value> = servers.as_array().unwrap().iter().map(|server| &server["name"]).collect();
    assert_eq!(names, ["probe", "extra", "pages", "old", "asks", "locked"]);
    let old = &servers[3];
    assert_eq!(
        (&old["transport"], &old["era"], &old["auth"]),
        (&json!("stdio"), &json!("legacy"), &json!("unsupported"))
    );
    assert_eq!(old["serverInfo"], json!({"name": "odd-legacy-only", "version": "1"}));
    let one = socket.request("mcp_tool", json!({"tool": "mcp__pages__first"})).await.unwrap();
    assert_eq!(one["tool"]["serverName"], "pages");
    let pages = socket.request("mcp_tools", json!({"server_name": "pages"})).await.unwrap();
    assert_eq!((&pages["serverName"], &pages["count"]), (&json!("pages"), &json!(5)));
    let all = socket.request("mcp_tools", json!({})).await.unwrap();
    assert_eq!(all["count"].as_u64().unwrap() as usize, house.yard.catalog().tools().len());
    socket.request("mcp_list", json!({})).await.unwrap();
    let prompts = socket.request("mcp_prompts", json!({})).await.unwrap();
    assert_eq!(prompts["prompts"][0]["fullName"], "greet");

    // Calls: one with progress and a log, one that asks, one that is canceled, one that fails, and
    // one that is unknown.
    let flood = socket.send("mcp_call", json!({"tool": "flood", "arguments": {"n": 3}})).await;
    let end = socket.response(flood).await;
    assert_eq!(end["response"]["result"]["content"][0]["text"], "dry again");
    let ask = socket.send("mcp_call", json!({"tool": "ask", "arguments": {"about": "lunch"}})).await;
    let question = socket.next_matching("the question", |message| message["type"] == "ask").await;
    assert_eq!((&question["id"], &question["questions"][0]["kind"]), (&json!(ask), &json!("elicit_form")));
    let answers = json!({"name": {"action": "accept", "content": {"name": "Ada"}}});
    assert_eq!(
        socket.request("mcp_answer", json!({"request": ask, "answers": answers})).await,
        Ok(json!({}))
    );
    assert_eq!(socket.response(ask).await["response"]["result"]["content"][0]["text"], "lunch: Ada");
    let slow = socket.send("mcp_call", json!({"tool": "slow", "arguments": {"ms": 60_000}})).await;
    assert_eq!(socket.request("mcp_cancel", json!({"request": slow})).await, Ok(json!({"cancelled": true})));
    assert_eq!(socket.response(slow).await["error"]["code"], "CANCELLED");
    assert_eq!(socket.request("mcp_cancel", json!({"request": slow})).await, Ok(json!({"cancelled": false})));
    let none = socket.request("mcp_call", json!({"tool": "flod", "arguments": {"n": 3}})).await;
    assert_eq!(none, Err("TOOL_NOT_FOUND".to_owned()));
    let wrong = socket.send("mcp_call", json!({"tool": "flood", "arguments": {"n": "three"}})).await;
    let wrong = socket.response(wrong).await;
    assert_eq!(wrong["error"]["code"], "VALIDATION_ERROR");
    assert_eq!(wrong["error"]["details"]["field"], "n");
    let streamed = socket.send("mcp_call", json!({"tool": "pieces", "arguments": {"n": 2}})).await;
    assert_eq!(socket.response(streamed).await["response"]["result"]["content"][0]["text"], "2 pieces");

    // Targets other than tools.
    let read = socket.request("mcp_read", json!({"uri": "probe://note"})).await.unwrap();
    assert_eq!(read["result"]["contents"][0]["text"], "what the note says");
    let gone = socket.request("mcp_read", json!({"uri": "probe://note", "server_name": "pages"})).await;
    assert_eq!(gone, Err("NOT_FOUND".to_owned()));
    let prompt = socket.request("mcp_prompt", json!({"name": "greet"})).await.unwrap();
    assert_eq!(prompt["result"]["messages"][0]["content"]["text"], "Say hello.");
    let words =
        json!({"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "x", "value": "y"}});
    assert!(socket.request("mcp_complete", words).await.is_ok());

    // History.
    let calls = socket.request("mcp_history", json!({"limit": 2})).await.unwrap();
    assert_eq!(calls["calls"].as_array().unwrap().len(), 2);
    let more = json!({"limit": 500, "cursor": calls["nextCursor"]});
    let more = socket.request("mcp_history", more).await.unwrap();
    assert!(more["calls"].as_array().unwrap().iter().any(|call| call["status"] == "cancelled"), "{more}");
    let failed = socket.request("mcp_history", json!({"status": "failed", "text": "FLO"})).await.unwrap();
    assert_eq!(failed["calls"].as_array().unwrap().len(), 2, "{failed}");

    // Servers.
    assert_eq!(
        socket.request("mcp_transcript", json!({"server_name": "pages"})).await.unwrap()["messages"],
        json!([])
    );
    socket
        .request("mcp_call", json!({"tool": "mcp__pages__echo", "arguments": {"text": "taped"}}))
        .await
        .unwrap();
    let taped = socket.request("mcp_transcript", json!({"server_name": "pages"})).await.unwrap();
    let call = taped["messages"]
        .as_array()
        .unwrap()
        .iter()
        .find(|message| message["text"].as_str().unwrap().contains("taped"));
    assert_eq!(call.unwrap()["direction"], "to_server");
    let after = taped["messages"].as_array().unwrap().last().unwrap()["seq"].clone();
    let rest =
        socket.request("mcp_transcript", json!({"server_name": "pages", "after": after})).await.unwrap();
    assert_eq!(rest["messages"], json!([]));
    let lines = socket.request("mcp_stderr", json!({"server_name": "pages"})).await.unwrap();
    assert_eq!(lines["lines"], json!(["pages starts"]));
    assert_eq!(socket.request("mcp_replicas", json!({})).await, Ok(json!({"replicas": []})));
    socket.request("mcp_disable", json!({"server_name": "pages"})).await.unwrap();
    let off =
        |message: &Value| message["server"]["name"] == "pages" && message["server"]["state"] == "disabled";
    assert_eq!(socket.next_matching("pages to be disabled", off).await["server"]["tools"], 0);
    socket.request("mcp_enable", json!({"server_name": "pages"})).await.unwrap();
    let on = |message: &Value| message["server"]["name"] == "pages" && message["server"]["state"] == "ready";
    assert_eq!(socket.next_matching("pages to be ready", on).await["server"]["tools"], 5);
    socket.request("mcp_reconnect", json!({"server_name": "pages"})).await.unwrap();
    socket.next_matching("pages to be ready again", on).await;
    let of_pages = |message: &Value| message["event"] == "stderr" && message["serverName"] == "pages";
    assert_eq!(socket.next_matching("its line", of_pages).await["line"], "pages starts");
    assert_eq!(
        socket.request("mcp_login", json!({"server_name": "pages"})).await,
        Err("VALIDATION_ERROR".to_owned())
    );
    assert_eq!(
        socket.request("mcp_stderr", json!({"server_name": "pags"})).await,
        Err("NOT_FOUND".to_owned())
    );

    let login = socket.request("mcp_login", json!({"server_name": "locked"})).await.unwrap();
    assert_eq!(login, json!({"url": "https://login.example/?state=1"}));
    let locked = &servers[5];
    let (state, auth) = (&locked["state"], &locked["auth"]);
    assert_eq!((state, auth), (&json!("needs_authorization"), &json!("not_logged_in")));

    // Other events.
    socket.request("mcp_call", json!({"tool": "touch", "arguments": {"uri": "probe://note"}})).await.unwrap();
    assert_eq!(socket.event("resource").await["uri"], "probe://note");
    socket.take_unclaimed();
    socket.request("mcp_call", json!({"tool": "change_prompts"})).await.unwrap();
    assert_eq!(socket.event("changed").await["prompts"], true);
    let line = LogEntry {
        at: SystemTime::now(),
        level: "warn",
        target: "test".to_owned(),
        source: None,
        message: "a line".to_owned(),
    };
    house.log.send(Arc::new(line)).unwrap();
    assert_eq!(socket.event("log").await["message"], "a line");
    house.yard.remove(&SourceName::new("old"));
    let gone = socket.next_matching("old to be gone", |message| message["gone"] == true).await;
    assert_eq!(gone["serverName"], "old");
    let left = socket.request("unsubscribe", json!({"events": ["log", "stderr"]})).await.unwrap();
    assert_eq!(left["subscribed"], json!(EVENTS[..6]));
    assert_eq!(socket.request("unsubscribe", json!({})).await.unwrap()["subscribed"], json!([]));

    // Events that arrive faster than the client reads.
    socket.take_unclaimed();
    socket.request("subscribe", json!({"events": ["call_started"]})).await.unwrap();
    overrun(&house).await;
    assert!(socket.event("lagged").await["missed"].as_u64().unwrap() > 0);

    let (seen, known) = (std::mem::take(&mut socket.seen), every_server_message());
    let missing: Vec<_> = known.difference(&seen).collect();
    // A yard that runs as one process has no replicas that could change.
    assert_eq!(missing, ["event replicas"], "never received");
    house.until("pages", SourceState::Ready).await;
    // Unread messages are queued before the close frame.
    let ((), code) = tokio::join!(house.end(), socket.wait_closed());
    assert_eq!(code, 1001);
}
