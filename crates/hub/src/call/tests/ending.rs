//! How calls end: succeeded, timed out, canceled, abandoned, panicked; and which events are
//! published.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::parts;
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::events::YardEvent;
use crate::execution::ExecutionId;
use crate::fake::{
    ScriptedSource, done, principal_with, raw, resource_request, tool_request, tool_request_with, tools,
    yard, yard_with,
};
use crate::limits::{RateLimit, YardLimits};
use crate::name::SourceName;
use crate::outcome::Outcome;
use crate::source::SourceCall;

const SECOND: Duration = Duration::from_secs(1);

/// A source that never answers. It provides the cancellation token of each call.
fn hanging() -> (Arc<ScriptedSource>, tokio::sync::mpsc::Receiver<CancellationToken>) {
    let (tokens, given) = tokio::sync::mpsc::channel(8);
    let source = ScriptedSource::with_handler("s", tools(&["hang"]), move |call: SourceCall| {
        let tokens = tokens.clone();
        async move {
            tokens.send(call.cancel).await.unwrap();
            std::future::pending().await
        }
    });
    (source, given)
}

/// The published events, with IDs replaced by numbers in order of first appearance.
fn endings(events: &mut Receiver<Arc<YardEvent>>) -> Vec<String> {
    let mut seen = Vec::new();
    let mut ids = Vec::new();
    let mut number = |id: &ExecutionId| {
        let known = ids.iter().position(|known| known == id);
        known.unwrap_or_else(|| {
            ids.push(*id);
            ids.len() - 1
        }) + 1
    };
    while let Ok(event) = events.try_recv() {
        seen.push(match &*event {
            YardEvent::CallStarted(call) => {
                let source = call.source.as_ref().map_or("unknown", SourceName::as_str);
                let (kind, subject, principal) = (call.kind.as_str(), &call.subject, call.principal.id());
                format!("{} started {kind} {subject} of {source} for {principal}", number(&call.id))
            }
            YardEvent::CallEnded { call, ended, error, duration } => {
                let error = error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
                format!("{} ended {ended:?} after {duration:?}{error}", number(&call.id))
            }
            YardEvent::CallProgress { call, progress } => {
                format!("{} is at {}: {:?}", number(&call.id), progress.progress, progress.message)
            }
            other => format!("{other:?}"),
        });
    }
    seen
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_is_canceled_at_its_source() {
    let (source, mut given) = hanging();
    let mut request = tool_request("hang");
    request.deadline = Deadline::after(3 * SECOND);
    let began = Instant::now();
    let error = yard(&[&source]).call(request).await.unwrap_err();
    let message = "`mcp__s__hang` did not answer within the time limit of the call";
    let advice = "increase the timeout of the call or `limits.call_seconds`, or request less data";
    assert_eq!(parts(&error), (ErrorKind::TimedOut, message, Some(advice)));
    assert_eq!(began.elapsed(), 3 * SECOND);
    assert!(given.recv().await.unwrap().is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn no_call_takes_longer_than_the_yard_allows() {
    let (source, _given) = hanging();
    let limits = YardLimits { call_time: 2 * SECOND, ..YardLimits::default() };
    let mut request = tool_request("hang");
    request.deadline = Deadline::after(Duration::MAX);
    let began = Instant::now();
    let error = yard_with(limits, Vec::new(), &[&source]).call(request).await.unwrap_err();
    assert_eq!((error.kind(), began.elapsed()), (ErrorKind::TimedOut, 2 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_time_is_already_up_never_reaches_the_source() {
    let source = ScriptedSource::with_handler("s", tools(&["t"]), |_| async { panic!("must not be called") });
    let mut request = tool_request("t");
    request.deadline = Deadline::after(Duration::ZERO);
    assert_eq!(yard(&[&source]).call(request).await.unwrap_err().kind(), ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_the_call_and_tells_the_source() {
    let (source, mut given) = hanging();
    let request = tool_request("hang");
    let cancel = request.cancel.clone();
    let yard = yard(&[&source]);
    let call = tokio::spawn(async move { yard.call(request).await });
    let seen = given.recv().await.unwrap();
    assert!(!seen.is_cancelled());
    cancel.cancel();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(parts(&error), (ErrorKind::Cancelled, "`mcp__s__hang` was canceled", None));
    assert!(seen.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_beforehand_never_reaches_the_source() {
    let source = ScriptedSource::with_handler("s", tools(&["t"]), |_| async { panic!("must not be called") });
    let request = tool_request("t");
    request.cancel.cancel();
    assert_eq!(yard(&[&source]).call(request).await.unwrap_err().kind(), ErrorKind::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_future_tells_the_source_and_the_watchers_but_not_the_callers_other_calls() {
    let (source, mut given) = hanging();
    let yard = yard(&[&source]);
    let mut events = yard.events().subscribe();
    let request = tool_request("hang");
    let callers_own = request.cancel.clone();
    {
        let call = yard.call(request);
        tokio::pin!(call);
        assert!(tokio::time::timeout(4 * SECOND, &mut call).await.is_err());
    }
    assert!(given.recv().await.unwrap().is_cancelled());
    assert!(!callers_own.is_cancelled());
    assert_eq!(
        endings(&mut events),
        ["1 started tool mcp__s__hang of s for owner", "1 ended Abandoned after 4s"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_a_source_left_running_learns_that_the_call_is_over() {
    let (sender, receiver) = oneshot::channel();
    let sender = parking_lot::Mutex::new(Some(sender));
    let source = ScriptedSource::with_handler("s", tools(&["t"]), move |call: SourceCall| {
        let sender = sender.lock().take().unwrap();
        async move {
            tokio::spawn(async move {
                call.cancel.cancelled().await;
                sender.send(()).unwrap();
            });
            Ok(done())
        }
    });
    yard(&[&source]).call(tool_request("t")).await.unwrap();
    receiver.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_fails_only_its_call() {
    let late = ScriptedSource::with_handler("late", tools(&["t"]), |_| async { panic!("in the future") });
    let early =
        ScriptedSource::with_boxed_handler("early", tools(&["t"]), |_| panic!("before there is a future"));
    let fine = ScriptedSource::echo("fine", tools(&["t"]));
    let yard = yard(&[&late, &early, &fine]);
    for name in ["mcp__late__t", "mcp__early__t"] {
        for _ in 0..20 {
            let error = yard.call(tool_request(name)).await.unwrap_err();
            assert_eq!(parts(&error), (ErrorKind::Bug, format!("`{name}` crashed").as_str(), None));
        }
    }
    yard.call(tool_request("mcp__fine__t")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watchers_see_every_call_begin_and_end_in_order() {
    let source = ScriptedSource::with_handler(
        "s",
        tools(&["answer", "fail", "error"]),
        |call: SourceCall| async move {
            sleep(SECOND).await;
            match call.target.name() {
                "answer" => Ok(done()),
                "fail" => Ok(Outcome::failure(raw(&json!("no")))),
                _ => Err(HubError::new(ErrorKind::ConnectionLost, "gone")),
            }
        },
    );
    let yard = yard(&[&source]);
    let mut events = yard.events().subscribe();
    for name in ["answer", "fail", "error"] {
        let _ = yard.call(tool_request(name)).await;
    }
    assert_eq!(
        endings(&mut events),
        [
            "1 started tool mcp__s__answer of s for owner",
            "1 ended Succeeded after 1s",
            "2 started tool mcp__s__fail of s for owner",
            "2 ended Failed after 1s",
            "3 started tool mcp__s__error of s for owner",
            "3 ended Error(ConnectionLost) after 1s: gone",
        ]
    );
}

#[tokio::test]
async fn watchers_hear_of_progress_though_the_caller_does_not_listen() {
    let source = ScriptedSource::with_handler("s", tools(&["work"]), |call: SourceCall| async move {
        for progress in [1.0, 2.0, 2.0] {
            let message = Some(format!("step {progress}"));
            call.client.report_progress(crate::Progress { progress, total: None, message });
        }
        Ok(done())
    });
    let yard = yard(&[&source]);
    let mut events = yard.events().subscribe();
    let _ = yard.call(tool_request("work")).await;
    let seen = endings(&mut events);
    assert_eq!(seen[1..3], ["1 is at 1: Some(\"step 1\")", "1 is at 2: Some(\"step 2\")"]);
    assert_eq!(seen.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn refused_calls_begin_and_end_like_all_others() {
    let mut guarded = tools(&["open", "locked"]);
    guarded.tools[1].permissions = vec!["key".to_owned()];
    let source = ScriptedSource::echo("s", guarded);
    let limits = YardLimits {
        payload: 20,
        rate: Some(RateLimit { per_second: 1.0, burst: 2.0 }),
        ..YardLimits::default()
    };
    let yard = yard_with(limits, Vec::new(), &[&source]);
    let mut events = yard.events().subscribe();
    let long = format!("{{\"text\":\"{}\"}}", "x".repeat(20));
    for mut request in [
        tool_request("nothing"),
        tool_request("locked"),
        tool_request_with("open", &long),
        tool_request_with("open", "[]"),
        tool_request("open"),
        resource_request("x://none"),
    ] {
        request.principal = principal_with(&[]);
        yard.call(request).await.unwrap_err();
    }
    assert_eq!(
        endings(&mut events),
        [
            "1 started tool nothing of unknown for ada",
            "1 ended Error(UnknownTool) after 0ns: unknown tool `nothing`",
            "2 started tool mcp__s__locked of s for ada",
            "2 ended Error(Forbidden) after 0ns: mcp__s__locked needs the permission `key`",
            "3 started tool mcp__s__open of s for ada",
            "3 ended Error(TooLarge) after 0ns: the arguments for `mcp__s__open` have 31 bytes, which exceeds the limit of 20 bytes",
            "4 started tool mcp__s__open of s for ada",
            "4 ended Error(InvalidArguments) after 0ns: arguments of `mcp__s__open` must be an object",
            "5 started tool mcp__s__open of s for ada",
            "5 ended Error(RateLimited) after 0ns: exceeded the rate limit of 1 call per second",
            "6 started resource x://none of unknown for ada",
            "6 ended Error(UnknownResource) after 0ns: unknown resource `x://none`",
        ]
    );
}

#[tokio::test]
async fn a_call_that_waits_is_small() {
    let source = ScriptedSource::echo("s", tools(&["t"]));
    let yard = yard(&[&source]);
    let call = yard.call(tool_request("t"));
    assert!(size_of_val(&call) <= 2048, "{} bytes", size_of_val(&call));
    call.await.unwrap();
}
