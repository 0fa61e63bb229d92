//! The entry point of the fuzz target `config`, and of the test that replays its corpus. Nothing else calls it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolyard_hub::printable::is_deceptive;

use super::files::ConfigFileReader;
use super::load::load_from;
use super::{ConfigProblem, ConfigProblems, Environment, ProblemSeverity};

/// The names decide how a file is read.
const NAMES: [&str; 4] = ["toolyard.toml", ".mcp.json", ".vscode/mcp.json", "config"];
/// The values of variables that a configuration may refer to, and that no message may repeat.
const SECRET: &str = "s3cret-of-the-fuzz-target";

/// A configuration file: any text is read, or every mistake in it has a place, and no secret is shown. The first byte
/// chooses the name of the file.
pub fn config(bytes: &[u8]) {
    let Some((name, text)) = bytes.split_first() else { return };
    let (name, text) = (NAMES[usize::from(*name) % NAMES.len()], String::from_utf8_lossy(text));
    let folder = Path::new("/nowhere");
    let files = [
        (folder.join(name), text.clone().into_owned()),
        (folder.join("other.json"), r#"{"mcpServers": {"a": {"command": "b"}}}"#.to_owned()),
        (folder.join(".env"), format!("TOKEN={SECRET}\n")),
    ];
    let around = Environment::new(folder, [("HOME", "/nowhere"), ("TOKEN", SECRET), ("EMPTY", "")]);
    let load = || {
        load_from(ConfigFileReader::in_memory(BTreeMap::from(files.clone())), &[PathBuf::from(name)], &around)
    };
    let problems = match load() {
        Ok(config) => {
            assert!(config.problems().iter().all(is_non_fatal), "an error is passed over");
            // The debug form ends up in logs, and an equal text must not look like a change.
            assert!(!format!("{:?}", config.servers()).contains(SECRET), "a secret is shown");
            let again = load().map(|again| again.servers().to_vec()).unwrap_or_default();
            assert!(config.servers() == again, "reading twice gives different servers");
            config.problems().to_vec()
        }
        Err(ConfigProblems(problems)) => {
            let fatal = problems.iter().any(|problem| problem.severity == ProblemSeverity::Error);
            assert!(fatal, "a configuration is refused without an error");
            problems
        }
    };
    let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').count();
    for problem in &problems {
        check(problem, lines);
    }
}

/// What is wrong with a single server does not end the start.
fn is_non_fatal(problem: &ConfigProblem) -> bool {
    problem.severity == ProblemSeverity::Warning || problem.server.is_some()
}

fn check(problem: &ConfigProblem, lines: usize) {
    let shown = problem.to_string();
    assert!(problem.file.is_some(), "a problem without a file: {shown}");
    assert!(!shown.contains(SECRET), "a secret is shown: {shown}");
    assert_eq!(shown.find(|letter| is_deceptive(letter) && letter != '\n'), None, "{shown:?}");
    assert!(shown.len() < 10_000, "{} bytes about one problem", shown.len());
    // A file that is absent or of no known form has no place to point at.
    let Some(place) = &problem.location else {
        let whole = problem.message.starts_with("cannot read it")
            || problem.message.starts_with("there are no servers");
        assert!(whole, "a problem without a place: {shown}");
        return;
    };
    assert!((1..=lines).contains(&place.line) && place.column >= 1, "{shown}");
    let (start, width) = place.caret;
    assert!(width >= 1 && start <= place.excerpt.chars().count(), "carets beside the line:\n{shown}");
}
