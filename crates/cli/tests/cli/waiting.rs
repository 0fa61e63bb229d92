//! A bare name while a server does not start: whom it waits for, what is said meanwhile, and what is remembered.

use std::process::{Output, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use toolyard_testkit::harness::{Scratch, within_timeout};

use super::TOOLYARD;

/// A legacy server in a few lines of shell with one tool, `go`, where there is a file `fast` beside it; else it hangs.
const SERVER: &str = r#"test -e fast || exec sleep 600
while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$1}"; }
case "$line" in
*'"server/discover"'*) answer '"error":{"code":-32601,"message":"no such method"}' ;;
*'"initialize"'*) answer '"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
*'"tools/list"'*) answer '"result":{"tools":[{"name":"go","inputSchema":{"type":"object"}}]}' ;;
esac
done
"#;

/// Whether this says what is waited for. On a busy machine the quick one may not be there yet either.
fn tells(lines: &str) -> bool {
    let there = "toolyard: waiting for slow to start, which may have add too\n  \
                 mcp__quick__add, or --server NAME, does not wait for other servers\n";
    let busy = "toolyard: waiting for quick, slow to start, which may have add\n  \
                a full name, or --server NAME, does not wait for other servers\n";
    [there, busy].contains(&lines)
}

/// A yard of a server that is quick and one that may not start.
struct Yard(Scratch);

impl Yard {
    fn new(start_timeout: &str) -> Self {
        let yard = Self(Scratch::new());
        yard.0.file("demo.toml", "demo = true\n");
        yard.0.file("slow.sh", SERVER);
        yard.configure(start_timeout);
        yard
    }

    fn configure(&self, start_timeout: &str) {
        let quick = format!(
            "[servers.quick]\ncommand = {TOOLYARD:?}\nargs = [\"stdio\", \"--config\", \"demo.toml\"]\n"
        );
        let slow = format!(
            "[servers.slow]\ncommand = \"sh\"\nargs = [\"slow.sh\"]\nstart_timeout = {start_timeout:?}\n"
        );
        self.0.file("toolyard.toml", &format!("{quick}{slow}"));
    }

    fn start(&self, words: &str) -> Child {
        let mut command = Command::new(TOOLYARD);
        command.args(words.split(' ')).current_dir(self.0.path("")).env_clear().kill_on_drop(true);
        command.env("HOME", self.0.path("")).env("PATH", "/usr/bin:/bin");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What it prints; that it ends at all says that it did not wait for a server that hangs.
    async fn says(&self, words: &str) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } =
            within_timeout(words, self.start(words).wait_with_output()).await.unwrap();
        let [stdout, stderr] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (status.code(), stdout, stderr)
    }
}

#[tokio::test]
async fn a_server_that_did_not_have_the_name_is_not_waited_for() {
    let yard = Yard::new("10m");
    yard.0.file("fast", "");
    let (code, out, err) = yard.says("list").await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("mcp__quick__add") && out.contains("mcp__slow__go"), "{out}");
    std::fs::remove_file(yard.0.path("fast")).unwrap();
    let (code, out, err) = yard.says("call add a=2 b=3").await;
    assert_eq!((code, out.as_str()), (Some(0), "{\"sum\":5.0}\n"), "{err}");
    assert_eq!(yard.says("inspect add --json --server quick").await.0, Some(0));
}

#[tokio::test]
async fn whoever_waits_for_a_server_that_nobody_knows_is_told() {
    let yard = Yard::new("10m");
    let mut call = yard.start("call add a=2 b=3");
    let mut lines = BufReader::new(call.stderr.take().unwrap()).lines();
    let mut said = String::new();
    for _ in 0..2 {
        let line = within_timeout("what it waits for", lines.next_line()).await.unwrap().unwrap_or_default();
        said.push_str(&format!("{line}\n"));
    }
    assert!(tells(&said), "{said}");
    assert_eq!(call.try_wait().unwrap(), None, "it goes on waiting");
    let mut unknown = yard.start("call nothing");
    let mut lines = BufReader::new(unknown.stderr.take().unwrap()).lines();
    let line = within_timeout("what it waits for", lines.next_line()).await.unwrap().unwrap();
    assert!(line.ends_with("slow to start, which may have nothing"), "{line}");
    // The names that it says help.
    for words in ["call mcp__quick__add a=2 b=3", "call --server quick add a=2 b=3"] {
        assert_eq!(yard.says(words).await, (Some(0), "{\"sum\":5.0}\n".to_owned(), String::new()));
    }
}

#[tokio::test]
async fn a_server_that_did_not_start_the_last_time_either_is_waited_for_a_moment_only() {
    let yard = Yard::new("3s");
    let (code, out, err) = yard.says("call add a=2 b=3").await;
    assert_eq!((code, out.as_str(), tells(&err)), (Some(0), "{\"sum\":5.0}\n", true), "{err}");
    yard.configure("10m");
    let (code, out, err) = yard.says("call add a=2 b=3").await;
    assert_eq!((code, out.as_str()), (Some(0), "{\"sum\":5.0}\n"), "{err}");
    let left =
        "toolyard: slow has not started, and could not be used the last time either: going on without\n";
    assert!(err == left || tells(&err), "{err}");
    // What nobody has is not known before all have been asked.
    let unknown = yard.start("call go");
    let done = tokio::time::timeout(std::time::Duration::from_secs(4), unknown.wait_with_output()).await;
    assert!(done.is_err(), "{done:?}");
}
