//! Repository rules that a machine can check: which crate may use which, how files are named and
//! how long they are, and what must not be in them. Every rule is a function over files, so that
//! each can be shown to fail.

mod tidy {
    mod dependencies;
    mod names;
}

use std::path::Path;
use std::{fs, io};

use toml::{Table, Value};

/// One file of the repository, by its path from the root.
struct File {
    path: String,
    text: String,
}

/// A rule. It returns every violation.
type Rule = fn(&[File]) -> Vec<String>;

const SKIPPED: [&str; 5] = ["target", "node_modules", ".git", ".venv", "__pycache__"];
const LONGEST: usize = 800;

/// Which crates of the workspace a crate may use, by folder. `testkit` is in no list, because it is
/// for tests.
const EDGES: [(&str, &[&str]); 23] = [
    ("random", &[]),
    ("seal", &["random"]),
    ("hub", &["random"]),
    ("wire", &["random"]),
    ("postgres", &[]),
    ("history", &["hub", "postgres"]),
    ("cluster", &["hub", "postgres", "random", "seal"]),
    ("definitions", &["hub"]),
    ("hooks", &["hub"]),
    ("sdk", &["hub", "sdk-macros", "serve"]),
    ("sdk/macros", &[]),
    ("serve", &["hub", "wire", "random", "seal"]),
    ("upstream", &["hub", "wire", "random"]),
    ("openapi", &["hub", "random"]),
    ("program", &["hub"]),
    ("tui", &["hub"]),
    ("tester", &["hub", "suite", "upstream"]),
    ("remote", &["hub", "upstream"]),
    ("cassette", &["hub", "upstream", "wire", "random"]),
    ("suite", &["cassette", "definitions", "hub", "upstream", "wire"]),
    (
        "config",
        &[
            "cluster",
            "definitions",
            "hub",
            "history",
            "hooks",
            "postgres",
            "seal",
            "serve",
            "upstream",
            "openapi",
            "program",
            "tester",
        ],
    ),
    (
        "cli",
        &[
            "cassette",
            "cluster",
            "config",
            "definitions",
            "hub",
            "history",
            "hooks",
            "postgres",
            "sdk",
            "seal",
            "serve",
            "upstream",
            "openapi",
            "program",
            "tui",
            "tester",
            "random",
            "remote",
            "suite",
        ],
    ),
    (
        "testkit",
        &["hub", "wire", "history", "sdk", "serve", "upstream", "openapi", "program", "tui", "tester"],
    ),
];

/// Libraries that only some crates may use.
const ROOMS: [(&str, &[&str]); 4] = [
    ("axum", &["serve", "wire"]),
    ("rmcp", &["upstream"]),
    ("ratatui", &["tui"]),
    ("tokio-postgres", &["postgres", "history", "cluster"]),
];

/// Crate dependencies follow `EDGES`, and each restricted library is used only where allowed.
fn edges(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for (folder, manifest) in manifests(files) {
        let Some((_, allowed)) = EDGES.iter().find(|(name, _)| *name == folder) else {
            broken.push(format!("crates/{folder}: has no entry in `EDGES` in tidy.rs"));
            continue;
        };
        for (section, dependency, _) in dependencies(&manifest) {
            if section.ends_with("dev-dependencies") {
                continue;
            }
            let ours = dependency.strip_prefix("toolyard-").or((dependency == "toolyard").then_some("cli"));
            if ours.is_some_and(|name| !allowed.contains(&name)) {
                broken.push(format!("crates/{folder}: may not use {dependency}"));
            }
            let room = ROOMS.iter().find(|(library, _)| *library == dependency);
            if room.is_some_and(|(_, rooms)| !rooms.contains(&folder.as_str())) {
                broken.push(format!("crates/{folder}: {dependency} may not be used here"));
            }
        }
    }
    broken
}

/// Versions are declared in the root manifest only.
fn versions(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for (folder, manifest) in manifests(files) {
        for (section, dependency, value) in dependencies(&manifest) {
            if !from_workspace(value) && !is_stripped_from_packages(&section, value) {
                broken.push(format!("crates/{folder}: {section}: {dependency} is not from the workspace"));
            }
        }
        for key in ["version", "edition", "rust-version", "license"] {
            let value = manifest.get("package").and_then(|package| package.get(key));
            if value.is_some_and(|value| !from_workspace(value)) {
                broken.push(format!("crates/{folder}: {key} is not from the workspace"));
            }
        }
    }
    broken
}

/// A dev-dependency with a path and no version is not part of the package. Crates that depend on each
/// other for tests need that, because neither could be published first.
fn is_stripped_from_packages(section: &str, value: &Value) -> bool {
    section.ends_with("dev-dependencies") && value.get("path").is_some() && value.get("version").is_none()
}

fn from_workspace(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true) && value.get("version").is_none()
}

fn long_files(files: &[File]) -> Vec<String> {
    let measured = files.iter().filter(|file| is_any(file, &["rs", "ts", "vue", "py"]));
    let long = measured.map(|file| (file, file.text.lines().count())).filter(|(_, lines)| *lines > LONGEST);
    long.map(|(file, lines)| format!("{}: {lines} lines, {LONGEST} are allowed", file.path)).collect()
}

fn first_lines(files: &[File]) -> Vec<String> {
    let sources =
        files.iter().filter(|file| crate_of(file).is_some_and(|(_, rest)| rest.starts_with("src/")));
    let silent = sources.filter(|file| is_any(file, &["rs"]) && !file.text.starts_with("//!"));
    silent.map(|file| format!("{}: the first line does not describe the file", file.path)).collect()
}

fn file_names(files: &[File]) -> Vec<String> {
    const NAMES: [&str; 8] = ["util", "utils", "common", "helpers", "misc", "types", "manager", "mod"];
    let named = |file: &&File| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        let stem = name.split('.').next().unwrap_or_default();
        is_any(file, &["rs", "ts", "js", "mjs", "vue", "py"]) && NAMES.contains(&stem)
    };
    files.iter().filter(named).map(|file| format!("{}: name the file after its content", file.path)).collect()
}

/// No test is disabled and no work is postponed. The words are split so that this file may contain
/// them.
fn unfinished(files: &[File]) -> Vec<String> {
    const WORDS: [&str; 4] = [
        concat!("#[ig", "nore"),
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("db", "g!("),
    ];
    let sources = files.iter().filter(|file| is_any(file, &["rs"]));
    sources.flat_map(|file| lines_with(file, &file.text, &WORDS)).collect()
}

/// Nothing below `cli` reads the environment, prints, or ends the process.
fn outside_world(files: &[File]) -> Vec<String> {
    const WORDS: [&str; 9] = [
        "env::var(",
        "env::var_os(",
        "env::vars(",
        "env::vars_os(",
        "println!(",
        "print!(",
        "eprintln!(",
        "eprint!(",
        "process::exit(",
    ];
    let below = files.iter().filter(|file| {
        let Some((name, rest)) = crate_of(file) else { return false };
        let shipped = rest.starts_with("src/") && !rest.contains("/tests/") && !rest.ends_with("/tests.rs");
        is_any(file, &["rs"]) && shipped && name != "cli" && name != "testkit"
    });
    let shipped = |file: &File| {
        let end = file.text.find("#[cfg(test)]\nmod tests {").unwrap_or(file.text.len());
        file.text[..end].to_owned()
    };
    below.flat_map(|file| lines_with(file, &shipped(file), &WORDS)).collect()
}

/// Absolute paths of a development machine mean nothing elsewhere.
fn machine_paths(files: &[File]) -> Vec<String> {
    let has_machine_path = |line: &str| {
        ["work", "root", "farm"].iter().any(|word| {
            line.match_indices(&format!("/{word}/")).any(|(at, _)| {
                // In the middle of a longer path it is an ordinary folder name.
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || "_-.~$*})>]".contains(c))
            })
        })
    };
    let mut broken = Vec::new();
    for file in files {
        let lines = file.text.lines().enumerate().filter(|(_, line)| has_machine_path(line));
        broken.extend(lines.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())));
    }
    broken
}

/// A lock file that names a registry host can be installed only there.
fn registry_hosts(files: &[File]) -> Vec<String> {
    fn resolved(value: &serde_json::Value, urls: &mut Vec<String>) {
        for (key, inner) in value.as_object().into_iter().flatten() {
            match inner.as_str() {
                Some(text) if key == "resolved" && text.contains("://") => urls.push(text.to_owned()),
                _ => resolved(inner, urls),
            }
        }
    }
    let mut broken = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with("package-lock.json")) {
        let mut found = Vec::new();
        match serde_json::from_str(&file.text) {
            Ok(lock) => resolved(&lock, &mut found),
            Err(error) => broken.push(format!("{}: {error}", file.path)),
        }
        broken.extend(found.iter().map(|address| format!("{}: resolved to {address}", file.path)));
    }
    broken
}

/// SECURITY.md may name only tests that exist.
fn named_tests(files: &[File]) -> Vec<String> {
    let sources: Vec<&File> = files.iter().filter(|file| is_any(file, &["rs"])).collect();
    let exists = |name: &str| sources.iter().any(|file| file.text.contains(&format!("fn {name}(")));
    let is_test = |word: &&str| word.matches('_').count() > 2 && !word.contains(['/', '.', ' ']);
    let page = files.iter().find(|file| file.path == "SECURITY.md");
    let words = page.iter().flat_map(|file| file.text.split('`').skip(1).step_by(2));
    words.filter(is_test).filter(|name| !exists(name)).map(|name| format!("SECURITY.md: {name}")).collect()
}

/// Returns the manifests of the crates, by folder under `crates`. An unreadable manifest does not
/// build, so cargo reports why.
fn manifests(files: &[File]) -> impl Iterator<Item = (String, Table)> {
    files.iter().filter_map(|file| {
        let folder = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some((folder.to_owned(), file.text.parse().ok()?))
    })
}

/// Returns section, name and value of every dependency, including those for one platform.
fn dependencies(manifest: &Table) -> Vec<(String, &str, &Value)> {
    let mut places = vec![(String::new(), manifest)];
    let targets = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    places.extend(targets.filter_map(|(name, table)| Some((format!("{name}."), table.as_table()?))));
    let mut found = Vec::new();
    for (place, table) in places {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let list = table.get(section).and_then(Value::as_table).into_iter().flatten();
            found.extend(list.map(|(name, value)| (format!("{place}{section}"), name.as_str(), value)));
        }
    }
    found
}

/// Returns the folder of a file's crate, and the path from there.
fn crate_of(file: &File) -> Option<(&str, &str)> {
    let path = file.path.strip_prefix("crates/")?;
    match path.strip_prefix("sdk/macros/") {
        Some(rest) => Some(("sdk/macros", rest)),
        None => path.split_once('/'),
    }
}

fn is_any(file: &File, extensions: &[&str]) -> bool {
    file.path.rsplit_once('.').is_some_and(|(_, extension)| extensions.contains(&extension))
}

/// Returns the lines of code that contain one of these words, except as the end of a longer word.
/// Comments may contain anything.
fn lines_with(file: &File, text: &str, words: &[&str]) -> Vec<String> {
    let has = |line: &str, word: &str| {
        line.match_indices(word)
            .any(|(at, _)| !line[..at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_'))
    };
    let code = text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"));
    let found = code.filter(|(_, line)| words.iter().any(|word| has(line, word)));
    found.map(|(at, line)| format!("{}:{}: {}", file.path, at + 1, line.trim())).collect()
}

/// Returns every text file of the repository.
fn repository() -> io::Result<Vec<File>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize()?;
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
                continue;
            }
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(text) = fs::read_to_string(entry.path())
                && let Ok(path) = entry.path().strip_prefix(&root)
            {
                files.push(File { path: path.to_string_lossy().into_owned(), text });
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

#[track_caller]
fn holds(rule: Rule) {
    let files = repository().unwrap_or_default();
    assert!(files.len() > 50, "repository not found");
    let broken = rule(&files);
    assert!(broken.is_empty(), "{} violations of this rule:\n  {}", broken.len(), broken.join("\n  "));
}

#[track_caller]
fn check(rule: Rule, path: &str, text: &str, broken: &[&str]) {
    let file = File { path: path.to_owned(), text: text.to_owned() };
    assert_eq!(rule(&[file]), broken);
}

#[test]
fn imports_point_one_way_and_each_big_library_has_its_room() {
    holds(edges);
}

#[test]
fn an_import_against_the_direction_is_found() {
    let hub =
        "[dependencies]\ntoolyard-wire.workspace = true\naxum.workspace = true\nserde.workspace = true\n";
    let broken = ["crates/hub: axum may not be used here", "crates/hub: may not use toolyard-wire"];
    check(edges, "crates/hub/Cargo.toml", hub, &broken);
    check(edges, "crates/hub/Cargo.toml", &hub.replace("[dep", "[dev-dep"), &[]);
    let kit = "[target.'cfg(unix)'.dependencies]\ntoolyard-testkit.workspace = true\nrmcp.workspace = true\n";
    let broken = ["crates/cli: rmcp may not be used here", "crates/cli: may not use toolyard-testkit"];
    check(edges, "crates/cli/Cargo.toml", kit, &broken);
    check(
        edges,
        "crates/tui/Cargo.toml",
        "[build-dependencies]\ntoolyard = {}",
        &["crates/tui: may not use toolyard"],
    );
    let new = ["crates/attic: has no entry in `EDGES` in tidy.rs"];
    check(edges, "crates/attic/Cargo.toml", "", &new);
}

#[test]
fn versions_are_named_in_the_root_manifest_only() {
    holds(versions);
}

#[test]
fn a_version_in_a_member_is_found() {
    let manifest = r#"
        package.version = "1.0.0"
        package.edition.workspace = true
        dependencies.serde = "1"
        dev-dependencies.tokio = { version = "1", features = ["full"] }
        build-dependencies.cc = { path = "../cc" }
        dev-dependencies.toolyard-sdk = { path = "../sdk" }
        dependencies.fine = { workspace = true, features = ["x"] }
    "#;
    let broken = [
        "crates/hub: dependencies: serde is not from the workspace",
        "crates/hub: dev-dependencies: tokio is not from the workspace",
        "crates/hub: build-dependencies: cc is not from the workspace",
        "crates/hub: version is not from the workspace",
    ];
    check(versions, "crates/hub/Cargo.toml", manifest, &broken);
}

#[test]
fn no_file_is_longer_than_800_lines() {
    holds(long_files);
}

#[test]
fn a_long_file_is_found() {
    let text = "line\n".repeat(LONGEST + 1);
    check(long_files, "web/src/page.vue", &text, &["web/src/page.vue: 801 lines, 800 are allowed"]);
    check(long_files, "web/package-lock.json", &text, &[]);
}

#[test]
fn every_source_file_says_first_what_it_is_for() {
    holds(first_lines);
}

#[test]
fn a_source_file_that_says_nothing_is_found() {
    let broken = "crates/sdk/macros/src/a.rs: the first line does not describe the file";
    check(first_lines, "crates/sdk/macros/src/a.rs", "\n//! Late.\n", &[broken]);
    check(first_lines, "crates/hub/tests/a.rs", "fn main() {}", &[]);
}

#[test]
fn files_are_named_for_what_they_hold() {
    holds(file_names);
}

#[test]
fn a_file_named_for_nothing_is_found() {
    check(
        file_names,
        "crates/hub/src/call/mod.rs",
        "",
        &["crates/hub/src/call/mod.rs: name the file after its content"],
    );
    check(file_names, "web/src/types.d.ts", "", &["web/src/types.d.ts: name the file after its content"]);
    check(file_names, "crates/hub/src/common.toml", "", &[]);
}

#[test]
fn nothing_is_left_unfinished_and_no_test_is_switched_off() {
    holds(unfinished);
}

#[test]
fn what_is_left_unfinished_is_found() {
    let text = format!("fn a() {{\n    {}!()\n}}\n// {}!() in words\n", "todo", "todo");
    check(unfinished, "crates/hub/tests/a.rs", &text, &[&format!("crates/hub/tests/a.rs:2: {}!()", "todo")]);
    let text = format!("#[{} = \"slow\"]\n", "ignore");
    check(
        unfinished,
        "crates/hub/tests/a.rs",
        &text,
        &[&format!("crates/hub/tests/a.rs:1: {}", text.trim())],
    );
}

#[test]
fn nothing_below_cli_reads_the_environment_prints_or_exits() {
    holds(outside_world);
}

#[test]
fn a_crate_that_talks_to_the_outside_world_is_found() {
    let text = "//! x\nlet home = std::env::var(\"HOME\");\neprintln!(\"hm\");\n// println!(\"in words\")\n";
    let broken = [
        "crates/hub/src/a.rs:2: let home = std::env::var(\"HOME\");",
        "crates/hub/src/a.rs:3: eprintln!(\"hm\");",
    ];
    check(outside_world, "crates/hub/src/a.rs", text, &broken);
    for fine in [
        "crates/cli/src/a.rs",
        "crates/hub/build.rs",
        "crates/hub/examples/a.rs",
        "crates/hub/src/a/tests.rs",
    ] {
        check(outside_world, fine, text, &[]);
    }
    check(outside_world, "crates/hub/src/a.rs", "#[cfg(test)]\nmod tests {\n    println!(\"x\");\n}\n", &[]);
}

#[test]
fn every_test_that_the_threat_model_names_exists() {
    holds(named_tests);
}

#[test]
fn a_test_that_does_not_exist_is_found_in_the_threat_model() {
    let text = "`docs/a_b_c_d.md`, `no_such_test_is_there` and `auth = \"none\"`";
    check(named_tests, "SECURITY.md", text, &["SECURITY.md: no_such_test_is_there"]);
}

#[test]
fn no_file_names_a_path_of_the_machine_it_was_written_on() {
    holds(machine_paths);
}

#[test]
fn a_path_of_the_machine_is_found() {
    for word in ["work", "root", "farm"] {
        let line = format!("see /{word}/main/notes");
        check(machine_paths, "README.md", &format!("fine\n{line}\n"), &[&format!("README.md:2: {line}")]);
        check(machine_paths, "README.md", &format!("https://host/{word}/x and ./{word}/x"), &[]);
    }
}

#[test]
fn no_lock_file_names_a_registry_host() {
    holds(registry_hosts);
}

#[test]
fn a_registry_host_in_a_lock_file_is_found() {
    let lock = r#"{"packages": {"a": {"resolved": "https://registry.example/a.tgz"}, "b": {"resolved": "packages/b"}}}"#;
    let broken = ["web/package-lock.json: resolved to https://registry.example/a.tgz"];
    check(registry_hosts, "web/package-lock.json", lock, &broken);
    let broken = ["package-lock.json: EOF while parsing an object at line 1 column 1"];
    check(registry_hosts, "package-lock.json", "{", &broken);
}
