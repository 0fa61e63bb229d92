//! Without a sandbox, nothing runs, and the error explains the reason.

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
async fn a_missing_or_unsuitable_python_is_named() {
    let absent = refusal(vec![LAUNCHER], "/nowhere/python3").await;
    assert_eq!(
        absent.reason,
        "programs need Python, but `/nowhere/python3` cannot be started: No such file or directory (os error 2)"
    );
    assert_eq!(
        absent.suggestion.as_deref(),
        Some("install CPython 3.9 or newer, or set `programs.python` in the configuration")
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
    assert_eq!(refused.reason, format!("programs need CPython 3.9 or newer, but `{old}` is cpython 3.8"));
    let broken = fake("broken", "echo hello; echo 'no such thing' >&2; exit 3");
    let refused = refusal(vec![LAUNCHER], &broken).await;
    let expected = format!("`{broken}` did not report its version (exit status: 3): no such thing");
    assert_eq!(refused.reason, expected);
    fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn without_namespaces_nothing_runs() {
    let none = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$0\" \"$@\"";
    let refused =
        refusal(vec!["unshare", "--user", "--map-root-user", "sh", "-c", none, LAUNCHER], python()).await;
    assert_eq!(
        refused.reason,
        "the sandbox needs namespaces, but this process cannot create one: No space left on device (os error 28)"
    );
    assert!(refused.suggestion.unwrap().contains("user.max_user_namespaces"));
}

#[tokio::test]
async fn the_failure_of_the_launcher_is_reported() {
    let refused = refusal(vec!["/nowhere/launcher"], python()).await;
    assert!(refused.reason.starts_with("failed to start the sandbox: "), "{refused:?}");
    let refused = refusal(vec!["sh", "-c", "echo 'went wrong' >&2; exit 1"], python()).await;
    assert_eq!(refused.reason, "Python did not start in the sandbox: the process exited: went wrong");
}

#[tokio::test]
async fn a_weakened_sandbox_is_disabled() {
    let engine = engine_without(&[SandboxLayer::Environment, SandboxLayer::Descriptors]);
    let refused = run(&engine, "print(1)").await.unwrap_err();
    let expected = "programs are disabled because the sandbox did not withstand these attacks: ";
    assert!(refused.reason.starts_with(expected), "{}", refused.reason);
    assert!(refused.reason.contains("environment (read environment variables: "), "{}", refused.reason);
    assert!(refused.reason.contains("descriptors (has the descriptors ["), "{}", refused.reason);
    // The result is final.
    assert_eq!(engine.ready().await.unwrap_err(), refused);
    assert_eq!(engine.run_attacks().await.unwrap_err(), refused);
    engine.stop().await;
}
