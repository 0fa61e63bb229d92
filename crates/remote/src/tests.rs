//! The mirror of a made-up yard, which says on its control socket what a test tells it to.

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
    told: mpsc::Receiver<RemoteNotice>,
    talk: Talk,
    fake: Fake,
}

async fn mirrored(principal: Value) -> Mirrored {
    let fake = Fake::start(principal).await;
    let (sender, told) = mpsc::channel(1_000);
    let (mirror, talk) =
        tokio::join!(RemoteYard::connect(fake.url(), Some("t".to_owned()), sender), fake.meet());
    Mirrored { mirror: mirror.unwrap(), told, talk, fake }
}

fn owner() -> Value {
    json!({"name": "owner", "manage": true, "observe": true})
}

impl Mirrored {
    fn call(
        &self,
        what: CallTarget,
        client: CallerChannel,
    ) -> tokio::task::JoinHandle<Result<Outcome, HubError>> {
        let yard = std::sync::Arc::clone(&self.mirror.yard);
        let request = CallRequest { client, ..CallRequest::new(what, Principal::owner()) };
        tokio::spawn(async move { yard.call(request).await })
    }

    /// Lines for the log, and notices, until one has this in it.
    async fn until_told(&mut self, part: &str) -> Vec<String> {
        let mut lines = Vec::new();
        soon(part, async {
            while !lines.last().is_some_and(|line: &String| line.contains(part)) {
                match self.told.recv().await.unwrap() {
                    RemoteNotice::Log(line) => lines.push(line.text),
                    RemoteNotice::Connectivity(away) => lines.push(format!("away: {away:?}")),
                    RemoteNotice::CommandFailed(text) => lines.push(format!("failed: {text}")),
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
async fn everything_that_the_yard_has_is_here_under_the_same_names() {
    let it = mirrored(owner()).await;
    let view = it.mirror.yard.view(&Principal::owner());
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
    let status = it.mirror.yard.status(&SourceName::new("files")).unwrap();
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
    let demo = it.mirror.yard.status(&SourceName::new("demo")).unwrap();
    assert_eq!((demo.state, demo.reason.as_deref(), demo.transport), (SourceState::Failed, Some("no"), None));
}

#[tokio::test]
async fn a_call_is_told_of_and_answers_what_it_is_asked() {
    let mut it = mirrored(owner()).await;
    let abilities = ClientCapabilities {
        elicit_form: true,
        log_level: Some(LogLevel::Debug),
        ..ClientCapabilities::default()
    };
    let (client, mut updates) = CallerChannel::new(abilities);
    let running = it.call(tool("mcp__files__read_it"), client);
    let order = it.talk.until("mcp_call").await;
    let said = json!({"id": order["id"], "subtype": "mcp_call", "tool": "mcp__files__read_it",
        "arguments": {"a": 1}, "asks": ["elicit_form"]});
    assert_eq!(order, said);
    let id = &order["id"];
    it.talk.say(json!({"type": "progress", "id": id, "progress": 1, "total": 2, "message": "half"})).await;
    it.talk.say(json!({"type": "chunk", "id": id, "chunk": {"piece": 1}})).await;
    it.talk.say(json!({"type": "log", "id": id, "level": "warning", "data": "careful"})).await;
    let question = json!({"key": "q", "kind": "elicit_form", "params": {"message": "who?"}});
    it.talk.say(json!({"type": "ask", "id": id, "questions": [question]})).await;
    let mut heard = Vec::new();
    loop {
        match soon("an update", updates.recv()).await.unwrap() {
            CallerUpdate::Ask(ask) => {
                assert_eq!(ask.questions[0].params.get(), r#"{"message":"who?"}"#);
                ask.reply.send(Ok(vec![("q".to_owned(), to_raw(&json!({"action": "decline"})))])).unwrap();
                break;
            }
            other => heard.push(format!("{other:?}")),
        }
    }
    assert_eq!(heard.len(), 3, "{heard:?}");
    let answer = it.talk.until("mcp_answer").await;
    assert_eq!((&answer["request"], &answer["answers"]), (id, &json!({"q": {"action": "decline"}})));
    let result = json!({"content": [], "isError": true, "n": 12345678901234567890_u64});
    let response = json!({"executionId": "exec-1", "durationMs": 5, "result": result});
    it.talk.say(json!({"type": "response", "id": id, "subtype": "mcp_call", "response": response})).await;
    let outcome = soon("the outcome", running).await.unwrap().unwrap();
    assert_eq!((outcome.body.get(), outcome.failed), (result.to_string().as_str(), true));
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_there() {
    let mut it = mirrored(owner()).await;
    let running = it.call(tool("add"), CallerChannel::silent());
    let order = it.talk.until("mcp_call").await;
    running.abort();
    let cancel = it.talk.until("mcp_cancel").await;
    assert_eq!(cancel["request"], order["id"]);
}

#[tokio::test]
async fn errors_come_back_in_the_words_of_the_yard() {
    let mut it = mirrored(owner()).await;
    let read = CallTarget::Resource { uri: "file:///a".to_owned() };
    for (what, code, kind) in [
        (tool("add"), "RATE_LIMIT_ERROR", ErrorKind::RateLimited),
        (tool("add"), "EXECUTION_ERROR", ErrorKind::ToolFailed),
        (read, "NOT_FOUND", ErrorKind::UnknownResource),
        (
            CallTarget::Prompt { name: "greet".to_owned(), arguments: None },
            "NOT_FOUND",
            ErrorKind::UnknownPrompt,
        ),
    ] {
        let running = it.call(what, CallerChannel::silent());
        let order = it.talk.until("").await;
        let error = json!({"code": code, "message": "no", "suggestion": "do"});
        it.talk.say(json!({"type": "error", "id": order["id"], "subtype": "x", "error": error})).await;
        let error = soon("the error", running).await.unwrap().unwrap_err();
        assert_eq!((error.kind(), error.message_with_suggestion()), (kind, "no; do".to_owned()));
    }
}

#[tokio::test]
async fn a_line_that_breaks_fails_its_calls_is_told_and_comes_back_where_it_was() {
    let mut it = mirrored(owner()).await;
    it.until_told("connected to").await;
    it.talk.say(json!({"type": "event", "event": "changed", "seq": 41, "at": "x", "tools": true})).await;
    it.talk.until("mcp_tools").await;
    let running = it.call(tool("add"), CallerChannel::silent());
    it.talk.until("mcp_call").await;
    it.talk.hang_up(1001, "the yard stops").await;
    let error = soon("the error", running).await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost);
    let lines = it.until_told("away: Some").await;
    assert_eq!(lines.last().unwrap(), "away: Some(\"the yard stops; retrying\")");
    it.until_state("files", SourceState::Retrying).await;
    let refused = it.call(tool("add"), CallerChannel::silent()).await.unwrap().unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotConnected);
    let told = |order| it.mirror.yard.manage(&Principal::owner(), "files", order);
    assert_eq!(told(SourceCommand::Disable), Err(ManageError::Unreachable("the yard stops".to_owned())));
    // Somebody does not want to wait.
    assert_eq!(told(SourceCommand::Reconnect), Ok(()));
    it.talk = it.fake.meet().await;
    assert_eq!(it.talk.subscribed["after"], 41);
    it.until_told("away: None").await;
    it.until_state("files", SourceState::Ready).await;
}

#[tokio::test]
async fn a_token_that_is_no_longer_good_is_tried_again_only_by_somebody() {
    let mut it = mirrored(owner()).await;
    it.talk.hang_up(4401, "the token has expired").await;
    it.until_told("away: Some(\"the token has expired; r tries again\")").await;
    it.until_state("files", SourceState::Failed).await;
    it.mirror.yard.manage(&Principal::owner(), "files", SourceCommand::Reconnect).unwrap();
    it.talk = it.fake.meet().await;
    it.until_state("files", SourceState::Ready).await;
}

#[tokio::test]
async fn what_a_token_may_not_do_is_said_and_not_tried() {
    let mut it = mirrored(json!({"name": "ann", "manage": false, "observe": false})).await;
    let lines = it.until_told("connected to").await;
    assert!(lines.last().unwrap().ends_with("as ann; it may neither observe (others' calls, standard error and messages are not shown) nor manage servers"), "{lines:?}");
    let told = it.mirror.yard.manage(&Principal::owner(), "files", SourceCommand::Disable);
    assert_eq!(told, Err(ManageError::Forbidden("manage")));
    assert_eq!(it.talk.subscribed["events"].as_array().unwrap().len(), 6);
}

#[tokio::test]
async fn servers_are_told_what_to_do_and_a_refusal_is_heard_of() {
    let mut it = mirrored(owner()).await;
    it.mirror.yard.manage(&Principal::owner(), "files", SourceCommand::Disable).unwrap();
    let order = it.talk.until("mcp_disable").await;
    assert_eq!(order["server_name"], "files");
    let error = json!({"code": "RATE_LIMIT_ERROR", "message": "it is busy"});
    it.talk.say(json!({"type": "error", "id": order["id"], "subtype": "mcp_disable", "error": error})).await;
    it.until_told("failed: files: it is busy").await;
    let mut files = fake::servers()["servers"][0].clone();
    files["state"] = json!("disabled");
    it.talk.say(json!({"type": "event", "event": "server", "seq": 2, "at": "x", "server": files})).await;
    it.until_state("files", SourceState::Disabled).await;
    let mut events = it.mirror.yard.events().subscribe_changes();
    it.talk
        .say(json!({"type": "event", "event": "server", "seq": 3, "serverName": "files", "gone": true}))
        .await;
    soon("it is gone", async {
        while !matches!(&*events.recv().await.unwrap(), YardEvent::StatusChanged { source } if source.as_str() == "files")
        {
        }
    })
    .await;
    assert!(!it.mirror.yard.has_source(&SourceName::new("files")));
}

#[tokio::test]
async fn others_calls_are_told_of_and_ours_are_not_told_twice() {
    let mut it = mirrored(owner()).await;
    let running = it.call(tool("add"), CallerChannel::silent());
    let order = it.talk.until("mcp_call").await;
    let call = |id: &str, front: &str, status: &str| {
        json!({"id": id, "thing": "tool", "subject": "add", "serverName": "demo", "principal": "ann",
            "front": front, "startedAt": "2026-11-15T12:00:00.000Z", "status": status, "durationMs": 7})
    };
    let event = |name: &str, call: Value| json!({"type": "event", "event": name, "seq": 5, "call": call});
    it.talk.say(event("call_started", call("exec-1", "control", "running"))).await;
    it.talk.say(event("call_started", call("exec-2", "rest", "running"))).await;
    it.talk.say(event("call_ended", call("exec-1", "control", "succeeded"))).await;
    it.talk.say(event("call_ended", call("exec-2", "rest", "failed"))).await;
    // Nothing that cannot be read does any harm.
    for odd in [json!(1), json!({}), json!({"type": "event"}), json!({"type": "response", "id": "x"})] {
        it.talk.say(odd).await;
    }
    it.talk.say(json!({"type": "event", "event": "lagged", "seq": 9, "missed": 3})).await;
    let lines = it.until_told("events were missed").await;
    let of_calls: Vec<&String> = lines.iter().filter(|line| line.contains("add")).collect();
    assert_eq!(
        of_calls,
        ["tool add by ann over rest is called", "tool add by ann over rest failed after 7 ms"]
    );
    it.talk.until("mcp_servers").await;
    it.talk.say(json!({"type": "response", "id": order["id"], "response": {"result": {}}})).await;
    assert!(!soon("the outcome", running).await.unwrap().unwrap().failed);
}

#[tokio::test]
async fn the_history_and_the_messages_are_those_of_the_yard() {
    let mut it = mirrored(owner()).await;
    assert_eq!(it.mirror.yard.transcript(&Principal::owner(), "files", None), Ok(Vec::new()));
    // Asked for once somebody has looked, and told with numbers of their own.
    let said = |seq: u64, at: &str| json!({"seq": seq, "at": at, "direction": "to_server", "text": at});
    let first = it.talk.until("mcp_transcript").await;
    assert_eq!(first.get("after"), None);
    let messages = [said(7, "2026-11-15T12:00:00.000Z"), said(8, "2026-11-15T12:00:01.000Z")];
    it.talk.answer(&first, json!({"serverName": "files", "messages": messages})).await;
    let second = it.talk.until("mcp_transcript").await;
    assert_eq!(second["after"], 8);
    let all = it.mirror.yard.transcript(&Principal::owner(), "files", None).unwrap();
    assert_eq!(all.iter().map(|said| said.number).collect::<Vec<_>>(), [0, 1]);
    let history = std::sync::Arc::clone(it.mirror.yard.history().unwrap());
    let recent = tokio::spawn(history.recent(HistoryQuery {
        limit: 9_000,
        text: Some("x".to_owned()),
        ..Default::default()
    }));
    let order = it.talk.until("mcp_history").await;
    assert_eq!((&order["limit"], &order["text"]), (&json!(500), &json!("x")));
    let call = |status: &str| {
        json!({"id": format!("exec-{}", "0a".repeat(16)), "thing": "prompt", "subject": "p", "principal": "ann",
            "startedAt": "2026-11-15T12:00:00.000Z", "durationMs": 7, "status": status, "error": "why"})
    };
    // The last is of an older yard.
    let calls = [call("running"), call("cancelled"), json!({"id": 1}), call("succeeded"), call("completed")];
    it.talk.answer(&order, json!({ "calls": calls })).await;
    let calls = soon("the history", recent).await.unwrap().unwrap();
    let told: Vec<_> =
        calls.iter().map(|call| (CallStatus::from(call.ended), call.error.as_deref())).collect();
    let why = Some("why");
    assert_eq!(
        told,
        [(CallStatus::Cancelled, why), (CallStatus::Succeeded, why), (CallStatus::Succeeded, why)]
    );
}
