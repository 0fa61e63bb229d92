//! Errors and warnings: all of them are reported together, each with its location.

use super::{Place, broken, settings};

#[test]
fn all_mistakes_of_a_file_are_told_at_once() {
    let text = r#"listen = "here"
auth = "tokn"
colour = "red"
hosts = "one.example.com"

[limits]
call_seconds = -1.0
payload_bytes = -5
cals_per_source = 7
rate = { per_second = "fast", burst = 0.5 }

[servers.a]
comand = "npx"
args = "-y"
type = "stdo"
start_timeout = "soon"

[servers.b]
url = "example.com/mcp"
headers = { "X Y" = "1" }
oauth = { callback_port = 70000, client_credentials = true }

[servers.c]
command = "x"
url = "http://h/"

[servers.d]
enabled = "yes"
command = ["npx", "-y"]
"#;
    insta::assert_snapshot!(Place::new(&[("toolyard.toml", text)]).problems_text(&[]));
}

#[test]
fn limits_that_make_no_sense_are_told_at_their_place() {
    let text = "[limits]\ncall_seconds = -1.0\ndrain_seconds = inf\nrate = { per_second = 0, burst = 0.5 }\n\
                [limits.tools.\"*x\"]\ncall_seconds = -1\nrate = { per_second = 1, burst = 0 }\n\
                [servers.a]\ncommand = \"x\"\nlimits = { rate = { per_second = 0, burst = 1 } }\n";
    insta::assert_snapshot!(Place::new(&[("toolyard.toml", text)]).problems_text(&[]));
}

#[test]
fn a_table_that_lacks_a_key_is_told_at_the_table() {
    let text = "[limits]\nrate = { per_second = 5 }\n";
    insta::assert_snapshot!(Place::new(&[("toolyard.toml", text)]).problems_text(&[]));
}

#[test]
fn toml_that_is_none_tells_every_broken_line() {
    let text =
        "listen = 127.0.0.1:80\n[servers.a\ncommand = \"x\"\n[servers.b]\ncommand = \"unclosed\nargs = [1\n";
    let place = Place::new(&[("toolyard.toml", text)]);
    assert!(place.try_load(&[]).is_err());
    insta::assert_snapshot!(place.problems_text(&[]));
}

#[test]
fn json_that_is_none_is_told_with_its_place() {
    let text = "{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\" \"args\": []}\n  }\n}\n";
    let place = Place::new(&[(".mcp.json", text)]);
    assert!(place.try_load(&[".mcp.json"]).is_err());
    insta::assert_snapshot!(place.problems_text(&[".mcp.json"]));
}

#[test]
fn mistakes_in_json_have_a_place_too() {
    let text = r#"{
  "mcpServers": {
    "a": {"command": "x", "args": "-y", "comand": 7},
    "b": {"url": "http://h/", "type": "websocket"},
    "c": {"command": "x", "env": {"TOKEN": ["secret"]}},
    "d": "npx",
    "e": {},
    "": {"command": "x"}
  }
}"#;
    insta::assert_snapshot!(Place::new(&[(".mcp.json", text)]).problems_text(&[".mcp.json"]));
}

#[test]
fn a_mistake_in_one_server_leaves_the_others_alone() {
    let text = "[servers.bad]\nargs = 7\n[servers.good]\ncommand = \"x\"\n";
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    settings(&config, "good");
    assert_eq!(
        broken(&config, "bad").reason(),
        "expected a list, found an integer; one of `command`, `url` and `openapi` is required"
    );
}

#[test]
fn files_that_cannot_be_read_are_all_named() {
    let place = Place::new(&[("empty.json", ""), ("list.json", "[1]"), ("other.json", "{\"a\": 1}")]);
    std::fs::write(place.folder().join("latin.toml"), b"# caf\xe9\n").unwrap();
    std::fs::create_dir(place.folder().join("folder")).unwrap();
    let named = ["none.toml", "empty.json", "list.json", "other.json", "latin.toml", "folder"];
    insta::assert_snapshot!(place.problems_text(&named));
}

#[test]
fn a_name_that_is_taken_is_refused() {
    let text = "demo = true\n[servers.demo]\ncommand = \"x\"\n[servers.b]\ncommand = \"x\"\n\
                [servers.c]\ncommand = \"x\"\nalias = \"b\"\n[servers.d]\ncommand = \"x\"\nalias = \"a/b\"\n";
    let place = Place::new(&[("toolyard.toml", text)]);
    assert!(place.try_load(&[]).is_err());
    insta::assert_snapshot!(place.problems_text(&[]));
}
