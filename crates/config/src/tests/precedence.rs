//! Which files are loaded, and which values take precedence.

use super::{Place, broken, command, settings};

const IMPORTING: &str = r#"
imports = ["~/.claude.json", "nearby/.mcp.json"]
[servers.a]
command = "own"
"#;

fn json(servers: &[(&str, &str)]) -> String {
    let each: Vec<String> =
        servers.iter().map(|(name, program)| format!("\"{name}\": {{\"command\": \"{program}\"}}")).collect();
    format!("{{\"mcpServers\": {{{}}}}}", each.join(", "))
}

#[test]
fn without_a_file_there_is_the_demo_yard() {
    let config = Place::new(&[]).load(&[]);
    assert!(config.demo);
    assert!(config.servers().is_empty() && config.problems().is_empty());
}

#[test]
fn the_file_of_the_folder_comes_before_the_users() {
    let place = Place::new(&[(".config/toolyard/toolyard.toml", "listen = \"127.0.0.1:1\"\n")]);
    let port = |place: &Place| place.load(&[]).listen.unwrap().port();
    assert_eq!(port(&place), 1);
    assert!(!place.load(&[]).demo);
    place.write("toolyard.toml", "listen = \"127.0.0.1:2\"\n");
    assert_eq!(port(&place), 2);
    place.write("named.toml", "listen = \"127.0.0.1:3\"\n");
    assert_eq!(place.load(&["named.toml"]).listen.unwrap().port(), 3);
}

#[test]
fn own_servers_win_over_imports_and_later_imports_over_earlier_ones() {
    let claude = json(&[("a", "claude"), ("b", "claude"), ("c", "claude")]);
    let near = json(&[("a", "near"), ("b", "near"), ("d", "near")]);
    let files = [("toolyard.toml", IMPORTING), (".claude.json", &claude), ("nearby/.mcp.json", &near)];
    let config = Place::new(&files).load(&[]);
    let program = |name: &str| command(settings(&config, name)).program.clone();
    assert_eq!(["a", "b", "c", "d"].map(program), ["own", "near", "claude", "near"]);
    assert_eq!(config.problems(), []);
}

#[test]
fn an_import_that_is_not_there_is_only_worth_a_warning() {
    let place = Place::new(&[("toolyard.toml", IMPORTING), ("nearby/.mcp.json", "{\"other\": 1}")]);
    assert_eq!(place.load(&[]).servers().len(), 1);
    insta::assert_snapshot!(place.problems_text(&[]));
}

#[test]
fn only_servers_are_imported() {
    let other = "listen = \"127.0.0.1:1\"\nimports = [\"toolyard.toml\"]\n[servers.x]\ncommand = \"x\"\n";
    let place = Place::new(&[("toolyard.toml", "imports = [\"other.toml\"]\n"), ("other.toml", other)]);
    let config = place.load(&[]);
    assert_eq!(config.listen, None);
    settings(&config, "x");
}

#[test]
fn later_files_win() {
    let one = "listen = \"127.0.0.1:1\"\nhosts = [\"one\"]\n[limits]\ncall_seconds = 1\npayload_bytes = 1\n\
               [servers.a]\ncommand = \"one\"\n[servers.b]\ncommand = \"one\"\n";
    let two = "listen = \"127.0.0.1:2\"\n[limits]\ncall_seconds = 2\n[servers.b]\ncommand = \"two\"\n";
    let three = json(&[("a", "three")]);
    let place = Place::new(&[("one.toml", one), ("two.toml", two), ("three.json", &three)]);
    let config = place.load(&["one.toml", "two.toml", "three.json"]);
    let program = |name: &str| command(settings(&config, name)).program.clone();
    assert_eq!(["a", "b"].map(program), ["three", "two"]);
    assert_eq!(config.listen.unwrap().port(), 2);
    assert_eq!(config.hosts, ["one"]);
    let limits = config.limits.limits();
    assert_eq!((limits.call_time.as_secs(), limits.payload), (2, 1));
}

#[test]
fn a_mistake_that_was_overridden_is_not_told() {
    let one = "[servers.a]\ncommand = \"${NONE}\"\ncolour = 1\n";
    let place = Place::new(&[("one.toml", one), ("two.toml", "[servers.a]\ncommand = \"x\"\n")]);
    assert_eq!(place.load(&["one.toml", "two.toml"]).problems(), []);
    let config = place.load(&["two.toml", "one.toml"]);
    assert_eq!(broken(&config, "a").reason(), "the environment variable `NONE` is not set");
}

#[test]
fn paths_are_seen_from_the_folder_of_their_file() {
    let place = Place::new(&[("sub/toolyard.toml", "[servers.a]\ncommand = \"x\"\ncwd = \"work\"\n")]);
    let config = place.load(&["sub/toolyard.toml"]);
    assert_eq!(command(settings(&config, "a")).cwd, Some(place.folder().join("sub/work")));
}

#[test]
fn no_file_is_ever_written() {
    let claude = json(&[("a", "claude")]);
    let files = [("toolyard.toml", IMPORTING), (".claude.json", &claude), ("nearby/.mcp.json", &claude)];
    let place = Place::new(&files);
    for (name, _) in files {
        let path = place.folder().join(name);
        let mut permissions = std::fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(path, permissions).unwrap();
    }
    place.load(&[]);
    for (name, text) in files {
        assert_eq!(std::fs::read_to_string(place.folder().join(name)).unwrap(), text);
    }
}
