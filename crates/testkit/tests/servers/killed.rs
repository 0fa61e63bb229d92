//! SIGKILL, which no process can handle.

use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt, BufReader};
use toolyard_testkit::harness::{Process, within_timeout};

use super::KEPT;
use super::tree::{STUBBORN, mark, marked, nothing_left, stubborn, until_gone};

/// Starts another process that supervises a tree of this size, including the keeper.
async fn parent(script: &[&str], mark: &str, size: usize) -> Process {
    let words = [&["parent", "--"], script, &[mark]].concat();
    let (process, _stdin, stdout) = Process::start(KEPT, &words);
    let mut lines = BufReader::new(stdout).lines();
    within_timeout("the keeper's id", lines.next_line()).await.unwrap().unwrap();
    let all = async {
        while marked(mark).len() < size + 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    within_timeout("the whole tree", all).await;
    process
}

#[tokio::test]
async fn when_we_are_killed_nothing_of_a_stubborn_tree_is_left() {
    let mark = mark();
    let mut process = parent(&["python3", "-c", STUBBORN], &mark, 5).await;
    // All processes run, but their signal handlers may not be installed yet.
    tokio::time::sleep(Duration::from_millis(300)).await;
    process.kill().await;
    let began = Instant::now();
    until_gone(&mark).await;
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

#[tokio::test]
async fn when_we_are_killed_a_well_behaved_tree_ends_at_once() {
    let mark = mark();
    let mut process = parent(&["sh", "-c", "sh -c 'sleep 1000; :' sh $1; :", "sh"], &mark, 3).await;
    let began = Instant::now();
    process.kill().await;
    until_gone(&mark).await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test]
async fn when_the_keeper_is_killed_its_session_is_ended() {
    let mark = mark();
    let child = super::tree::shell("sleep 1000 & sh -c 'sleep 1000; :' sh $1; :", &mark);
    while marked(&mark).len() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let kill = format!("kill -KILL {}", child.id());
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(
        within_timeout("the end", child.wait()).await.description,
        "ended because its supervisor was killed by signal 9"
    );
    until_gone(&mark).await;
}

#[tokio::test]
async fn a_server_that_is_killed_takes_its_own_children_with_it() {
    let mark = mark();
    let child = stubborn(&mark).await;
    let server = marked(&mark).into_iter().filter(|pid| *pid != child.id()).min().unwrap();
    let kill = format!("kill -KILL {server}");
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    assert_eq!(within_timeout("the end", child.wait()).await.description, "was killed by signal 9");
    nothing_left(&mark);
}
