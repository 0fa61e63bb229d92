//! The channel to the caller: questions, which release permits and pause the deadline, and updates
//! in order.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::caller_channel::{
    CallerChannel, CallerUpdate, ClientCapabilities, LogLevel, LogLine, Progress, Question, QuestionBatch,
    QuestionKind,
};
use crate::deadline::Deadline;
use crate::error::{ErrorKind, HubError};
use crate::fake::{ScriptedSource, done, raw, tool_request, tools, yard, yard_with};
use crate::limits::YardLimits;
use crate::request::CallRequest;
use crate::source::SourceCall;
use crate::yard::Yard;

const SECOND: Duration = Duration::from_secs(1);

fn question() -> Vec<Question> {
    vec![Question { key: "name".to_owned(), kind: QuestionKind::ElicitForm, params: raw(&json!({})) }]
}

fn able() -> ClientCapabilities {
    ClientCapabilities { elicit_form: true, ..ClientCapabilities::default() }
}

fn one_place() -> YardLimits {
    YardLimits { per_source: Some(1), ..YardLimits::default() }
}

/// A call with a deadline of 30 seconds, and the receiver of its updates.
fn asked(name: &str) -> (CallRequest, mpsc::Receiver<CallerUpdate>) {
    let (client, updates) = CallerChannel::new(able());
    let mut request = tool_request(name);
    request.client = client;
    request.deadline = Deadline::after(30 * SECOND);
    (request, updates)
}

async fn next_question(updates: &mut mpsc::Receiver<CallerUpdate>) -> QuestionBatch {
    match updates.recv().await {
        Some(CallerUpdate::Ask(ask)) => ask,
        other => panic!("expected a question, got {other:?}"),
    }
}

fn answer(ask: QuestionBatch) {
    let answers = ask.questions.iter().map(|q| (q.key.clone(), raw(&json!({"action": "accept"})))).collect();
    ask.reply.send(Ok(answers)).unwrap();
}

fn start(
    yard: &Arc<Yard>,
    request: CallRequest,
) -> tokio::task::JoinHandle<Result<crate::Outcome, HubError>> {
    let yard = Arc::clone(yard);
    tokio::spawn(async move { yard.call(request).await })
}

#[tokio::test(start_paused = true)]
async fn an_open_question_pauses_the_deadline_and_releases_the_permit() {
    let asking = ScriptedSource::with_handler("s", tools(&["ask", "work"]), |call: SourceCall| async move {
        if call.target.name() == "ask" {
            let answers = call.client.ask(question()).await?;
            assert_eq!(answers[0].0, "name");
            assert_eq!(call.deadline.remaining(), 30 * SECOND);
        }
        sleep(5 * SECOND).await;
        Ok(done())
    });
    let yard = yard_with(one_place(), Vec::new(), &[&asking]);
    let (request, mut updates) = asked("ask");
    let call = start(&yard, request);
    let ask = next_question(&mut updates).await;
    let began = Instant::now();
    for _ in 0..20 {
        yard.call(tool_request("work")).await.unwrap();
    }
    assert_eq!(began.elapsed(), 100 * SECOND);
    answer(ask);
    call.await.unwrap().unwrap();
    assert_eq!(began.elapsed(), 105 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn after_an_unanswered_question_the_call_has_its_permit_again() {
    let asking = ScriptedSource::with_handler("s", tools(&["ask", "work"]), |call: SourceCall| async move {
        if call.target.name() == "ask" {
            let refused = call.client.ask(question()).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Cancelled);
        }
        sleep(10 * SECOND).await;
        Ok(done())
    });
    let yard = yard_with(one_place(), Vec::new(), &[&asking]);
    let declined = || HubError::new(ErrorKind::Cancelled, "declined");
    let ways: [fn(QuestionBatch, HubError); 2] =
        [|ask, error| drop(ask.reply.send(Err(error))), |ask, _| drop(ask)];
    for way in ways {
        let (request, mut updates) = asked("ask");
        let call = start(&yard, request);
        let ask = next_question(&mut updates).await;
        let began = Instant::now();
        let other = start(&yard, tool_request("work"));
        sleep(SECOND).await;
        way(ask, declined());
        call.await.unwrap().unwrap();
        // Ten seconds until the other call releases its permit, then ten of its own.
        assert_eq!(began.elapsed(), 20 * SECOND);
        other.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn two_concurrent_questions_do_not_wait_for_each_other() {
    let asking = ScriptedSource::with_handler("s", tools(&["ask"]), |call: SourceCall| async move {
        let (first, second) = tokio::join!(call.client.ask(question()), call.client.ask(question()));
        first?;
        second?;
        assert_eq!(call.deadline.remaining(), 30 * SECOND);
        Ok(done())
    });
    let yard = yard_with(one_place(), Vec::new(), &[&asking]);
    let (request, mut updates) = asked("ask");
    let call = start(&yard, request);
    let (first, second) = (next_question(&mut updates).await, next_question(&mut updates).await);
    sleep(40 * SECOND).await;
    answer(first);
    sleep(40 * SECOND).await;
    answer(second);
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_question_of_one_call_leaves_another_call_of_the_same_client_alone() {
    let source = ScriptedSource::with_handler("s", tools(&["ask", "work"]), |call: SourceCall| async move {
        if call.target.name() == "ask" {
            sleep(SECOND).await;
            call.client.ask(question()).await?;
        } else {
            std::future::pending::<()>().await;
        }
        Ok(done())
    });
    let yard = yard(&[&source]);
    let (asking, mut updates) = asked("ask");
    let mut working = tool_request("work");
    working.client = asking.client.clone();
    working.deadline = Deadline::after(10 * SECOND);
    let asking = start(&yard, asking);
    let began = Instant::now();
    let working = start(&yard, working);
    let ask = next_question(&mut updates).await;
    assert_eq!(working.await.unwrap().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(began.elapsed(), 10 * SECOND);
    answer(ask);
    asking.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_question_of_a_call_within_a_call_holds_up_both() {
    let inner = ScriptedSource::with_handler("inner", tools(&["ask"]), |call: SourceCall| async move {
        call.client.ask(question()).await?;
        Ok(done())
    });
    let inside = yard(&[&inner]);
    let outer = ScriptedSource::with_handler("outer", tools(&["program"]), move |call: SourceCall| {
        let inside = Arc::clone(&inside);
        async move {
            let mut request = tool_request("ask");
            request.client = call.client.clone();
            request.deadline = Deadline::after(20 * SECOND);
            inside.call(request).await?;
            assert_eq!(call.deadline.remaining(), 30 * SECOND);
            Ok(done())
        }
    });
    let yard = yard(&[&outer]);
    let (request, mut updates) = asked("program");
    let call = start(&yard, request);
    let ask = next_question(&mut updates).await;
    sleep(1000 * SECOND).await;
    answer(ask);
    call.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_answer_is_not_asked() {
    let asking = ScriptedSource::with_handler("s", tools(&["ask"]), |call: SourceCall| async move {
        call.client.ask(question()).await?;
        Ok(done())
    });
    let error = yard(&[&asking]).call(tool_request("ask")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ClientCannot);
    assert_eq!(error.details(), Some(&json!({"elicitation": {"form": {}}})));
}

fn progress(value: f64) -> Progress {
    Progress { progress: value, total: Some(10.0), message: None }
}

fn line(level: LogLevel) -> LogLine {
    LogLine { level, logger: None, data: json!("text") }
}

#[tokio::test(start_paused = true)]
async fn progress_that_does_not_increase_and_unrequested_log_lines_are_not_sent() {
    let source = ScriptedSource::with_handler("s", tools(&["work"]), |call: SourceCall| async move {
        for value in [1.0, 1.0, 0.5, f64::NAN, 2.0, f64::INFINITY] {
            call.client.report_progress(progress(value));
        }
        call.client.report_progress(Progress { total: Some(f64::NAN), ..progress(3.0) });
        for level in [LogLevel::Debug, LogLevel::Notice, LogLevel::Warning, LogLevel::Emergency] {
            call.client.log(line(level));
        }
        call.client.send_chunk(json!("piece")).await;
        call.client.send_pause(SECOND).await;
        Ok(done())
    });
    let (client, mut updates) = CallerChannel::new(ClientCapabilities {
        log_level: Some(LogLevel::Warning),
        ..ClientCapabilities::default()
    });
    let mut request = tool_request("work");
    request.client = client;
    yard(&[&source]).call(request).await.unwrap();
    let mut seen = Vec::new();
    while let Some(update) = updates.recv().await {
        seen.push(match update {
            CallerUpdate::Progress(progress) => {
                json!({"progress": progress.progress, "total": progress.total})
            }
            CallerUpdate::Log(line) => json!(line.level),
            CallerUpdate::Chunk(chunk) => chunk,
            CallerUpdate::Pause(pause) => json!(pause.retry.as_secs()),
            CallerUpdate::Ask(ask) => panic!("{ask:?}"),
        });
    }
    let expected: Value = json!([
        {"progress": 1.0, "total": 10.0},
        {"progress": 2.0, "total": 10.0},
        {"progress": 3.0, "total": null},
        "warning",
        "emergency",
        "piece",
        1
    ]);
    assert_eq!(json!(seen), expected);
}

#[tokio::test(start_paused = true)]
async fn without_a_level_no_line_is_sent() {
    let (client, mut updates) = CallerChannel::new(ClientCapabilities::default());
    client.log(line(LogLevel::Emergency));
    drop(client);
    assert!(updates.recv().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn chunks_wait_for_a_slow_reader_and_none_is_lost() {
    let source = ScriptedSource::with_handler("s", tools(&["stream"]), |call: SourceCall| async move {
        for at in 0..1000 {
            call.client.send_chunk(json!(at)).await;
            // Progress does not wait: a slow reader loses some of it.
            call.client.report_progress(progress(f64::from(at)));
        }
        Ok(done())
    });
    let yard = yard(&[&source]);
    let (request, mut updates) = asked("stream");
    let mut call = start(&yard, request);
    assert!(timeout(SECOND, &mut call).await.is_err(), "the source must wait for the reader");
    let mut chunks = Vec::new();
    while let Some(update) = updates.recv().await {
        if let CallerUpdate::Chunk(chunk) = update {
            chunks.push(chunk);
        }
    }
    assert_eq!(json!(chunks), json!((0..1000).collect::<Vec<_>>()));
    call.await.unwrap().unwrap();
}
