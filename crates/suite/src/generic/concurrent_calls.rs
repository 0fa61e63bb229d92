//! Repeats calls that were answered, several at the same time: each must be answered again.

use std::collections::BTreeSet;
use std::time::Instant;

use futures_util::future::join_all;
use serde_json::Value;
use toolyard_hub::json::{Object, to_raw};

use super::judge::Finding;
use super::progress::GenericProgress;
use super::rules::{CONCURRENT_CALLS, PROTOCOL_VIOLATION, START_FAILED};
use super::target::GenericTarget;

const CONCURRENT: &str = "concurrent calls are answered";
/// How often each call is sent at the same time.
const TIMES: usize = 3;

pub(crate) async fn answer_concurrent_calls(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
) {
    let calls = target.quick_calls();
    if calls.is_empty() {
        return;
    }
    let Some(mut test) = progress.begin(CONCURRENT).await else { return };
    let line = progress.options.reproduction.run(progress.options.seed, progress.options.cases);
    let started = Instant::now();
    let link = match target.session().await {
        Ok(session) => std::sync::Arc::clone(&session.link),
        Err(reason) => {
            test.add(Finding::new(START_FAILED, reason), Some(line));
            return progress.finish(test, target.stderr()).await;
        }
    };
    // What came before belongs to no call of this test.
    target.take_violations();
    let limit = progress.limit();
    // In turns, so that neighbors differ.
    let sent = calls.iter().cycle().take(TIMES * calls.len());
    let answers = join_all(sent.map(|(name, arguments)| {
        let asking = link.request("tools/call", params(name, arguments));
        async move { (name, tokio::time::timeout(limit, asking).await.is_ok()) }
    }))
    .await;
    let missing = answers.iter().filter(|(_, is_answered)| !is_answered).count();
    let reason = link.disconnect_reason();
    if missing > 0 || reason.is_some() {
        let ended = reason.map(|reason| format!("; {reason}")).unwrap_or_default();
        let message = format!(
            "{missing} of {} calls that were sent at the same time got no answer within {:.1} s{ended}",
            answers.len(),
            limit.as_secs_f64()
        );
        test.add(Finding::new(CONCURRENT_CALLS, message), Some(line.clone()));
    }
    let violations: BTreeSet<String> = target.take_violations().into_iter().collect();
    for violation in violations {
        test.add(Finding::new(PROTOCOL_VIOLATION, violation), Some(line.clone()));
    }
    progress.add_step(&mut test, format!("{} calls", answers.len()), started);
    progress.finish(test, target.stderr()).await;
    if missing > 0 {
        target.abandon();
    }
}

fn params(name: &str, arguments: &Value) -> Object {
    let mut params = Object::default();
    params.set("name", to_raw(&name));
    params.set("arguments", to_raw(arguments));
    params
}
