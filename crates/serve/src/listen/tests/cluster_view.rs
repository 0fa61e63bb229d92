//! Control sockets that show all replicas of a yard.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;
use toolyard_hub::{Replica, ReplicaId, ReplicaState, Replicas};
use toolyard_seal::{Purpose, SealingKeys};
use toolyard_testkit::harness::assert_server_message;

use super::PATIENCE;
use super::control::{Socket, ask, next, open};
use super::members::{RunningReplica, Shared, start, two_replicas};
use super::waiting::stream;

const CALLS: [&str; 3] = ["call_started", "call_progress", "call_ended"];

/// Opens a socket and subscribes to events.
async fn subscribe(replica: &RunningReplica, token: &str, events: &[&str], after: Option<u64>) -> Socket {
    let mut socket = open(&replica.server, token).await.unwrap();
    let mut request = json!({"id": 1, "subtype": "subscribe", "events": events});
    if let Some(after) = after {
        request["after"] = after.into();
    }
    let response = ask(&mut socket, &request).await;
    assert_eq!(response["response"]["missed"], false, "{response}");
    socket
}

async fn event(socket: &mut Socket) -> Value {
    loop {
        let Some(Message::Text(text)) = next(socket).await else { panic!("the socket is closed") };
        let message: Value = serde_json::from_str(&text).unwrap();
        assert_server_message(&message);
        if message["type"] == "event" {
            return message;
        }
    }
}

/// Waits for an event that fulfils the condition.
async fn event_where(socket: &mut Socket, fulfils: impl Fn(&Value) -> bool) -> Value {
    loop {
        let event = event(socket).await;
        if fulfils(&event) {
            return event;
        }
    }
}

/// Calls the tool that does not end before its client disconnects.
async fn hold(replica: &RunningReplica) -> TcpStream {
    let events = "accept: text/event-stream\r\n";
    stream(&replica.server, "/mcp/tools/hold/execute", events, &json!({"params": {}})).await
}

async fn calls(socket: &mut Socket) -> Vec<(String, String, String)> {
    let response = ask(socket, &json!({"id": 2, "subtype": "mcp_history"})).await;
    let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
    let call = |call: &Value| (text(&call["replica"]), text(&call["principal"]), text(&call["status"]));
    response["response"]["calls"].as_array().unwrap().iter().map(call).collect()
}

fn call(replica: &str, status: &str) -> (String, String, String) {
    (replica.to_owned(), "ada".to_owned(), status.to_owned())
}

#[tokio::test]
async fn calls_of_every_replica_are_shown_to_those_who_may_see_them() {
    let (a, b, _) = two_replicas().await;
    let earlier = hold(&b).await;
    let mut eve = subscribe(&a, "observer", &CALLS, None).await;
    assert_eq!(calls(&mut eve).await, [call("b", "running")], "a call that began before the first socket");
    let mut bob = subscribe(&a, "other", &CALLS, None).await;
    let mut ada = subscribe(&a, "secret", &CALLS, None).await;
    drop(earlier);
    for socket in [&mut eve, &mut ada] {
        let ended = event_where(socket, |event| event["event"] == "call_ended").await;
        assert_eq!((&ended["call"]["replica"], &ended["call"]["status"]), (&json!("b"), &json!("cancelled")));
    }
    let mut held = Vec::new();
    for (name, replica) in [("a", &a), ("b", &b)] {
        // One after the other: events of different replicas have no order.
        held.push(hold(replica).await);
        let began = event_where(&mut eve, |event| event["event"] == "call_started").await;
        assert_eq!((&began["call"]["replica"], &began["call"]["principal"]), (&json!(name), &json!("ada")));
        let progress = event_where(&mut eve, |event| event["event"] == "call_progress").await;
        assert_eq!((&progress["replica"], &progress["id"]), (&json!(name), &began["call"]["id"]));
    }
    let all = [call("b", "running"), call("a", "running"), call("b", "cancelled")];
    assert_eq!(calls(&mut eve).await, all);
    assert_eq!(calls(&mut ada).await, all, "a caller sees its own calls, wherever they run");
    assert_eq!(calls(&mut bob).await, []);
    drop(held);
    event_where(&mut eve, |event| event["event"] == "call_ended").await;
    event_where(&mut eve, |event| event["event"] == "call_ended").await;
    // The next event that bob receives is that of his own call: nothing was sent to him before.
    let mine = json!({"id": 3, "subtype": "mcp_call", "tool": "none"});
    assert_eq!(ask(&mut bob, &mine).await["type"], "error");
    assert_eq!(event(&mut bob).await["call"]["principal"], "bob");
}

#[tokio::test]
async fn a_client_that_comes_back_gets_the_events_of_all_replicas_that_it_missed() {
    let (a, b, _) = two_replicas().await;
    let mut eve = subscribe(&a, "observer", &CALLS, None).await;
    let held = hold(&b).await;
    let began = event(&mut eve).await;
    let seq = event(&mut eve).await["seq"].as_u64().unwrap();
    drop(eve);
    // No socket is open while this call ends and another one begins.
    drop(held);
    let other = hold(&b).await;
    let mut eve = subscribe(&a, "observer", &CALLS, Some(seq)).await;
    let ended = event(&mut eve).await;
    assert_eq!((&ended["event"], &ended["call"]["id"]), (&json!("call_ended"), &began["call"]["id"]));
    assert_eq!(event(&mut eve).await["event"], "call_started");
    drop(other);
    event_where(&mut eve, |event| event["event"] == "call_ended").await;
    assert_eq!(calls(&mut eve).await.len(), 2);
}

#[tokio::test]
async fn the_calls_of_a_dead_replica_end_and_it_disappears_from_the_list() {
    let (a, b, shared) = two_replicas().await;
    let names = |list: &Value| {
        let replicas = list["replicas"].as_array().unwrap().iter();
        replicas.map(|replica| replica["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let mut eve = subscribe(&a, "observer", &["call_started", "call_ended", "replicas"], None).await;
    let list = ask(&mut eve, &json!({"id": 2, "subtype": "mcp_replicas"})).await["response"].clone();
    assert_eq!((names(&list), &list["store"]), (vec!["a".to_owned(), "b".to_owned()], &json!("available")));
    let connected: Vec<&Value> =
        list["replicas"].as_array().unwrap().iter().map(|one| &one["connected"]).collect();
    assert_eq!(connected, [true, true]);
    let _held = hold(&b).await;
    event_where(&mut eve, |event| event["event"] == "call_started").await;
    shared.lock().is_away = true;
    let away = event_where(&mut eve, |event| event["event"] == "replicas").await;
    assert_eq!(away["store"], "unavailable");
    b.member.die();
    let (mut ended, mut list) = (Value::Null, away);
    while ended.is_null() || names(&list) != ["a"] {
        let event = event(&mut eve).await;
        if event["event"] == "replicas" { list = event } else { ended = event }
    }
    assert_eq!(ended["call"]["status"], "failed");
    let error = ended["call"]["error"].as_str().unwrap();
    assert!(error.contains("lost the connection to replica `b`"), "{error}");
    assert_eq!(calls(&mut eve).await, [call("b", "failed")]);
    let mut ada = open(&a.server, "secret").await.unwrap();
    for request in [
        json!({"id": 3, "subtype": "mcp_replicas"}),
        json!({"id": 4, "subtype": "subscribe", "events": ["replicas"]}),
    ] {
        assert_eq!(ask(&mut ada, &request).await["error"]["code"], "PERMISSION_ERROR");
    }
}

#[tokio::test]
async fn servers_are_shown_with_their_state_at_every_replica() {
    let (a, b, _) = two_replicas().await;
    let mut eve = subscribe(&a, "observer", &["server"], None).await;
    let response = ask(&mut eve, &json!({"id": 2, "subtype": "mcp_servers"})).await;
    let elsewhere = json!([{"name": "b", "state": "ready"}]);
    assert_eq!(response["response"]["servers"][0]["replicas"], elsewhere, "{response}");
    b.member.die();
    let event = event(&mut eve).await;
    assert_eq!((&event["server"]["name"], &event["server"]["replicas"]), (&json!("patient"), &Value::Null));
}

#[tokio::test]
async fn a_replica_that_does_not_answer_delays_nothing() {
    let (a, _b, shared) = two_replicas().await;
    // It accepts connections, but never answers.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    shared.lock().alive.push(Replica {
        id: ReplicaId::new("c"),
        name: "c".to_owned(),
        url,
        version: "1".to_owned(),
        state: ReplicaState::Ready,
        differences: vec!["configuration"],
    });
    let began = Instant::now();
    let mut eve = subscribe(&a, "observer", &CALLS, None).await;
    let list = ask(&mut eve, &json!({"id": 2, "subtype": "mcp_replicas"})).await["response"].clone();
    let differs = json!({"connected": false, "differences": ["configuration"]});
    for (key, value) in differs.as_object().unwrap() {
        assert_eq!(&list["replicas"][2][key], value, "{list}");
    }
    let _held = hold(&a).await;
    assert_eq!(event(&mut eve).await["call"]["replica"], "a");
    assert!(began.elapsed() < Duration::from_millis(2_500), "{:?}", began.elapsed());
}

#[tokio::test]
async fn replicas_are_followed_only_while_a_socket_is_open() {
    let (a, _b, shared) = two_replicas().await;
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    shared.lock().alive.retain(|replica| replica.id == a.member.id);
    shared.lock().alive.push(Replica {
        id: ReplicaId::new("c"),
        name: "c".to_owned(),
        url: format!("http://{}", other.local_addr().unwrap()),
        version: "1".to_owned(),
        state: ReplicaState::Ready,
        differences: Vec::new(),
    });
    drop(hold(&a).await);
    tokio::time::timeout(Duration::from_millis(700), other.accept()).await.unwrap_err();
    let eve = open(&a.server, "observer").await.unwrap();
    let (followed, _) = tokio::time::timeout(PATIENCE, other.accept()).await.unwrap().unwrap();
    drop(eve);
    let mut buffer = [0; 4096];
    let closed = async {
        loop {
            followed.readable().await.unwrap();
            if let Ok(0) = followed.try_read(&mut buffer) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.unwrap();
}

#[tokio::test]
async fn only_a_live_replica_with_the_keys_can_read_the_events_of_another_one() {
    let (shared, keys) = (Arc::<Mutex<Shared>>::default(), SealingKeys::generate().unwrap());
    let (a, b) = (start("a", &shared, &keys).await, start("b", &shared, &keys).await);
    let feed = async |more: &str| b.server.status("/control/feed", more).await;
    let header = |keys: &SealingKeys, purpose, text: &str| {
        format!("toolyard-follower: {}\r\n", keys.seal(purpose, text.as_bytes()).unwrap())
    };
    assert_eq!(feed("").await, 401);
    for token in ["secret", "observer"] {
        assert_eq!(feed(&format!("authorization: Bearer {token}\r\n")).await, 404);
    }
    let strange = SealingKeys::generate().unwrap();
    for refused in [
        "toolyard-follower: x\r\n".to_owned(),
        header(&strange, Purpose::Feed, "b a"),
        header(&keys, Purpose::Forward, "b a"),
        header(&keys, Purpose::Feed, "a b"),
        header(&keys, Purpose::Feed, "b"),
        header(&keys, Purpose::Feed, "b b"),
        header(&keys, Purpose::Feed, "b c"),
    ] {
        assert_eq!(feed(&refused).await, 404, "{refused}");
        assert_eq!(feed(&format!("authorization: Bearer observer\r\n{refused}")).await, 404);
    }
    let valid = header(&keys, Purpose::Feed, "b a");
    assert_eq!(feed(&valid).await, 200);
    // The header of a forwarded request is of no use here, nor is this one elsewhere.
    assert_eq!(b.server.status("/mcp/replicas", &valid).await, 401);
    a.member.die();
    assert_eq!(feed(&valid).await, 404, "the replica that it names is gone");
    assert!(b.member.find(&ReplicaId::new("a")).is_none());
}

#[tokio::test]
async fn a_stopping_replica_reports_its_last_calls() {
    let (a, b, _) = two_replicas().await;
    let mut eve = subscribe(&a, "observer", &CALLS, None).await;
    let held = hold(&b).await;
    event_where(&mut eve, |event| event["event"] == "call_started").await;
    b.stop.cancel();
    while TcpStream::connect(&b.server.address).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // The listener is closed, and the call still runs.
    drop(held);
    let ended = event_where(&mut eve, |event| event["event"] == "call_ended").await;
    assert_eq!((&ended["call"]["replica"], &ended["call"]["status"]), (&json!("b"), &json!("cancelled")));
}
