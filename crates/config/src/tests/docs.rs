//! `docs/toolyard.schema.json` and the generated part of `docs/reference/configuration.md`, and a
//! check of every configuration in the manual.

use std::fmt::Write;

use serde_json::Value;
use toolyard_testkit::docs::{
    CodeBlock, check_file, check_generated, code_blocks, prose, repository_file, table,
};

use super::super::keys::ConfigKeys;
use super::Place;

/// Types that every reader knows by name. Their descriptions are in the hand-written part.
const PLAIN_TYPES: [(&str, &str); 3] =
    [("Time", "duration"), ("Word", "string"), ("Words", "list of strings, or string")];

/// The sections of the page in their order: the top-level key, its heading, and where to read more.
/// Keys that are not named here are in the first section.
const SECTIONS: [(&str, &str, &str); 11] = [
    ("limits", "[limits]", "See [How limits combine](#how-limits-combine)."),
    ("connections", "[connections]", ""),
    ("tokens", "[[tokens]]", "See [Give a team access](../tasks/give-a-team-access.md)."),
    ("jwt", "[jwt]", "See [Give a team access](../tasks/give-a-team-access.md)."),
    ("hooks", "[[hooks]]", "See [Hook requests](#hook-requests)."),
    ("cluster", "[cluster]", ""),
    ("audit", "[audit]", "See [Audit log and history](audit.md)."),
    ("history", "[history]", "See [Audit log and history](audit.md)."),
    ("lint", "[lint]", "See [Lint rules](lint.md)."),
    ("tester", "[tester]", "See [Tester tools](tester.md)."),
    ("programs", "[programs]", "See [Programs](programs.md)."),
];

/// The tables of `[servers.NAME]`: heading, introduction and keys.
const SERVER_TABLES: [(&str, &str, &[&str]); 4] = [
    (
        "All servers",
        "These keys apply to every server. OpenAPI documents support all of them except `type`, `era`, \
         `sessions` and `placement`.",
        &[
            "enabled",
            "alias",
            "type",
            "era",
            "sessions",
            "placement",
            "enabled_tools",
            "disabled_tools",
            "permissions",
            "start_timeout",
            "call_timeout",
            "check_results",
            "limits",
        ],
    ),
    ("Local processes", "", &["command", "args", "env", "env_file", "inherit_env", "cwd"]),
    (
        "Remote servers",
        "`headers`, `forward_headers` and `bearer_token_env_var` also apply to OpenAPI documents.",
        &["url", "headers", "forward_headers", "bearer_token_env_var", "oauth"],
    ),
    (
        "OpenAPI documents",
        "A server with `openapi` is a document whose operations become tools. See [OpenAPI \
         mapping](openapi.md) for how they are generated and [OpenAPI requests](openapi-requests.md) for how they \
         are called.",
        &[
            "openapi",
            "base_url",
            "variables",
            "allow_hosts",
            "auth",
            "missing_auth",
            "include",
            "exclude",
            "rename",
            "describe",
            "output_schemas",
            "budgets",
            "references",
            "listed",
            "max_answer_bytes",
            "reload_every",
        ],
    ),
];

fn schema() -> Value {
    let mut schema = schemars::schema_for!(ConfigKeys).into();
    remove_null(&mut schema);
    schema
}

/// Removes null: optional keys can be left out, and TOML has no null.
fn remove_null(schema: &mut Value) {
    if let Value::Object(keys) = schema {
        if keys.get("default").is_some_and(Value::is_null) {
            keys.remove("default");
        }
        if let Some(Value::Array(types)) = keys.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                keys.insert("type".to_owned(), only);
            }
        }
        if let Some(Value::Array(branches)) = keys.get_mut("anyOf") {
            branches.retain(|branch| branch["type"] != "null");
            if let [Value::Object(only)] = branches.as_slice() {
                let only = only.clone();
                keys.remove("anyOf");
                keys.extend(only);
            }
        }
    }
    match schema {
        Value::Object(keys) => keys.values_mut().for_each(remove_null),
        Value::Array(items) => items.iter_mut().for_each(remove_null),
        _ => {}
    }
}

#[test]
fn the_schema_is_the_one_of_the_keys() {
    let generated = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    check_file("docs/toolyard.schema.json", &generated);
}

/// A row of the page.
struct Key {
    name: String,
    kind: String,
    /// As Markdown. Empty for a table whose keys have defaults of their own.
    default: String,
    description: String,
    is_table: bool,
}

/// Follows a reference within the schema.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    match schema["$ref"].as_str() {
        Some(target) => root.pointer(target.trim_start_matches('#')).unwrap(),
        None => schema,
    }
}

/// The type of a value, as a reader of the page needs to know it.
fn kind(root: &Value, schema: &Value) -> String {
    let target = schema["$ref"].as_str().and_then(|target| target.rsplit('/').next());
    if let Some((_, name)) = PLAIN_TYPES.iter().find(|(name, _)| Some(*name) == target) {
        return (*name).to_owned();
    }
    let schema = resolve(root, schema);
    let choices: Vec<&Value> = match (&schema["enum"], &schema["oneOf"]) {
        (Value::Array(values), _) => values.iter().collect(),
        (_, Value::Array(branches)) => branches.iter().map(|branch| &branch["const"]).collect(),
        _ => Vec::new(),
    };
    if !choices.is_empty() {
        return choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(branches) = schema["anyOf"].as_array() {
        let kinds: Vec<String> = branches.iter().map(|branch| kind(root, branch)).collect();
        return kinds.join(" or ");
    }
    match schema["type"].as_str() {
        Some("array") => {
            let items = kind(root, &schema["items"]);
            let plural = if items.starts_with('`') { format!("of {items}") } else { format!("of {items}s") };
            format!("list {plural}")
        }
        Some("object") if schema["additionalProperties"]["type"] == "object" => {
            "table of tables of lists".to_owned()
        }
        Some("object") if schema["additionalProperties"]["type"] == "array" => "table of lists".to_owned(),
        Some("object") => "table".to_owned(),
        Some(name) => name.to_owned(),
        None => panic!("a schema without a type: {schema}"),
    }
}

/// Splits a description into what the key does and its default.
fn split_default(description: &str) -> (String, String) {
    let description = description.replace('\n', " ");
    for (word, keep) in [("Default: ", false), ("Required", true)] {
        let Some(at) = description.find(word) else { continue };
        let (before, after) = description.split_at(at);
        let default = if keep { after } else { &after[word.len()..] };
        return (before.trim_end().to_owned(), format_default(default.trim_end_matches('.')));
    }
    (description, String::new())
}

/// Numbers, booleans, durations, strings and lists are code; everything else is prose.
fn format_default(default: &str) -> String {
    let first = default.chars().next().unwrap_or(' ');
    let is_value = !default.contains(' ') && (first.is_ascii_digit() || ['"', '['].contains(&first));
    if is_value || default == "true" || default == "false" {
        return format!("`{default}`");
    }
    default.to_owned()
}

/// The description of a value's type, where it explains choices that the key's own does not.
fn choices(root: &Value, schema: &Value) -> Option<String> {
    let items = if schema["items"].is_object() { &schema["items"] } else { schema };
    let target = items["$ref"].as_str()?.rsplit('/').next()?;
    if PLAIN_TYPES.iter().any(|(name, _)| *name == target) {
        return None;
    }
    let definition = resolve(root, items);
    if let Some(branches) = definition["oneOf"].as_array() {
        let branch = |branch: &Value| {
            let description = branch["description"].as_str().unwrap_or_default();
            Some(format!("`{}`: {description}", branch["const"].as_str()?))
        };
        return branches.iter().map(branch).collect::<Option<Vec<_>>>().map(|lines| lines.join(" "));
    }
    let description = definition["description"].as_str().unwrap_or_default();
    (definition["enum"].is_array() && description.contains('`')).then(|| description.to_owned())
}

fn key(root: &Value, name: &str, schema: &Value) -> Key {
    let (mut description, default) = split_default(schema["description"].as_str().unwrap_or_default());
    let is_explained = |text: &str| text.split('`').nth(1).is_some_and(|word| description.contains(word));
    if let Some(choices) = choices(root, schema).filter(|text| !is_explained(text)) {
        description = format!("{description} {}", choices.replace('\n', " ")).trim_end().to_owned();
    }
    let is_table = !tables_below(root, schema).is_empty();
    let kind = kind(root, schema);
    // A duration is written as a string.
    let value = default.strip_prefix('`').and_then(|value| value.strip_suffix('`'));
    let default = match value {
        Some(value) if kind == "duration" => format!("`\"{value}\"`"),
        _ => default,
    };
    Key { name: name.to_owned(), kind, default, description, is_table }
}

/// The tables that a value is or contains, each with what stands between its key and theirs.
fn tables_below<'a>(root: &'a Value, schema: &'a Value) -> Vec<(&'static str, &'a Value)> {
    let resolved = resolve(root, schema);
    let mut tables = Vec::new();
    if resolved["properties"].is_object() {
        tables.push(("", resolved));
    }
    for branch in resolved["anyOf"].as_array().into_iter().flatten() {
        tables.extend(tables_below(root, branch));
    }
    let items = resolve(root, &resolved["items"]);
    if items["properties"].is_object() {
        tables.push(("", items));
    }
    let values = resolve(root, &resolved["additionalProperties"]);
    if values["properties"].is_object() {
        let name = if values["properties"]["token_url"].is_object() { "SCHEME." } else { "GLOB." };
        tables.push((name, values));
    }
    tables
}

/// Collects the keys of a table and of the tables below it.
fn collect(root: &Value, table: &Value, prefix: &str, keys: &mut Vec<Key>) {
    for (name, below) in table["properties"].as_object().unwrap() {
        collect_key(root, below, &format!("{prefix}{name}"), keys);
    }
}

fn collect_key(root: &Value, schema: &Value, name: &str, keys: &mut Vec<Key>) {
    let key = key(root, name, schema);
    let default = key.default.clone();
    keys.push(key);
    let first = keys.len();
    for (step, table) in tables_below(root, schema) {
        collect(root, table, &format!("{name}.{step}"), keys);
    }
    // Keys below a table whose default is another table have the keys of that one as defaults.
    if let Some(table) = default.strip_prefix('`').and_then(|default| default.strip_suffix('`')) {
        for key in &mut keys[first..] {
            let last = key.name.rsplit('.').next().unwrap_or_default();
            key.default = format!("`{table}.{last}`");
        }
    }
}

fn rows(keys: &[Key]) -> String {
    let row = |key: &Key| {
        vec![format!("`{}`", key.name), key.kind.clone(), key.default.clone(), key.description.clone()]
    };
    table(&["key", "type", "default", "description"], keys.iter().map(row))
}

/// Every section of the page: its heading, introduction and keys.
fn sections(root: &Value) -> Vec<(String, String, Vec<Key>)> {
    let properties = root["properties"].as_object().unwrap();
    let mut general = Vec::new();
    for (name, schema) in properties {
        if name != "servers" && !SECTIONS.iter().any(|(section, ..)| section == name) {
            collect_key(root, schema, name, &mut general);
        }
    }
    let mut sections = vec![("## General".to_owned(), String::new(), general)];
    for (name, heading, link) in SECTIONS {
        let schema = &properties[name];
        let (description, default) = split_default(schema["description"].as_str().unwrap_or_default());
        let default = if default.is_empty() { default } else { format!(" Default: {default}.") };
        let mut keys = Vec::new();
        for (_, table) in tables_below(root, schema) {
            collect(root, table, &format!("{name}."), &mut keys);
        }
        sections.push((
            format!("## `{heading}`"),
            prose(format!("{description}{default} {link}").trim_end()),
            keys,
        ));
    }
    let server = resolve(root, &properties["servers"]["additionalProperties"]);
    let introduction = server["description"].as_str().unwrap().replace('\n', " ");
    sections.push(("## `[servers.NAME]`".to_owned(), introduction, Vec::new()));
    for (heading, introduction, names) in SERVER_TABLES {
        let mut keys = Vec::new();
        for name in names {
            collect_key(root, &server["properties"][name], &format!("servers.NAME.{name}"), &mut keys);
        }
        sections.push((format!("### {heading}"), introduction.to_owned(), keys));
    }
    sections
}

#[test]
fn the_reference_lists_every_key() {
    let root = schema();
    let mut page = String::new();
    for (heading, introduction, keys) in sections(&root) {
        let _ = writeln!(page, "\n{heading}");
        if !introduction.is_empty() {
            let _ = writeln!(page, "\n{introduction}");
        }
        if !keys.is_empty() {
            let _ = write!(page, "\n{}", rows(&keys));
        }
    }
    check_generated("reference/configuration.md", &page);
}

#[test]
fn every_key_is_explained_and_no_other() {
    let root = schema();
    let mut keys = Vec::new();
    gather(&root, &root, "", &mut keys);
    keys.sort();
    let all: Vec<Key> = sections(&root).into_iter().flat_map(|(_, _, keys)| keys).collect();
    let mut explained: Vec<String> =
        all.iter().filter(|key| !key.is_table).map(|key| key.name.clone()).collect();
    explained.sort();
    assert_eq!(explained, keys);
    let without_default = |key: &&Key| !key.is_table && key.default.is_empty();
    let silent = |key: &&Key| key.description.is_empty();
    let names: Vec<&str> =
        all.iter().filter(|key| without_default(key) || silent(key)).map(|key| key.name.as_str()).collect();
    assert_eq!(
        names,
        Vec::<&str>::new(),
        "these keys have no description, or neither a default nor \"Required\""
    );
}

/// The keys of `table` with a literal default, as lines of TOML below `prefix`.
fn written_defaults(keys: &[Key], table: &str, prefix: &str) -> String {
    let scalars = ["number", "integer", "boolean", "duration", "string"];
    let mut text = String::new();
    for key in keys.iter().filter(|key| scalars.contains(&key.kind.as_str())) {
        let value = key.default.strip_prefix('`').and_then(|value| value.strip_suffix('`'));
        let (Some(value), Some(name)) = (value, key.name.strip_prefix(table)) else { continue };
        if value.starts_with(|first: char| first.is_ascii_digit() || first == '"')
            || ["true", "false"].contains(&value)
        {
            let _ = writeln!(text, "{prefix}{name} = {value}");
        }
    }
    text
}

#[test]
fn the_documented_defaults_are_the_defaults() {
    let mut text = String::from("listen = \"127.0.0.1:8080\"\nauth = \"token\"\ncheck_results = \"off\"\n");
    text.push_str("limits.rate = { per_second = 50, burst = 2000 }\n");
    let required = "audit.file = \"a\"\nhistory.file = \"h\"\n\
        servers.process.command = \"x\"\nservers.document.openapi = \"x.json\"\n";
    text.push_str(required);
    for (heading, _, keys) in sections(&schema()) {
        let mut push = |table, prefix| text.push_str(&written_defaults(&keys, table, prefix));
        match heading.as_str() {
            "### All servers" => {
                push("servers.NAME.", "servers.process.");
                push("servers.NAME.", "servers.document.");
            }
            "### Local processes" => push("servers.NAME.", "servers.process."),
            "### OpenAPI documents" => push("servers.NAME.", "servers.document."),
            "### Remote servers" | "## `[[tokens]]`" | "## `[jwt]`" | "## `[[hooks]]`" => {}
            _ => push("", ""),
        }
    }
    let explicit = Place::new(&[("toolyard.toml", &text)]);
    let empty = Place::new(&[("toolyard.toml", required)]);
    let settings = |place: &Place| {
        let config = place.load(&[]);
        assert_eq!(config.problems(), [], "{text}");
        let settings = format!(
            "{:#?}",
            (
                (config.limits(), config.limits.message_bytes(), config.limits.definition_limits()),
                (config.limits.drain_timeout(), &config.connections, config.demo),
                config.tester.settings(toolyard_tester::TesterSharing::Process),
                (config.programs.settings(), config.programs.is_enabled()),
                config.lint.settings(),
                (&config.audit, &config.history),
                config.servers(),
            )
        );
        settings.replace(place.folder().to_str().unwrap().trim_end_matches('/'), "FOLDER")
    };
    assert_eq!(settings(&explicit), settings(&empty));
    assert!(text.lines().count() > 50, "only these defaults were checked:\n{text}");
}

/// Collects the keys of every table, as they are written in the documentation.
fn gather(root: &Value, schema: &Value, prefix: &str, keys: &mut Vec<String>) {
    if let Some(target) = schema["$ref"].as_str() {
        let target = root.pointer(target.trim_start_matches('#')).unwrap();
        return gather(root, target, prefix, keys);
    }
    for branch in schema["anyOf"].as_array().into_iter().flatten() {
        gather(root, branch, prefix, keys);
    }
    for (name, below) in schema["properties"].as_object().into_iter().flatten() {
        let key = format!("{prefix}{name}");
        if key == "servers" {
            gather(root, &below["additionalProperties"], "servers.NAME.", keys);
            continue;
        }
        let before = keys.len();
        if below["additionalProperties"]["$ref"].is_string() {
            let any = if key.ends_with(".auth") { "SCHEME" } else { "GLOB" };
            gather(root, &below["additionalProperties"], &format!("{key}.{any}."), keys);
        }
        gather(root, &below["items"], &format!("{key}."), keys);
        gather(root, below, &format!("{key}."), keys);
        if keys.len() == before {
            keys.push(key);
        }
    }
}

/// Whether a code block is a configuration: TOML, except manifests of Rust packages and Python
/// projects, or JSON with servers in one of the known forms.
fn is_configuration(block: &CodeBlock) -> bool {
    match block.language.as_str() {
        "toml" => !["[dependencies]", "[package]", "[project]"].iter().any(|head| block.text.contains(head)),
        "json" => serde_json::from_str::<Value>(&block.text).is_ok_and(|value| {
            value["mcpServers"].is_object() || (value["servers"].is_object() && value.get("state").is_none())
        }),
        _ => false,
    }
}

/// A JWK Set with the public key of RFC 8037.
const JWKS: &str = r#"{"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1",
    "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

/// Loads a configuration of the manual, in a directory where the files that it names exist and with
/// the environment variables that it names. Returns its errors and warnings.
fn problems(block: &CodeBlock) -> String {
    let name = match block.language.as_str() {
        "toml" => "toolyard.toml",
        _ if block.text.contains("\"mcpServers\"") => ".mcp.json",
        _ => ".vscode/mcp.json",
    };
    let mut place = Place::new(&[(name, &block.text)]);
    for line in block.text.lines() {
        let code = line.split(" #").next().unwrap_or_default();
        if let Some((key, value)) = code.split_once('=') {
            let strings = value.split('"').skip(1).step_by(2);
            for path in strings.map(|path| path.trim_start_matches("~/")) {
                match key.trim().trim_start_matches("jwt.") {
                    "imports" => place.write(path, r#"{"mcpServers": {}}"#),
                    "jwks_file" => place.write(path, JWKS),
                    "env_file" => place.write(path, ""),
                    "bearer_token_env_var" => place.variables.push((path.to_owned().leak(), "t0ken")),
                    _ => {}
                }
            }
        }
        for reference in code.split("${").skip(1) {
            let reference = reference.split(['}', ':']).next().unwrap_or_default();
            // Long enough for a key of `[cluster]`.
            let usual = "a value of at least thirty-two bytes";
            let value = if reference.ends_with("_URL") { "http://127.0.0.1:8080" } else { usual };
            place.variables.push((reference.to_owned().leak(), value));
        }
    }
    place.problems_text(&[name])
}

#[test]
fn every_configuration_in_the_manual_loads_without_warnings() {
    let blocks: Vec<CodeBlock> = code_blocks().into_iter().filter(is_configuration).collect();
    let mut wrong = Vec::new();
    for block in &blocks {
        let problems = problems(block);
        if !problems.is_empty() {
            wrong.push(format!("{}:\n{problems}", block.location));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(blocks.len() > 8, "only {} configurations found", blocks.len());
}

#[test]
fn the_manual_shows_an_error_as_it_is() {
    let page = std::fs::read_to_string(repository_file("docs/reference/configuration.md")).unwrap();
    let error = Place::new(&[("toolyard.toml", "# A typo:\nauth = \"tokn\"\n")]).problems_text(&[]);
    assert!(page.contains(&format!("```text\n{error}\n```\n")), "{error}");
}

#[test]
fn a_wrong_configuration_in_the_manual_is_found() {
    let block = |text: &str| CodeBlock {
        language: "toml".to_owned(),
        location: String::new(),
        text: text.to_owned(),
    };
    assert_eq!(problems(&block("[limits]\ncall_seconds = 5\n")), "");
    assert!(problems(&block("[limits]\ncall_second = 5\n")).contains("call_second"));
    assert!(!is_configuration(&block("[dependencies]\nserde = \"1\"\n")));
}
