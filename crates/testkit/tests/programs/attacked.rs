//! The sandbox under attack, whole and with each of its layers left out.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use toolyard_program::{AttackOutcome, Attacked, Engine, Layer};

use super::fixture::{engine, engine_without};

fn through(attacked: &[Attacked]) -> Vec<(&'static str, &AttackOutcome)> {
    let through = attacked.iter().filter(|attack| attack.outcome != AttackOutcome::Held);
    through.map(|attack| (attack.name, &attack.outcome)).collect()
}

#[tokio::test]
async fn every_attack_on_the_whole_sandbox_is_fended_off() {
    let engine = engine();
    let began = Instant::now();
    let attacked = engine.attacks().await.unwrap();
    eprintln!("{} attacks, start included, took {:?}", attacked.len(), began.elapsed());
    assert_eq!(through(&attacked), []);
    let began = Instant::now();
    engine.attacks().await.unwrap();
    eprintln!("again {:?}", began.elapsed());
    engine.stop().await;
}

/// Which layer, what is left out beside it so that it stands alone, and which attack shows what it is good for.
const PROOFS: &[(Layer, &[Layer], &str)] = &[
    (Layer::User, &[Layer::Seccomp], "administer"),
    (Layer::Network, &[Layer::Seccomp, Layer::Landlock], "network"),
    (Layer::Processes, &[Layer::Seccomp], "processes"),
    (Layer::Root, &[Layer::Seccomp, Layer::Landlock], "read files"),
    (Layer::Ipc, &[Layer::Seccomp], "shared memory"),
    (Layer::Uts, &[], "host name"),
    (Layer::NoProc, &[Layer::Landlock], "read /proc"),
    (Layer::ReadOnly, &[Layer::Seccomp, Layer::Landlock, Layer::FileSize], "write files"),
    (Layer::Environment, &[], "environment"),
    (Layer::Descriptors, &[], "descriptors"),
    (Layer::NoNewPrivs, &[Layer::Seccomp, Layer::Landlock], "new privileges"),
    (Layer::Dumpable, &[Layer::Seccomp], "peek"),
    (Layer::Landlock, &[Layer::Seccomp, Layer::ReadOnly, Layer::FileSize], "write files"),
    (Layer::Seccomp, &[], "sockets"),
    (Layer::Seccomp, &[], "signals"),
    (Layer::Seccomp, &[], "deadly calls"),
    (Layer::Seccomp, &[], "foreign calls"),
    (Layer::Seccomp, &[Layer::Landlock], "execute"),
    (Layer::Seccomp, &[Layer::ProcessCount], "subprocess"),
    (Layer::Seccomp, &[], "raise limits"),
    (Layer::Seccomp, &[], "files in memory"),
    (Layer::AddressSpace, &[], "memory"),
    (Layer::CpuTime, &[Layer::WallClock], "endless loop, watched patiently"),
    (Layer::FileSize, &[Layer::Seccomp, Layer::Landlock, Layer::ReadOnly], "write files"),
    (Layer::OpenFiles, &[], "open files"),
    (Layer::Core, &[], "core"),
    (Layer::ProcessCount, &[Layer::Seccomp], "fork"),
    (Layer::WallClock, &[Layer::CpuTime], "endless loop"),
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
        Layer::ALL.iter().filter(|layer| !proven.contains(layer)).map(|layer| format!("{layer:?}: no proof")),
    );
    drop(segment);
    for engine in engines.values() {
        engine.stop().await;
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// One engine for each set of layers that is left out.
type Engines = HashMap<BTreeSet<&'static str>, Arc<Engine>>;

async fn outcome(engines: &mut Engines, without: &[Layer], name: &str) -> AttackOutcome {
    let set = without.iter().map(|layer| layer.name()).collect();
    let engine = engines.entry(set).or_insert_with(|| engine_without(without));
    engine.attack(name).await.unwrap().outcome
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
