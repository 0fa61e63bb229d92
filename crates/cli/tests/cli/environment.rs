//! The environment of ad hoc servers: those of the tester and of `toolyard list -- COMMAND`. They
//! get the same allow-listed variables as configured servers, and no secret of the process that
//! starts them.

use serde_json::json;
use tokio::process::Command;
use toolyard_testkit::harness::{Client, Line, Scratch, Version};

use super::TOOLYARD;

/// Variables of the yard. Only the last one is for servers.
const VARIABLES: [&str; 5] = [
    "GITHUB_TOKEN=t0ken",
    "DATABASE_URL=postgres://ada:t0ken@db/x",
    "TOOLYARD_TOKEN=t0ken",
    "SOME_SETTING=t0ken",
    "LC_TIME=C.UTF-8",
];

/// Returns the path of a server that writes its environment to the file `seen`, and then serves the
/// demo tools.
fn server(scratch: &Scratch) -> String {
    let (config, seen) = (scratch.file("demo.toml", "demo = true\n"), scratch.path("seen"));
    scratch.file(
        "server.sh",
        &format!("env > '{}'\nexec '{TOOLYARD}' stdio --config '{config}'\n", seen.display()),
    )
}

fn check_environment(scratch: &Scratch, own: &[&str]) {
    let seen = std::fs::read_to_string(scratch.path("seen")).unwrap();
    // Only these lines in the message: the rest is the environment of the machine that runs the
    // tests.
    let leaked: Vec<&str> = seen.lines().filter(|line| line.contains("t0ken")).collect();
    assert_eq!(leaked, [""; 0]);
    for line in own.iter().chain(&["LC_TIME=C.UTF-8"]) {
        assert!(seen.lines().any(|other| other == *line), "{line} is missing");
    }
}

#[tokio::test]
async fn a_command_line_of_the_tester_sees_no_secret_of_the_yard() {
    let scratch = Scratch::new();
    let (server, config) = (server(&scratch), scratch.file("toolyard.toml", ""));
    let words = [&VARIABLES[..], &[TOOLYARD, "stdio", "--expose", "tester", "--config", &config]].concat();
    let version = Version::V2025_11_25;
    let mut client = Client::over_stdio(Line::start("env", &words, version), version).await;
    for (url, own) in [(format!("sh '{server}'"), vec![]), (format!("OWN=a sh '{server}'"), vec!["OWN=a"])] {
        let answer = client.call("connect_to_server", json!({"url": url})).await.answer;
        assert_eq!(answer.result()["structuredContent"]["success"], true, "{:#}", answer.result());
        check_environment(&scratch, &own);
        client.call("disconnect", json!({})).await.answer.result();
        std::fs::remove_file(scratch.path("seen")).unwrap();
    }
}

#[tokio::test]
async fn a_command_that_is_listed_sees_no_secret_of_the_yard() {
    let scratch = Scratch::new();
    let server = server(&scratch);
    let mut command = Command::new("env");
    command.args(VARIABLES).args([TOOLYARD, "list", "--", "sh", &server]);
    command.env("HOME", scratch.path("")).current_dir(scratch.path("")).kill_on_drop(true);
    let done = command.output().await.unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && String::from_utf8_lossy(&done.stdout).contains("add"), "{stderr}");
    check_environment(&scratch, &[]);
}
