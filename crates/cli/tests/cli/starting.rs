//! Starting: what is printed, what is refused, and with which exit code.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use toolyard_testkit::harness::{Client, Line, Process, Scratch, Server, Signal, Version, within_timeout};
use toolyard_testkit::web::{Shown, Web, What};

use super::{SERVE, TOOLYARD};

/// Runs it to its end; the exit code and what it said on standard error.
async fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let (mut process, stdin, _stdout) = Process::start(TOOLYARD, arguments);
    drop(stdin);
    let code = process.exit().await;
    (code, process.stderr())
}

#[tokio::test]
async fn the_demo_yard_is_served_to_whoever_has_the_token() {
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
        let mut said = String::new();
        if json.is_empty() {
            within_timeout("the address", async {
                while !process.stderr().contains("Ctrl-C stops it.") {
                    tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                }
            })
            .await;
        } else {
            let mut line = BufReader::new(&mut stdout);
            within_timeout("the address", line.read_line(&mut said)).await.unwrap();
            let known: Value = serde_json::from_str(&said).unwrap();
            assert_eq!(known["token"], Value::Null, "{said}");
        }
        process.signal(Signal::Terminate);
        stdout.read_to_string(&mut said).await.unwrap();
        process.exit().await;
        said += &process.stderr();
        assert!(!said.contains(TOKEN), "{word} {json}: {said}");
        if json.is_empty() {
            assert!(
                said.contains("/   asks for the token that you set with --token or TOOLYARD_TOKEN\n"),
                "{said}"
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
        (&tokens, "asks for a token of the configuration", "and a token of the configuration"),
        (&open, "open to everybody on this machine", "open to everybody on this machine"),
    ] {
        let (mut process, _stdin, _stdout) =
            Process::start(TOOLYARD, &["serve", "--listen", "127.0.0.1:0", "--config", config]);
        within_timeout("the address", async {
            while !process.stderr().contains("Ctrl-C stops it.") {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        })
        .await;
        let said = process.stderr();
        process.signal(Signal::Terminate);
        process.exit().await;
        let line =
            |word: &str| said.lines().find(|line| line.trim_start().starts_with(word)).unwrap_or_default();
        assert!(line("page  http://127.0.0.1:").ends_with(page), "{said}");
        assert!(line("MCP   http://127.0.0.1:").ends_with(mcp), "{said}");
        assert!(!said.contains(digest) && !said.contains("#token="), "{said}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_is_named_with_a_way_out() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (code, said) = run(&["serve", "--listen", &address]).await;
    assert_eq!(code, Some(1), "{said}");
    let expected = format!(
        "toolyard: cannot listen on {address}: Address already in use (os error 98)\n  \
         another address can be said with --listen; --listen 127.0.0.1:0 picks a free port\n"
    );
    assert_eq!(said, expected);
}

#[tokio::test]
async fn a_wrong_configuration_is_shown_with_line_and_column() {
    let scratch = Scratch::new();
    let config = scratch.file("toolyard.toml", "demo = true\nauth = \"maybe\"\n");
    for verb in ["serve", "stdio"] {
        let (code, said) = run(&[verb, "--config", &config]).await;
        assert_eq!(code, Some(2), "{said}");
        let expected = format!(
            "toolyard: error: {config}:2:8: `maybe` is none of token, none\n   |\n 2 | auth = \"maybe\"\n   |        ^^^^^^^\n"
        );
        assert_eq!(said, expected);
    }
}

#[tokio::test]
async fn a_configuration_that_is_not_there_is_named() {
    let scratch = Scratch::new();
    let missing = scratch.path("missing.toml").display().to_string();
    for verb in ["serve", "stdio"] {
        let (code, said) = run(&[verb, "--config", &missing]).await;
        let expected =
            format!("toolyard: error: {missing}: cannot read it: No such file or directory (os error 2)\n");
        assert_eq!((code, said), (Some(2), expected));
    }
}

#[tokio::test]
async fn an_unknown_key_is_warned_about_and_passed_over() {
    let scratch = Scratch::new();
    let text = "demo = true\ncolour = \"red\"\n[limits]\nspeed = 7\n";
    let config = scratch.file("toolyard.toml", text);
    let (code, said) = run(&["stdio", "--config", &config]).await;
    // The values are not repeated: they might be secrets.
    let colour = format!(
        "toolyard: warning: {config}:2:1: unknown key `colour`\n   |\n 2 | colour = \"…\"\n   | ^^^^^^\n"
    );
    let speed =
        format!("toolyard: warning: {config}:4:1: unknown key `speed`\n   |\n 4 | speed = …\n   | ^^^^^\n");
    assert_eq!((code, said), (Some(0), colour + &speed));
}

#[tokio::test]
async fn nobody_is_let_in_without_a_token_from_other_machines() {
    let (code, said) = run(&["serve", "--listen", "0.0.0.0:0", "--auth", "none"]).await;
    assert_eq!(code, Some(1), "{said}");
    let expected =
        "toolyard: serving without a token is only allowed on a loopback address, not on 0.0.0.0:0\n";
    assert_eq!(said, expected);
}

#[tokio::test]
async fn arguments_that_make_no_sense_are_refused() {
    for arguments in [&["dance"][..], &[], &["serve", "--listen", "here"], &["serve", "--auth", "maybe"]] {
        let (code, said) = run(arguments).await;
        assert_eq!(code, Some(2), "{arguments:?}: {said}");
        assert!(said.contains("--help"), "{arguments:?}: {said}");
    }
}

#[tokio::test]
async fn the_sandbox_of_programs_cannot_be_weakened() {
    let (code, said) = run(&["sandbox", "--without", "seccomp"]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("unexpected argument '--without' found"), "{said}");
}

/// What `add` of one and two prints.
const SUM: &str = "{\"sum\":3.0}\n";

/// Runs a verb where the system trusts these certificates and no others: exit code, what it said, what it complained of.
async fn trusting(certificates: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let (file, folder) = (format!("SSL_CERT_FILE={certificates}"), "SSL_CERT_DIR=/nowhere");
    let words: Vec<&str> =
        [file.as_str(), folder, TOOLYARD].into_iter().chain(arguments.iter().copied()).collect();
    let (mut process, stdin, mut stdout) = Process::start("env", &words);
    drop(stdin);
    let mut said = String::new();
    stdout.read_to_string(&mut said).await.unwrap();
    (process.exit().await, said, process.stderr())
}

#[tokio::test]
async fn whoever_the_system_trusts_is_trusted_and_nobody_else() {
    let open: Vec<&str> = SERVE.into_iter().chain(["--auth", "none"]).collect();
    let server = Server::start(TOOLYARD, &open).await;
    let (shown, other, scratch) = (Shown::generate(), Shown::generate(), Scratch::new());
    let (trusted, another) = (scratch.file("shown.pem", &shown.pem), scratch.file("other.pem", &other.pem));
    let front = Web::start(What::Encrypted(server.address.clone(), shown)).await;
    let call = ["call", "add", "a=1", "b=2", "--url", &format!("https://{}/mcp", front.address)];
    let (code, said, complaint) = trusting(&trusted, &call).await;
    assert_eq!((code, said.as_str()), (Some(0), SUM), "{complaint}");
    let cases = [(another.as_str(), "invalid peer certificate"), ("/nowhere", "No CA certificates")];
    for (certificates, reason) in cases {
        let (code, said, complaint) = trusting(certificates, &call).await;
        assert_eq!((code, said.as_str()), (Some(4), ""), "{complaint}");
        assert!(complaint.contains(reason), "{complaint}");
    }
}

#[tokio::test]
async fn a_system_that_trusts_nobody_is_no_reason_not_to_start() {
    let (code, said, complaint) = trusting("/nowhere", &["call", "add", "a=1", "b=2"]).await;
    assert_eq!((code, said.as_str()), (Some(0), SUM), "{complaint}");
}
