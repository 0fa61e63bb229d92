//! How a process ends: by itself, on request, and when it ignores the request.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolyard_testkit::harness::within_timeout;

use super::tree::{line, mark, marked, nothing_left, shell, start, stubborn, until_gone};

const NOW: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_server_ends_when_its_input_is_closed() {
    let mark = mark();
    let mut child = shell("while read line; do echo \"got $line\"; done; exit 7", &mark);
    let (mut stdin, mut stdout) = child.take_streams().unwrap();
    assert!(child.take_streams().is_none());
    stdin.write_all(b"this\n").await.unwrap();
    assert_eq!(line(&mut stdout).await, "got this");
    assert_eq!(child.stop(NOW * 5).await.description, "exited with code 7");
    nothing_left(&mark);
    assert_eq!(stdin.write_all(b"x").await.unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_server_that_does_not_care_for_its_input_is_asked_to_end() {
    let mark = mark();
    let began = Instant::now();
    let child = shell("trap 'echo asked >&2; exit 3' TERM; sleep 1000 & wait", &mark);
    until_up(&mark, 2).await;
    assert_eq!(child.stop(Duration::from_millis(100)).await.description, "exited with code 3");
    assert_eq!(child.stderr_tail(), ["asked"]);
    assert!(began.elapsed() < NOW * 10);
}

#[tokio::test]
async fn a_tree_that_does_not_listen_is_killed() {
    let mark = mark();
    let child = stubborn(&mark).await;
    let began = Instant::now();
    assert_eq!(child.stop(Duration::from_millis(100)).await.description, "was killed by signal 9");
    assert!(began.elapsed() < NOW * 10, "{:?}", began.elapsed());
    nothing_left(&mark);
}

#[tokio::test]
async fn a_stopped_server_is_ended_too() {
    let mark = mark();
    let child = shell("kill -STOP $$; sleep 1000; :", &mark);
    until_up(&mark, 2).await;
    assert_eq!(child.stop(Duration::from_millis(100)).await.description, "was killed by signal 15");
    nothing_left(&mark);
}

#[tokio::test]
async fn letting_go_of_a_server_ends_its_tree() {
    let mark = mark();
    drop(stubborn(&mark).await);
    until_gone(&mark).await;
}

#[test]
fn the_end_of_the_runtime_ends_the_tree() {
    let mark = mark();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let child = runtime.block_on(stubborn(&mark));
    drop(runtime);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(until_gone(&mark));
    assert_eq!(runtime.block_on(child.wait()).description, "was abandoned");
}

#[tokio::test]
async fn an_exit_is_told_with_its_code_and_its_last_words() {
    let mut child = shell("echo half a >&2; printf 'line' >&2; exit 1", "-");
    let (_stdin, mut stdout) = child.take_streams().unwrap();
    assert_eq!(within_timeout("the end", child.wait()).await.description, "exited with code 1");
    assert_eq!(
        child.wait().await.description,
        "exited with code 1",
        "a later caller gets the same description"
    );
    assert_eq!(child.stderr_tail(), ["half a", "line"]);
    assert_eq!(stdout.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(child.stop(NOW).await.description, "exited with code 1");
}

#[tokio::test]
async fn a_server_that_exits_leaves_nothing_behind() {
    let mark = mark();
    let child = shell("setsid sh -c 'sleep 1000; :' sh $1 & sleep 0.2; exit 4", &mark);
    assert_eq!(within_timeout("the end", child.wait()).await.description, "exited with code 4");
    nothing_left(&mark);
}

#[tokio::test]
async fn a_signal_is_told_by_its_number() {
    assert_eq!(
        within_timeout("the end", shell("kill -SEGV $$", "-").wait()).await.description,
        "was killed by signal 11"
    );
}

#[tokio::test]
async fn of_much_noise_the_end_is_kept() {
    let child =
        start("python3", &["-c", "import sys\nfor n in range(200000): print('line', n, file=sys.stderr)"]);
    let child = child.unwrap();
    assert_eq!(within_timeout("the end", child.wait()).await.description, "exited with code 0");
    let tail = child.stderr_tail();
    assert_eq!((tail.len(), tail[0].as_str(), tail[199].as_str()), (200, "line 199800", "line 199999"));
}

async fn until_up(mark: &str, size: usize) {
    while marked(mark).len() < size {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // Long enough for the shell to start and reach its first command.
    tokio::time::sleep(Duration::from_millis(100)).await;
}
