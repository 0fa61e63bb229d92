//! The sandbox under attack, whole and with each of its layers left out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use toolyard_program::{AttackOutcome, AttackReport, Engine, SandboxLayer};

use super::fixture::{engine, engine_without};

fn through(attacked: &[AttackReport]) -> Vec<(&'static str, &AttackOutcome)> {
    let through = attacked.iter().filter(|attack| attack.outcome != AttackOutcome::Held);
    through.map(|attack| (attack.name, &attack.outcome)).collect()
}

#[tokio::test]
async fn every_attack_on_the_whole_sandbox_is_fended_off() {
    let engine = engine();
    let began = Instant::now();
    let attacked = engine.run_attacks().await.unwrap();
    eprintln!("{} attacks, start included, took {:?}", attacked.len(), began.elapsed());
    assert_eq!(through(&attacked), []);
    let began = Instant::now();
    engine.run_attacks().await.unwrap();
    eprintln!("again {:?}", began.elapsed());
    engine.stop().await;
}

/// Which layer, what is left out beside it so that it stands alone, and which attack shows what it is good for.
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
async fn without_a_layer_the_attack_that_proves_it_gets_through() {
    // What the namespace hides must be there to be found.
    let segment = Segment::new();
    let mut wrong = Vec::new();
    let mut engines = HashMap::new();
    for (layer, beside, name) in PROOFS {
        let with = outcome(&mut engines, beside, name).await;
        if with != AttackOutcome::Held {
            wrong.push(format!("{layer:?}: {name} is not fended off without {beside:?}: {with:?}"));
        }
        let without = outcome(&mut engines, &[beside, &[*layer][..]].concat(), name).await;
        if !matches!(without, AttackOutcome::Escaped(_)) {
            wrong.push(format!(
                "{layer:?}: {name} does not get through without it and {beside:?}: {without:?}"
            ));
        }
    }
    let proven: HashSet<_> = PROOFS.iter().map(|(layer, ..)| *layer).collect();
    wrong.extend(
        SandboxLayer::ALL
            .iter()
            .filter(|layer| !proven.contains(layer))
            .map(|layer| format!("{layer:?}: no proof")),
    );
    drop(segment);
    for engine in engines.values() {
        engine.stop().await;
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// One engine for each set of layers that is left out.
type Engines = HashMap<BTreeSet<&'static str>, Arc<Engine>>;

async fn outcome(engines: &mut Engines, without: &[SandboxLayer], name: &str) -> AttackOutcome {
    let set = without.iter().map(|layer| layer.name()).collect();
    let engine = engines.entry(set).or_insert_with(|| engine_without(without));
    engine.run_attack(name).await.unwrap().outcome
}

/// A piece of shared memory of this machine, for as long as a Python keeps it.
struct Segment(Child);

impl Segment {
    fn new() -> Self {
        let code = "import ctypes, sys\n\
                    libc = ctypes.CDLL(None)\n\
                    one = libc.shmget(0, 4096, 0o1600)\n\
                    print(one, flush=True)\n\
                    sys.stdin.read()\n\
                    libc.shmctl(one, 0, None)\n";
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
