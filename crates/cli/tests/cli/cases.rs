//! Every folder of `tests/cases` is one run of the real binary: `cmd` is a shell script, `stdout`,
//! `stderr` and `code` are the expected output and exit code (empty and 0 if missing), and `after/`
//! contains the expected files after the run. All other files are copied to the working directory
//! of the script, which is also its home directory.
//!
//! `${odd:KIND}` in the script or in a file is the address of a misbehaving server of that kind. In
//! the expected output, `{dir}` stands for the working directory, `{bin}` for the binary,
//! `{programs}` for its directory, and `{odd}` for the address. `INSTA_UPDATE=always` writes the
//! actual output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::process::Command;
use toolyard_testkit::harness::Scratch;
use toolyard_testkit::odd::{Kind, Nearby, start_in_process};

use super::TOOLYARD;

const LONGEST: Duration = Duration::from_secs(60);
const AT_ONCE: usize = 4;
/// The parts of a case. All other files are for the script.
const PARTS: [&str; 5] = ["cmd", "stdout", "stderr", "code", "after"];

#[derive(Debug, PartialEq, Eq)]
struct Observed {
    stdout: String,
    stderr: String,
    code: String,
    after: BTreeMap<String, String>,
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "cases are updated like snapshots")]
async fn every_case_says_what_it_must() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 40, "no cases found");
    let runs = futures_util::stream::iter(cases).map(|case| async move {
        let observed = run(&case).await;
        (case, observed)
    });
    let mut wrong = Vec::new();
    let mut runs = runs.buffered(AT_ONCE);
    while let Some((case, observed)) = runs.next().await {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            write(&case, &observed);
        }
        let expected = expected(&case);
        if observed != expected {
            wrong.push(format!("== {name}\nexpected {expected:#?}\nobserved {observed:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases failed:\n{}", wrong.len(), wrong.join("\n"));
}

async fn run(case: &Path) -> Observed {
    let scratch = Scratch::new();
    let mut servers = Vec::new();
    for entry in std::fs::read_dir(case).unwrap() {
        let entry = entry.unwrap();
        if !PARTS.iter().any(|part| entry.file_name() == *part) {
            copy(&entry.path(), &scratch.path(&entry.file_name().to_string_lossy()), &mut servers).await;
        }
    }
    let script = substituted(&text(&case.join("cmd")), &mut servers).await;
    let home = scratch.path("");
    let programs = Path::new(TOOLYARD).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(&home).env_clear();
    command.env("PATH", path).env("HOME", &home).env("LANG", "C.UTF-8");
    command.stdin(Stdio::null()).kill_on_drop(true);
    let done = tokio::time::timeout(LONGEST, command.output()).await;
    let output = done.unwrap_or_else(|_| panic!("{} takes too long", case.display())).unwrap();
    let tidy = |bytes: &[u8]| {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        for (from, to) in [
            (home.to_str().unwrap().trim_end_matches('/'), "{dir}"),
            (TOOLYARD, "{bin}"),
            (programs.to_str().unwrap(), "{programs}"),
        ] {
            text = text.replace(from, to);
        }
        servers.iter().fold(text, |text, (_, server): &(String, Nearby)| text.replace(&server.url, "{odd}"))
    };
    let expected_files = files(&case.join("after"));
    let after = |name: &String| (name.clone(), tidy(&std::fs::read(scratch.path(name)).unwrap_or_default()));
    Observed {
        stdout: tidy(&output.stdout),
        stderr: tidy(&output.stderr),
        code: output.status.code().map_or("a signal".to_owned(), |code| code.to_string()),
        after: expected_files.keys().map(after).collect(),
    }
}

fn expected(case: &Path) -> Observed {
    let code = text(&case.join("code")).trim().to_owned();
    Observed {
        stdout: text(&case.join("stdout")),
        stderr: text(&case.join("stderr")),
        code: if code.is_empty() { "0".to_owned() } else { code },
        after: files(&case.join("after")),
    }
}

fn write(case: &Path, observed: &Observed) {
    let put = |name: &str, text: &str, usual: &str| {
        let path = case.join(name);
        if text == usual { drop(std::fs::remove_file(path)) } else { std::fs::write(path, text).unwrap() }
    };
    put("stdout", &observed.stdout, "");
    put("stderr", &observed.stderr, "");
    put("code", &format!("{}\n", observed.code), "0\n");
    for (name, text) in &observed.after {
        std::fs::write(case.join("after").join(name), text).unwrap();
    }
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), text(&entry.path()))).collect()
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Copies a file, or a folder with its contents.
async fn copy(from: &Path, to: &Path, servers: &mut Vec<(String, Nearby)>) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            Box::pin(copy(&entry.path(), &to.join(entry.file_name()), servers)).await;
        }
        return;
    }
    match std::fs::read_to_string(from) {
        Ok(text) => std::fs::write(to, substituted(&text, servers).await).unwrap(),
        Err(_) => drop(std::fs::copy(from, to).unwrap()),
    }
}

/// Starts the misbehaving servers that a text names, each kind once.
async fn substituted(text: &str, servers: &mut Vec<(String, Nearby)>) -> String {
    let mut text = text.replace("${bin}", TOOLYARD);
    while let Some((before, rest)) = text.split_once("${odd:") {
        let (kind, after) = rest.split_once('}').unwrap();
        if !servers.iter().any(|(known, _)| known == kind) {
            let server = start_in_process(
                Kind::parse(kind).unwrap_or_else(|| panic!("unknown misbehaving server {kind}")),
            )
            .await;
            servers.push((kind.to_owned(), server.unwrap()));
        }
        let server = servers.iter().find(|(known, _)| known == kind).unwrap();
        text = format!("{before}{}{after}", server.1.url);
    }
    text
}
