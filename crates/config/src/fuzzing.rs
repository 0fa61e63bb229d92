//! Entry point of the fuzz target `config` and of the test that replays its corpus.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toolyard_hub::printable::is_deceptive;

use super::files::ConfigFileReader;
use super::load::load_from;
use super::{ConfigProblem, ConfigProblems, Environment, ProblemSeverity};

/// The file name determines how the file is parsed.
const NAMES: [&str; 4] = ["toolyard.toml", ".mcp.json", ".vscode/mcp.json", "config"];
/// Value of the variables that a configuration can refer to. No message may contain it.
const SECRET: &str = "s3cret-of-the-fuzz-target";

/// Loads arbitrary text as a configuration file. Loading must succeed or report every error with a
/// location, without showing secrets. The first byte selects the file name.
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
            assert!(config.problems().iter().all(is_non_fatal), "an error was ignored");
            // Debug output ends up in logs. Loading the same text again must not look like a
            // change.
            assert!(!format!("{:?}", config.servers()).contains(SECRET), "a secret was shown");
            let again = load().map(|again| again.servers().to_vec()).unwrap_or_default();
            assert!(config.servers() == again, "loading twice gives different servers");
            config.problems().to_vec()
        }
        Err(ConfigProblems(problems)) => {
            let fatal = problems.iter().any(|problem| problem.severity == ProblemSeverity::Error);
            assert!(fatal, "a configuration was refused without an error");
            problems
        }
    };
    let lines = text.strip_prefix('\u{feff}').unwrap_or(&text).split('\n').count();
    for problem in &problems {
        check(problem, lines);
    }
}

/// Errors of a single server do not prevent startup.
fn is_non_fatal(problem: &ConfigProblem) -> bool {
    problem.severity == ProblemSeverity::Warning || problem.server.is_some()
}

fn check(problem: &ConfigProblem, lines: usize) {
    let shown = problem.to_string();
    assert!(problem.file.is_some(), "a problem without a file: {shown}");
    assert!(!shown.contains(SECRET), "a secret was shown: {shown}");
    assert_eq!(shown.find(|letter| is_deceptive(letter) && letter != '\n'), None, "{shown:?}");
    assert!(shown.len() < 10_000, "one problem takes {} bytes", shown.len());
    // A file that cannot be read or has an unknown format has no location.
    let Some(place) = &problem.location else {
        let whole = problem.message.starts_with("cannot read the file")
            || problem.message.starts_with("the file contains no servers");
        assert!(whole, "a problem without a location: {shown}");
        return;
    };
    assert!((1..=lines).contains(&place.line) && place.column >= 1, "{shown}");
    let (start, width) = place.caret;
    assert!(width >= 1 && start <= place.excerpt.chars().count(), "carets outside the line:\n{shown}");
}
