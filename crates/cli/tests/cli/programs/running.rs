//! `toolyard run`, and the output of a running program.

use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use toolyard_testkit::harness::{Client, Process, Scratch, Signal, Version};

use super::{TOOLYARD, Upstreams};

/// Returns exit code, standard output and standard error.
fn run(arguments: &[&str], stdin: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(TOOLYARD);
    command.arg("run").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_script_runs_from_the_command_line() {
    let upstreams = Upstreams::start("").await;
    let script = upstreams.scratch.file("report.py", "print(len(await search_docs(query='x')), end='')");
    let config = ["--config", upstreams.config.as_str()];
    assert_eq!(
        run(&[&[script.as_str()], &config[..]].concat(), ""),
        (Some(0), "2".to_owned(), String::new())
    );
    let from_stdin = |code: &str, more: &[&str]| run(&[&["-"], &config[..], more].concat(), code);
    assert_eq!(from_stdin("print('a')\nprint('b')\n", &[]), (Some(0), "a\nb\n".to_owned(), String::new()));
    assert_eq!(from_stdin("", &[]), (Some(0), String::new(), String::new()));
    let (code, out, err) = from_stdin("print('before')\nraise ValueError('on purpose')\n", &[]);
    assert_eq!((code, out.as_str()), (Some(5), "before\n"));
    assert!(err.contains("line 2") && err.trim_end().ends_with("ValueError: on purpose"), "{err}");
    let (code, out, err) =
        from_stdin("print('before', flush=True)\nwhile True: pass\n", &["--timeout", "500ms"]);
    assert_eq!((code, out.as_str()), (Some(7), "before\n"), "{err}");
    assert!(err.contains("exceeded its time limit of 0.5 s"), "{err}");
    let (code, out, _) = from_stdin("print('x')\n1/0\n", &["--json"]);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (code, &result["success"], &result["ended"], &result["output"]),
        (Some(5), &json!(false), &json!("raised"), &json!("x\n"))
    );
    // On a terminal, Python's own representation is shown. With `--json`, the result contains the
    // value of the last expression.
    assert_eq!(from_stdin("1 + 1\n", &[]), (Some(0), String::new(), String::new()));
    let (code, out, _) = from_stdin("1 + 1\n", &["--json"]);
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &result["output"], &result["value"]), (Some(0), &json!(""), &json!("2")));
    assert_eq!(run(&["/nowhere/script.py"], "").0, Some(2));
    assert_eq!(from_stdin("print(1)", &["--timeout", "soon"]).0, Some(2));
}

#[tokio::test]
async fn what_a_script_prints_is_seen_while_it_runs() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "");
    let code = "import time\nprint('first ü')\nprint('and', end='', flush=True)\ntime.sleep(1_000)\n";
    let script = scratch.file("slow.py", code);
    let (mut process, _stdin, mut stdout) = Process::start(TOOLYARD, &["run", &script, "--config", &config]);
    let mut seen = vec![0; "first ü\nand".len()];
    stdout.read_exact(&mut seen).await.unwrap();
    assert_eq!(String::from_utf8(seen).unwrap(), "first ü\nand");
    process.signal(Signal::Interrupt);
    assert_eq!(process.exit().await, Some(130), "{}", process.stderr());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_not_awaited_is_told_on_standard_error() {
    let upstreams = Upstreams::start("").await;
    let config = ["-", "--config", upstreams.config.as_str()];
    let code = "search_docs(query='x')\nprint('done')\n";
    let note = "[Not awaited] line 1: mcp__doc_retrieval__search_docs(...) did not run because it was not awaited; write `await` before it";
    let expected = (Some(0), "done\n".to_owned(), format!("{note}\n"));
    assert_eq!(run(&config, code), expected);
    let (exit, out, err) = run(&[&config[..], &["--json"]].concat(), code);
    let json: Value = serde_json::from_str(&out).unwrap();
    let expected = json!({
        "success": true, "ended": "succeeded", "output": "done\n", "error": null, "note": note,
    });
    assert_eq!((exit, json, err), (Some(0), expected, String::new()));
}

#[test]
fn a_server_that_is_not_there_has_its_own_exit_code() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "[servers.gone]\ncommand = \"/nowhere/server\"\n");
    let (code, _, err) = run(&["-", "--config", &config], "print('fine without it')");
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("the tools of server `gone` are unavailable: "), "{err}");
    assert!(!err.contains("WARN"), "the log does not repeat it: {err}");
}

#[tokio::test]
async fn progress_of_a_program_reaches_its_caller() {
    let upstreams = Upstreams::start("").await;
    for over in Client::BOTH {
        let mut client = upstreams.client(over, Version::V2025_11_25).await;
        let code = "for at in range(3):\n    progress(at + 1, 3, f'step {at + 1}')\nprint('done')";
        let call = client.begin_watched_call("execute_program", json!({"code": code}), "p").await;
        let exchange = call.finish().await;
        let steps: Vec<String> = exchange
            .notifications("notifications/progress")
            .iter()
            .map(|params| format!("{} of {}: {}", params["progress"], params["total"], params["message"]))
            .collect();
        assert_eq!(steps, ["1 of 3: \"step 1\"", "2 of 3: \"step 2\"", "3 of 3: \"step 3\""]);
        assert_eq!(exchange.answer.content(), "[Script executed successfully]\ndone");
    }
}
