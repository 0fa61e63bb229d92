//! Repeated connecting, calling and disconnecting leaves nothing behind.

use serde_json::json;
use toolyard_testkit::harness::Scratch;
use toolyard_testkit::odd::{Kind, start_in_process};

use super::{Tester, demo};

/// Returns the number of rounds from the environment, or enough to see a leak.
#[allow(clippy::disallowed_methods, reason = "the environment can request a long run")]
fn rounds() -> usize {
    std::env::var("TOOLYARD_TESTER_ROUNDS").ok().and_then(|number| number.parse().ok()).unwrap_or(100)
}

#[allow(clippy::print_stdout, reason = "figures are for people")]
#[tokio::test]
async fn many_rounds_leave_no_memory_and_no_descriptor_behind() {
    let scratch = Scratch::new();
    let demo = demo(&scratch);
    let (legacy, modern) = (
        start_in_process(Kind::LegacyOnly).await.unwrap(),
        start_in_process(Kind::ModernOnly).await.unwrap(),
    );
    let mut tester = Tester::start().await;
    let rounds = rounds();
    // One-time allocations are not a leak.
    let settled = rounds / 5;
    let mut before = (0, 0);
    for round in 0..rounds {
        // Starting a process takes a while, so most rounds go over HTTP.
        let (url, tool, arguments) = match round % 10 {
            0 => (&demo, "add", json!({"a": 1, "b": 2})),
            number if number % 2 == 1 => (&legacy.url, "echo", json!({"n": round})),
            _ => (&modern.url, "echo", json!({"n": round})),
        };
        tester.connect(url).await;
        tester.calls(tool, arguments).await;
        assert_eq!(tester.uses("disconnect", json!({})).await["success"], true);
        if round == settled {
            before = measured(&tester).await;
        }
    }
    let after = measured(&tester).await;
    println!(
        "{rounds} rounds: memory {} -> {} MB, descriptors {} -> {}",
        before.0, after.0, before.1, after.1
    );
    assert!(after.0 <= before.0 + 8, "memory grew from {} to {} MB", before.0, after.0);
    assert!(after.1 <= before.1 + 4, "descriptors grew from {} to {}", before.1, after.1);
}

/// Returns megabytes and descriptors of the tester.
async fn measured(tester: &Tester) -> (u64, usize) {
    let process = tester.client.line().process().await;
    (process.megabytes(), process.descriptors())
}
