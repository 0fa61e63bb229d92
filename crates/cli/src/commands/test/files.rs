//! Reads test files, and the files of other tools.

use std::fs;
use std::path::{Path, PathBuf};

use toolyard_cassette::Cassette;
use toolyard_suite::import::cassette::import_cassette;
use toolyard_suite::import::mcp_assert::{McpAssertOptions, import_mcp_assert};
use toolyard_suite::import::mcporter::parse_mcporter;
use toolyard_suite::{TestFile, TestFileProblem, discover, parse_test_file};

use crate::Exit;
use crate::args::{ImportArg, TestArgs};
use crate::error::CommandError;
use crate::terminal::{format_count, print_error, print_hint, print_warning};

/// Reads all files. Prints every mistake.
pub(super) fn load(args: &TestArgs) -> Result<Vec<TestFile>, CommandError> {
    if args.verify.is_some() && args.which.other.is_empty() && args.which.server.is_none() {
        return Err(CommandError::usage("--verify needs a server to compare with the recording")
            .suggest("pass a command after `--`, --url, or the name of a configured server with --server"));
    }
    let mut files = Vec::new();
    let mut problems = Vec::new();
    for path in find(args)? {
        match load_file(&path, args) {
            Ok(more) => files.extend(more),
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() {
        return Ok(files);
    }
    for problem in &problems {
        print_error(&problem.to_string());
        problem.suggestion.iter().for_each(|suggestion| print_hint(suggestion));
    }
    let count = format_count(problems.len(), "mistake");
    print_error(&format!("{count} in the test files; no test was run"));
    Err(CommandError::AlreadyReported(Exit::Usage))
}

/// Returns the paths of the files and folders to read.
pub(super) fn find(args: &TestArgs) -> Result<Vec<PathBuf>, CommandError> {
    if args.from.is_some() {
        return Ok(args.paths.clone());
    }
    if let Some(cassette) = &args.verify {
        return Ok(vec![cassette.clone()]);
    }
    let default = [PathBuf::from("tests")];
    let paths = if args.paths.is_empty() { &default[..] } else { &args.paths };
    discover(paths).map_err(|error| {
        CommandError::usage(error.to_string()).suggest(
            "pass test files or folders, or create tests/example.mcp.yaml; see `toolyard test --help`",
        )
    })
}

fn load_file(path: &Path, args: &TestArgs) -> Result<Vec<TestFile>, Vec<TestFileProblem>> {
    if args.verify.is_some() {
        let cassette = Cassette::open(path).map_err(|error| {
            let suggestion = Some(error.suggestion().to_owned());
            vec![TestFileProblem { suggestion, ..TestFileProblem::for_file(path, error.to_string()) }]
        })?;
        for note in &cassette.notes {
            print_warning(&format!("{}: {note}", path.display()));
        }
        return import_cassette(path, &cassette);
    }
    if args.from == Some(ImportArg::McpAssert) {
        let working_folder = std::env::current_dir().unwrap_or_default();
        let options = McpAssertOptions { fixture: args.fixture.clone(), working_folder };
        return import_mcp_assert(path, &options);
    }
    let text = fs::read(path)
        .map_err(|error| vec![TestFileProblem::for_file(path, format!("cannot read the file: {error}"))])?;
    let text = String::from_utf8(text)
        .map_err(|_| vec![TestFileProblem::for_file(path, "the file is not valid UTF-8")])?;
    match args.from {
        Some(ImportArg::Mcporter) => parse_mcporter(path, &text),
        _ => parse_test_file(path, &text).map(|file| vec![file]),
    }
}
