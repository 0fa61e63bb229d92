//! A bare name while a server does not start: which servers the command waits for, what it prints
//! meanwhile, and what it remembers.

use std::process::{Output, Stdio};

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use toolyard_testkit::harness::{Scratch, within_timeout};

use super::TOOLYARD;

/// A legacy server in a few lines of shell with one tool, `go`. It hangs unless there is a file
/// `fast` next to it.
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

/// Whether the output names what the command waits for. On a busy machine, the quick server may not
/// be ready yet either.
fn names_servers(lines: &str) -> bool {
    let there = "note: waiting for slow to start, which may also offer `add`\n  \
                 hint: use `mcp__quick__add` or --server NAME to avoid waiting for other servers\n";
    let busy = "note: waiting for quick, slow to start, which may offer `add`\n  \
                hint: use a full name or --server NAME to avoid waiting for other servers\n";
    [there, busy].contains(&lines)
}

/// A yard with a quick server and one that may not start.
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

    /// Runs a command. If it ends, it did not wait for a server that hangs.
    async fn run(&self, words: &str) -> (Option<i32>, String, String) {
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
    let (code, out, err) = yard.run("list").await;
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("mcp__quick__add") && out.contains("mcp__slow__go"), "{out}");
    std::fs::remove_file(yard.0.path("fast")).unwrap();
    let (code, out, err) = yard.run("call add a=2 b=3").await;
    assert_eq!((code, out.as_str()), (Some(0), "{\"sum\":5.0}\n"), "{err}");
    assert_eq!(yard.run("inspect add --json --server quick").await.0, Some(0));
}

#[tokio::test]
async fn waiting_for_an_unknown_server_prints_a_note() {
    let yard = Yard::new("10m");
    let mut call = yard.start("call add a=2 b=3");
    let mut lines = BufReader::new(call.stderr.take().unwrap()).lines();
    let mut output = String::new();
    for _ in 0..2 {
        let line = within_timeout("what it waits for", lines.next_line()).await.unwrap().unwrap_or_default();
        output.push_str(&format!("{line}\n"));
    }
    assert!(names_servers(&output), "{output}");
    assert_eq!(call.try_wait().unwrap(), None, "the command stopped waiting");
    let mut unknown = yard.start("call nothing");
    let mut lines = BufReader::new(unknown.stderr.take().unwrap()).lines();
    let line = within_timeout("what it waits for", lines.next_line()).await.unwrap().unwrap();
    assert!(line.ends_with("slow to start, which may offer `nothing`"), "{line}");
    // The suggested names work.
    for words in ["call mcp__quick__add a=2 b=3", "call --server quick add a=2 b=3"] {
        assert_eq!(yard.run(words).await, (Some(0), "{\"sum\":5.0}\n".to_owned(), String::new()));
    }
}

#[tokio::test]
async fn a_server_that_did_not_start_the_last_time_either_is_waited_for_a_moment_only() {
    let yard = Yard::new("3s");
    let (code, out, err) = yard.run("call add a=2 b=3").await;
    assert_eq!((code, out.as_str(), names_servers(&err)), (Some(0), "{\"sum\":5.0}\n", true), "{err}");
    yard.configure("10m");
    let (code, out, err) = yard.run("call add a=2 b=3").await;
    assert_eq!((code, out.as_str()), (Some(0), "{\"sum\":5.0}\n"), "{err}");
    let left =
        "warning: continuing without slow, which has not started and was unavailable in the last run\n";
    assert!(err == left || names_servers(&err), "{err}");
    // An unknown name is certain only after every server has answered.
    let unknown = yard.start("call go");
    let done = tokio::time::timeout(std::time::Duration::from_secs(4), unknown.wait_with_output()).await;
    assert!(done.is_err(), "{done:?}");
}
