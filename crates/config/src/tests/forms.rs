//! Configuration files of other programs.

use std::time::Duration;

use toolyard_hub::Secret;
use toolyard_upstream::{OAuthSettings, ServerAuthSettings, UrlKind};

use super::{Place, address, broken, command, entry, open, settings};

const MCP_SERVERS: &str = r#"// servers of various clients
{
  "mcpServers": {
    /* a command */
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "${ROOT:-/srv}",],
      "env": {"DEBUG": "1", "PORT": 3000, "GONE": null},
      "autoApprove": ["read_file"],
      "description": "files",
    },
    "old": {"type": "sse", "url": "http://h/sse"},
    "streamable": {"type": "streamable-http", "url": "https://h/1", "headers": {"Authorization": "Bearer ${TOKEN}"}},
    "streamableHttp": {"type": "streamableHttp", "url": "https://h/2"},
    "transport": {"transport": "sse", "url": "http://h/3"},
    "gemini": {"httpUrl": "http://h/4", "url": "http://h/other", "excludeTools": ["x"], "timeout": 30000},
    "windsurf": {"serverUrl": "http://h/5", "disabledTools": ["y"], "timeout": 60},
    "base": {"baseUrl": "http://h/6", "allowedTools": ["z"]},
    "off": {"command": "x", "disabled": true},
    "cursor": {"url": "https://h/7", "auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "${TOKEN}", "scopes": ["s"]}},
    "claude": {"url": "https://h/8", "oauth": {"clientId": "c", "callbackPort": 8080, "scopes": "a b"}}
  }
}"#;

#[test]
fn mcp_servers_are_read_with_every_spelling() {
    let place = Place::new(&[(".mcp.json", MCP_SERVERS)]).with("TOKEN", "t0ken");
    let config = place.load(&[".mcp.json"]);
    assert_eq!(config.problems(), []);
    assert!(!config.demo);
    let files = command(settings(&config, "files"));
    assert_eq!(files.args, ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]);
    assert_eq!(open(&files.env), [("DEBUG", "1"), ("PORT", "3000")]);
    let url = |name: &str| {
        let address = address(settings(&config, name));
        (address.url.clone(), address.kind)
    };
    assert_eq!(url("old"), ("http://h/sse".to_owned(), UrlKind::LegacySse));
    assert_eq!(url("streamable"), ("https://h/1".to_owned(), UrlKind::Any));
    assert_eq!(url("streamableHttp"), ("https://h/2".to_owned(), UrlKind::Any));
    assert_eq!(url("transport"), ("http://h/3".to_owned(), UrlKind::LegacySse));
    assert_eq!(url("gemini"), ("http://h/4".to_owned(), UrlKind::Any));
    assert_eq!(url("windsurf"), ("http://h/5".to_owned(), UrlKind::Any));
    assert_eq!(url("base"), ("http://h/6".to_owned(), UrlKind::Any));
    let headers = &address(settings(&config, "streamable")).headers;
    assert_eq!(open(headers), [("Authorization", "Bearer t0ken")]);
    assert_eq!(settings(&config, "gemini").disabled_tools, ["x"]);
    assert_eq!(settings(&config, "gemini").call_timeout, Duration::from_secs(30));
    assert_eq!(settings(&config, "windsurf").disabled_tools, ["y"]);
    assert_eq!(settings(&config, "windsurf").call_timeout, Duration::from_secs(60));
    assert_eq!(settings(&config, "base").enabled_tools, Some(vec!["z".to_owned()]));
    assert!(!settings(&config, "off").enabled);
    let text = |text: &str| text.to_owned();
    let cursor = OAuthSettings {
        client_id: Some(text("c")),
        client_secret: Some(Secret::new("t0ken")),
        scopes: vec![text("s")],
        ..OAuthSettings::default()
    };
    assert_eq!(settings(&config, "cursor").auth, ServerAuthSettings::OAuth(cursor));
    let claude = OAuthSettings {
        client_id: Some(text("c")),
        scopes: vec![text("a"), text("b")],
        callback_port: Some(8080),
        ..OAuthSettings::default()
    };
    assert_eq!(settings(&config, "claude").auth, ServerAuthSettings::OAuth(claude));
}

#[test]
fn claudes_servers_of_the_project_we_are_in_are_read_too() {
    let place = Place::new(&[]);
    let folder = place.folder().display().to_string();
    let text = format!(
        r#"{{"numStartups": 7, "mcpServers": {{"a": {{"command": "user"}}, "b": {{"command": "user"}}}},
            "projects": {{
                "{}": {{"mcpServers": {{"b": {{"command": "project"}}}}}},
                "/elsewhere": {{"mcpServers": {{"c": {{"command": "x"}}}}}}
            }}}}"#,
        folder.trim_end_matches('/')
    );
    place.write(".claude.json", &text);
    let config = place.load(&[".claude.json"]);
    assert_eq!(config.problems(), []);
    let programs: Vec<(&str, &str)> = ["a", "b"]
        .map(|name| (name, command(settings(&config, name)).program.as_str()))
        .into_iter()
        .collect();
    assert_eq!(programs, [("a", "user"), ("b", "project")]);
    assert_eq!(config.servers().len(), 2);
}

const VS_CODE: &str = r#"{
  "inputs": [
    {"type": "promptString", "id": "api-key", "description": "the key", "password": true},
    {"type": "promptString", "id": "region", "default": "eu"},
    {"type": "promptString", "id": "forgotten"}
  ],
  "servers": {
    "local": {
      "type": "stdio", "command": "${workspaceFolder}/run", "envFile": "${workspaceFolder}/.env",
      "env": {"KEY": "${input:api-key}", "REGION": "${input:region}"}, "cwd": "${workspaceFolder}/sub",
      "dev": {"watch": "src/**"}
    },
    "remote": {"type": "http", "url": "https://h/${input:region}", "headers": {"A": "${env:TOKEN}"}},
    "asking": {"type": "http", "url": "https://h/", "headers": {"A": "Bearer ${input:forgotten}"}},
    "fileless": {"command": "x", "envFile": "none.env"}
  }
}"#;

#[test]
fn vs_codes_servers_are_read_with_their_inputs() {
    let files = [(".vscode/mcp.json", VS_CODE), (".env", "REGION=us\nMORE=1\n")];
    let place = Place::new(&files).with("TOKEN", "t0ken").with("INPUT_API_KEY", "k3y");
    let config = place.load(&[".vscode/mcp.json"]);
    let local = command(settings(&config, "local"));
    assert_eq!(local.program, place.folder().join("run").display().to_string());
    assert_eq!(local.cwd, Some(place.folder().join("sub")));
    assert_eq!(open(&local.env), [("KEY", "k3y"), ("MORE", "1"), ("REGION", "eu")]);
    let remote = address(settings(&config, "remote"));
    assert_eq!((remote.url.as_str(), open(&remote.headers)), ("https://h/eu", vec![("A", "t0ken")]));
    let asking = broken(&config, "asking");
    assert_eq!(asking.reason(), "input `forgotten` has no value");
    let way_out = asking.problems[0].suggestion.as_deref();
    assert_eq!(way_out, Some("set the environment variable `INPUT_FORGOTTEN`"));
    insta::assert_snapshot!(place.problems_text(&[".vscode/mcp.json"]));
}

#[test]
fn vs_codes_settings_hold_the_same_one_level_down() {
    let text = r#"{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "x"}}}}"#;
    let config = Place::new(&[("settings.json", text)]).load(&["settings.json"]);
    assert_eq!(command(settings(&config, "a")).program, "x");
}

const CODEX: &str = r#"
model = "some-model"
[mcp_servers.local]
command = "run"
args = ["${NOT_EXPANDED}"]
env = { A = "${NEITHER}" }
env_vars = ["PATH", { name = "X", source = "local" }]
startup_timeout_sec = 20
tool_timeout_sec = 90.5
enabled = false
enabled_tools = ["a"]
disabled_tools = ["b"]
[mcp_servers.remote]
url = "https://h/mcp"
bearer_token_env_var = "TOKEN"
http_headers = { X-Static = "${AS_IT_IS}" }
env_http_headers = { X-Secret = "TOKEN" }
startup_timeout_ms = 1500
[mcp_servers.scoped]
url = "https://h/mcp"
scopes = ["read"]
[mcp_servers.unset]
url = "https://h/mcp"
bearer_token_env_var = "NONE"
env_http_headers = { X-Secret = "NEITHER" }
"#;

#[test]
fn codexs_servers_are_read_without_replacing_anything() {
    let place = Place::new(&[("config.toml", CODEX)]).with("TOKEN", "t0ken");
    let config = place.load(&["config.toml"]);
    let local = settings(&config, "local");
    assert_eq!(command(local).args, ["${NOT_EXPANDED}"]);
    assert_eq!(open(&command(local).env), [("A", "${NEITHER}")]);
    assert_eq!(
        (local.start_timeout, local.call_timeout),
        (Duration::from_secs(20), Duration::from_millis(90_500))
    );
    assert!(!local.enabled);
    assert_eq!(
        (&local.enabled_tools, &local.disabled_tools),
        (&Some(vec!["a".to_owned()]), &vec!["b".to_owned()])
    );
    let remote = settings(&config, "remote");
    assert_eq!(open(&address(remote).headers), [("X-Secret", "t0ken"), ("X-Static", "${AS_IT_IS}")]);
    assert_eq!(remote.auth, ServerAuthSettings::Bearer(Secret::new("t0ken")));
    assert_eq!(remote.start_timeout, Duration::from_millis(1_500));
    let scopes = OAuthSettings { scopes: vec!["read".to_owned()], ..OAuthSettings::default() };
    assert_eq!(settings(&config, "scoped").auth, ServerAuthSettings::OAuth(scopes));
    insta::assert_snapshot!(place.problems_text(&["config.toml"]));
}

#[test]
fn the_form_is_told_by_what_is_in_the_file() {
    let json = "  // no extension\n{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
    let toml = "[servers.b]\ncommand = \"x\"\n";
    let codex = "[mcp_servers.c]\ncommand = \"x\"\n";
    let marked = "\u{feff}{\"mcpServers\": {\"d\": {\"command\": \"x\"}}}";
    let place = Place::new(&[("one", json), ("two", toml), ("three", codex), ("four.json", marked)]);
    let config = place.load(&["one", "two", "three", "four.json"]);
    for name in ["a", "b", "c", "d"] {
        entry(&config, name);
    }
    assert_eq!(config.problems(), []);
}
