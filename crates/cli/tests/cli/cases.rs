//! Every folder of `tests/cases` is one run of the real binary: `cmd` is a shell script, `stdout`, `stderr` and `code` are
//! what it must say and end with (nothing and 0 if they are not there), `after/` has files as they must be afterwards,
//! and whatever else is there is put into the folder that the script runs in. That folder is its home too.
//!
//! `${odd:KIND}` in the script or in a file is the address of an odd server of that kind. In what is expected, `{dir}`
//! stands for the folder, `{bin}` for the binary, `{programs}` for where it is, and `{odd}` for the address. `INSTA_UPDATE=always` writes what was said.

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
/// What a case is made of; the rest is files for the script.
const PARTS: [&str; 5] = ["cmd", "stdout", "stderr", "code", "after"];

#[derive(Debug, PartialEq, Eq)]
struct Said {
    stdout: String,
    stderr: String,
    code: String,
    after: BTreeMap<String, String>,
}

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "whoever writes cases down says so as with snapshots")]
async fn every_case_says_what_it_must() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(cases.len() > 40, "the cases were not found");
    let runs = futures_util::stream::iter(cases).map(|case| async move {
        let said = run(&case).await;
        (case, said)
    });
    let mut wrong = Vec::new();
    let mut runs = runs.buffered(AT_ONCE);
    while let Some((case, said)) = runs.next().await {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        if std::env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
            write(&case, &said);
        }
        let expected = expected(&case);
        if said != expected {
            wrong.push(format!("== {name}\nexpected {expected:#?}\nsaid {said:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

async fn run(case: &Path) -> Said {
    let scratch = Scratch::new();
    let mut odd = Vec::new();
    for entry in std::fs::read_dir(case).unwrap() {
        let entry = entry.unwrap();
        if !PARTS.iter().any(|part| entry.file_name() == *part) {
            copy(&entry.path(), &scratch.path(&entry.file_name().to_string_lossy()), &mut odd).await;
        }
    }
    let script = substituted(&text(&case.join("cmd")), &mut odd).await;
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
        odd.iter().fold(text, |text, (_, server): &(String, Nearby)| text.replace(&server.url, "{odd}"))
    };
    let wanted = files(&case.join("after"));
    let after = |name: &String| (name.clone(), tidy(&std::fs::read(scratch.path(name)).unwrap_or_default()));
    Said {
        stdout: tidy(&output.stdout),
        stderr: tidy(&output.stderr),
        code: output.status.code().map_or("a signal".to_owned(), |code| code.to_string()),
        after: wanted.keys().map(after).collect(),
    }
}

fn expected(case: &Path) -> Said {
    let code = text(&case.join("code")).trim().to_owned();
    Said {
        stdout: text(&case.join("stdout")),
        stderr: text(&case.join("stderr")),
        code: if code.is_empty() { "0".to_owned() } else { code },
        after: files(&case.join("after")),
    }
}

fn write(case: &Path, said: &Said) {
    let put = |name: &str, text: &str, usual: &str| {
        let path = case.join(name);
        if text == usual { drop(std::fs::remove_file(path)) } else { std::fs::write(path, text).unwrap() }
    };
    put("stdout", &said.stdout, "");
    put("stderr", &said.stderr, "");
    put("code", &format!("{}\n", said.code), "0\n");
    for (name, text) in &said.after {
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

/// Copies a file, or a folder with all that is in it.
async fn copy(from: &Path, to: &Path, odd: &mut Vec<(String, Nearby)>) {
    if from.is_dir() {
        std::fs::create_dir_all(to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            Box::pin(copy(&entry.path(), &to.join(entry.file_name()), odd)).await;
        }
        return;
    }
    match std::fs::read_to_string(from) {
        Ok(text) => std::fs::write(to, substituted(&text, odd).await).unwrap(),
        Err(_) => drop(std::fs::copy(from, to).unwrap()),
    }
}

/// Starts the odd servers that a text names, each kind once.
async fn substituted(text: &str, odd: &mut Vec<(String, Nearby)>) -> String {
    let mut text = text.replace("${bin}", TOOLYARD);
    while let Some((before, rest)) = text.split_once("${odd:") {
        let (kind, after) = rest.split_once('}').unwrap();
        if !odd.iter().any(|(known, _)| known == kind) {
            let server = start_in_process(
                Kind::parse(kind).unwrap_or_else(|| panic!("there is no odd server {kind}")),
            )
            .await;
            odd.push((kind.to_owned(), server.unwrap()));
        }
        let server = odd.iter().find(|(known, _)| known == kind).unwrap();
        text = format!("{before}{}{after}", server.1.url);
    }
    text
}
