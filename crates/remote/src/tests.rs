//! Tests of a remote yard against a fake control socket.

mod fake;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    AuthStatus, CallRequest, CallStatus, CallTarget, CallerChannel, CallerUpdate, ClientCapabilities,
    ErrorKind, HistoryQuery, HubError, LogLevel, ManageError, Outcome, Principal, SourceCommand, SourceName,
    SourceState, YardEvent,
};

use self::fake::{Fake, Talk, soon};
use super::{RemoteNotice, RemoteYard};

struct Mirrored {
    mirror: RemoteYard,
    notices: mpsc::Receiver<RemoteNotice>,
    talk: Talk,
    fake: Fake,
}

async fn start(principal: Value) -> Mirrored {
    let fake = Fake::start(principal).await;
    let (sender, notices) = mpsc::channel(1_000);
    let (mirror, talk) =
        tokio::join!(RemoteYard::connect(fake.url(), Some("t".to_owned()), sender), fake.meet());
    Mirrored { mirror: mirror.unwrap(), notices, talk, fake }
}

fn owner() -> Value {
    json!({"name": "owner", "manage": true, "observe": true})
}

impl Mirrored {
    fn call(
        &self,
        target: CallTarget,
        client: CallerChannel,
    ) -> tokio::task::JoinHandle<Result<Outcome, HubError>> {
        let yard = std::sync::Arc::clone(&self.mirror.yard);
        let request = CallRequest { client, ..CallRequest::new(target, Principal::owner()) };
        tokio::spawn(async move { yard.call(request).await })
    }

    /// Returns log lines and notices up to the first one that contains `part`.
    async fn until_notice(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        soon(part, async {
            while !lines.last().is_some_and(|line: &String| line.contains(part)) {
                match self.notices.recv().await.unwrap() {
                    RemoteNotice::Log(line) => lines.push(line.text),
                    RemoteNotice::Connectivity(reason) => lines.push(format!("away: {reason:?}")),
                    RemoteNotice::CommandFailed(text) => lines.push(format!("failed: {text}")),
                    RemoteNotice::Replicas(None) => {}
                    RemoteNotice::Replicas(Some(all)) => lines.push(format!("replicas: {all:?}")),
                }
            }
        })
        .await;
        lines
    }

    async fn until_state(&self, name: &str, state: SourceState) {
        soon(state.as_str(), async {
            while self.mirror.yard.status(&SourceName::new(name)).map(|status| status.state) != Some(state) {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

fn tool(name: &str) -> CallTarget {
    CallTarget::Tool { name: name.to_owned(), arguments: Some(to_raw(&json!({"a": 1}))) }
}

#[tokio::test]
async fn the_local_yard_has_everything_under_the_same_names() {
    let mirrored = start(owner()).await;
    let view = mirrored.mirror.yard.view(&Principal::owner());
    let tools: Vec<&str> = view.tools().map(|tool| tool.full_name.as_str()).collect();
    assert_eq!(tools, ["mcp__files__read.it", "mcp__files__write", "add"].map(|name| name.replace('.', "_")));
    assert_eq!(
        view.prompts().map(|prompt| prompt.full_name.as_str()).collect::<Vec<_>>(),
        ["mcp__files__greet"]
    );
    let greet = view.prompts().next().unwrap();
    assert_eq!(greet.definition.get(), r#"{"name":"greet","x":1}"#);
    assert_eq!(view.resources().map(|resource| resource.uri.as_str()).collect::<Vec<_>>(), ["file:///a"]);
    let templates = view.templates().map(|template| template.template.as_str());
    assert_eq!(templates.collect::<Vec<_>>(), ["file:///{path}"]);
    let status = mirrored.mirror.yard.status(&SourceName::new("files")).unwrap();
    assert_eq!(
        (status.state, status.transport, status.era, status.version, status.authorization, &*status.stderr),
        (
            SourceState::Ready,
            Some("stdio"),
            Some("legacy"),
            Some("2025-11-25"),
            AuthStatus::OAuth,
            &["a line".to_owned()][..]
        )
    );
    assert!(status.since.elapsed().as_secs() >= 59, "{:?}", status.since.elapsed());
    let demo = mirrored.mirror.yard.status(&SourceName::new("demo")).unwrap();
    assert_eq!((demo.state, demo.reason.as_deref(), demo.transport), (SourceState::Failed, Some("no"), None));
}

#[tokio::test]
async fn a_call_forwards_updates_and_answers_questions() {
    let mut mirrored = start(owner()).await;
    let capabilities = ClientCapabilities {
        elicit_form: true,
        log_level: Some(LogLevel::Debug),
        ..ClientCapabilities::default()
    };
    let (client, mut updates) = CallerChannel::new(capabilities);
    let running = mirrored.call(tool("mcp__files__read_it"), client);
    let request = mirrored.talk.until("mcp_call").await;
    let expected = json!({"id": request["id"], "subtype": "mcp_call", "tool": "mcp__files__read_it",
        "arguments": {"a": 1}, "asks": ["elicit_form"]});
    assert_eq!(request, expected);
    let id = &request["id"];
    mirrored
        .talk
        .say(json!({"type": "progress", "id": id, "progress": 1, "total": 2, "message": "half"}))
        .await;
    mirrored.talk.say(json!({"type": "chunk", "id": id, "chunk": {"piece": 1}})).await;
    mirrored.talk.say(json!({"type": "log", "id": id, "level": "warning", "data": "careful"})).await;
    let question = json!({"key": "q", "kind": "elicit_form", "params": {"message": "who?"}});
    mirrored.talk.say(json!({"type": "ask", "id": id, "questions": [question]})).await;
    let mut received = Vec::new();
    loop {
        match soon("an update", updates.recv()).await.unwrap() {
            CallerUpdate::Ask(ask) => {
                assert_eq!(ask.questions[0].params.get(), r#"{"message":"who?"}"#);
                ask.reply.send(Ok(vec![("q".to_owned(), to_raw(&json!({"action": "decline"})))])).unwrap();
                break;
            }
            other => received.push(format!("{other:?}")),
        }
    }
    assert_eq!(received.len(), 3, "{received:?}");
    let answer = mirrored.talk.until("mcp_answer").await;
    assert_eq!((&answer["request"], &answer["answers"]), (id, &json!({"q": {"action": "decline"}})));
    let result = json!({"content": [], "isError": true, "n": 12345678901234567890_u64});
    let response = json!({"executionId": "exec-1", "durationMs": 5, "result": result});
    mirrored
        .talk
        .say(json!({"type": "response", "id": id, "subtype": "mcp_call", "response": response}))
        .await;
    let outcome = soon("the outcome", running).await.unwrap().unwrap();
    assert_eq!((outcome.body.get(), outcome.failed), (result.to_string().as_str(), true));
}

#[tokio::test]
async fn a_dropped_call_is_canceled_on_the_yard() {
    let mut mirrored = start(owner()).await;
    let running = mirrored.call(tool("add"), CallerChannel::silent());
    let request = mirrored.talk.until("mcp_call").await;
    running.abort();
    let cancel = mirrored.talk.until("mcp_cancel").await;
    assert_eq!(cancel["request"], request["id"]);
}

#[tokio::test]
async fn errors_of_the_yard_are_returned() {
    let mut mirrored = start(owner()).await;
    let read = CallTarget::Resource { uri: "file:///a".to_owned() };
    for (target, code, kind) in [
        (tool("add"), "RATE_LIMIT_ERROR", ErrorKind::RateLimited),
        (tool("add"), "EXECUTION_ERROR", ErrorKind::ToolFailed),
        (read, "NOT_FOUND", ErrorKind::UnknownResource),
        (
            CallTarget::Prompt { name: "greet".to_owned(), arguments: None },
            "NOT_FOUND",
            ErrorKind::UnknownPrompt,
        ),
    ] {
        let running = mirrored.call(target, CallerChannel::silent());
        let request = mirrored.talk.until("").await;
        let error = json!({"code": code, "message": "no", "suggestion": "do"});
        mirrored
            .talk
            .say(json!({"type": "error", "id": request["id"], "subtype": "x", "error": error}))
            .await;
        let error = soon("the error", running).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.message_with_suggestion()), (kind, "no\nhint: do".to_owned()));
    }
}

#[tokio::test]
async fn a_lost_connection_fails_its_calls_and_resumes_after_a_reconnect() {
    let mut mirrored = start(owner()).await;
    mirrored.until_notice("connected to").await;
    mirrored
        .talk
        .say(json!({"type": "event", "event": "changed", "seq": 41, "at": "x", "tools": true}))
        .await;
    mirrored.talk.until("mcp_tools").await;
    let running = mirrored.call(tool("add"), CallerChannel::silent());
    mirrored.talk.until("mcp_call").await;
    mirrored.talk.hang_up(1001, "the yard stops").await;
    let error = soon("the error", running).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    let lines = mirrored.until_notice("away: Some").await;
    assert_eq!(lines.last().unwrap(), "away: Some(\"the yard stops; retrying\")");
    mirrored.until_state("files", SourceState::Retrying).await;
    let refused = mirrored.call(tool("add"), CallerChannel::silent()).await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotConnected);
    let manage = |command| mirrored.mirror.yard.manage(&Principal::owner(), "files", command);
    assert_eq!(manage(SourceCommand::Disable), Err(ManageError::Unreachable("the yard stops".to_owned())));
    // Reconnects without waiting for the delay.
    assert_eq!(manage(SourceCommand::Reconnect), Ok(()));
    mirrored.talk = mirrored.fake.meet().await;
    assert_eq!(mirrored.talk.subscribed["after"], 41);
    mirrored.until_notice("away: None").await;
    mirrored.until_state("files", SourceState::Ready).await;
}

#[tokio::test]
async fn an_expired_token_is_retried_only_on_request() {
    let mut mirrored = start(owner()).await;
    mirrored.talk.hang_up(4401, "the token has expired").await;
    mirrored.until_notice("away: Some(\"the token has expired; press r to retry\")").await;
    mirrored.until_state("files", SourceState::Failed).await;
    mirrored.mirror.yard.manage(&Principal::owner(), "files", SourceCommand::Reconnect).unwrap();
    mirrored.talk = mirrored.fake.meet().await;
    mirrored.until_state("files", SourceState::Ready).await;
}

#[tokio::test]
async fn missing_permissions_are_logged_and_enforced() {
    let mut mirrored = start(json!({"name": "ann", "manage": false, "observe": false})).await;
    let lines = mirrored.until_notice("connected to").await;
    let expected = "as ann; no permission to observe or manage: calls of others, standard error and messages are \
                    hidden, and servers cannot be managed";
    assert!(lines.last().unwrap().ends_with(expected), "{lines:?}");
    let result = mirrored.mirror.yard.manage(&Principal::owner(), "files", SourceCommand::Disable);
    assert_eq!(result, Err(ManageError::Forbidden("manage")));
    assert_eq!(mirrored.talk.subscribed["events"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn commands_are_sent_and_their_failure_is_reported() {
    let mut mirrored = start(owner()).await;
    mirrored.mirror.yard.manage(&Principal::owner(), "files", SourceCommand::Disable).unwrap();
    let request = mirrored.talk.until("mcp_disable").await;
    assert_eq!(request["server_name"], "files");
    let error = json!({"code": "RATE_LIMIT_ERROR", "message": "it is busy"});
    mirrored
        .talk
        .say(json!({"type": "error", "id": request["id"], "subtype": "mcp_disable", "error": error}))
        .await;
    mirrored.until_notice("failed: files: it is busy").await;
    let mut files = fake::servers()["servers"][0].clone();
    files["state"] = json!("disabled");
    mirrored
        .talk
        .say(json!({"type": "event", "event": "server", "seq": 2, "at": "x", "server": files}))
        .await;
    mirrored.until_state("files", SourceState::Disabled).await;
    let mut events = mirrored.mirror.yard.events().subscribe_changes();
    mirrored
        .talk
        .say(json!({"type": "event", "event": "server", "seq": 3, "serverName": "files", "gone": true}))
        .await;
    soon("the server is removed", async {
        while !matches!(&*events.recv().await.unwrap(), YardEvent::StatusChanged { source } if source.as_str() == "files")
        {
        }
    })
    .await;
    assert!(!mirrored.mirror.yard.has_source(&SourceName::new("files")));
}

#[tokio::test]
async fn calls_of_others_are_logged_and_own_calls_are_not() {
    let mut mirrored = start(owner()).await;
    let running = mirrored.call(tool("add"), CallerChannel::silent());
    let request = mirrored.talk.until("mcp_call").await;
    let call = |id: &str, front: &str, status: &str| {
        json!({"id": id, "thing": "tool", "subject": "add", "serverName": "demo", "principal": "ann",
            "front": front, "startedAt": "2026-11-15T12:00:00.000Z", "status": status, "durationMs": 7})
    };
    let event = |name: &str, call: Value| json!({"type": "event", "event": name, "seq": 5, "call": call});
    mirrored.talk.say(event("call_started", call("exec-1", "control", "running"))).await;
    mirrored.talk.say(event("call_started", call("exec-2", "rest", "running"))).await;
    mirrored.talk.say(event("call_ended", call("exec-1", "control", "succeeded"))).await;
    mirrored.talk.say(event("call_ended", call("exec-2", "rest", "failed"))).await;
    // Malformed messages are ignored.
    for malformed in [json!(1), json!({}), json!({"type": "event"}), json!({"type": "response", "id": "x"})] {
        mirrored.talk.say(malformed).await;
    }
    mirrored.talk.say(json!({"type": "event", "event": "lagged", "seq": 9, "missed": 3})).await;
    let lines = mirrored.until_notice("events were missed").await;
    let call_lines: Vec<&String> = lines.iter().filter(|line| line.contains("add")).collect();
    assert_eq!(
        call_lines,
        ["tool add by ann over rest started", "tool add by ann over rest failed after 7 ms"]
    );
    mirrored.talk.until("mcp_servers").await;
    mirrored.talk.say(json!({"type": "response", "id": request["id"], "response": {"result": {}}})).await;
    assert!(!soon("the outcome", running).await.unwrap().unwrap().failed);
}

#[tokio::test]
async fn history_and_messages_come_from_the_yard() {
    let mut mirrored = start(owner()).await;
    assert_eq!(mirrored.mirror.yard.transcript(&Principal::owner(), "files", None), Ok(Vec::new()));
    // Requested after the first look, and numbered locally.
    let message = |seq: u64, at: &str| json!({"seq": seq, "at": at, "direction": "to_server", "text": at});
    let first = mirrored.talk.until("mcp_transcript").await;
    assert_eq!(first.get("after"), None);
    let messages = [message(7, "2026-11-15T12:00:00.000Z"), message(8, "2026-11-15T12:00:01.000Z")];
    mirrored.talk.answer(&first, json!({"serverName": "files", "messages": messages})).await;
    let second = mirrored.talk.until("mcp_transcript").await;
    assert_eq!(second["after"], 8);
    let all = mirrored.mirror.yard.transcript(&Principal::owner(), "files", None).unwrap();
    assert_eq!(all.iter().map(|entry| entry.number).collect::<Vec<_>>(), [0, 1]);
    let history = std::sync::Arc::clone(mirrored.mirror.yard.history().unwrap());
    let recent = tokio::spawn(history.recent(HistoryQuery {
        limit: 9_000,
        text: Some("x".to_owned()),
        ..Default::default()
    }));
    let request = mirrored.talk.until("mcp_history").await;
    assert_eq!((&request["limit"], &request["text"]), (&json!(500), &json!("x")));
    let call = |status: &str| {
        json!({"id": format!("exec-{}", "0a".repeat(16)), "thing": "prompt", "subject": "p", "principal": "ann",
            "startedAt": "2026-11-15T12:00:00.000Z", "durationMs": 7, "status": status, "error": "why"})
    };
    // The last status is from an older yard.
    let calls = [call("running"), call("cancelled"), json!({"id": 1}), call("succeeded"), call("completed")];
    mirrored.talk.answer(&request, json!({ "calls": calls })).await;
    let calls = soon("the history", recent).await.unwrap().unwrap();
    let outcomes: Vec<_> =
        calls.iter().map(|call| (CallStatus::from(call.ended), call.error.as_deref())).collect();
    let why = Some("why");
    assert_eq!(
        outcomes,
        [(CallStatus::Cancelled, why), (CallStatus::Succeeded, why), (CallStatus::Succeeded, why)]
    );
}

#[tokio::test]
async fn several_replicas_are_named_and_calls_elsewhere_are_those_of_others() {
    let principal = json!({"name": "owner", "manage": true, "observe": true, "replica": "a"});
    let mut mirrored = start(principal).await;
    mirrored.until_notice(r#"replicas: ReplicaSummary { replicas: ["a", "b"], problems: [] }"#).await;
    assert!(mirrored.talk.subscribed["events"].as_array().unwrap().contains(&json!("replicas")));
    let running = mirrored.call(tool("add"), CallerChannel::silent());
    let request = mirrored.talk.until("mcp_call").await;
    let call = |id: &str, replica: &str| {
        json!({"id": id, "thing": "tool", "subject": "add", "principal": "ann", "front": "control",
            "startedAt": "2026-11-15T12:00:00.000Z", "status": "running", "replica": replica})
    };
    for (id, replica) in [("exec-1", "b"), ("exec-2", "a")] {
        let call = call(id, replica);
        mirrored.talk.say(json!({"type": "event", "event": "call_started", "seq": 5, "call": call})).await;
    }
    let mut files = fake::servers()["servers"][0].clone();
    files["replicas"] =
        json!([{"name": "b", "state": "failed", "reason": "it exited"}, {"name": "c", "state": "ready"}]);
    mirrored.talk.say(json!({"type": "event", "event": "server", "seq": 6, "server": files})).await;
    let event = json!({"type": "event", "event": "replicas", "seq": 7, "store": "unavailable", "replicas": [{"name": "a"}]});
    mirrored.talk.say(event).await;
    let lines = mirrored.until_notice("replicas: a; store unavailable").await;
    let calls: Vec<&String> = lines.iter().filter(|line| line.contains("add")).collect();
    assert_eq!(calls, ["tool add by ann over control at b started"], "the own call runs at `a`");
    let status = mirrored.mirror.yard.status(&SourceName::new("files")).unwrap();
    assert_eq!(status.warnings, ["failed at replica b: it exited"]);
    mirrored.talk.say(json!({"type": "response", "id": request["id"], "response": {"result": {}}})).await;
    assert!(!soon("the outcome", running).await.unwrap().unwrap().failed);
}
