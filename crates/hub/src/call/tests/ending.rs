//! How calls end: answered, late, cancelled, dropped, crashed; and that watchers are told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::told;
use crate::deadline::Deadline;
use crate::error::{Error, Kind};
use crate::events::Event;
use crate::fake::{Fake, calling, done, raw, tools, yard, yard_with};
use crate::limits::Limits;
use crate::outcome::Outcome;
use crate::source::Call;

const SECOND: Duration = Duration::from_secs(1);

/// A source that never answers; it hands out the cancel token of each call it was given.
fn hanging() -> (Arc<Fake>, tokio::sync::mpsc::Receiver<CancellationToken>) {
    let (tokens, given) = tokio::sync::mpsc::channel(8);
    let source = Fake::working("s", tools(&["hang"]), move |call: Call| {
        let tokens = tokens.clone();
        async move {
            tokens.send(call.cancel).await.unwrap();
            std::future::pending().await
        }
    });
    (source, given)
}

fn endings(events: &mut Receiver<Arc<Event>>) -> Vec<String> {
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        seen.push(match &*event {
            Event::CallStarted { id, subject, source, principal } => {
                format!("{} started {subject} of {source} for {principal}", id.0)
            }
            Event::CallEnded { id, ended, duration } => {
                format!("{} ended {ended:?} after {duration:?}", id.0)
            }
            other => format!("{other:?}"),
        });
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_late_is_told_so_and_its_source_learns_it() {
    let (source, mut given) = hanging();
    let mut request = calling("hang");
    request.deadline = Deadline::after(3 * SECOND);
    let began = Instant::now();
    let error = yard(&[&source]).call(request).await.unwrap_err();
    let advice = Some("allow it more time, or ask it for less");
    assert_eq!(told(&error), (Kind::TimedOut, "mcp__s__hang did not answer in time", advice));
    assert_eq!(began.elapsed(), 3 * SECOND);
    assert!(given.recv().await.unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn no_call_takes_longer_than_the_yard_allows() {
    let (source, _given) = hanging();
    let limits = Limits { call_time: 2 * SECOND, ..Limits::default() };
    let mut request = calling("hang");
    request.deadline = Deadline::after(Duration::MAX);
    let began = Instant::now();
    let error = yard_with(limits, Vec::new(), &[&source]).call(request).await.unwrap_err();
    assert_eq!((error.kind(), began.elapsed()), (Kind::TimedOut, 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_already_up_never_reaches_the_source() {
    let source = Fake::working("s", tools(&["t"]), |_| async { panic!("must not be called") });
    let mut request = calling("t");
    request.deadline = Deadline::after(Duration::ZERO);
    assert_eq!(yard(&[&source]).call(request).await.unwrap_err().kind(), Kind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_call_and_tells_the_source() {
    let (source, mut given) = hanging();
    let request = calling("hang");
    let cancel = request.cancel.clone();
    let yard = yard(&[&source]);
    let call = tokio::spawn(async move { yard.call(request).await });
    let seen = given.recv().await.unwrap();
    assert!(!seen.is_cancelled());
    cancel.cancel();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(told(&error), (Kind::Cancelled, "mcp__s__hang was cancelled", None));
    assert!(seen.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_beforehand_never_reaches_the_source() {
    let source = Fake::working("s", tools(&["t"]), |_| async { panic!("must not be called") });
    let request = calling("t");
    request.cancel.cancel();
    assert_eq!(yard(&[&source]).call(request).await.unwrap_err().kind(), Kind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_tells_the_source_and_the_watchers_but_not_the_callers_other_calls() {
    let (source, mut given) = hanging();
    let yard = yard(&[&source]);
    let mut events = yard.events().subscribe();
    let request = calling("hang");
    let callers_own = request.cancel.clone();
    {
        let call = yard.call(request);
        tokio::pin!(call);
        assert!(tokio::time::timeout(4 * SECOND, &mut call).await.is_err());
    }
    assert!(given.recv().await.unwrap().is_cancelled());
    assert!(!callers_own.is_cancelled());
    assert_eq!(endings(&mut events), ["1 started mcp__s__hang of s for owner", "1 ended Dropped after 4s"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_source_left_running_learns_that_the_call_is_over() {
    let (told, learnt) = oneshot::channel();
    let told = std::sync::Mutex::new(Some(told));
    let source = Fake::working("s", tools(&["t"]), move |call: Call| {
        let told = told.lock().unwrap().take().unwrap();
        async move {
            tokio::spawn(async move {
                call.cancel.cancelled().await;
                told.send(()).unwrap();
            });
            Ok(done())
        }
    });
    yard(&[&source]).call(calling("t")).await.unwrap();
    learnt.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_source_that_crashes_fails_its_call_and_nothing_else() {
    let late = Fake::working("late", tools(&["t"]), |_| async { panic!("in the future") });
    let early = Fake::crashing("early", tools(&["t"]), |_| panic!("before there is a future"));
    let fine = Fake::offering("fine", tools(&["t"]));
    let yard = yard(&[&late, &early, &fine]);
    for name in ["mcp__late__t", "mcp__early__t"] {
        for _ in 0..20 {
            let error = yard.call(calling(name)).await.unwrap_err();
            assert_eq!(told(&error), (Kind::Bug, format!("{name} crashed").as_str(), None));
        }
    }
    yard.call(calling("mcp__fine__t")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watchers_see_every_call_begin_and_end_in_order() {
    let source = Fake::working("s", tools(&["answer", "fail", "error"]), |call: Call| async move {
        sleep(SECOND).await;
        match call.target.name() {
            "answer" => Ok(done()),
            "fail" => Ok(Outcome::failure(raw(&json!("no")))),
            _ => Err(Error::new(Kind::ConnectionLost, "gone")),
        }
    });
    let yard = yard(&[&source]);
    let mut events = yard.events().subscribe();
    for name in ["answer", "fail", "error"] {
        let _ = yard.call(calling(name)).await;
    }
    assert_eq!(
        endings(&mut events),
        [
            "1 started mcp__s__answer of s for owner",
            "1 ended Answered after 1s",
            "2 started mcp__s__fail of s for owner",
            "2 ended Failed after 1s",
            "3 started mcp__s__error of s for owner",
            "3 ended Error(ConnectionLost) after 1s",
        ]
    );
}
