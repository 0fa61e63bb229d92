//! A server that requires a login: what every command prints before and after the login, and the
//! login itself.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use toolyard_testkit::harness::{Scratch, Server, within_timeout};

use super::authority::Authority;
use super::{SERVE, TOOLYARD};

fn toolyard(scratch: &Scratch, words: &str) -> Command {
    let mut command = Command::new(TOOLYARD);
    command.args(words.split(' ')).current_dir(scratch.path("")).env_clear();
    command.env("HOME", scratch.path("")).env("PATH", "/usr/bin:/bin").kill_on_drop(true);
    command.stdin(Stdio::null());
    command
}

/// Runs a command. Returns the exit code and all output.
async fn run(scratch: &Scratch, words: &str) -> (Option<i32>, String) {
    let done = within_timeout(words, toolyard(scratch, words).output()).await.unwrap();
    let output = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (done.status.code(), output)
}

#[tokio::test]
async fn a_server_that_wants_a_login_is_exit_code_3_until_there_is_one() {
    let authority = Authority::start().await;
    let scratch = Scratch::new();
    scratch.file("toolyard.toml", &format!("[servers.locked]\nurl = \"{}/mcp\"\n", authority.url));
    for words in
        ["list", "list tools locked", "inspect read", "call read", "call mcp__locked__read", "search x"]
    {
        let (code, output) = run(&scratch, words).await;
        assert_eq!(code, Some(3), "{words}: {output}");
        assert!(output.contains("server `locked` requires authentication"), "{words}: {output}");
        assert!(output.contains("toolyard login locked"), "{words}: {output}");
    }
    let (code, output) = run(&scratch, &format!("call read --url {}/mcp", authority.url)).await;
    assert_eq!(code, Some(3), "{output}");
    let url = format!("{}/mcp", authority.url);
    let nameless = format!(
        "error: server `127.0.0.1` requires authentication: the server requires a login\n  hint: run `toolyard add NAME {url}` \
         and `toolyard login NAME`, or pass a token with --header \"Authorization: Bearer TOKEN\"\n"
    );
    assert_eq!(output, nameless);
    let (code, output) = run(&scratch, "list servers").await;
    assert_eq!(code, Some(0), "{output}");

    let mut login = toolyard(&scratch, "login locked --no-browser");
    let mut login = login.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = loop {
        let line =
            within_timeout("the address", lines.next_line()).await.unwrap().expect("the address is printed");
        if let Some(address) = line.trim().strip_prefix("http") {
            break format!("http{address}");
        }
    };
    // The provider may have been selected already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // What a browser would do. It is redirected to the login process.
    let done = within_timeout("the browser", reqwest::get(address)).await.unwrap();
    assert!(done.status().is_success(), "{done:?}");
    assert_eq!(within_timeout("the login", login.wait()).await.unwrap().code(), Some(0));
    let mut output = String::new();
    login.stdout.take().unwrap().read_to_string(&mut output).await.unwrap();
    assert_eq!(output, "logged in to locked\n");

    let (code, output) = run(&scratch, "list").await;
    assert_eq!(code, Some(0), "{output}");
    assert!(output.contains("mcp__locked__read"), "{output}");
    assert_eq!(run(&scratch, "call read").await.0, Some(0));

    let (code, output) = run(&scratch, "logout locked").await;
    assert_eq!((code, output.as_str()), (Some(0), "logged out of locked\n"));
    authority.revoke();
    assert_eq!(run(&scratch, "list").await.0, Some(3));
}

#[tokio::test]
async fn a_server_that_has_no_login_wants_a_token_and_says_how_it_is_given() {
    let token = "the token of this test";
    let yard = Server::start(TOOLYARD, &[&SERVE[..], &["--token", token]].concat()).await;
    let url = format!("http://{}/mcp", yard.address);
    let scratch = Scratch::new();
    scratch.file("demo.toml", "demo = true\n");
    let nameless = "error: server `127.0.0.1` requires authentication: the server requires a token\n  \
                    hint: pass it with --header \"Authorization: Bearer TOKEN\"\n";
    assert_eq!(run(&scratch, &format!("list --url {url}")).await, (Some(3), nameless.to_owned()));
    let mut call = toolyard(&scratch, &format!("call add a=2 b=3 --url {url}"));
    let call = call.args(["--header", &format!("Authorization: Bearer {token}")]).output();
    let done = within_timeout("the call", call).await.unwrap();
    assert_eq!(
        (done.status.code(), String::from_utf8(done.stdout).unwrap().as_str()),
        (Some(0), "{\"sum\":5.0}\n")
    );
    // Rejected credentials do not lead to another prompt.
    let mut wrong = toolyard(&scratch, &format!("list --url {url}"));
    let done = within_timeout("the list", wrong.args(["--header", "Authorization: Bearer x"]).output())
        .await
        .unwrap();
    let output = "error: server `127.0.0.1` requires authentication: the server rejected the credentials from --header\n  \
                  hint: check that the token is valid and has not expired\n";
    assert_eq!((done.status.code(), String::from_utf8(done.stderr).unwrap().as_str()), (Some(3), output));

    scratch.file("toolyard.toml", &format!("[servers.locked]\nurl = \"{url}\"\n"));
    let named = "error: server `locked` requires authentication: the server requires a token\n  \
                 hint: set bearer_token_env_var or headers under [servers.locked]\n";
    assert_eq!(run(&scratch, "list").await, (Some(3), named.to_owned()));
    let (code, output) = run(&scratch, "doctor").await;
    let finding = "FAIL authorization locked: requires authentication: the server requires a token\n     \
                   fix: set bearer_token_env_var or headers under [servers.locked]\n";
    assert!(code == Some(3) && output.contains(finding), "{output}");
    let (code, output) = run(&scratch, "login locked").await;
    assert!(code == Some(3) && output.contains("set `bearer_token_env_var`"), "{output}");
}
