//! Many servers at once, and the cost of each.

use tokio::io::AsyncReadExt;
use toolyard_testkit::harness::{Process, within_timeout};

use super::KEPT;
use super::tree::{line, mark, nothing_left, shell};

/// Runs in a separate process, because the test counts descriptors.
#[tokio::test]
async fn fifty_at_once_leave_no_process_and_no_descriptor() {
    let mark = mark();
    let script = "echo up; read line; sleep 1000 & exit";
    let (mut process, _stdin, mut stdout) =
        Process::start(KEPT, &["crowd", "50", "--", "sh", "-c", script, "sh", &mark]);
    let mut output = String::new();
    within_timeout("the crowd", stdout.read_to_string(&mut output)).await.unwrap();
    assert_eq!(process.exit().await, Some(0), "{}", process.stderr());
    let (before, after) = output.trim().split_once(' ').unwrap();
    assert_eq!(before, after);
    nothing_left(&mark);
}

#[tokio::test]
async fn a_keeper_is_small() {
    let mut child = shell("echo up; read line", "-");
    let (_stdin, stdout) = child.take_streams().unwrap();
    line(stdout).await;
    let map = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", child.id())).unwrap();
    let of = |kind: &str| {
        let line = map.lines().find_map(|line| line.strip_prefix(kind)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let own = of("Private_Clean:") + of("Private_Dirty:");
    println!("a keeper has {} kB, {own} of them its own", of("Rss:"));
    assert!(of("Private_Dirty:") < 2_000, "{map}");
}
