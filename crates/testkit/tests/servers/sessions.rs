//! Sessions with legacy servers: which clients share one, which client a question reaches, and when
//! a private session ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, CallerChannel, CallerUpdate, ClientCapabilities, ClientSession,
    ErrorKind, HubError, Outcome, Principal, Question, QuestionBatch, QuestionKind, RawAnswers, SourceName,
    SourceState, Yard,
};
use toolyard_testkit::harness::{until_equal, within_timeout};
use toolyard_upstream::{Era, ServerSettings, SessionSharing, TransportSettings, Upstream, UpstreamContext};

use super::ODD;
use super::tree::{command, keeper, mark, marked};

struct Server {
    yard: Arc<Yard>,
    upstream: Arc<Upstream>,
    mark: String,
}

impl Server {
    async fn start(kind: &str, sessions: SessionSharing) -> Self {
        Self::run(r#""$1" "$2" stdio"#, kind, sessions).await
    }

    async fn run(script: &str, kind: &str, sessions: SessionSharing) -> Self {
        let mark = mark();
        let transport = TransportSettings::Command(command("sh", &["-c", script, "sh", ODD, kind, &mark]));
        let settings = ServerSettings {
            era: Some(Era::Legacy),
            sessions,
            ..ServerSettings::new(SourceName::new("odd"), transport)
        };
        let me = to_raw(&json!({"name": "test", "version": "1"}));
        let upstream = Upstream::start(settings, UpstreamContext::new(keeper(), me).unwrap());
        let server = Self { yard: Yard::with_sources([Arc::clone(&upstream) as _]), upstream, mark };
        within_timeout("the server", async {
            while server.yard.status(&SourceName::new("odd")).unwrap().state != SourceState::Ready {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        server
    }

    /// Returns the number of sessions with the server. Each is a separate process.
    fn sessions(&self) -> usize {
        let is_shell = |pid: &u32| {
            std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default().starts_with(b"sh\0")
        };
        marked(&self.mark).iter().filter(|pid| is_shell(pid)).count()
    }

    async fn until_sessions(&self, expected: usize) -> Duration {
        until_equal("sessions", expected, || self.sessions()).await
    }

    /// Calls a tool as a client. The test answers its questions.
    fn call(&self, who: &Person, tool: &str, arguments: &Value) -> Called {
        let (client, updates) = CallerChannel::new(who.abilities.clone());
        let what = CallTarget::Tool { name: tool.to_owned(), arguments: Some(to_raw(arguments)) };
        let cancel = CancellationToken::new();
        let request = CallRequest {
            client,
            cancel: cancel.clone(),
            context: CallContext { client_session: who.session(), ..CallContext::default() },
            ..CallRequest::new(what, Principal::owner())
        };
        let yard = Arc::clone(&self.yard);
        Called { updates, cancel, task: tokio::spawn(async move { yard.call(request).await }) }
    }
}

/// A client that calls tools.
struct Person {
    session: Option<(String, CancellationToken)>,
    abilities: ClientCapabilities,
}

impl Person {
    fn new(session: &str) -> Self {
        let session = Some((session.to_owned(), CancellationToken::new()));
        let abilities =
            ClientCapabilities { elicit_form: true, sample: true, ..ClientCapabilities::default() };
        Self { session, abilities }
    }

    fn who_cannot_be_asked(session: &str) -> Self {
        Self { abilities: ClientCapabilities::default(), ..Self::new(session) }
    }

    fn with_roots(session: &str) -> Self {
        Self {
            abilities: ClientCapabilities { roots: true, ..ClientCapabilities::default() },
            ..Self::new(session)
        }
    }

    fn session(&self) -> Option<ClientSession> {
        let (id, ended) = self.session.as_ref()?;
        Some(ClientSession::new(id.as_str(), self.abilities.clone(), ended.clone()))
    }

    /// Ends the session with the yard.
    fn leave(&self) {
        self.session.as_ref().unwrap().1.cancel();
    }
}

struct Called {
    updates: mpsc::Receiver<CallerUpdate>,
    cancel: CancellationToken,
    task: JoinHandle<Result<Outcome, HubError>>,
}

struct Asked {
    question: Question,
    reply: tokio::sync::oneshot::Sender<Result<RawAnswers, HubError>>,
}

impl Asked {
    fn answer(self, answer: &Value) {
        let _ = self.reply.send(Ok(vec![(self.question.key, to_raw(answer))]));
    }

    fn give_name(self, name: &str) {
        assert_eq!(self.question.kind, QuestionKind::ElicitForm);
        self.answer(&json!({"action": "accept", "content": {"name": name}}));
    }
}

impl Called {
    async fn asked(&mut self) -> Asked {
        match within_timeout("a question", self.updates.recv()).await {
            Some(CallerUpdate::Ask(QuestionBatch { mut questions, reply })) if questions.len() == 1 => {
                Asked { question: questions.remove(0), reply }
            }
            other => panic!("expected a question, got {other:?}"),
        }
    }

    async fn outcome(mut self) -> (Result<Value, HubError>, bool) {
        let outcome = within_timeout("an outcome", &mut self.task).await.unwrap();
        let mut was_asked = false;
        while let Ok(update) = self.updates.try_recv() {
            was_asked |= matches!(update, CallerUpdate::Ask(_));
        }
        (outcome.map(|outcome| serde_json::from_str(outcome.body.get()).unwrap()), was_asked)
    }

    /// Returns the tool's answer. Fails if the caller was asked anything.
    async fn result(self) -> Value {
        let (result, was_asked) = self.outcome().await;
        assert!(!was_asked);
        result.unwrap()["structuredContent"].clone()
    }

    async fn result_after_questions(self) -> Value {
        self.outcome().await.0.unwrap()["structuredContent"].clone()
    }

    async fn error(self) -> HubError {
        self.outcome().await.0.unwrap_err()
    }
}

#[tokio::test]
async fn a_client_session_has_one_private_session_which_ends_within_two_seconds_of_it() {
    let server = Server::start("counts-sessions", SessionSharing::PerClient).await;
    let (ada, bob) = (Person::new("ada"), Person::new("bob"));
    let pid = async |who: &Person| server.call(who, "sessions", &json!({})).result().await["pid"].clone();
    // Concurrently and in sequence.
    let first: Vec<Called> = (0..3).map(|_| server.call(&ada, "sessions", &json!({}))).collect();
    let mut pids = Vec::new();
    for called in first {
        pids.push(called.result().await["pid"].clone());
    }
    pids.push(pid(&ada).await);
    pids.dedup();
    assert_eq!(pids.len(), 1, "{pids:?}");
    assert_ne!(pid(&bob).await, pids[0]);
    assert_eq!(server.sessions(), 3);
    ada.leave();
    let took = server.until_sessions(2).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_ne!(pid(&bob).await, pids[0]);
    server.upstream.stop().await;
    assert_eq!(server.sessions(), 0);
}

#[tokio::test]
async fn a_private_session_ends_in_time_also_where_the_server_ignores_that_it_is_over() {
    // The shell outlives its child, which ends with its input, and ignores SIGTERM.
    let script = r#"trap '' TERM HUP INT; "$1" "$2" stdio; while :; do sleep 1; done"#;
    let server = Server::run(script, "counts-sessions", SessionSharing::PerClient).await;
    let ada = Person::new("ada");
    server.call(&ada, "sessions", &json!({})).result().await;
    assert_eq!(server.sessions(), 2);
    ada.leave();
    let took = server.until_sessions(1).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    server.upstream.stop().await;
}

#[tokio::test]
async fn clients_share_one_session_and_the_only_call_in_flight_is_asked() {
    let server = Server::start("asks", SessionSharing::Auto).await;
    for name in ["ada", "bob"] {
        let mut called = server.call(&Person::new(name), "elicit", &json!({}));
        called.asked().await.give_name(name);
        assert_eq!(called.result_after_questions().await["elicit"]["content"]["name"], name);
    }
    // Also without a session with the yard.
    let stranger = Person { session: None, ..Person::new("x") };
    let mut called = server.call(&stranger, "elicit", &json!({}));
    called.asked().await.give_name("Eve");
    assert_eq!(called.result_after_questions().await["elicit"]["content"]["name"], "Eve");
    assert_eq!(server.sessions(), 1);
    server.upstream.stop().await;
}

#[tokio::test]
async fn several_calls_of_one_client_are_asked_on_the_shared_session() {
    let server = Server::start("asks", SessionSharing::Auto).await;
    let ada = Person::new("ada");
    let waiting = server.call(&ada, "wait", &json!({"every_ms": 60_000}));
    let mut called = server.call(&ada, "elicit", &json!({}));
    called.asked().await.give_name("Ada");
    assert_eq!(called.result_after_questions().await["elicit"]["content"]["name"], "Ada");
    waiting.cancel.cancel();
    assert_eq!(server.sessions(), 1);
    server.upstream.stop().await;
}

#[tokio::test]
async fn a_question_that_may_be_of_two_clients_reaches_neither_and_both_get_private_sessions() {
    for sessions in [SessionSharing::Auto, SessionSharing::Shared] {
        let server = Server::start("asks", sessions).await;
        let (ada, bob) = (Person::new("ada"), Person::new("bob"));
        let mut of_ada = server.call(&ada, "elicit", &json!({}));
        let _open = of_ada.asked().await;
        let of_bob = server.call(&bob, "elicit", &json!({}));
        let (bobs, was_asked) = of_bob.outcome().await;
        assert!(!was_asked);
        for error in [bobs.unwrap_err(), of_ada.error().await] {
            assert_eq!(error.kind(), ErrorKind::ToolFailed);
            assert!(error.message().contains("odd sent elicitation/create while"), "{error}");
            let next = if sessions == SessionSharing::Auto { "repeat the call" } else { "per-client" };
            assert!(error.suggestion().unwrap().contains(next), "{error:?}");
        }
        assert_eq!(server.sessions(), 1);
        if sessions == SessionSharing::Auto {
            // From now on each client has a private session and is asked only about its own calls.
            let mut of_ada = server.call(&ada, "elicit", &json!({}));
            let to_ada = of_ada.asked().await;
            let mut of_bob = server.call(&bob, "elicit", &json!({}));
            of_bob.asked().await.give_name("Bob");
            to_ada.give_name("Ada");
            assert_eq!(of_bob.result_after_questions().await["elicit"]["content"]["name"], "Bob");
            assert_eq!(of_ada.result_after_questions().await["elicit"]["content"]["name"], "Ada");
            assert_eq!(server.sessions(), 3);
            // A client that cannot be asked needs no private session.
            server.call(&Person::who_cannot_be_asked("eve"), "wait", &json!({"every_ms": 1})).result().await;
            assert_eq!(server.sessions(), 3);
        }
        server.upstream.stop().await;
    }
}

#[tokio::test]
async fn a_question_of_a_call_whose_client_cannot_answer_does_not_reach_another_client() {
    let server = Server::start("asks", SessionSharing::Auto).await;
    let eve = Person::who_cannot_be_asked("eve");
    let answers = server.call(&eve, "elicit", &json!({})).result().await;
    assert!(answers["elicit"]["message"].as_str().unwrap().contains("does not support it"), "{answers}");
    // Ada could answer, but her call waits for something else. The question is about Eve's call.
    let of_ada = server.call(&Person::new("ada"), "wait", &json!({"every_ms": 60_000}));
    let answers = server.call(&eve, "elicit", &json!({})).result().await;
    let message = answers["elicit"]["message"].as_str().unwrap();
    assert!(message.contains("does not say which call it is for"), "{message}");
    let (ended, was_asked) = of_ada.outcome().await;
    assert!(!was_asked);
    assert!(ended.unwrap_err().suggestion().unwrap().contains("repeat the call"));
    server.upstream.stop().await;
}

#[tokio::test]
async fn a_question_about_a_call_that_was_given_up_does_not_reach_the_next_client() {
    let server = Server::start("asks", SessionSharing::Auto).await;
    let (ada, bob) = (Person::new("ada"), Person::new("bob"));
    let mut given_up = server.call(&ada, "elicit", &json!({}));
    drop(given_up.asked().await);
    given_up.cancel.cancel();
    given_up.error().await;
    // The server may still ask about Ada's call, so the next question is not attributed to Bob.
    let (bobs, was_asked) = server.call(&bob, "elicit", &json!({})).outcome().await;
    assert!(!was_asked);
    assert!(bobs.unwrap_err().message().contains("not clear which client"));
    // It is clear again once Bob has a private session.
    let mut again = server.call(&bob, "elicit", &json!({}));
    again.asked().await.give_name("Bob");
    assert_eq!(again.result_after_questions().await["elicit"]["content"]["name"], "Bob");
    server.upstream.stop().await;
}

#[tokio::test]
async fn roots_are_answered_without_a_person_and_clients_with_roots_get_private_sessions() {
    let server = Server::start("asks", SessionSharing::Auto).await;
    let answers = server.call(&Person::new("ada"), "roots", &json!({})).result().await;
    assert_eq!(answers["roots"], json!({"roots": []}));
    assert_eq!(server.sessions(), 1);
    let (bob, eve) = (Person::with_roots("bob"), Person::with_roots("eve"));
    for (who, uri) in [(&bob, "file:///bob"), (&eve, "file:///eve")] {
        let mut called = server.call(who, "roots", &json!({}));
        let roots = json!({"roots": [{"uri": uri}]});
        called.asked().await.answer(&roots);
        assert_eq!(called.result_after_questions().await["roots"], roots);
    }
    assert_eq!(server.sessions(), 3);
    server.upstream.stop().await;
}

#[tokio::test]
async fn a_question_of_the_server_itself_is_not_put_to_the_next_caller() {
    let server = Server::start("asks-itself", SessionSharing::Auto).await;
    let answers = server.call(&Person::new("ada"), "told", &json!({})).result().await;
    assert_eq!(answers["roots"], json!({"roots": []}));
    let why = answers["elicit"]["message"].as_str().unwrap();
    assert!(why.contains("no call is in flight"), "{why}");
    server.upstream.stop().await;
}
