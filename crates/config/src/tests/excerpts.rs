//! Excerpts show enough to find the mistake and never a secret.

use super::Place;

const SECRETS: [&str; 3] = ["s3cret", "hunter2", "sk-abc"];

fn problems_text(file: &str, text: &str) -> String {
    let message = Place::new(&[(file, text)]).problems_text(&[file]);
    assert!(!message.is_empty(), "{text} has no errors");
    for secret in SECRETS {
        assert!(!message.contains(secret), "{message}");
    }
    message
}

#[test]
fn values_around_the_mistake_are_hidden() {
    insta::assert_snapshot!(problems_text(
        "a.toml",
        "[servers.a]\nurl = \"http://h/?key=s3cret&x=${NONE}\"\n\
         headers = { A = \"Bearer hunter2\", B = \"x${NONE}y hunter2\" }\nkey = \"sk-abc\"\n"
    ));
    insta::assert_snapshot!(problems_text(
        "a.json",
        r#"{"mcpServers": {"a": {"command": "x", "args": ["--key", "s3cret", "${NONE}"], "env": {"A": {"B": "hunter2"}}}}}"#
    ));
}

#[test]
fn what_cannot_be_read_shows_only_its_punctuation() {
    for (file, text) in [
        ("a.toml", "[servers.a]\nenv = { TOKEN = \"s3cret }\n"),
        ("a.toml", "[servers.a.env]\nTOKEN = sk-abc\n"),
        ("a.toml", "[servers.a]\nargs = [\n  \"s3cret\n]\n"),
        ("a.json", "{\"mcpServers\": {\"a\": {\"env\": {\"TOKEN\": s3cret}}}}"),
        ("a.json", "{\"a\": [\n\"hunter2\"\n\"sk-abc\"]}"),
    ] {
        problems_text(file, text);
    }
    insta::assert_snapshot!(problems_text("a.toml", "[servers.a.env]\nTOKEN = sk-abc\n"));
}

#[test]
fn a_value_of_the_wrong_kind_is_not_repeated() {
    problems_text("a.toml", "[servers.a]\nenv = \"s3cret\"\nheaders = [\"hunter2\"]\nargs = \"sk-abc\"\n");
    problems_text("a.toml", "[servers.a]\nurl = \"s3cret\"\nbearer_token_env_var = [\"hunter2\"]\n");
    problems_text("a.toml", "[servers.a]\nurl = \"http://h\"\nbearer_token_env_var = \"s3cret\"\n");
    problems_text(
        "a.toml",
        "[mcp_servers.a]\nurl = \"http://h\"\nenv_http_headers = { A = \"Bearer sk-abc\" }\n",
    );
}

#[test]
fn a_line_that_never_ends_is_cut() {
    let many: String = (0..500).map(|n| format!("\"k{n}\": 1, ")).collect();
    let text = format!("{{\"mcpServers\": {{\"a\": {{{many}\"command\": 7, {many}\"z\": 1}}}}}}");
    let message = problems_text("a.json", &text);
    assert!(message.lines().all(|line| line.chars().count() < 130), "{message}");
}

#[test]
fn a_terminal_is_not_told_what_to_do() {
    let message =
        problems_text("a.toml", "[servers.\"a\\u001b[31m\"]\nargs = [\"\\u001b[2J\"]\n\"\\u0007k\" = 1\n");
    assert!(!message.contains(['\u{1b}', '\u{7}']), "{message:?}");
}
