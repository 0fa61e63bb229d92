//! Attacks on the complete sandbox, and on the sandbox without each of its layers.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use toolyard_program::{AttackOutcome, AttackReport, Engine, SandboxLayer};

use super::fixture::{engine, engine_without};

fn not_held(reports: &[AttackReport]) -> Vec<(&'static str, &AttackOutcome)> {
    let failed = reports.iter().filter(|report| report.outcome != AttackOutcome::Held);
    failed.map(|report| (report.name, &report.outcome)).collect()
}

#[tokio::test]
async fn the_complete_sandbox_withstands_every_attack() {
    let engine = engine();
    let started = Instant::now();
    let reports = engine.run_attacks().await.unwrap();
    eprintln!("{} attacks, including the start, took {:?}", reports.len(), started.elapsed());
    assert_eq!(not_held(&reports), []);
    let started = Instant::now();
    engine.run_attacks().await.unwrap();
    eprintln!("the second run took {:?}", started.elapsed());
    engine.stop().await;
}

/// Each layer, the layers that are also omitted because they cover for it, and the attack that
/// proves it.
const PROOFS: &[(SandboxLayer, &[SandboxLayer], &str)] = &[
    (SandboxLayer::User, &[SandboxLayer::Seccomp], "administer"),
    (SandboxLayer::Network, &[SandboxLayer::Seccomp, SandboxLayer::Landlock], "network"),
    (SandboxLayer::Processes, &[SandboxLayer::Seccomp], "processes"),
    (SandboxLayer::Root, &[SandboxLayer::Seccomp, SandboxLayer::Landlock], "read files"),
    (SandboxLayer::Ipc, &[SandboxLayer::Seccomp], "shared memory"),
    (SandboxLayer::Uts, &[], "host name"),
    (SandboxLayer::NoProc, &[SandboxLayer::Landlock], "read /proc"),
    (
        SandboxLayer::ReadOnly,
        &[SandboxLayer::Seccomp, SandboxLayer::Landlock, SandboxLayer::FileSize],
        "write files",
    ),
    (SandboxLayer::Environment, &[], "environment"),
    (SandboxLayer::Descriptors, &[], "descriptors"),
    (SandboxLayer::NoNewPrivs, &[SandboxLayer::Seccomp, SandboxLayer::Landlock], "new privileges"),
    (SandboxLayer::Dumpable, &[SandboxLayer::Seccomp], "peek"),
    (
        SandboxLayer::Landlock,
        &[SandboxLayer::Seccomp, SandboxLayer::ReadOnly, SandboxLayer::FileSize],
        "write files",
    ),
    (SandboxLayer::Seccomp, &[], "sockets"),
    (SandboxLayer::Seccomp, &[], "signals"),
    (SandboxLayer::Seccomp, &[], "deadly calls"),
    (SandboxLayer::Seccomp, &[], "foreign calls"),
    (SandboxLayer::Seccomp, &[SandboxLayer::Landlock], "execute"),
    (SandboxLayer::Seccomp, &[SandboxLayer::ProcessCount], "subprocess"),
    (SandboxLayer::Seccomp, &[], "raise limits"),
    (SandboxLayer::Seccomp, &[], "files in memory"),
    (SandboxLayer::AddressSpace, &[], "memory"),
    (SandboxLayer::CpuTime, &[SandboxLayer::WallClock], "endless loop, watched patiently"),
    (
        SandboxLayer::FileSize,
        &[SandboxLayer::Seccomp, SandboxLayer::Landlock, SandboxLayer::ReadOnly],
        "write files",
    ),
    (SandboxLayer::OpenFiles, &[], "open files"),
    (SandboxLayer::Core, &[], "core"),
    (SandboxLayer::ProcessCount, &[SandboxLayer::Seccomp], "fork"),
    (SandboxLayer::WallClock, &[SandboxLayer::CpuTime], "endless loop"),
];

#[tokio::test]
async fn without_a_layer_the_attack_that_proves_it_succeeds() {
    // The IPC namespace must have something to hide.
    let segment = Segment::new();
    let mut failures = Vec::new();
    let mut engines = HashMap::new();
    for (layer, also_omitted, name) in PROOFS {
        let with = outcome(&mut engines, also_omitted, name).await;
        if with != AttackOutcome::Held {
            failures.push(format!("{layer:?}: {name} succeeds without {also_omitted:?}: {with:?}"));
        }
        let without = outcome(&mut engines, &[also_omitted, &[*layer][..]].concat(), name).await;
        if !matches!(without, AttackOutcome::Escaped(_)) {
            failures.push(format!("{layer:?}: {name} fails without it and {also_omitted:?}: {without:?}"));
        }
    }
    let proven: HashSet<_> = PROOFS.iter().map(|(layer, ..)| *layer).collect();
    failures.extend(
        SandboxLayer::ALL
            .iter()
            .filter(|layer| !proven.contains(layer))
            .map(|layer| format!("{layer:?}: no proof")),
    );
    drop(segment);
    for engine in engines.values() {
        engine.stop().await;
    }
    assert_eq!(failures, Vec::<String>::new());
}

/// One engine for each set of omitted layers.
type Engines = HashMap<BTreeSet<&'static str>, Arc<Engine>>;

async fn outcome(engines: &mut Engines, without: &[SandboxLayer], name: &str) -> AttackOutcome {
    let set = without.iter().map(|layer| layer.name()).collect();
    let engine = engines.entry(set).or_insert_with(|| engine_without(without));
    engine.run_attack(name).await.unwrap().outcome
}

/// A shared memory segment on this machine, held by a Python process.
struct Segment(Child);

impl Segment {
    fn new() -> Self {
        let code = "import ctypes, sys\n\
                    libc = ctypes.CDLL(None)\n\
                    segment = libc.shmget(0, 4096, 0o1600)\n\
                    print(segment, flush=True)\n\
                    sys.stdin.read()\n\
                    libc.shmctl(segment, 0, None)\n";
        let mut python = Command::new("python3")
            .args(["-c", code])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(python.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.trim().parse::<i32>().unwrap() >= 0, "{line}");
        Self(python)
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}
