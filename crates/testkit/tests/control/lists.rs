//! The lists: their structure, definitions byte for byte as the servers advertised them, and who
//! may see them.

use serde_json::{Value, json};
use toolyard_testkit::probe::{ODD_DEFINITION, ODD_RESULT};

use super::house::House;

#[tokio::test]
async fn the_whole_list_has_the_structure_that_assistants_know() {
    let mut house = House::new().await;
    house.add("pages", "pages").await;
    house.add("nulls", "null-schema").await;
    let mut socket = house.owner().await;
    let list = socket.request("mcp_list", json!({})).await.unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&list), ["tools", "resources", "resource_templates", "auth_statuses"]);
    for part in ["resources", "resource_templates", "auth_statuses"] {
        assert_eq!(keys(&list[part]), ["probe", "extra", "pages", "nulls"], "{part}");
    }
    assert_eq!(list["auth_statuses"]["pages"], "unsupported");
    assert_eq!(list["tools"]["mcp__pages__first"]["name"], "first");
    assert_eq!(list["resources"]["probe"][0]["uri"], "probe://note");
    let paged = list["resources"]["pages"].as_array().unwrap().len();
    assert_eq!((paged, list["resource_templates"]["pages"].as_array().unwrap().len()), (3, 2));
    // A tool without a usable schema must not break readers of the list. Its original definition is
    // kept in `definition`.
    assert_eq!(list["tools"]["mcp__nulls__null_schema"]["inputSchema"], json!({"type": "object"}));
    let tools = socket.request("mcp_tools", json!({"server_name": "nulls"})).await.unwrap();
    assert_eq!((&tools["serverName"], &tools["count"]), (&json!("nulls"), &json!(3)));
    let keys_of_all: Vec<_> = keys(&tools);
    assert_eq!(keys_of_all, ["serverName", "tools", "count"]);
    let entry = tools["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "null_schema").unwrap();
    assert_eq!(
        (&entry["inputSchema"], &entry["definition"]["inputSchema"]),
        (&json!({"type": "object"}), &Value::Null)
    );
    house.end().await;
}

#[tokio::test]
async fn what_a_server_advertised_or_answered_comes_byte_for_byte() {
    let mut house = House::new().await;
    house.add("odd", "unknown-keys").await;
    let mut socket = house.owner().await;
    socket.request("mcp_list", json!({})).await.unwrap();
    let members = format!(r#""odd":{ODD_DEFINITION}"#);
    assert!(socket.text.contains(&members), "{}", socket.text);
    assert!(socket.text.contains(&format!(r#""mcp__odd__odd":{ODD_DEFINITION}"#)));
    socket.request("mcp_tools", json!({})).await.unwrap();
    assert!(socket.text.contains(&format!(r#""definition":{ODD_DEFINITION}"#)));
    let call = socket.send("mcp_call", json!({"tool": "odd"})).await;
    socket.response(call).await;
    assert!(socket.text.ends_with(&format!(r#""result":{ODD_RESULT}}}}}"#)), "{}", socket.text);
    // Arguments too: the tool returns them.
    let arguments = r#"{"z":18446744073709551616,"a" : 1.0,"b":{"y":9007199254740993,"x":null}}"#;
    socket
        .send_text(&format!(r#"{{"id":"e","subtype":"mcp_call","tool":"echo","arguments":{arguments}}}"#))
        .await;
    socket.next_matching("the echo", |message| message["id"] == "e").await;
    assert!(socket.text.contains(&format!(r#""structuredContent":{arguments}"#)), "{}", socket.text);
    house.end().await;
}

#[tokio::test]
async fn ten_thousand_tools_are_listed_in_good_time_to_several_at_once() {
    let house = House::new().await;
    let tools = (0..10_000).map(|at| {
        toolyard_sdk::Tool::new(format!("tool_{at}"), || async { Ok("x") })
            .description("does what the nine thousand others do, and says so at some length, as tools do")
    });
    house.yard.add(toolyard_sdk::NativeSource::new("many").tools(tools).into_source());
    let mut sockets = [house.owner().await, house.owner().await];
    for socket in &mut sockets {
        // All requests are sent before any is answered. A slow answer must not delay the other
        // socket.
        socket.send("mcp_list", json!({})).await;
        socket.send("mcp_tools", json!({})).await;
        socket.send("subscribe", json!({"events": ["changed"]})).await;
    }
    let began = std::time::Instant::now();
    for socket in &mut sockets {
        let listed = socket.response(1).await;
        assert!(listed["response"]["tools"].as_object().unwrap().len() > 10_000);
        assert!(socket.response(2).await["response"]["count"].as_u64().unwrap() > 10_000);
        assert_eq!(socket.response(3).await["type"], "response");
    }
    assert!(began.elapsed().as_secs() < 15, "{:?}", began.elapsed());
}

#[tokio::test]
async fn lists_and_events_contain_only_what_the_caller_may_see() {
    let mut house = House::new().await;
    house.add("pages", "pages").await;
    let (mut ada, mut owner) = (house.ada().await, house.owner().await);
    for (subtype, words) in [
        ("mcp_transcript", json!({"server_name": "pages"})),
        ("mcp_stderr", json!({"server_name": "pages"})),
        ("mcp_reconnect", json!({"server_name": "pages"})),
        ("mcp_enable", json!({"server_name": "pages"})),
        ("mcp_disable", json!({"server_name": "pages"})),
        ("mcp_login", json!({"server_name": "pages"})),
        ("subscribe", json!({"events": ["log"]})),
        ("subscribe", json!({"events": ["stderr"]})),
    ] {
        assert_eq!(ada.request(subtype, words).await, Err("PERMISSION_ERROR".to_owned()), "{subtype}");
    }
    let calls = json!({"events": ["call_started", "call_progress", "call_ended"]});
    ada.request("subscribe", calls.clone()).await.unwrap();
    owner.request("subscribe", calls).await.unwrap();
    owner.request("mcp_call", json!({"tool": "flood", "arguments": {"n": 1}})).await.unwrap();
    let own = json!({"tool": "flood", "arguments": {"n": 2}, "session_id": "ada's"});
    ada.request("mcp_call", own).await.unwrap();
    let ended = ada.event("call_ended").await;
    let call = &ended["call"];
    assert_eq!(
        (&call["principal"], &call["sessionId"], &call["front"]),
        (&json!("ada"), &json!("ada's"), &json!("control"))
    );
    let events: Vec<Value> = ada.take_unclaimed();
    assert!(
        events.iter().all(|event| event["call"].is_null() || event["call"]["principal"] == "ada"),
        "{events:?}"
    );
    assert_eq!(events.iter().filter(|event| event["event"] == "call_progress").count(), 2);
    // The owner receives both and sees both in the history. Ada sees only her own.
    owner
        .next_matching("ada's call", |event| {
            event["event"] == "call_ended" && event["call"]["principal"] == "ada"
        })
        .await;
    let calls = |history: Value| history["calls"].as_array().unwrap().len();
    assert_eq!(calls(owner.request("mcp_history", json!({})).await.unwrap()), 2);
    assert_eq!(calls(ada.request("mcp_history", json!({})).await.unwrap()), 1);
    house.end().await;
}

#[tokio::test]
async fn a_schema_that_cannot_be_compiled_is_told_with_its_tool() {
    let mut house = House::new().await;
    house.add("bad", "bad-schema").await;
    let mut socket = house.owner().await;
    let bad =
        socket.request("mcp_tool", json!({"tool": "mcp__bad__bad_schema"})).await.unwrap()["tool"].clone();
    let problem = bad["schemaProblem"].as_str().unwrap();
    assert!(!problem.is_empty(), "{bad}");
    assert_eq!(bad.get("outputSchemaProblem"), None);
    // The rest matches the list, and a tool with valid schemas has no problem.
    let listed = socket.request("mcp_tools", json!({"server_name": "bad"})).await.unwrap()["tools"].clone();
    let listed = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "bad_schema").unwrap().clone();
    let mut without = bad.clone();
    without.as_object_mut().unwrap().shift_remove("schemaProblem");
    assert_eq!(without, listed);
    let fine = socket.request("mcp_tool", json!({"tool": "mcp__bad__echo"})).await.unwrap()["tool"].clone();
    assert_eq!((&fine["name"], fine.get("schemaProblem")), (&json!("echo"), None));
    assert_eq!(socket.request("mcp_tool", json!({"tool": "none"})).await, Err("TOOL_NOT_FOUND".to_owned()));
    house.end().await;
}

#[tokio::test]
async fn a_source_that_is_part_of_the_yard_is_ready_since_it_started() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let before = toolyard_hub::Timestamp(std::time::SystemTime::now()).to_string();
    let servers = socket.request("mcp_servers", json!({})).await.unwrap()["servers"].clone();
    for server in servers.as_array().unwrap() {
        assert_eq!(server.get("transport"), None, "{server}");
        let since = server["since"].as_str().unwrap();
        assert!(since <= before.as_str(), "{since} is after {before}: {server}");
    }
    house.end().await;
}
