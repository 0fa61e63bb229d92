//! Hostile clients and hostile upstreams at fixed rates, next to one well-behaved client: it gets
//! every answer, `/health` keeps answering, and the gateway stays small. `./check soak` runs this
//! for a minute. It is a separate test binary because it keeps the whole machine busy, which would
//! affect the timing of other tests.
#![allow(clippy::print_stdout, reason = "a soak run reports its figures")]
#![allow(clippy::disallowed_methods, reason = "the environment of a soak run extends it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failing test panics")]

mod overload {
    pub(crate) mod attackers;
    pub(crate) mod raw;
    pub(crate) mod victim;
}

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;
use toolyard_testkit::harness::{Scratch, Server, new_token};

use overload::attackers::{Attackers, Tokens};
use overload::victim::{Latencies, watch_health, well_behaved};

const TOOLYARD: &str = env!("CARGO_BIN_EXE_toolyard");

/// How long the attack lasts by default.
const SECONDS: u64 = 5;
/// The most memory that the gateway may use, whatever happens.
const MOST_MEGABYTES: u64 = 300;
/// The most log output that all hostile servers together may cause.
const MOST_LOG_BYTES: usize = 2_000_000;

fn seconds() -> u64 {
    std::env::var("TOOLYARD_OVERLOAD_SECONDS")
        .ok()
        .and_then(|seconds| seconds.parse().ok())
        .unwrap_or(SECONDS)
}

fn hostile(kind: &str) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/overload/hostile.py");
    format!("command = \"python3\"\nargs = [{script:?}, {kind:?}]\n")
}

/// The yard under attack, and the tokens of its users.
async fn yard(scratch: &Scratch, good: &Server) -> (Arc<Server>, Tokens) {
    let mut config = "demo = true\ncheck_results = \"warn\"\n".to_owned();
    let mut tokens = Vec::new();
    for (name, permission) in [("good", "none"), ("hostile", "none"), ("tester", "spawn")] {
        let (token, lines) = new_token(TOOLYARD, &["--name", name, "--permission", permission]).await;
        config = format!("{config}\n{lines}\n");
        tokens.push(token);
    }
    for kind in ["patterns", "pages", "requests", "resources", "large"] {
        config = format!("{config}\n[servers.{kind}]\n{}", hostile(kind));
    }
    config = format!("{config}\n[servers.good]\nurl = \"http://{}/mcp\"\n", good.address);
    let server = Server::configured(TOOLYARD, scratch, &config).await;
    let [good, hostile, tester] = <[String; 3]>::try_from(tokens).unwrap();
    (server, Tokens { good, hostile, tester })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_well_behaved_client_gets_every_answer_beside_hostile_clients_and_upstreams() {
    let good =
        Server::start(TOOLYARD, &["serve", "--listen", "127.0.0.1:0", "--json", "--auth", "none"]).await;
    let scratch = Scratch::new();
    let (server, tokens) = yard(&scratch, &good).await;

    let alone = Duration::from_secs((seconds() / 6).max(2));
    let quiet = well_behaved(&server, &tokens.good, Instant::now() + alone).await;

    let until = Instant::now() + Duration::from_secs(seconds());
    let mut attack = JoinSet::new();
    let attackers = Attackers::start(&server, &tokens, until, &mut attack);
    let (busy, health) =
        tokio::join!(well_behaved(&server, &tokens.good, until), watch_health(&server, until));
    attack.shutdown().await;

    let process = server.process().await;
    let (peak, log) = (process.peak_megabytes(), process.stderr().len());
    println!("attack of {} s: {}", seconds(), attackers.summary());
    println!("calls: {} alone, {} beside the attack, all answered", quiet.count(), busy.count());
    println!("health: {} answers, {} at worst", health.count(), health.worst());
    print_latencies(&quiet, &busy);
    println!("peak memory of the gateway: {peak} MB; log: {log} bytes");
    attackers.assert_all_took_part(Duration::from_secs(seconds()));
    assert!(peak < MOST_MEGABYTES, "the gateway grew to {peak} MB");
    assert!(log < MOST_LOG_BYTES, "{log} bytes of log: {}", &process.stderr()[..2000]);
}

fn print_latencies(quiet: &Latencies, busy: &Latencies) {
    println!("p50: {} alone, {} beside the attack", quiet.percentile(50), busy.percentile(50));
    println!("p99: {} alone, {} beside the attack", quiet.percentile(99), busy.percentile(99));
}
