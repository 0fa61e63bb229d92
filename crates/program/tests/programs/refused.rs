//! Where no sandbox can be built, nothing runs, and the reason is said.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use toolyard_program::{Engine, EngineSettings, SandboxLayer, SandboxUnavailable};

use super::fixture::{engine_without, python, run};

async fn refusal(launcher: Vec<&str>, python: &str) -> SandboxUnavailable {
    let launcher = launcher.into_iter().map(Into::into).collect();
    let engine = Engine::new(EngineSettings { launcher, python: Some(python.into()), without: Vec::new() });
    let refused = run(&engine, "print(1)").await.unwrap_err();
    engine.stop().await;
    refused
}

const LAUNCHER: &str = env!("CARGO_BIN_EXE_toolyard-sandbox");

#[tokio::test]
async fn a_python_that_is_not_there_or_not_fit_is_named() {
    let absent = refusal(vec![LAUNCHER], "/nowhere/python3").await;
    assert_eq!(
        absent.reason,
        "programs need Python, and /nowhere/python3 cannot be started: No such file or directory (os error 2)"
    );
    assert_eq!(
        absent.suggestion.as_deref(),
        Some("install CPython 3.9 or newer, or name one in the configuration")
    );

    let folder = std::env::temp_dir().join(format!("toolyard-refused-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    let fake = |name: &str, script: &str| {
        let path = folder.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_string_lossy().into_owned()
    };
    let old = fake("old", "echo '{\"refused\": \"cpython 3.8\"}'");
    let refused = refusal(vec![LAUNCHER], &old).await;
    assert_eq!(refused.reason, format!("programs need CPython 3.9 or newer, and {old} is cpython 3.8"));
    let odd = fake("odd", "echo hello; echo 'no such thing' >&2; exit 3");
    let refused = refusal(vec![LAUNCHER], &odd).await;
    assert_eq!(refused.reason, format!("{odd} does not say what it is (exit status: 3): no such thing"));
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn without_namespaces_nothing_runs() {
    let none = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let refused =
        refusal(vec!["unshare", "--user", "--map-root-user", "sh", "-c", none, LAUNCHER], python()).await;
    assert_eq!(
        refused.reason,
        "the sandbox for programs needs namespaces, and this process cannot make one: No space left on device (os error 28)"
    );
    assert!(refused.suggestion.unwrap().contains("user.max_user_namespaces"));
}

#[tokio::test]
async fn a_launcher_that_fails_is_said_to() {
    let refused = refusal(vec!["/nowhere/launcher"], python()).await;
    assert!(refused.reason.starts_with("the sandbox for programs cannot be started: "), "{refused:?}");
    let refused = refusal(vec!["sh", "-c", "echo 'went wrong' >&2; exit 1"], python()).await;
    assert_eq!(refused.reason, "Python does not start in the sandbox: it ended; it said: went wrong");
}

#[tokio::test]
async fn a_weakened_sandbox_switches_itself_off() {
    let engine = engine_without(&[SandboxLayer::Environment, SandboxLayer::Descriptors]);
    let refused = run(&engine, "print(1)").await.unwrap_err();
    assert!(
        refused.reason.starts_with("programs are switched off, because the sandbox did not hold against: ")
    );
    assert!(refused.reason.contains("environment (the environment: "), "{}", refused.reason);
    assert!(refused.reason.contains("descriptors (the descriptors ["), "{}", refused.reason);
    // For good.
    assert_eq!(engine.ready().await.unwrap_err(), refused);
    assert_eq!(engine.run_attacks().await.unwrap_err(), refused);
    engine.stop().await;
}
