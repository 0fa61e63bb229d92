//! The start of a process: what it is given, and what is said when there is nothing to start.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use toolyard_hub::Secret;
use toolyard_testkit::harness::{Scratch, soon};
use toolyard_upstream::{Child, CommandSettings};

use super::KEPT;
use super::tree::{command, keeper, line, start};

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let error = start("no-such-program", &[]).unwrap_err();
    assert_eq!(error.to_string(), r#"program "no-such-program" was not found"#);
    assert!(error.suggestion().unwrap().contains("PATH"), "{error:?}");
}

#[tokio::test]
async fn what_only_the_system_can_refuse_is_told_in_its_words() {
    let scratch = Scratch::new();
    let script = scratch.file("server", "#!/no/such/interpreter\n");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let child = start(&script, &[]).unwrap();
    let why = format!("could not be started: {script}: No such file or directory (os error 2)");
    assert_eq!(soon("the end", child.exited()).await.words, why);
}

#[tokio::test]
async fn a_program_gets_its_arguments_environment_and_folder() {
    let scratch = Scratch::new();
    let script = r#"echo "$1|$2|$OWN|$(pwd)""#;
    let settings = CommandSettings {
        env: BTreeMap::from([("OWN".to_owned(), Secret::new("a b"))]),
        cwd: Some(scratch.path(".").canonicalize().unwrap()),
        ..command("sh", &["-c", script, "sh", "--watch", "-- x"])
    };
    let mut child = Child::spawn(&settings, &keeper()).unwrap();
    let (_stdin, stdout) = child.take_streams().unwrap();
    let folder = settings.cwd.unwrap();
    assert_eq!(line(stdout).await, format!("--watch|-- x|a b|{}", folder.display()));
}

#[test]
fn a_server_does_not_get_our_token() {
    let arguments = ["parent", "--", "sh", "-c", r#"test "$TOOLYARD_TOKEN$OTHER" = seen"#];
    let mut parent = std::process::Command::new(KEPT);
    let done = parent.args(arguments).env("TOOLYARD_TOKEN", "hidden").env("OTHER", "seen").output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert_eq!(said.lines().nth(1), Some("exited with code 0"));
}

#[tokio::test]
async fn a_server_has_its_three_streams_and_no_other_descriptor() {
    let mut children: Vec<_> = (0..8).map(|_| start("python3", &["-c", DESCRIPTORS]).unwrap()).collect();
    for child in &mut children {
        let (_stdin, stdout) = child.take_streams().unwrap();
        assert_eq!(line(stdout).await, "0 1 2");
    }
}

/// Says which descriptors are open, without the one that looking takes.
const DESCRIPTORS: &str = "
import os
folder = os.open('/proc/self/fd', os.O_RDONLY)
print(*sorted(int(name) for name in os.listdir(folder) if int(name) < folder), flush=True)
";
