//! Every call is recorded before its result is returned, however it ends.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::BoxFuture;
use crate::call_details::CallDetails;
use crate::error::{ErrorKind, HubError};
use crate::execution::ExecutionId;
use crate::fake::{
    ScriptedSource, done, principal_with, raw, tool_request, tool_request_with, tools, yard_with_settings,
};
use crate::outcome::Outcome;
use crate::record::{FinishedCall, Recorder};
use crate::request::{CallContext, CallOrigin, CallRequest, Priority};
use crate::source::SourceCall;
use crate::yard::{Yard, YardSettings};

const SECOND: Duration = Duration::from_secs(1);

/// A recorder that stores records as text and reports them as durable after a delay.
struct Book {
    lines: Mutex<Vec<String>>,
    arguments: bool,
    slow: Duration,
    crash: bool,
    full: Full,
}

#[derive(Debug, Clone, Copy)]
enum Full {
    No,
    FromNowOn,
    FromTheStart,
}

impl Recorder for Book {
    fn wants_arguments(&self) -> bool {
        self.arguments
    }

    fn admit(&self) -> Result<(), HubError> {
        match self.full {
            Full::FromTheStart => Err(HubError::new(ErrorKind::CannotConnect, "the book is full")),
            Full::No | Full::FromNowOn => Ok(()),
        }
    }

    fn record(&self, finished: FinishedCall<'_>) -> BoxFuture<'static, Result<(), HubError>> {
        assert!(!self.crash, "on purpose");
        self.lines.lock().push(format!(
            "{} {} of {} for {} in {}/{} by {:?} {:?}: {:?} after {:?}, {} {} {}",
            finished.call.kind.as_str(),
            finished.call.subject,
            finished.call.source.as_ref().map_or("unknown", |source| source.as_str()),
            finished.call.principal.id(),
            finished.call.context.session_id.as_deref().unwrap_or("-"),
            finished.call.context.user_id.as_deref().unwrap_or("-"),
            finished.call.context.origin,
            finished.call.priority,
            finished.ended,
            finished.duration,
            finished.error.map_or("-", |error| error.message()),
            finished.outcome.map_or("-", |outcome| outcome.body.get()),
            finished.arguments.map_or("-", |arguments| arguments.get()),
        ));
        let (slow, full) = (self.slow, self.full);
        Box::pin(async move {
            sleep(slow).await;
            match full {
                Full::No => Ok(()),
                Full::FromNowOn | Full::FromTheStart => {
                    Err(HubError::new(ErrorKind::ConnectionLost, "the book is full"))
                }
            }
        })
    }
}

fn book() -> Book {
    Book { lines: Mutex::default(), arguments: false, slow: Duration::ZERO, crash: false, full: Full::No }
}

fn kept_by(book: Book) -> (Arc<Yard>, Arc<Book>) {
    let book = Arc::new(book);
    let source =
        ScriptedSource::with_handler("s", tools(&["work", "fail", "hang"]), |call: SourceCall| async move {
            match call.target.name() {
                "fail" => Ok(Outcome::failure(raw(&json!("no")))),
                "hang" => std::future::pending().await,
                _ => Ok(done()),
            }
        });
    let recorder: Arc<dyn Recorder> = Arc::clone(&book) as Arc<dyn Recorder>;
    (
        yard_with_settings(YardSettings { recorder: Some(recorder), ..YardSettings::default() }, &[&source]),
        book,
    )
}

fn lines(book: &Book) -> Vec<String> {
    book.lines.lock().clone()
}

#[tokio::test(start_paused = true)]
async fn every_call_is_on_record_with_who_what_and_how_it_ended() {
    let (yard, book) = kept_by(Book { arguments: true, ..book() });
    let context = CallContext {
        session_id: Some("s1".into()),
        user_id: Some("u1".into()),
        origin: CallOrigin::Program,
        ..CallContext::default()
    };
    let request =
        CallRequest { context, priority: Priority::High, ..tool_request_with("work", r#"{"a": 1}"#) };
    yard.call(request).await.unwrap();
    yard.call(tool_request("fail")).await.unwrap();
    yard.call(CallRequest { principal: principal_with(&[]), ..tool_request("nothing") }).await.unwrap_err();
    assert_eq!(
        lines(&book),
        [
            r#"tool mcp__s__work of s for owner in s1/u1 by Program High: Succeeded after 0ns, - "done" {"a": 1}"#,
            r#"tool mcp__s__fail of s for owner in -/- by Caller Normal: Failed after 0ns, - "no" -"#,
            "tool nothing of unknown for ada in -/- by Caller Normal: Error(UnknownTool) after 0ns, unknown tool `nothing` - -",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn arguments_are_on_record_only_if_they_are_wanted() {
    let (yard, book) = kept_by(book());
    yard.call(tool_request_with("work", r#"{"password":"x"}"#)).await.unwrap();
    assert_eq!(
        lines(&book),
        [r#"tool mcp__s__work of s for owner in -/- by Caller Normal: Succeeded after 0ns, - "done" -"#]
    );
}

#[tokio::test(start_paused = true)]
async fn the_answer_waits_until_the_record_is_safe() {
    let (yard, _book) = kept_by(Book { slow: 3 * SECOND, ..book() });
    let began = Instant::now();
    yard.call(tool_request("work")).await.unwrap();
    assert_eq!(began.elapsed(), 3 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_is_on_record_once_whenever_it_does() {
    let (yard, book) = kept_by(Book { slow: 10 * SECOND, ..book() });
    assert!(tokio::time::timeout(2 * SECOND, yard.call(tool_request("hang"))).await.is_err());
    // This call has a result, but its caller disconnects before the record is durable.
    assert!(tokio::time::timeout(2 * SECOND, yard.call(tool_request("work"))).await.is_err());
    assert_eq!(
        lines(&book),
        [
            "tool mcp__s__hang of s for owner in -/- by Caller Normal: Abandoned after 2s, - - -",
            r#"tool mcp__s__work of s for owner in -/- by Caller Normal: Succeeded after 0ns, - "done" -"#,
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_recorder_that_crashes_costs_a_record_and_no_answer() {
    let (yard, _book) = kept_by(Book { crash: true, ..book() });
    yard.call(tool_request("work")).await.unwrap();
    assert!(tokio::time::timeout(SECOND, yard.call(tool_request("hang"))).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_front_names_the_call_or_the_yard_does() {
    let (yard, _book) = kept_by(book());
    let mut events = yard.events().subscribe();
    let mut next = async |request: CallRequest| {
        yard.call(request).await.unwrap();
        let started = events.recv().await.unwrap();
        let ended = events.recv().await.unwrap();
        match (&*started, &*ended) {
            (crate::YardEvent::CallStarted(call), crate::YardEvent::CallEnded { call: same, .. }) => {
                assert_eq!(call.id, same.id);
                call.id
            }
            other => panic!("{other:?}"),
        }
    };
    let id = ExecutionId::generate().unwrap();
    let details = Arc::new(CallDetails::default());
    let named = CallRequest { id: Some(id), details: Some(Arc::clone(&details)), ..tool_request("work") };
    assert_eq!(next(named).await, id);
    assert_eq!(details.tool().map(|tool| tool.full_name.to_string()), Some("mcp__s__work".to_owned()));
    assert_eq!(details.rate().map(|rate| rate.remaining), Some(1_999));
    assert_ne!(next(tool_request("work")).await, next(tool_request("work")).await);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_recorded_is_not_answered_where_the_recorder_says_so() {
    let (yard, book) = kept_by(Book { full: Full::FromNowOn, ..book() });
    assert_eq!(yard.call(tool_request("work")).await.unwrap_err().kind(), ErrorKind::ConnectionLost);
    assert_eq!(yard.call(tool_request("nothing")).await.unwrap_err().kind(), ErrorKind::ConnectionLost);
    assert_eq!(lines(&book).len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_admitted_never_reaches_its_source_and_is_on_record() {
    let (yard, book) = kept_by(Book { full: Full::FromTheStart, ..book() });
    // Without the refusal, the call would hang.
    assert_eq!(yard.call(tool_request("hang")).await.unwrap_err().kind(), ErrorKind::CannotConnect);
    assert_eq!(
        lines(&book),
        [
            "tool mcp__s__hang of s for owner in -/- by Caller Normal: Error(CannotConnect) after 0ns, the book is full - -"
        ]
    );
}
