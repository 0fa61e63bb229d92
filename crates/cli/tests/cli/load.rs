//! Many concurrent callers over REST: the numbers that the callers saw, the yard counted and the
//! server received match to the last call.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolyard_testkit::harness::{Scratch, Server};

use super::access::{make, serve};
use super::{SERVE, TOOLYARD};

const CALLERS: usize = 64;
const CALLS: usize = 20;
const PRIORITIES: [&str; 3] = ["low", "normal", "high"];
/// The names of the tokens, with the rate per second and the burst of each.
const TOKENS: [(&str, Option<(f64, f64)>); 3] =
    [("free", None), ("roomy", Some((50.0, 100.0))), ("tight", Some((1.0, 10.0)))];

/// The number of calls by status code, or by outcome according to `/metrics`.
type Counts<K> = BTreeMap<K, usize>;

/// Returns the calls of one tool in `/metrics`, once none is in flight.
async fn counted(server: &Server, token: Option<&str>, tool: &str) -> Counts<(String, String)> {
    let header = token.map(|token| format!("Bearer {token}"));
    let headers: Vec<(&str, &str)> = header.iter().map(|header| ("authorization", header.as_str())).collect();
    for _ in 0..200 {
        let text = server.request("GET", "/metrics", &headers, b"").await.read_body().await.text;
        let flying = text.lines().filter(|line| line.starts_with("toolyard_calls_in_flight{"));
        if flying.clone().all(|line| line.ends_with(" 0")) {
            let labelled = format!("tool=\"{tool}\"");
            let of_tool = text
                .lines()
                .filter(|line| line.starts_with("toolyard_calls_total{") && line.contains(&labelled));
            return of_tool
                .map(|line| {
                    let (_, end) = line.split_once("end=\"").unwrap();
                    let (end, error) = end.split_once("\",error=\"").unwrap();
                    let (error, rest) = error.split_once("\"}").unwrap();
                    ((end.to_owned(), error.to_owned()), rest.trim().parse().unwrap())
                })
                .collect();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("calls stay in flight");
}

/// Makes the calls of one caller in sequence. Returns the number of answers by status.
async fn call_again_and_again(server: Arc<Server>, token: String, priority: &'static str) -> Counts<u16> {
    let token = format!("Bearer {token}");
    let mut seen = Counts::new();
    for call in 0..CALLS {
        let body = json!({"params": {"a": call, "b": 1}, "context": {"priority": priority}});
        let headers = [("authorization", token.as_str())];
        let answer = server.post_with("/mcp/tools/mcp__inner__add/execute", &headers, &body).await;
        match answer.status {
            200 => assert_eq!(answer.json()["result"]["sum"].as_f64(), Some(call as f64 + 1.0)),
            _ => {
                assert_eq!(answer.refusal(), (429, "RATE_LIMIT_ERROR".to_owned()));
                assert!(answer.header("retry-after").unwrap().parse::<u64>().unwrap() > 0);
            }
        }
        *seen.entry(answer.status).or_default() += 1;
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn counts_of_64_callers_with_three_tokens_add_up_exactly() {
    let inner = Server::start(TOOLYARD, &[&SERVE[..], &["--auth", "none"]].concat()).await;
    let (watcher, mut config) = make(&["--name", "watcher", "--permission", "*"]).await;
    let mut tokens = Vec::new();
    for (name, rate) in TOKENS {
        let (token, lines) = make(&["--name", name]).await;
        let limit = rate.map(|(per_second, burst)| {
            format!("limits.rate = {{ per_second = {per_second:?}, burst = {burst:?} }}\n")
        });
        config = format!("{config}\n{lines}\n{}", limit.unwrap_or_default());
        tokens.push(token);
    }
    let url = format!("http://{}/mcp", inner.address);
    config = format!("{config}\n[servers.inner]\nurl = \"{url}\"\nlimits.calls = 4\n");
    let scratch = Scratch::new();
    let server = serve(&scratch, &config).await;

    let began = Instant::now();
    let mut callers = Vec::new();
    for caller in 0..CALLERS {
        let (of_token, priority) =
            (caller % TOKENS.len(), PRIORITIES[caller / TOKENS.len() % PRIORITIES.len()]);
        let calls = call_again_and_again(Arc::clone(&server), tokens[of_token].clone(), priority);
        callers.push((of_token, tokio::spawn(calls)));
    }
    let mut seen = [Counts::new(), Counts::new(), Counts::new()];
    let mut made = [0; TOKENS.len()];
    for (of_token, caller) in callers {
        made[of_token] += CALLS;
        for (status, count) in caller.await.unwrap() {
            *seen[of_token].entry(status).or_default() += count;
        }
    }
    let seconds = began.elapsed().as_secs_f64();

    let total = |status: u16| seen.iter().filter_map(|counts| counts.get(&status)).sum::<usize>();
    let (completed, refused) = (total(200), total(429));
    for (((name, rate), counts), made) in TOKENS.iter().zip(&seen).zip(made) {
        assert_eq!(counts.values().sum::<usize>(), made, "{name}: {counts:?}");
        match rate {
            None => assert_eq!(counts, &Counts::from([(200, made)]), "{name}"),
            Some((per_second, burst)) => {
                let most = burst + per_second * seconds + 1.0;
                assert!(counts[&200] as f64 <= most && counts[&200] as f64 >= *burst, "{name}: {counts:?}");
            }
        }
    }
    assert!(seen[2].contains_key(&429), "no call was refused: {seen:?}");
    // What the yard counted, and what the server received: no refused call reached it, and no call
    // was made twice.
    let at_the_yard = counted(&server, Some(&watcher), "mcp__inner__add").await;
    let end = |end: &str, error: &str| (end.to_owned(), error.to_owned());
    let expected =
        Counts::from([(end("succeeded", ""), completed), (end("failed", "rate_limited"), refused)]);
    assert_eq!(at_the_yard, expected);
    assert_eq!(counted(&inner, None, "add").await, Counts::from([(end("succeeded", ""), completed)]));
}
