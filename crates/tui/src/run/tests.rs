//! Tests of saving files and of running calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    BoxFuture, CallTarget, ErrorKind, HubError, Outcome, Principal, Progress, Question, QuestionKind, Source,
    SourceCall, SourceName, SourceOffer, SourceTarget, ToolListing, ToolOffer, Yard,
};

use super::calls::CallRunner;
use super::save;
use crate::message::{CallId, SaveContents, UiCallUpdate, UiMessage};
use crate::watch::watch;

#[test]
fn files_are_saved_and_never_overwritten() {
    let folder = std::env::temp_dir().join(format!("toolyard-ui-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let text = SaveContents::Text(Arc::from("words"));
    let first = save(&folder, "result.txt", &text).unwrap();
    let second = save(&folder, "result.txt", &text).unwrap();
    assert_ne!(first, second);
    assert_eq!(std::fs::read_to_string(second).unwrap(), "words");
    let image = save(&folder, "image.png", &SaveContents::Base64(Arc::from("iVBO\nRw0K"))).unwrap();
    assert_eq!(std::fs::read(&image).unwrap(), b"\x89PNG\r\n");
    assert_eq!(image.extension().unwrap(), "png");
    let wrong = save(&folder, "image.png", &SaveContents::Base64(Arc::from("%%%"))).unwrap_err();
    assert!(wrong.to_string().starts_with("invalid base64"), "{wrong}");
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(save(&folder, "result.txt", &text).is_err());
}

/// A source whose tools do what their names say.
struct Worker {
    name: SourceName,
    cancelled: Arc<AtomicBool>,
}

impl Source for Worker {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        let tool = |name: &str| ToolOffer {
            definition: to_raw(&json!({"name": name, "inputSchema": {"type": "object"}})),
            permissions: Vec::new(),
            metadata: serde_json::Map::new(),
            hooks: Vec::new(),
            listing: ToolListing::Listed,
        };
        Arc::new(SourceOffer {
            tools: ["ask", "hang", "give_up", "panic"].map(tool).to_vec(),
            ..SourceOffer::default()
        })
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        let SourceTarget::Tool { name, .. } = &call.target else { panic!("{:?}", call.target) };
        let question = Question {
            key: "q".to_owned(),
            kind: QuestionKind::ElicitForm,
            params: to_raw(&json!({"message": "?"})),
        };
        match name.as_str() {
            "ask" => Box::pin(async move {
                call.client.report_progress(Progress { progress: 1.0, total: None, message: None });
                let answers = call.client.ask(vec![question]).await?;
                Ok(Outcome::success(answers.into_iter().next().unwrap().1))
            }),
            "give_up" => Box::pin(async move {
                let patience = Duration::from_millis(20);
                let _ = tokio::time::timeout(patience, call.client.ask(vec![question])).await;
                Ok(Outcome::success(to_raw(&json!({}))))
            }),
            "hang" => {
                struct Gone(Arc<AtomicBool>);
                impl Drop for Gone {
                    fn drop(&mut self) {
                        self.0.store(true, Ordering::SeqCst);
                    }
                }
                let gone = Gone(Arc::clone(&self.cancelled));
                Box::pin(async move {
                    let _gone = gone;
                    std::future::pending().await
                })
            }
            _ => panic!("on purpose"),
        }
    }
}

struct Bench {
    running: CallRunner,
    messages: mpsc::Receiver<UiMessage>,
    cancelled: Arc<AtomicBool>,
    yard: Arc<Yard>,
}

impl Bench {
    fn new() -> Self {
        let cancelled = Arc::new(AtomicBool::new(false));
        let worker = Worker { name: SourceName::new("worker"), cancelled: Arc::clone(&cancelled) };
        let yard = Yard::with_sources([Arc::new(worker) as Arc<dyn Source>]);
        let (sender, messages) = mpsc::channel(16);
        let running = CallRunner::new(Arc::clone(&yard), Principal::owner(), sender, TaskTracker::new());
        Self { running, messages, cancelled, yard }
    }

    fn call(&mut self, tool: &str) {
        let what = CallTarget::Tool { name: tool.to_owned(), arguments: None };
        self.running.start(CallId(1), what);
    }

    async fn news(&mut self) -> UiCallUpdate {
        match tokio::time::timeout(Duration::from_secs(20), self.messages.recv()).await {
            Ok(Some(UiMessage::Call(CallId(1), news))) => news,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_call_reports_progress_and_receives_the_answer() {
    let mut bench = Bench::new();
    bench.call("ask");
    assert!(matches!(bench.news().await, UiCallUpdate::Progress(Progress { progress: 1.0, .. })));
    let UiCallUpdate::Questions(ask, questions) = bench.news().await else { panic!("no question") };
    assert_eq!(questions.len(), 1);
    bench.running.answer(ask, Ok(vec![("q".to_owned(), to_raw(&json!({"action": "accept"})))]));
    // A second answer is ignored.
    bench.running.answer(ask, Ok(Vec::new()));
    let UiCallUpdate::Ended(Ok(outcome), _) = bench.news().await else { panic!("no answer") };
    assert_eq!(outcome.body.get(), r#"{"action":"accept"}"#);
}

#[tokio::test]
async fn a_question_without_a_waiting_call_is_withdrawn() {
    let mut bench = Bench::new();
    bench.call("give_up");
    let UiCallUpdate::Questions(asked, _) = bench.news().await else { panic!("no question") };
    let (mut taken_back, mut ended) = (false, false);
    while !(taken_back && ended) {
        match bench.news().await {
            UiCallUpdate::QuestionsWithdrawn(ask) => taken_back = ask == asked,
            UiCallUpdate::Ended(Ok(_), _) => ended = true,
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_canceled_call_is_canceled_upstream() {
    let mut bench = Bench::new();
    bench.call("hang");
    tokio::time::sleep(Duration::from_millis(50)).await;
    bench.running.cancel(CallId(1));
    let UiCallUpdate::Ended(Err(error), _) = bench.news().await else {
        panic!("the call did not end with an error")
    };
    assert_eq!(error.kind(), ErrorKind::Cancelled);
    assert!(bench.cancelled.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_call_that_panics_is_a_call_that_failed() {
    let mut bench = Bench::new();
    bench.call("panic");
    let UiCallUpdate::Ended(Err(error), _) = bench.news().await else { panic!("the call did not fail") };
    assert_eq!(error.kind(), ErrorKind::Bug);
}

#[tokio::test]
async fn a_flood_of_events_is_sent_a_few_times_a_second() {
    let bench = Bench::new();
    let (sender, mut messages) = mpsc::channel(16);
    let watching = tokio::spawn(watch(Arc::clone(&bench.yard), Principal::owner(), sender));
    tokio::time::sleep(Duration::from_millis(50)).await;
    let began = std::time::Instant::now();
    let mut count = 0;
    for _ in 0..40 {
        for _ in 0..200 {
            let what = CallTarget::Tool { name: "missing".to_owned(), arguments: None };
            let _ = bench.yard.call(toolyard_hub::CallRequest::new(what, Principal::owner())).await;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        while let Ok(message) = messages.try_recv() {
            if let UiMessage::LogEntries(entries) = &message {
                assert!(entries.len() <= 501, "{}", entries.len());
            }
            count += 1;
        }
    }
    let most = 25.0 * began.elapsed().as_secs_f64() + 10.0;
    assert!(f64::from(count) < most, "{count} messages in {:?}", began.elapsed());
    assert!(count > 0);
    watching.abort();
}
