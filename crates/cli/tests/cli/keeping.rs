//! `toolyard keeper`, which this program starts for every server process.

use std::process::{Command, Output};

use super::TOOLYARD;

/// Runs a keeper that watches this process.
fn keep(program: &[&str]) -> Output {
    let watch = std::process::id().to_string();
    Command::new(TOOLYARD).args(["keeper", "--watch", &watch, "--"]).args(program).output().unwrap()
}

#[test]
fn a_kept_program_has_our_streams_and_its_exit_code_is_ours() {
    let done = keep(&["sh", "-c", "echo \"$1\"; echo oops >&2; exit 7", "sh", "--help"]);
    assert_eq!(done.status.code(), Some(7));
    assert_eq!((done.stdout.as_slice(), done.stderr.as_slice()), (&b"--help\n"[..], &b"oops\n"[..]));
    assert_eq!(keep(&["sh", "-c", "kill -9 $$"]).status.code(), Some(137));
}

#[test]
fn what_cannot_be_started_is_named() {
    let done = keep(&["/no/such/program"]);
    assert_eq!(done.status.code(), Some(127));
    let why = "error: cannot start /no/such/program: No such file or directory (os error 2)\n";
    assert_eq!(String::from_utf8(done.stderr).unwrap(), why);
}

#[test]
fn the_keeper_ends_unless_its_parent_is_the_watched_process() {
    let done =
        Command::new(TOOLYARD).args(["keeper", "--watch", "1", "--", "sleep", "1000"]).output().unwrap();
    assert_eq!(done.status.code(), Some(128 + 15));
}

#[test]
fn the_keeper_is_not_for_people() {
    let help = Command::new(TOOLYARD).arg("--help").output().unwrap();
    assert!(!String::from_utf8(help.stdout).unwrap().contains("keeper"));
}
