//! Expansion of variable references.

use super::{Place, address, broken, command, only, settings};

fn expanded(text: &str) -> String {
    let server = only(&format!("[servers.a]\ncommand = \"x\"\nargs = ['''{text}''']\n"));
    command(&server).args[0].clone()
}

#[test]
fn variables_are_replaced() {
    let cases = [
        ("${TOKEN}", "t0ken"),
        ("a ${env:TOKEN} b ${TOKEN}", "a t0ken b t0ken"),
        ("${NONE:-x y}", "x y"),
        ("${env:NONE:-x}", "x"),
        ("${EMPTY:-x}", "x"),
        ("<${EMPTY}>", "<>"),
        ("${NONE:-}", ""),
        ("${NONE:-<${TOKEN}>}!", "<t0ken>!"),
    ];
    for (text, expected) in cases {
        assert_eq!(expanded(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_reference_stays() {
    for text in
        ["$TOKEN", "${", "${TOKEN", "${}", "${a-b}", "${NAME%.*}", "${NAME:0:3}", "$(ls)", "}{", "100$"]
    {
        assert_eq!(expanded(text), text);
    }
    assert_eq!(expanded("$${TOKEN}"), "${TOKEN}");
}

#[test]
fn a_value_is_not_looked_into_again() {
    let text = "[servers.a]\ncommand = \"${OUTER}\"\n";
    let config = Place::new(&[("toolyard.toml", text)]).with("OUTER", "${TOKEN}").load(&[]);
    assert_eq!(command(settings(&config, "a")).program, "${TOKEN}");
}

#[test]
fn an_unset_variable_fails_its_server_only() {
    let text = r#"
        [servers.good]
        command = "x"
        [servers.bad]
        command = "${ONE}"
        args = ["${TWO}", "fine", "${ONE}-${THREE}"]
        env = { A = "${FOUR}" }
        cwd = "/${FIVE}"
        [servers.worse]
        url = "http://${SIX}"
        headers = { B = "${SEVEN}" }
        oauth = { client_secret = "${EIGHT}" }
    "#;
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    settings(&config, "good");
    let unset = |names: &[&str]| {
        let each: Vec<String> =
            names.iter().map(|name| format!("the environment variable `{name}` is not set")).collect();
        each.join("; ")
    };
    assert_eq!(broken(&config, "bad").reason(), unset(&["ONE", "TWO", "ONE", "THREE", "FOUR", "FIVE"]));
    assert_eq!(broken(&config, "worse").reason(), unset(&["SIX", "SEVEN", "EIGHT"]));
}

#[test]
fn a_disabled_server_is_not_complained_about() {
    let text = "[servers.off]\ncommand = \"${NONE}\"\nenabled = false\n";
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    assert_eq!(config.problems(), []);
    assert!(!broken(&config, "off").enabled);
}

#[test]
fn a_near_miss_is_pointed_out() {
    let place = Place::new(&[("toolyard.toml", "[servers.a]\nurl = \"http://h/${GITHUB_TOKN}\"\n")]);
    insta::assert_snapshot!(place.with("GITHUB_TOKEN", "secret").problems_text(&[]));
}

#[test]
fn editors_have_words_of_their_own() {
    let text = r#"{"mcpServers": {"a": {
        "command": "${workspaceFolder}${/}run",
        "args": ["${workspaceFolderBasename}", "${userHome}"]
    }, "b": {"url": "http://h/${config:x}"}}}"#;
    let place = Place::new(&[("project/.cursor/mcp.json", text)]);
    let config = place.load(&["project/.cursor/mcp.json"]);
    let project = place.folder().join("project").display().to_string();
    let a = command(settings(&config, "a"));
    assert_eq!(a.program, format!("{project}/run"));
    let home = place.folder().display().to_string();
    assert_eq!(a.args, ["project", home.trim_end_matches('/')]);
    assert_eq!(
        broken(&config, "b").reason(),
        "`${config:x}` is a variable of an editor, which Toolyard cannot resolve"
    );
    let own = only("[servers.a]\nurl = \"http://h/${config:x}\"\n");
    assert_eq!(address(&own).url, "http://h/${config:x}");
}
