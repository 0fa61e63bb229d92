//! Starting a process: its environment and descriptors, and the error when the program is missing.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use toolyard_hub::Secret;
use toolyard_testkit::harness::{Scratch, within_timeout};
use toolyard_upstream::{Child, CommandSettings, EnvInheritance, ProcessEnvironment, SupervisorCommand};

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
    assert_eq!(within_timeout("the end", child.wait()).await.description, why);
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
fn a_server_does_not_get_our_token_nor_that_of_another_server() {
    let script = r#"test "$TOOLYARD_TOKEN$OTHER_TOKEN$LC_TIME" = seen"#;
    let mut parent = std::process::Command::new(KEPT);
    parent.args(["parent", "--", "sh", "-c", script]);
    parent.env("TOOLYARD_TOKEN", "hidden").env("OTHER_TOKEN", "hidden").env("LC_TIME", "seen");
    let done = parent.output().unwrap();
    let output = String::from_utf8(done.stdout).unwrap();
    assert_eq!(output.lines().nth(1), Some("exited with code 0"));
}

#[tokio::test]
async fn a_server_has_its_three_streams_and_no_other_descriptor() {
    let mut children: Vec<_> = (0..8).map(|_| start("python3", &["-c", DESCRIPTORS]).unwrap()).collect();
    for child in &mut children {
        let (_stdin, stdout) = child.take_streams().unwrap();
        assert_eq!(line(stdout).await, "0 1 2");
    }
}

/// Prints the open descriptors, without the one opened for looking.
const DESCRIPTORS: &str = "
import os
folder = os.open('/proc/self/fd', os.O_RDONLY)
print(*sorted(int(name) for name in os.listdir(folder) if int(name) < folder), flush=True)
";

#[tokio::test]
async fn neither_a_server_nor_its_keeper_inherits_what_is_not_on_the_list() {
    let variables =
        [("PATH", "/bin:/usr/bin"), ("XDG_KEY", "s3cret"), ("GITHUB_TOKEN", "t0ken"), ("LANG", "C")];
    let variables = variables.map(|(name, value)| (name.into(), value.into()));
    let environment = ProcessEnvironment::new(variables);
    environment.set_secrets(["XDG_KEY".to_owned()].into());
    let keeper = SupervisorCommand { environment, ..keeper() };
    let settings = CommandSettings {
        env: BTreeMap::from([("OWN".to_owned(), Secret::new("a"))]),
        ..command("sh", &["-c", "echo $$; read wait"])
    };
    for (inherit, expected) in [
        (EnvInheritance::AllowList, vec!["LANG=C", "OWN=a", "PATH=/bin:/usr/bin"]),
        (
            EnvInheritance::Everything,
            vec!["GITHUB_TOKEN=t0ken", "LANG=C", "OWN=a", "PATH=/bin:/usr/bin", "XDG_KEY=s3cret"],
        ),
    ] {
        let mut child = Child::spawn(&CommandSettings { inherit, ..settings.clone() }, &keeper).unwrap();
        let (_stdin, stdout) = child.take_streams().unwrap();
        let server: u32 = line(stdout).await.parse().unwrap();
        for process in [child.id(), server] {
            let environ = fs::read_to_string(format!("/proc/{process}/environ")).unwrap();
            let mut environment_lines: Vec<&str> = environ.split_terminator('\0').collect();
            environment_lines.sort_unstable();
            assert_eq!(environment_lines, expected, "{inherit:?}");
        }
    }
}
