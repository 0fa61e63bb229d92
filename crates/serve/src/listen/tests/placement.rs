//! A server that one of two replicas runs.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{
    BoxFuture, CallRecord, CallerChannel, CallerUpdate, ClientCapabilities, ClientEra, ClientSession,
    DefinitionBudget, ErrorKind, ExecutionId, HubError, LogLevel, LogLine, Outcome, Permissions, Principal,
    Progress, Question, QuestionKind, Source, SourceCall, SourceError, SourceName, SourceNotifier,
    SourceOffer, SourceState, SourceStatus, SourceTarget, ToolListing, ToolOffer, YardEvent,
};
use toolyard_seal::{Purpose, SealingKeys};

use super::members::{RunningReplica, two_replicas};
use super::{BEARER, PATIENCE};
use crate::replicas::{PlaceableServer, PlacedServer, StartedServer};

const NAME: &str = "stateful";

/// What the tests see of all runs of the server.
#[derive(Default)]
struct Observed {
    started: AtomicUsize,
    running: AtomicUsize,
    calls: Mutex<Vec<Arc<CallRecord>>>,
    canceled: AtomicUsize,
    /// The sessions that have ended.
    ended: Arc<Mutex<Vec<String>>>,
    watched: Mutex<Vec<String>>,
}

/// One run of the server.
struct Run {
    name: SourceName,
    number: usize,
    offer: Mutex<Arc<SourceOffer>>,
    notifier: Mutex<Option<SourceNotifier>>,
    observed: Arc<Observed>,
}

/// Counts a call that is dropped before it ends.
struct CancelGuard<'a>(&'a Observed);

impl Drop for CancelGuard<'_> {
    fn drop(&mut self) {
        self.0.canceled.fetch_add(1, Ordering::SeqCst);
    }
}

fn tool(name: &str) -> ToolOffer {
    ToolOffer {
        definition: to_raw(&json!({"name": name, "inputSchema": {"type": "object"}})),
        permissions: vec!["use".to_owned()],
        metadata: Map::from_iter([("author".to_owned(), json!("ada"))]),
        hooks: Vec::new(),
        listing: ToolListing::Unlisted,
    }
}

impl Run {
    fn set_tools(&self, names: &[&str]) {
        let tools = names.iter().map(|name| tool(name)).collect();
        *self.offer.lock() = Arc::new(SourceOffer { tools, ..SourceOffer::default() });
        self.notifier.lock().as_ref().unwrap().offer_changed();
    }

    async fn perform(&self, call: SourceCall) -> Result<Outcome, HubError> {
        let SourceTarget::Tool { name, arguments } = &call.target else { unreachable!() };
        self.observed.calls.lock().push(Arc::clone(&call.record));
        match name.as_str() {
            "talk" => {
                let message = Some("half".to_owned());
                call.client.report_progress(Progress { progress: 1.0, total: Some(2.0), message });
                let data = json!({"at": 1});
                call.client.log(LogLine { level: LogLevel::Info, logger: Some("x".to_owned()), data });
                call.client.send_chunk(json!("chunk")).await;
                let question = |key: &str| Question {
                    key: key.to_owned(),
                    kind: QuestionKind::ElicitForm,
                    params: from_text("{\"message\":\n\"?\"}".to_owned()),
                };
                let answers = call.client.ask(vec![question("a"), question("b")]).await?;
                let answers: Vec<Value> =
                    answers.iter().map(|(key, answer)| json!([key, answer.get()])).collect();
                let body = json!({"answers": answers, "headers": call.headers, "meta": call.meta, "arguments": arguments});
                Ok(Outcome { body: to_raw(&body), failed: true, modern: true })
            }
            "fail" => {
                let data = Some(json!({"x": 1}));
                Err(HubError::new(ErrorKind::RateLimited, "too many")
                    .with_suggestion("wait")
                    .with_details(json!({"most": 3}))
                    .with_retry_after(Duration::from_millis(1_500))
                    .with_source_error(SourceError { code: -32_042, message: "no".to_owned(), data }))
            }
            "hold" => {
                let guard = CancelGuard(&self.observed);
                call.client.report_progress(Progress { progress: 1.0, total: None, message: None });
                std::future::pending::<()>().await;
                drop(guard);
                unreachable!()
            }
            "slow" => {
                call.client.report_progress(Progress { progress: 1.0, total: None, message: None });
                tokio::time::sleep(Duration::from_millis(500)).await;
                Ok(Outcome::success(to_raw(&self.number)))
            }
            "session" => {
                let session = call.record.context.client_session.clone().unwrap();
                let ended = Arc::clone(&self.observed.ended);
                tokio::spawn(async move {
                    session.ended().cancelled().await;
                    ended.lock().push(session.id().to_string());
                });
                Ok(Outcome::success(to_raw(&self.number)))
            }
            _ => Ok(Outcome::success(to_raw(&self.number))),
        }
    }
}

impl Source for Run {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer.lock())
    }

    fn status(&self) -> SourceStatus {
        SourceStatus { transport: Some("stdio"), version: Some("2025-11-25"), ..SourceStatus::ready() }
    }

    fn attach(&self, notifier: SourceNotifier) {
        let is_first = self.notifier.lock().replace(notifier).is_none();
        if is_first {
            self.set_tools(&["run"]);
        }
    }

    fn watch(&self, uri: &str) {
        self.observed.watched.lock().push(format!("+{uri}"));
    }

    fn unwatch(&self, uri: &str) {
        self.observed.watched.lock().push(format!("-{uri}"));
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(self.perform(call))
    }
}

/// Two replicas that know the server, and everything that happens to it.
struct Placed {
    a: RunningReplica,
    b: RunningReplica,
    servers: [Arc<PlacedServer>; 2],
    observed: Arc<Observed>,
    runs: Arc<Mutex<Vec<Arc<Run>>>>,
}

impl Placed {
    /// Starts both replicas. The first one runs the server.
    async fn start() -> Self {
        let (a, b, _) = two_replicas().await;
        let observed: Arc<Observed> = Arc::default();
        let runs: Arc<Mutex<Vec<Arc<Run>>>> = Arc::default();
        let add = |replica: &RunningReplica| {
            let (observed, runs) = (Arc::clone(&observed), Arc::clone(&runs));
            let server = replica.placed.add(PlaceableServer {
                name: SourceName::new(NAME),
                permissions: vec!["use".to_owned()],
                start_timeout: PATIENCE,
                definitions: DefinitionBudget::default(),
                start: Box::new(move || {
                    let number = observed.started.fetch_add(1, Ordering::SeqCst) + 1;
                    let before = observed.running.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(before, 0, "the server runs twice");
                    let run = Arc::new(Run {
                        name: SourceName::new(NAME),
                        number,
                        offer: Mutex::default(),
                        notifier: Mutex::default(),
                        observed: Arc::clone(&observed),
                    });
                    runs.lock().push(Arc::clone(&run));
                    let observed = Arc::clone(&observed);
                    let stop = Box::pin(async move {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        observed.running.fetch_sub(1, Ordering::SeqCst);
                    });
                    StartedServer { source: run, stop }
                }),
            });
            replica.yard.add(Arc::clone(&server) as Arc<dyn Source>);
            server
        };
        let first = add(&a);
        until("the first replica to run the server", || first.status().state == SourceState::Ready).await;
        let second = add(&b);
        until("the second replica to follow", || second.status().state == SourceState::Ready).await;
        Self { servers: [first, second], a, b, observed, runs }
    }

    fn run(&self) -> Arc<Run> {
        Arc::clone(self.runs.lock().last().unwrap())
    }

    /// Returns the number of the run that executes a call at a replica.
    async fn number(&self, at: usize) -> Value {
        let outcome = tokio::time::timeout(PATIENCE, self.servers[at].call(request("run"))).await;
        serde_json::from_str(outcome.unwrap().unwrap().body.get()).unwrap()
    }

    /// Starts a call that has reached the server.
    async fn begin(&self, at: usize, name: &str) -> AbortOnDropHandle<Result<Outcome, HubError>> {
        let (client, mut updates) = CallerChannel::new(ClientCapabilities::default());
        let call = SourceCall { client, ..request(name) };
        let server = Arc::clone(&self.servers[at]);
        let calling = AbortOnDropHandle::new(tokio::spawn(async move { server.call(call).await }));
        let started = tokio::time::timeout(PATIENCE, updates.recv()).await.unwrap();
        assert!(matches!(started, Some(CallerUpdate::Progress(_))), "{started:?}");
        calling
    }
}

fn request(name: &str) -> SourceCall {
    let arguments = from_text("{\"n\":\n12345678901234567890.50}".to_owned());
    let target = SourceTarget::Tool { name: name.to_owned(), arguments };
    let principal = Principal::new("ada", Permissions::Only(BTreeSet::new()));
    SourceCall::new(ExecutionId::generate().unwrap(), target, principal)
}

fn in_session(name: &str, session: &ClientSession) -> SourceCall {
    let call = request(name);
    let mut record = CallRecord::clone(&call.record);
    record.context.client_session = Some(session.clone());
    record.context.era = ClientEra::Legacy;
    SourceCall { record: Arc::new(record), ..call }
}

async fn until(what: &str, condition: impl Fn() -> bool) {
    let waiting = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "waited for {what}");
}

#[tokio::test]
async fn both_replicas_show_and_use_the_same_run_of_a_server() {
    let placed = Placed::start().await;
    assert_eq!((placed.number(0).await, placed.number(1).await), (json!(1), json!(1)));
    for server in &placed.servers {
        let status = server.status();
        assert_eq!((status.replica.as_deref(), status.transport), (Some("a"), Some("stdio")));
        let offer = server.offer();
        let tools: Vec<_> = offer.tools.iter().map(|tool| format!("{tool:?}")).collect();
        assert_eq!(tools, [format!("{:?}", tool("run"))]);
    }
    placed.run().set_tools(&["run", "second"]);
    let tools = || placed.b.yard.catalog().tools().iter().filter(|tool| tool.source.as_str() == NAME).count();
    until("the new tool at the other replica", || tools() == 2).await;
    let mut changes = placed.b.yard.events().subscribe_changes();
    placed.servers[1].watch("a:b");
    until("the watch", || *placed.observed.watched.lock() == ["+a:b"]).await;
    placed.run().notifier.lock().as_ref().unwrap().resource_updated("a:b");
    let update = async {
        while !matches!(&*changes.recv().await.unwrap(), YardEvent::ResourceUpdated { uri, .. } if uri == "a:b")
        {
        }
    };
    assert!(tokio::time::timeout(PATIENCE, update).await.is_ok());
    placed.servers[0].watch("a:b");
    placed.servers[1].unwatch("a:b");
    placed.servers[0].unwatch("a:b");
    until("the end of the watch", || *placed.observed.watched.lock() == ["+a:b", "-a:b"]).await;
}

#[tokio::test]
async fn everything_that_a_server_says_reaches_the_client_of_another_replica() {
    let placed = Placed::start().await;
    let capabilities = ClientCapabilities {
        elicit_form: true,
        log_level: Some(LogLevel::Info),
        ..ClientCapabilities::default()
    };
    let (client, mut updates) = CallerChannel::new(capabilities);
    let ended = CancellationToken::new();
    let session = ClientSession::new("s1", ClientCapabilities::default(), ended);
    let call = SourceCall {
        client,
        headers: vec![("x-a".to_owned(), "1".to_owned())],
        meta: Some(from_text(r#"{"k": 1.0}"#.to_owned())),
        ..in_session("talk", &session)
    };
    let answering = async {
        let mut heard = Vec::new();
        while let Some(update) = updates.recv().await {
            match update {
                CallerUpdate::Ask(asked) => {
                    assert!(
                        asked
                            .questions
                            .iter()
                            .all(|question| question.params.get() == "{\"message\":\n\"?\"}")
                    );
                    let answer =
                        |question: &Question| (question.key.clone(), from_text(r#"{"z": 1}"#.to_owned()));
                    asked.reply.send(Ok(asked.questions.iter().map(answer).collect())).unwrap();
                }
                other => heard.push(format!("{other:?}")),
            }
        }
        heard
    };
    let (result, heard) = tokio::join!(placed.servers[1].call(call), answering);
    let expected = [
        r#"Progress(Progress { progress: 1.0, total: Some(2.0), message: Some("half") })"#,
        r#"Log(LogLine { level: Info, logger: Some("x"), data: Object {"at": Number(1)} })"#,
        r#"Chunk(String("chunk"))"#,
    ];
    assert_eq!(heard, expected);
    let outcome = result.unwrap();
    assert!(outcome.failed && outcome.modern);
    let expected = concat!(
        r#"{"answers":[["a","{\"z\": 1}"],["b","{\"z\": 1}"]],"arguments":{"n":"#,
        "\n",
        r#"12345678901234567890.50},"headers":[["x-a","1"]],"meta":{"k": 1.0}}"#
    );
    let (same, expected): (Value, Value) =
        (serde_json::from_str(outcome.body.get()).unwrap(), serde_json::from_str(expected).unwrap());
    assert_eq!(same, expected);
    let record = placed.observed.calls.lock().pop().unwrap();
    let context = &record.context;
    let seen = context.client_session.as_ref().map(|session| session.id().to_string());
    assert_eq!((record.principal.id(), seen.as_deref(), context.era), ("ada", Some("s1"), ClientEra::Legacy));
    // A client that cannot be asked, and errors.
    let error = placed.servers[1].call(request("talk")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ClientCannot);
    let (near, far) = (placed.servers[0].call(request("fail")), placed.servers[1].call(request("fail")));
    let (near, far) = (near.await.unwrap_err(), far.await.unwrap_err());
    assert_eq!(format!("{near:?}"), format!("{far:?}"));
}

#[tokio::test]
async fn a_call_that_its_client_abandons_is_canceled_where_the_server_runs() {
    let placed = Placed::start().await;
    drop(placed.begin(1, "hold").await);
    until("the cancellation", || placed.observed.canceled.load(Ordering::SeqCst) == 1).await;
    assert_eq!(placed.number(1).await, json!(1), "the server goes on");
}

#[tokio::test]
async fn a_session_is_one_session_for_the_server_and_its_end_is_reported() {
    let placed = Placed::start().await;
    let (ada, bob) = (CancellationToken::new(), CancellationToken::new());
    let session = |id: &str, ended: &CancellationToken| {
        ClientSession::new(id, ClientCapabilities::default(), ended.clone())
    };
    let (of_ada, of_bob) = (session("ada", &ada), session("bob", &bob));
    for of in [&of_ada, &of_bob, &of_ada] {
        placed.servers[1].call(in_session("session", of)).await.unwrap();
    }
    let ended = || {
        let mut ended = placed.observed.ended.lock().clone();
        ended.sort();
        ended
    };
    ada.cancel();
    until("the end of the session", || ended() == ["ada", "ada"]).await;
    // A session that moves to the replica that runs the server keeps what it has there.
    placed.servers[0].call(in_session("run", &of_bob)).await.unwrap();
    placed.b.member.die();
    assert_eq!(ended(), ["ada", "ada"]);
    bob.cancel();
    until("the end of the other session", || ended() == ["ada", "ada", "bob"]).await;
}

#[tokio::test]
async fn a_draining_replica_hands_its_server_over_when_its_calls_have_ended() {
    let placed = Placed::start().await;
    let (near, far) = (placed.begin(0, "slow").await, placed.begin(1, "slow").await);
    placed.a.stop.cancel();
    // New calls wait for the next run. It starts when the calls have ended and the first run has stopped.
    while placed.number(0).await == json!(1) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for calling in [near, far] {
        assert_eq!(calling.await.unwrap().unwrap().body.get(), "1");
    }
    assert_eq!(placed.number(1).await, json!(2));
    assert_eq!(placed.servers[0].status().replica.as_deref(), Some("b"));
}

#[tokio::test]
async fn a_replica_that_counts_as_dead_stops_its_server_before_another_one_starts_it() {
    let placed = Placed::start().await;
    let lost = placed.begin(1, "hold").await;
    // It has only lost the store: it does not know that the others consider it dead.
    placed.a.member.die();
    let error = lost.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionLost, "{error}");
    assert_eq!(placed.number(1).await, json!(2));
    assert_eq!(placed.observed.running.load(Ordering::SeqCst), 1);
    assert_eq!(placed.observed.canceled.load(Ordering::SeqCst), 1);
    assert_eq!(placed.servers[1].status().replica.as_deref(), Some("b"));
    // It uses the server where it is now, as far as it knows that replica.
    assert_eq!(placed.number(0).await, json!(2));
}

#[tokio::test]
async fn a_replica_that_has_a_new_id_stops_its_server() {
    let placed = Placed::start().await;
    let lost = placed.begin(0, "hold").await;
    placed.b.member.shared.lock().holders.clear();
    placed.a.member.losses.send_modify(|losses| *losses += 1);
    let error = lost.await.unwrap().unwrap_err();
    assert!(error.kind() == ErrorKind::ConnectionLost && error.message().contains("side effects"), "{error}");
    assert_eq!((placed.number(0).await, placed.number(1).await), (json!(2), json!(2)));
}

#[tokio::test]
async fn without_the_store_a_server_stays_where_it_is() {
    let placed = Placed::start().await;
    placed.a.member.shared.lock().is_away = true;
    assert_eq!((placed.number(0).await, placed.number(1).await), (json!(1), json!(1)));
    placed.a.placed.stop().await;
    placed.a.member.shared.lock().is_away = false;
    assert_eq!(placed.number(1).await, json!(2), "a server that was not released moves");
}

#[tokio::test]
async fn only_a_replica_with_the_keys_can_use_the_server_of_another() {
    let placed = Placed::start().await;
    let keys = placed.a.keys.clone();
    let sealed = |keys: &SealingKeys, purpose, to: &str, server: &str| {
        let content = json!({"from": "b", "to": to, "server": server}).to_string();
        keys.seal(purpose, content.as_bytes()).unwrap()
    };
    let (request, other) = (Purpose::ReplicaRequest, SealingKeys::generate().unwrap());
    let attempts = [
        ("a token of a client", String::new(), 404),
        ("the header of a forwarded request", sealed(&keys, Purpose::Forward, "a", NAME), 404),
        ("another key", sealed(&other, request, "a", NAME), 404),
        ("another replica", sealed(&keys, request, "c", NAME), 421),
        ("another server", sealed(&keys, request, "a", "patient"), 421),
        ("an invalid message", sealed(&keys, request, "a", NAME), 400),
    ];
    for (why, header, expected) in attempts {
        for action in ["call", "follow", "answer"] {
            let mut stream = placed.a.server.connect().await;
            let request = format!(
                "POST /replicas/servers/{action} HTTP/1.1\r\nhost: localhost\r\n{BEARER}\
                 toolyard-replica-request: {header}\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{]"
            );
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            tokio::time::timeout(PATIENCE, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
            let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
            assert_eq!(status, expected, "{why}: {action}");
        }
    }
    assert!(placed.observed.calls.lock().is_empty());
}
