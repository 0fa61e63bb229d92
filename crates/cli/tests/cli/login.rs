//! A server that wants a login: what every verb says of it before, between and after, and how a login goes.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::Command;
use toolyard_testkit::harness::{Scratch, soon};

use super::TOOLYARD;
use super::authority::Authority;

fn toolyard(scratch: &Scratch, words: &str) -> Command {
    let mut command = Command::new(TOOLYARD);
    command.args(words.split(' ')).current_dir(scratch.path("")).env_clear();
    command.env("HOME", scratch.path("")).env("PATH", "/usr/bin:/bin").kill_on_drop(true);
    command.stdin(Stdio::null());
    command
}

/// The exit code, and everything that was said.
async fn says(scratch: &Scratch, words: &str) -> (Option<i32>, String) {
    let done = soon(words, toolyard(scratch, words).output()).await.unwrap();
    let said = [done.stdout, done.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (done.status.code(), said)
}

#[tokio::test]
async fn a_server_that_wants_a_login_is_exit_code_3_until_there_is_one() {
    let authority = Authority::start().await;
    let scratch = Scratch::new();
    scratch.file("toolyard.toml", &format!("[servers.locked]\nurl = \"{}/mcp\"\n", authority.url));
    for words in
        ["list", "list tools locked", "inspect read", "call read", "call mcp__locked__read", "search x"]
    {
        let (code, said) = says(&scratch, words).await;
        assert_eq!(code, Some(3), "{words}: {said}");
        assert!(said.contains("locked wants to know who you are"), "{words}: {said}");
        assert!(said.contains("toolyard login locked"), "{words}: {said}");
    }
    let (code, said) = says(&scratch, &format!("call read --url {}/mcp", authority.url)).await;
    assert_eq!(code, Some(3), "{said}");
    let (code, said) = says(&scratch, "list servers").await;
    assert_eq!(code, Some(0), "{said}");

    let mut login = toolyard(&scratch, "login locked --no-browser");
    let mut login = login.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = loop {
        let line = soon("the address", lines.next_line()).await.unwrap().expect("the address is told");
        if let Some(address) = line.trim().strip_prefix("http") {
            break format!("http{address}");
        }
    };
    // Somebody may have chosen the provider already, which is just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // What a browser would do; it is led back to the one who logs in.
    let done = soon("the browser", reqwest::get(address)).await.unwrap();
    assert!(done.status().is_success(), "{done:?}");
    assert_eq!(soon("the login", login.wait()).await.unwrap().code(), Some(0));
    let mut said = String::new();
    login.stdout.take().unwrap().read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "logged in to locked\n");

    let (code, said) = says(&scratch, "list").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("mcp__locked__read"), "{said}");
    assert_eq!(says(&scratch, "call read").await.0, Some(0));

    let (code, said) = says(&scratch, "logout locked").await;
    assert_eq!((code, said.as_str()), (Some(0), "logged out of locked\n"));
    authority.revoke();
    assert_eq!(says(&scratch, "list").await.0, Some(3));
}
