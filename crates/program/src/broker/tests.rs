//! Tests of the broker. Each test plays the part of the program and sends valid and hostile
//! requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{
    BoxFuture, CallContext, CallRecord, CallerChannel, CallerUpdate, ClientCapabilities, Deadline, EntryKind,
    ErrorKind, ExecutionId, FinishedCall, HubError, Outcome, Principal, Priority, Progress,
    Question as ToolQuestion, QuestionKind, Recorder, Source, SourceCall, SourceName, SourceTarget, Yard,
    YardSettings,
};

use super::{Broker, ProgramCaller};
use crate::fixtures::{FakeSource, ada, yard};
use crate::program::{PendingProgramQuestion, ProgramData, ProgramQuestion, ProgramReply};
use crate::progress::ProgressMeter;
use crate::search::SearchIndexCache;

/// The program's end of the connection to a broker.
struct Side {
    ask: mpsc::Sender<PendingProgramQuestion>,
    broker: Arc<Broker>,
    serving: JoinHandle<()>,
}

impl Side {
    fn of(yard: &Arc<Yard>, principal: Principal) -> Self {
        Self::with(yard, principal, CallerChannel::silent())
    }

    fn with(yard: &Arc<Yard>, principal: Principal, client: CallerChannel) -> Self {
        let headers = vec![("x-tenant".to_owned(), "7".to_owned())];
        let id = ExecutionId::generate().unwrap();
        let record = CallRecord {
            context: CallContext { session_id: Some("s1".into()), ..CallContext::default() },
            priority: Priority::High,
            ..CallRecord::new(id, EntryKind::Tool, "execute_program", principal)
        };
        let caller = ProgramCaller {
            record: Arc::new(record),
            deadline: Deadline::after(Duration::from_secs(60)),
            headers,
            cancel: CancellationToken::new(),
            meta: Some(to_raw(&json!({"traceparent": "00-x", "progressToken": 7}))),
            client,
        };
        let broker = Arc::new(Broker {
            yard: Arc::clone(yard),
            indexes: Arc::new(SearchIndexCache::default()),
            own: SourceName::new("programs"),
            caller,
            calls: 10_000,
            parallel: 4,
            meter: ProgressMeter::default(),
            ended: CancellationToken::new(),
        });
        let (ask, questions) = mpsc::channel(16);
        let serving = tokio::spawn(Arc::clone(&broker).serve(questions));
        Self { ask, broker, serving }
    }

    async fn send(&self, question: ProgramQuestion) -> oneshot::Receiver<ProgramReply> {
        let (reply, answer) = oneshot::channel();
        self.ask.send(PendingProgramQuestion { question, reply }).await.unwrap();
        answer
    }

    async fn asks(&self, question: ProgramQuestion) -> String {
        render(self.send(question).await.await.unwrap())
    }

    async fn calls(&self, tool: &str, arguments: &str) -> String {
        self.asks(ProgramQuestion::Call { tool: tool.to_owned(), arguments: from_text(arguments.to_owned()) })
            .await
    }
}

fn render(reply: ProgramReply) -> String {
    match reply {
        ProgramReply::Data(ProgramData::Json(json)) => json.get().to_owned(),
        ProgramReply::Data(ProgramData::Text(text)) => text,
        ProgramReply::Data(other) => format!("{other:?}"),
        ProgramReply::Binding(binding) => format!("{:?}", binding.words),
        ProgramReply::Failed(failure) => format!("{}: {}", failure.kind, failure.message),
    }
}

fn named(name: &str) -> Value {
    json!({"name": name, "inputSchema": {"type": "object"}})
}

/// A source that answers every call with its arguments.
fn echo() -> Arc<dyn Source> {
    let strict = json!({
        "name": "strict",
        "inputSchema": {
            "type": "object",
            "properties": {"ticker": {"type": "string"}, "limit": {"type": "integer"}, "note": {"type": ["string", "null"]}},
            "required": ["ticker"],
        },
    });
    let secret =
        json!({"name": "secret", "inputSchema": {"type": "object"}, "_meta": {"permissions": ["admin"]}});
    FakeSource::with_handler("data", &[named("echo"), strict, secret], |call| async move {
        let SourceTarget::Tool { arguments, .. } = call.target else { panic!("only tools") };
        Ok(Outcome::success(to_raw(&json!({"structuredContent": arguments}))))
    })
}

#[tokio::test]
async fn a_call_has_the_context_of_its_caller() {
    let seen: Arc<Mutex<Option<String>>> = Arc::default();
    let look = Arc::clone(&seen);
    let source = FakeSource::with_handler("data", &[named("look")], move |call: SourceCall| {
        let context = &call.record.context;
        *look.lock() = Some(format!(
            "{} {:?} {:?} {:?} {:?} {:?} {:?} {}",
            call.record.principal.id(),
            context.session_id,
            call.headers,
            context.origin,
            context.scope,
            call.record.priority,
            call.meta.as_ref().map(|meta| meta.get().to_owned()),
            call.deadline.remaining() <= Duration::from_secs(60),
        ));
        async { Ok(Outcome::success(to_raw(&json!({"structuredContent": {"ok": true}})))) }
    });
    let side = Side::of(&yard(&[source]), ada());
    assert_eq!(side.calls("look", "{}").await, r#"{"ok":true}"#);
    assert_eq!(
        seen.lock().as_deref().unwrap(),
        "ada Some(\"s1\") [(\"x-tenant\", \"7\")] Program Without([SourceName(\"programs\")]) High Some(\"{\\\"traceparent\\\":\\\"00-x\\\"}\") true"
    );
}

#[tokio::test]
async fn unknown_names_are_refused_with_similar_names() {
    let side = Side::of(&yard(&[echo()]), ada());
    let unknown = "tool_not_found: unknown tool `mcp__data__ecoh`\nhint: did you mean `mcp__data__echo`?";
    assert!(side.calls("mcp__data__ecoh", "{}").await.starts_with(&unknown[..unknown.len() - 1]));
    let question = ProgramQuestion::Binding { tool: "mcp__data__ecoh".to_owned() };
    assert!(side.asks(question).await.starts_with(&unknown[..unknown.len() - 1]));
    for name in ["", "\0", "../../etc/passwd", &"x".repeat(1_000_000), &"é".repeat(1_000)] {
        let answer = side.calls(name, "{}").await;
        assert!(answer.starts_with("tool_not_found: ") && answer.len() < 2_000, "{answer}");
    }
}

#[tokio::test]
async fn a_program_has_no_more_permissions_than_its_caller() {
    let yard = yard(&[echo()]);
    let side = Side::of(&yard, ada());
    let refused = "forbidden: mcp__data__secret needs the permission `admin`\nhint: ask the administrator of this yard for a token with this permission";
    assert_eq!(side.calls("mcp__data__secret", "{}").await, refused);
    assert_eq!(side.calls("secret", "{}").await, refused);
    let inspect = || ProgramQuestion::Inspect { tool: "mcp__data__secret".to_owned() };
    assert!(side.asks(inspect()).await.starts_with("tool_not_found"));
    let search = || ProgramQuestion::Search { query: "secret".to_owned(), server: None, limit: None };
    assert_eq!(side.asks(search()).await, "[]");
    assert!(side.broker.bindings("await secret()").is_empty());
    let owner = Side::of(&yard, Principal::owner());
    assert_eq!(owner.calls("secret", "{}").await, "{}");
    assert!(owner.asks(inspect()).await.starts_with('{'));
    assert!(owner.asks(search()).await.contains("mcp__data__secret"));
}

#[tokio::test]
async fn a_program_cannot_start_programs_but_can_ask_about_tools() {
    let own = FakeSource::with_tools("programs", &[named("execute_program"), named("inspect_tool")]);
    let side = Side::of(&yard(&[echo(), own]), Principal::owner());
    for name in ["execute_program", "mcp__programs__execute_program"] {
        let answer = side.calls(name, r#"{"code":"print(1)"}"#).await;
        assert!(answer.starts_with("forbidden: ") || answer.starts_with("tool_not_found: "), "{answer}");
    }
    let inspected = side.calls("inspect_tool", r#"{"tool_name":"echo"}"#).await;
    assert!(inspected.contains("mcp__data__echo"), "{inspected}");
    assert!(side.calls("inspect_tool", "[]").await.starts_with("invalid_arguments"));
    let matches = side.calls("search_tools", r#"{"query":"echo","limit":1}"#).await;
    assert!(matches.contains("mcp__data__echo") && !matches.contains("programs"), "{matches}");
    assert!(side.calls("search_tools", r#"{"limit":-1}"#).await.starts_with("invalid_arguments"));
}

#[tokio::test]
async fn arguments_are_checked_and_the_valid_ones_named() {
    let side = Side::of(&yard(&[echo()]), ada());
    let names = "valid arguments: ticker, limit, note";
    assert_eq!(
        side.calls("strict", r#"{"ticker":"A","limit":null,"note":null}"#).await,
        r#"{"ticker":"A","note":null}"#
    );
    assert_eq!(
        side.calls("strict", r#"{"tikcer":"A"}"#).await,
        format!(
            "invalid_arguments: mcp__data__strict has no argument `tikcer`\nhint: did you mean `ticker`? {names}"
        )
    );
    for invalid in [r#"{"ticker":7}"#, "{}", r#"{"ticker":"A","limit":"x"}"#, "[]", "7", "null", "\"x\""] {
        let answer = side.calls("strict", invalid).await;
        assert!(answer.starts_with("invalid_arguments: ") && answer.contains(names), "{invalid}: {answer}");
    }
    let huge = format!(r#"{{"ticker":"{}"}}"#, "x".repeat(11 << 20));
    assert!(side.calls("strict", &huge).await.starts_with("too_large: "));
    let deep = format!(r#"{{"ticker":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert!(side.calls("strict", &deep).await.starts_with("invalid_arguments: "));
}

#[tokio::test]
async fn calls_and_questions_are_counted() {
    let side = Side::of(&yard(&[echo()]), ada());
    for _ in 0..10_000 {
        assert_eq!(side.calls("echo", "{}").await, "{}");
    }
    let over = "limit_reached: the program has reached its limit of 10000 calls";
    assert_eq!(side.calls("echo", "{}").await, over);
    assert_eq!(side.calls("echo", "{}").await, over);
    // Lookups have a separate limit.
    assert_eq!(
        side.asks(ProgramQuestion::Binding { tool: "echo".to_owned() }).await,
        r#"["mcp__data__echo", "echo"]"#
    );
}

#[tokio::test]
async fn only_so_many_calls_run_at_once_and_the_rest_wait_unread() {
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&running), Arc::clone(&most));
    let source = FakeSource::with_handler("data", &[named("slow")], move |_| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(5)).await;
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(Outcome::success(to_raw(&json!({"structuredContent": 1}))))
        }
    });
    let side = Side::of(&yard(&[source]), ada());
    let mut answers = Vec::new();
    for _ in 0..40 {
        let call = ProgramQuestion::Call { tool: "slow".to_owned(), arguments: to_raw(&json!({})) };
        answers.push(side.send(call).await);
    }
    for answer in answers {
        assert_eq!(render(answer.await.unwrap()), "1");
    }
    assert_eq!((most.load(Ordering::SeqCst), running.load(Ordering::SeqCst)), (4, 0));
}

/// A source whose calls never finish. It counts the calls that are dropped.
fn endless(gone: &Arc<AtomicUsize>) -> Arc<dyn Source> {
    struct Gone(Arc<AtomicUsize>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let gone = Arc::clone(gone);
    FakeSource::with_handler("data", &[named("endless")], move |_| {
        let gone = Gone(Arc::clone(&gone));
        async move {
            let _gone = gone;
            std::future::pending().await
        }
    })
}

async fn reaches(count: &AtomicUsize, expected: usize) {
    let reached = async {
        while count.load(Ordering::SeqCst) < expected {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), reached).await.expect("the calls were not dropped");
}

#[tokio::test]
async fn calls_that_are_still_running_when_the_program_ends_are_cancelled() {
    let gone = Arc::new(AtomicUsize::new(0));
    let yard = yard(&[endless(&gone)]);
    let call = || ProgramQuestion::Call { tool: "endless".to_owned(), arguments: to_raw(&json!({})) };
    // The program closes its end.
    let side = Side::of(&yard, ada());
    let _answers = [side.send(call()).await, side.send(call()).await];
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(side.ask);
    side.serving.await.unwrap();
    assert_eq!(gone.load(Ordering::SeqCst), 2);
    // The broker is dropped.
    let side = Side::of(&yard, ada());
    let _answers = [side.send(call()).await, side.send(call()).await];
    tokio::time::sleep(Duration::from_millis(20)).await;
    side.serving.abort();
    reaches(&gone, 4).await;
    // The program ends with requests in the queue: they are read, but no further call is made.
    let (client, mut updates) = CallerChannel::new(ClientCapabilities::default());
    let side = Side::with(&yard, ada(), client);
    let mut answers = Vec::new();
    for _ in 0..6 {
        answers.push(side.send(call()).await);
    }
    let progress = ProgramQuestion::Progress { progress: 1.0, total: None, message: None };
    let progress_reply = side.send(progress).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    side.broker.ended.cancel();
    side.serving.await.unwrap();
    assert!(progress_reply.await.is_ok() && matches!(updates.recv().await, Some(CallerUpdate::Progress(_))));
    assert_eq!(gone.load(Ordering::SeqCst), 8);
    // The program stops waiting for one call.
    let side = Side::of(&yard, ada());
    let answer = side.send(call()).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(answer);
    reaches(&gone, 9).await;
    // Requests after the end get no reply.
    let (reply, answer) = oneshot::channel();
    side.serving.abort();
    let _ = side.ask.send(PendingProgramQuestion { question: call(), reply }).await;
    assert!(tokio::time::timeout(Duration::from_secs(5), answer).await.unwrap().is_err());
}

#[tokio::test]
async fn failures_report_their_kind() {
    let source = FakeSource::with_handler(
        "data",
        &[named("fails"), named("breaks"), named("huge")],
        |call| async move {
            let SourceTarget::Tool { name, .. } = call.target else { panic!("only tools") };
            match name.as_str() {
                "fails" => Ok(Outcome::failure(to_raw(
                    &json!({"content": [{"type": "text", "text": "no such table"}], "isError": true}),
                ))),
                "huge" => Ok(Outcome::success(to_raw(&json!({"structuredContent": "x".repeat(33 << 20)})))),
                _ => Err(HubError::new(ErrorKind::ConnectionLost, "the server died")
                    .with_suggestion("look at its log")),
            }
        },
    );
    let side = Side::of(&yard(&[source]), ada());
    assert_eq!(side.calls("fails", "{}").await, "tool_failed: no such table");
    assert_eq!(side.calls("breaks", "{}").await, "connection_lost: the server died\nhint: look at its log");
    assert!(side.calls("huge", "{}").await.starts_with("too_large: the result of 346"));
}

#[tokio::test]
async fn questions_of_tools_reach_the_caller_and_progress_increases() {
    let source = FakeSource::with_handler("data", &[named("asks")], |call: SourceCall| async move {
        call.client.report_progress(Progress {
            progress: 50.0,
            total: Some(100.0),
            message: Some("half".to_owned()),
        });
        let question =
            ToolQuestion { key: "q".to_owned(), kind: QuestionKind::ElicitForm, params: to_raw(&json!({})) };
        let answers = call.client.ask(vec![question]).await?;
        let answers: Vec<String> = answers.iter().map(|(key, answer)| format!("{key}={answer}")).collect();
        Ok(Outcome::success(to_raw(&json!({"structuredContent": answers}))))
    });
    let (client, mut updates) =
        CallerChannel::new(ClientCapabilities { elicit_form: true, ..ClientCapabilities::default() });
    let side = Side::with(&yard(&[source]), ada(), client);
    let answer =
        side.send(ProgramQuestion::Call { tool: "asks".to_owned(), arguments: to_raw(&json!({})) }).await;
    let Some(CallerUpdate::Progress(progress)) = updates.recv().await else { panic!("no progress") };
    assert_eq!(progress.message.as_deref(), Some("mcp__data__asks (50 of 100): half"));
    let Some(CallerUpdate::Ask(ask)) = updates.recv().await else { panic!("no question") };
    let key = ask.questions[0].key.clone();
    assert_eq!(key, "call-1.q");
    ask.reply.send(Ok(vec![(key, to_raw(&json!({"action": "accept"})))])).unwrap();
    assert_eq!(render(answer.await.unwrap()), r#"["q={\"action\":\"accept\"}"]"#);
    let own =
        |progress| ProgramQuestion::Progress { progress, total: Some(2.0), message: Some("own".to_owned()) };
    assert_eq!(side.asks(own(1.0)).await, "null");
    assert_eq!(side.asks(own(f64::NAN)).await, "null");
    let Some(CallerUpdate::Progress(progress)) = updates.recv().await else { panic!("no progress") };
    assert_eq!((progress.progress, progress.total), (1.0, Some(2.0)));
}

/// Records one line for each finished call.
#[derive(Default)]
struct LineRecorder(Mutex<Vec<String>>);

impl Recorder for LineRecorder {
    fn record(&self, finished: FinishedCall<'_>) -> BoxFuture<'static, Result<(), HubError>> {
        let record = finished.call;
        let line = format!(
            "{} {} {} {:?} {}",
            record.principal.id(),
            record.subject,
            record.context.origin.as_str(),
            record.context.session_id,
            finished.error.map_or("fine", |error| error.kind().as_str())
        );
        self.0.lock().push(line);
        Box::pin(async { Ok(()) })
    }
}

#[tokio::test]
async fn every_call_is_recorded_as_made_by_a_program() {
    let recorded = Arc::new(LineRecorder::default());
    let recorder = Arc::clone(&recorded) as Arc<dyn Recorder>;
    let yard = Yard::new(YardSettings { recorder: Some(recorder), ..YardSettings::default() });
    yard.add(echo());
    let side = Side::of(&yard, ada());
    side.calls("echo", "{}").await;
    side.calls("strict", r#"{"ticker":7}"#).await;
    side.calls("secret", "{}").await;
    side.calls("nowhere", "{}").await;
    assert_eq!(
        *recorded.0.lock(),
        [
            "ada mcp__data__echo program Some(\"s1\") fine",
            "ada mcp__data__strict program Some(\"s1\") invalid arguments",
            "ada mcp__data__secret program Some(\"s1\") forbidden",
            "ada nowhere program Some(\"s1\") unknown tool",
        ]
    );
}

#[tokio::test]
async fn a_program_gets_the_tools_that_it_mentions() {
    let side = Side::of(&yard(&[echo()]), ada());
    let names = |code: &str| -> Vec<String> {
        side.broker.bindings(code).into_iter().map(|binding| binding.full_name).collect()
    };
    assert_eq!(
        names("r = await mcp__data__strict(ticker='A'); await echo(); echo"),
        ["mcp__data__strict", "mcp__data__echo"]
    );
    assert_eq!(names("print(1)"), Vec::<String>::new());
    let binding = &side.broker.bindings("strict")[0];
    assert_eq!(
        (binding.parameters.as_slice(), binding.required),
        (["ticker", "limit", "note"].map(String::from).as_slice(), 1)
    );
}
