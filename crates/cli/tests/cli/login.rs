//! A server that wants a login: what every verb says of it before, between and after, and how a login goes.

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

/// The exit code, and everything that was said.
async fn says(scratch: &Scratch, words: &str) -> (Option<i32>, String) {
    let done = within_timeout(words, toolyard(scratch, words).output()).await.unwrap();
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
    let url = format!("{}/mcp", authority.url);
    let nameless = format!(
        "toolyard: 127.0.0.1 wants to know who you are: it wants somebody to log in\n  `toolyard add NAME {url}`, then \
         `toolyard login NAME`; or say a token with --header \"Authorization: Bearer TOKEN\"\n"
    );
    assert_eq!(said, nameless);
    let (code, said) = says(&scratch, "list servers").await;
    assert_eq!(code, Some(0), "{said}");

    let mut login = toolyard(&scratch, "login locked --no-browser");
    let mut login = login.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
    let address = loop {
        let line =
            within_timeout("the address", lines.next_line()).await.unwrap().expect("the address is told");
        if let Some(address) = line.trim().strip_prefix("http") {
            break format!("http{address}");
        }
    };
    // Somebody may have chosen the provider already, which is just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // What a browser would do; it is led back to the one who logs in.
    let done = within_timeout("the browser", reqwest::get(address)).await.unwrap();
    assert!(done.status().is_success(), "{done:?}");
    assert_eq!(within_timeout("the login", login.wait()).await.unwrap().code(), Some(0));
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

#[tokio::test]
async fn a_server_that_has_no_login_wants_a_token_and_says_how_it_is_given() {
    let token = "the token of this test";
    let yard = Server::start(TOOLYARD, &[&SERVE[..], &["--token", token]].concat()).await;
    let url = format!("http://{}/mcp", yard.address);
    let scratch = Scratch::new();
    scratch.file("demo.toml", "demo = true\n");
    let nameless = "toolyard: 127.0.0.1 wants to know who you are: it wants a token\n  \
                    say it with --header \"Authorization: Bearer TOKEN\"\n";
    assert_eq!(says(&scratch, &format!("list --url {url}")).await, (Some(3), nameless.to_owned()));
    let mut call = toolyard(&scratch, &format!("call add a=2 b=3 --url {url}"));
    let call = call.args(["--header", &format!("Authorization: Bearer {token}")]).output();
    let done = within_timeout("the call", call).await.unwrap();
    assert_eq!(
        (done.status.code(), String::from_utf8(done.stdout).unwrap().as_str()),
        (Some(0), "{\"sum\":5.0}\n")
    );
    // What it does not accept is not asked for again.
    let mut wrong = toolyard(&scratch, &format!("list --url {url}"));
    let done = within_timeout("the list", wrong.args(["--header", "Authorization: Bearer x"]).output())
        .await
        .unwrap();
    let said = "toolyard: 127.0.0.1 wants to know who you are: it does not accept what --header says\n  \
                see whether the token is right, and has not expired\n";
    assert_eq!((done.status.code(), String::from_utf8(done.stderr).unwrap().as_str()), (Some(3), said));

    scratch.file("toolyard.toml", &format!("[servers.locked]\nurl = \"{url}\"\n"));
    let named = "toolyard: locked wants to know who you are: it wants a token\n  \
                 name it with bearer_token_env_var or headers under [servers.locked]\n";
    assert_eq!(says(&scratch, "list").await, (Some(3), named.to_owned()));
    let (code, said) = says(&scratch, "doctor").await;
    let finding = "FAIL authorisation locked: it wants to know who you are: it wants a token\n     \
                   fix: name it with bearer_token_env_var or headers under [servers.locked]\n";
    assert!(code == Some(3) && said.contains(finding), "{said}");
    let (code, said) = says(&scratch, "login locked").await;
    assert!(code == Some(3) && said.contains("name it with bearer_token_env_var"), "{said}");
}
