//! Which environment variables count as secrets: those used in keys that do not concern the
//! server's own process.

use super::Place;

#[test]
fn every_variable_that_a_secret_may_come_from_is_remembered() {
    let text = r#"
        [[hooks]]
        url = "https://hooks.example/${HOOK_PATH}"
        headers = { Authorization = "Bearer ${HOOK_TOKEN}" }
        [servers.a]
        url = "https://a.example/?key=${QUERY_KEY:-${OTHER_KEY:-none}}"
        headers = { X-Key = "${env:HEADER_KEY}" }
        [servers.b]
        url = "https://b.example/"
        bearer_token_env_var = "BEARER"
        [servers.c]
        url = "https://c.example/"
        oauth = { client_id = "${CLIENT}", client_secret = "${CLIENT_SECRET}" }
        [servers.d]
        openapi = "d.json"
        auth = { key = { token = "${API_TOKEN}" } }
        [servers.e]
        command = "${HOME}/server"
        args = ["${ARGUMENT}"]
        env = { OWN = "${OWN}" }
        cwd = "${FOLDER}"
    "#;
    let mut place = Place::new(&[("toolyard.toml", text)]);
    for name in ["ARGUMENT", "OWN", "FOLDER", "BEARER", "CLIENT", "CLIENT_SECRET", "HOOK_TOKEN", "HOOK_PATH"]
    {
        place = place.with(name, "value");
    }
    let config = place.with("HEADER_KEY", "value").with("API_TOKEN", "value").load(&[]);
    let names: Vec<&str> = config.secret_variables.iter().map(String::as_str).collect();
    let expected = [
        "API_TOKEN",
        "BEARER",
        "CLIENT",
        "CLIENT_SECRET",
        "HEADER_KEY",
        "HOOK_PATH",
        "HOOK_TOKEN",
        "OTHER_KEY",
        "QUERY_KEY",
    ];
    assert_eq!(names, expected);
}

#[test]
fn those_of_other_programs_files_count_too() {
    let json = r#"{
        "inputs": [{"type": "promptString", "id": "api-key", "password": true}],
        "servers": {"web": {"type": "http", "url": "https://a.example/", "headers": {"X-Key": "${input:api-key}"}}}
    }"#;
    let place = Place::new(&[("mcp.json", json)]).with("INPUT_API_KEY", "value");
    let names: Vec<String> = place.load(&["mcp.json"]).secret_variables.into_iter().collect();
    assert_eq!(names, ["INPUT_API_KEY"]);
    let codex = "[mcp_servers.web]\nurl = \"https://a.example/\"\nenv_http_headers = { X-Key = \"HEADER_KEY\" }\n\
                 [mcp_servers.run]\ncommand = \"sh\"\nenv_vars = [\"PASSED\", { name = \"TOO\" }, \"ABSENT\"]\n";
    let place = Place::new(&[("config.toml", codex)]);
    let config =
        place.with("HEADER_KEY", "value").with("PASSED", "p").with("TOO", "t").load(&["config.toml"]);
    let names: Vec<&str> = config.secret_variables.iter().map(String::as_str).collect();
    assert_eq!(names, ["HEADER_KEY"]);
    let settings = super::settings(&config, "run");
    let env: Vec<(&str, &str)> =
        super::command(settings).env.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
    assert_eq!(env, [("PASSED", "p"), ("TOO", "t")]);
}
