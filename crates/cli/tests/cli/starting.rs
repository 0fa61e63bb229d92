//! Starting: the printed output, the refused configurations, and the exit codes.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use toolyard_testkit::harness::{Client, Line, Process, Scratch, Server, Signal, Version, within_timeout};
use toolyard_testkit::web::{Shown, Web, What};

use super::{SERVE, TOOLYARD};

/// Runs the command to its end. Returns the exit code and standard error.
async fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let (mut process, stdin, _stdout) = Process::start(TOOLYARD, arguments);
    drop(stdin);
    let code = process.exit().await;
    (code, process.stderr())
}

#[tokio::test]
async fn the_demo_yard_is_served_to_clients_with_the_token() {
    let server = Server::start(TOOLYARD, &SERVE).await;
    for version in Version::ALL {
        let mut client = Client::join(&server, version).await;
        let answer = client.call("add", json!({"a": 1, "b": 2})).await.answer;
        assert_eq!(answer.result()["structuredContent"], json!({"sum": 3.0}), "{version}");
    }
    let mut stranger = Client::join_as(&server, Version::V2026_07_28, None).await;
    let list = stranger.text("tools/list", &json!({}));
    assert_eq!(stranger.post(&list).await.refusal().await, (401, -32600));
}

#[tokio::test]
async fn the_demo_yard_is_served_over_stdio() {
    for version in Version::ALL {
        let mut client = Client::over_stdio(Line::start(TOOLYARD, &["stdio"], version), version).await;
        let answer = client.call("add", json!({"a": 1, "b": 2})).await.answer;
        assert_eq!(answer.result()["structuredContent"], json!({"sum": 3.0}), "{version}");
    }
}

#[tokio::test]
async fn a_token_of_ones_own_is_taken_and_everybody_may_be_let_in() {
    let chosen: Vec<&str> = SERVE.into_iter().chain(["--token", "chosen"]).collect();
    let server = Server::start(TOOLYARD, &chosen).await;
    let mut client = Client::join_as(&server, Version::V2026_07_28, Some("chosen".to_owned())).await;
    client.ask("tools/list", "{}").await.answer.result();
    let open: Vec<&str> = SERVE.into_iter().chain(["--auth", "none"]).collect();
    let server = Server::start(TOOLYARD, &open).await;
    assert_eq!(server.token, None);
    let mut client = Client::join(&server, Version::V2026_07_28).await;
    client.ask("tools/list", "{}").await.answer.result();
}

#[tokio::test]
async fn a_token_of_ones_own_is_never_printed() {
    const TOKEN: &str = "the-operators-own-token";
    for (word, json) in
        [("--token", "--json"), ("TOOLYARD_TOKEN", "--json"), ("--token", ""), ("TOOLYARD_TOKEN", "")]
    {
        let (variable, option) = (format!("TOOLYARD_TOKEN={TOKEN}"), ["--token", TOKEN]);
        let mut words = if word == "--token" { vec![TOOLYARD] } else { vec![variable.as_str(), TOOLYARD] };
        words.extend(["serve", "--listen", "127.0.0.1:0"]);
        words.extend(if word == "--token" { &option[..] } else { &[] });
        words.extend((!json.is_empty()).then_some(json));
        let (mut process, _stdin, mut stdout) = Process::start("env", &words);
        let mut output = String::new();
        if json.is_empty() {
            within_timeout("the address", async {
                while !process.stderr().contains("Press Ctrl-C to stop.") {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            })
            .await;
        } else {
            let mut line = BufReader::new(&mut stdout);
            within_timeout("the address", line.read_line(&mut output)).await.unwrap();
            let known: Value = serde_json::from_str(&output).unwrap();
            assert_eq!(known["token"], Value::Null, "{output}");
        }
        process.signal(Signal::Terminate);
        stdout.read_to_string(&mut output).await.unwrap();
        process.exit().await;
        output += &process.stderr();
        assert!(!output.contains(TOKEN), "{word} {json}: {output}");
        if json.is_empty() {
            assert!(
                output.contains("/   sign in with the token from --token or TOOLYARD_TOKEN\n"),
                "{output}"
            );
        }
    }
}

#[tokio::test]
async fn the_page_is_printed_with_configured_tokens_and_without_any_and_never_a_configured_token() {
    let scratch = Scratch::new();
    let digest = "d5a38892700c307c25df8abf14f38f7eeddd7e04cbf20f3b74ffe1cfa9c5106e";
    let token = format!("demo = true\n[[tokens]]\nname = \"ada\"\nsha256 = \"{digest}\"\n");
    let tokens = scratch.file("tokens.toml", &token);
    let open = scratch.file("open.toml", "demo = true\nauth = \"none\"\n");
    for (config, page, mcp) in [
        (&tokens, "sign in with a token from the configuration", "`Authorization: Bearer TOKEN`"),
        (&open, "no authentication, this machine only", "no authentication, this machine only"),
    ] {
        let (mut process, _stdin, _stdout) =
            Process::start(TOOLYARD, &["serve", "--listen", "127.0.0.1:0", "--config", config]);
        within_timeout("the address", async {
            while !process.stderr().contains("Press Ctrl-C to stop.") {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
        let output = process.stderr();
        process.signal(Signal::Terminate);
        process.exit().await;
        let line =
            |word: &str| output.lines().find(|line| line.trim_start().starts_with(word)).unwrap_or_default();
        assert!(line("page  http://127.0.0.1:").ends_with(page), "{output}");
        assert!(line("MCP   http://127.0.0.1:").ends_with(mcp), "{output}");
        assert!(!output.contains(digest) && !output.contains("#token="), "{output}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_a_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, output) = run(&["serve", "--listen", &address]).await;
    assert_eq!(code, Some(1), "{output}");
    let expected = format!(
        "error: cannot listen on {address}: Address already in use (os error 98)\n  \
         hint: choose another address with --listen; `--listen 127.0.0.1:0` picks a free port\n"
    );
    assert_eq!(output, expected);
}

#[tokio::test]
async fn a_wrong_configuration_is_shown_with_line_and_column() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "demo = true\nauth = \"maybe\"\n");
    for verb in ["serve", "stdio"] {
        let (code, output) = run(&[verb, "--config", &config]).await;
        assert_eq!(code, Some(2), "{output}");
        let expected = format!(
            "error: {config}:2:8: invalid value `maybe`, expected one of `token`, `none`\n   |\n 2 | auth = \"maybe\"\n   |        ^^^^^^^\n"
        );
        assert_eq!(output, expected);
    }
}

#[tokio::test]
async fn a_configuration_that_is_not_there_is_named() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing.toml").display().to_string();
    for verb in ["serve", "stdio"] {
        let (code, output) = run(&[verb, "--config", &missing]).await;
        let expected =
            format!("error: {missing}: cannot read the file: No such file or directory (os error 2)\n");
        assert_eq!((code, output), (Some(2), expected));
    }
}

#[tokio::test]
async fn an_unknown_key_is_warned_about_and_passed_over() {
    let scratch = Scratch::new();
    let text = "demo = true\ncolour = \"red\"\n[limits]\nspeed = 7\n";
    let config = scratch.file("toolyard.toml", text);
    let (code, output) = run(&["stdio", "--config", &config]).await;
    // The values are not repeated, because they might be secrets.
    let colour =
        format!("warning: {config}:2:1: unknown key `colour`\n   |\n 2 | colour = \"…\"\n   | ^^^^^^\n");
    let speed = format!("warning: {config}:4:1: unknown key `speed`\n   |\n 4 | speed = …\n   | ^^^^^\n");
    assert_eq!((code, output), (Some(0), colour + &speed));
}

#[tokio::test]
async fn serving_other_machines_requires_a_token() {
    let (code, output) = run(&["serve", "--listen", "0.0.0.0:0", "--auth", "none"]).await;
    assert_eq!(code, Some(1), "{output}");
    let expected = "error: serving without a token is only allowed on a loopback address, not on `0.0.0.0:0`\n  \
                    hint: listen on a loopback address such as 127.0.0.1, or use `--auth token`\n";
    assert_eq!(output, expected);
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    for arguments in [&["dance"][..], &[], &["serve", "--listen", "here"], &["serve", "--auth", "maybe"]] {
        let (code, output) = run(arguments).await;
        assert_eq!(code, Some(2), "{arguments:?}: {output}");
        assert!(output.contains("--help"), "{arguments:?}: {output}");
    }
}

#[tokio::test]
async fn the_sandbox_of_programs_cannot_be_weakened() {
    let (code, output) = run(&["sandbox", "--without", "seccomp"]).await;
    assert_eq!(code, Some(2));
    assert!(output.contains("unexpected argument '--without' found"), "{output}");
}

/// The output of `add` for one and two.
const SUM: &str = "{\"sum\":3.0}\n";

/// Runs a command on a system that trusts only these certificates. Returns the exit code, standard
/// output and standard error.
async fn trusting(certificates: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let (file, folder) = (format!("SSL_CERT_FILE={certificates}"), "SSL_CERT_DIR=/nowhere");
    let words: Vec<&str> =
        [file.as_str(), folder, TOOLYARD].into_iter().chain(arguments.iter().copied()).collect();
    let (mut process, stdin, mut stdout) = Process::start("env", &words);
    drop(stdin);
    let mut output = String::new();
    stdout.read_to_string(&mut output).await.unwrap();
    (process.exit().await, output, process.stderr())
}

#[tokio::test]
async fn only_certificates_that_the_system_trusts_are_accepted() {
    let open: Vec<&str> = SERVE.into_iter().chain(["--auth", "none"]).collect();
    let server = Server::start(TOOLYARD, &open).await;
    let (shown, other, scratch) = (Shown::generate(), Shown::generate(), Scratch::new());
    let (trusted, another) = (scratch.file("shown.pem", &shown.pem), scratch.file("other.pem", &other.pem));
    let front = Web::start(What::Encrypted(server.address.clone(), shown)).await;
    let call = ["call", "add", "a=1", "b=2", "--url", &format!("https://{}/mcp", front.address)];
    let (code, output, stderr) = trusting(&trusted, &call).await;
    assert_eq!((code, output.as_str()), (Some(0), SUM), "{stderr}");
    let cases = [(another.as_str(), "invalid peer certificate"), ("/nowhere", "No CA certificates")];
    for (certificates, reason) in cases {
        let (code, output, stderr) = trusting(certificates, &call).await;
        assert_eq!((code, output.as_str()), (Some(4), ""), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
}

#[tokio::test]
async fn a_system_without_trusted_certificates_can_still_start() {
    let (code, output, stderr) = trusting("/nowhere", &["call", "add", "a=1", "b=2"]).await;
    assert_eq!((code, output.as_str()), (Some(0), SUM), "{stderr}");
}
