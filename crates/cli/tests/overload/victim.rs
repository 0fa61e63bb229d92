//! The well-behaved client, and the load balancer that checks the yard's health.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use toolyard_testkit::harness::Server;

use super::raw;

/// To the yard, this address looks like another machine than that of the attackers.
const FROM: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
/// A client that is not answered by then gives up.
const CALL_TIME: Duration = Duration::from_secs(30);

const CALLS_PER_SECOND: u64 = 40;
const HEALTH_CHECKS_PER_SECOND: u64 = 5;
/// Before they were limited, idle connections delayed `/health` by 30 seconds. An unoptimized build
/// on a busy machine takes a few.
const HEALTH_TIME: Duration = Duration::from_secs(15);

/// The latencies of many answers.
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    fn new(mut all: Vec<Duration>) -> Self {
        all.sort();
        Self(all)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn percentile(&self, percent: usize) -> String {
        let at = (self.0.len() * percent).div_ceil(100).saturating_sub(1);
        format!("{:.1} ms", self.0[at].as_secs_f64() * 1000.0)
    }

    pub(crate) fn worst(&self) -> String {
        self.percentile(100)
    }
}

/// Calls a tool at a fixed rate until the given time. Every answer must be correct.
pub(crate) async fn well_behaved(server: &Arc<Server>, token: &str, until: Instant) -> Latencies {
    let mut calls = JoinSet::new();
    let mut tick = interval(Duration::from_millis(1000 / CALLS_PER_SECOND));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut number = 0;
    while Instant::now() < until {
        tick.tick().await;
        number += 1;
        let (server, token) = (Arc::clone(server), token.to_owned());
        if number % (5 * CALLS_PER_SECOND) == 1 {
            calls.spawn(async move { run_program(&server, &token, number).await });
        } else {
            calls.spawn(async move { add(&server, &token, number).await });
        }
    }
    Latencies::new(calls.join_all().await)
}

async fn add(server: &Server, token: &str, number: u64) -> Duration {
    let (took, answer) = execute(server, token, "mcp__good__add", json!({"a": number, "b": 1})).await;
    assert_eq!(answer["result"]["sum"].as_f64(), Some(number as f64 + 1.0), "{answer}");
    took
}

/// Runs a program, then makes a call. Returns the time of the call only, because the program starts
/// a process.
async fn run_program(server: &Server, token: &str, number: u64) -> Duration {
    let code = format!("print({number} + 1)");
    let (_, answer) = execute(server, token, "execute_program", json!({"code": code})).await;
    assert_eq!(answer["success"], true, "{answer}");
    assert!(answer["result"].to_string().contains(&(number + 1).to_string()), "{answer}");
    add(server, token, number).await
}

async fn execute(server: &Server, token: &str, tool: &str, params: Value) -> (Duration, Value) {
    let path = format!("/mcp/tools/{tool}/execute");
    let request = raw::post(&server.address, token, &path, "", &json!({"params": params}));
    let began = Instant::now();
    let answer = raw::exchange(FROM, &server.address, &request, usize::MAX, CALL_TIME).await;
    let answer = answer.unwrap_or_else(|| panic!("no answer after {:?}", began.elapsed()));
    let answer = String::from_utf8(answer).unwrap();
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let body = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
    (began.elapsed(), body)
}

/// Checks the yard's health at a fixed rate until the given time, from the address of the
/// attackers. Every answer must come in time.
pub(crate) async fn watch_health(server: &Arc<Server>, until: Instant) -> Latencies {
    let mut all = Vec::new();
    let mut tick = interval(Duration::from_millis(1000 / HEALTH_CHECKS_PER_SECOND));
    while Instant::now() < until {
        tick.tick().await;
        let began = Instant::now();
        let answer = timeout(HEALTH_TIME, server.get("/health")).await;
        assert_eq!(answer.map(|answer| answer.status), Ok(200), "after {:?}", began.elapsed());
        all.push(began.elapsed());
    }
    Latencies::new(all)
}
