//! The attacks that the sandbox must hold against before it is trusted. Each is a program like any other, run with short
//! limits; it says itself what it got, and some are judged by how they ended.
//!
//! The same list proves the layers one by one: a test builds the sandbox without the layers in the second column, where the
//! attack must still be fended off, and then also without the layer, where it must get through.
//!
//! | layer | left out beside it | attack |
//! |---|---|---|
//! | user namespace, nobody's identity | seccomp | administer |
//! | network namespace | seccomp, Landlock | network |
//! | process namespace | seccomp | processes |
//! | root folder | seccomp, Landlock | read files |
//! | IPC namespace | seccomp | shared memory |
//! | UTS namespace | nothing | host name |
//! | no `/proc` | Landlock | read /proc |
//! | read-only mounts | seccomp, Landlock, file size | write files |
//! | empty environment | nothing | environment |
//! | descriptors closed | nothing | descriptors |
//! | no new privileges | seccomp, Landlock (neither can be had without it) | new privileges |
//! | not dumpable | seccomp | peek |
//! | Landlock | seccomp, read-only mounts, file size | write files |
//! | seccomp | nothing | sockets, signals, deadly calls, foreign calls, files in memory, raise limits |
//! | seccomp | Landlock | execute |
//! | seccomp | number of processes | subprocess |
//! | address space | nothing | memory |
//! | CPU time | wall clock | endless loop (patient) |
//! | file size | seccomp, Landlock, read-only mounts | write files |
//! | open files | nothing | open files |
//! | core | nothing | core |
//! | number of processes | seccomp | fork |
//! | wall clock | CPU time | endless loop |
//!
//! Two of these are proven by asking the kernel whether they are on, and not by what could be done without them: *no new
//! privileges*, because there is no file in the sandbox that would bring any, and *core*, because there is no place to
//! write one to. The user namespace can only be left out where root builds the sandbox, for nobody else could build any
//! other layer without it.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::session::{self, StopConditions};
use super::zygote::Zygote;
use super::{AttackOutcome, AttackReport};
use crate::program::{ExitReason, Program, ProgramLimits, ProgramOutcome, SandboxUnavailable};

/// Whether the engine under attack stops programs that take too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WallClockLimit {
    Wall,
    None,
}

struct Attack {
    name: &'static str,
    about: &'static str,
    means: AttackMethod,
}

/// How an attack is made and judged.
enum AttackMethod {
    /// It says itself what it got.
    Script(&'static str),
    /// One process for each word, which is put in front as `ONE`; each may be ended for trying.
    Each(&'static str, &'static [&'static str]),
    /// As `Each`, but every one of them must be found out as a lie.
    ForgedFrames(&'static str, &'static [&'static str]),
    /// The first leaves something behind, the second looks for it.
    Pair(&'static str, &'static str),
    /// No more may come back than is allowed.
    Flood(&'static str),
    /// It must be stopped before this long after its time.
    Endless(&'static str, Duration),
}

const PRELUDE: &str = include_str!("attacks/prelude.py");
const AT_ONCE: usize = 4;
const OUTPUT: u64 = 64 << 10;
/// Long enough for a busy machine.
const TIME: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(300);

const DEADLY: &[&str] = &[
    "ptrace",
    "process_vm_writev",
    "mount",
    "umount2",
    "pivot_root",
    "chroot",
    "unshare user",
    "unshare net",
    "setns",
    "bpf",
    "keyctl",
    "add_key",
    "io_uring_setup",
    "userfaultfd",
    "name_to_handle_at",
    "open_by_handle_at",
    "kexec_load",
    "finit_module",
    "perf_event_open",
    "pidfd_getfd",
    "open_tree",
    "fsopen",
    "seccomp",
];

const LIES: &[&str] = &[
    "an old number",
    "a negative number",
    "no object",
    "a long name",
    "another kind",
    "another field",
    "too many",
    "too long",
];

macro_rules! script {
    ($file:literal) => {
        include_str!(concat!("attacks/", $file, ".py"))
    };
}

/// The long ones first, so that they do not hold up the end.
const ATTACKS: &[Attack] = &[
    Attack {
        name: "endless loop",
        about: "calculates for ever where Python cannot be interrupted",
        means: AttackMethod::Endless(script!("endless"), Duration::from_secs(5)),
    },
    Attack {
        name: "endless loop, watched patiently",
        about: "the same, against the limit on CPU time",
        means: AttackMethod::Endless(script!("endless"), Duration::from_secs(20)),
    },
    Attack {
        name: "deadly calls",
        about: "makes system calls that no program needs",
        means: AttackMethod::Each(script!("deadly"), DEADLY),
    },
    Attack {
        name: "lies",
        about: "writes questions on its pipe that no worker asks",
        means: AttackMethod::ForgedFrames(script!("forged"), LIES),
    },
    Attack {
        name: "garbage",
        about: "writes garbage on its pipe",
        means: AttackMethod::ForgedFrames(script!("garbage"), &[""]),
    },
    Attack {
        name: "memory",
        about: "takes more memory than it may",
        means: AttackMethod::Script(script!("memory")),
    },
    Attack {
        name: "output flood",
        about: "prints more than it may",
        means: AttackMethod::Flood(script!("output_flood")),
    },
    Attack {
        name: "raw flood",
        about: "prints past the worker, for ever",
        means: AttackMethod::Flood(script!("raw_flood")),
    },
    Attack {
        name: "other programs' data",
        about: "looks for what an earlier program left behind",
        means: AttackMethod::Pair(script!("plant"), script!("others_data")),
    },
    Attack {
        name: "other programs' pipes",
        about: "hands descriptors over",
        means: AttackMethod::Script(script!("others_pipe")),
    },
    Attack {
        name: "read files",
        about: "reads files of the machine",
        means: AttackMethod::Script(script!("read_files")),
    },
    Attack {
        name: "write files",
        about: "writes, changes and removes files",
        means: AttackMethod::Script(script!("write_files")),
    },
    Attack {
        name: "files in memory",
        about: "makes files that are nowhere",
        means: AttackMethod::Script(script!("memory_files")),
    },
    Attack {
        name: "read /proc",
        about: "looks at processes through /proc",
        means: AttackMethod::Script(script!("read_proc")),
    },
    Attack {
        name: "peek",
        about: "reads the memory of other processes",
        means: AttackMethod::Each(script!("peek"), &[""]),
    },
    Attack {
        name: "network",
        about: "reaches out to the network",
        means: AttackMethod::Script(script!("network")),
    },
    Attack { name: "sockets", about: "makes sockets", means: AttackMethod::Script(script!("sockets")) },
    Attack {
        name: "fork",
        about: "makes processes and threads",
        means: AttackMethod::Script(script!("fork")),
    },
    Attack {
        name: "execute",
        about: "becomes another program",
        means: AttackMethod::Script(script!("execute")),
    },
    Attack {
        name: "subprocess",
        about: "starts commands",
        means: AttackMethod::Script(script!("subprocess_")),
    },
    Attack {
        name: "signals",
        about: "signals other processes",
        means: AttackMethod::Script(script!("signals")),
    },
    Attack {
        name: "foreign calls",
        about: "makes system calls by another door",
        means: AttackMethod::Each(script!("foreign_calls"), &[""]),
    },
    Attack {
        name: "administer",
        about: "does what only root may",
        means: AttackMethod::Script(script!("administer")),
    },
    Attack {
        name: "raise limits",
        about: "raises its own limits",
        means: AttackMethod::Script(script!("raise_limits")),
    },
    Attack {
        name: "open files",
        about: "opens more files than it may",
        means: AttackMethod::Script(script!("open_files")),
    },
    Attack {
        name: "core",
        about: "could leave its memory in a file",
        means: AttackMethod::Script(script!("core")),
    },
    Attack {
        name: "new privileges",
        about: "could gain privileges from a file",
        means: AttackMethod::Script(script!("new_privileges")),
    },
    Attack {
        name: "environment",
        about: "reads the environment",
        means: AttackMethod::Script(script!("environment")),
    },
    Attack {
        name: "descriptors",
        about: "finds descriptors of others",
        means: AttackMethod::Script(script!("descriptors")),
    },
    Attack {
        name: "host name",
        about: "learns the name of the machine",
        means: AttackMethod::Script(script!("host_name")),
    },
    Attack {
        name: "shared memory",
        about: "finds shared memory of others",
        means: AttackMethod::Script(script!("ipc")),
    },
    Attack {
        name: "processes",
        about: "finds other processes",
        means: AttackMethod::Script(script!("processes")),
    },
];

/// Makes every attack and says what came of it.
pub(super) async fn run_all(zygote: &Zygote, clock: WallClockLimit) -> Vec<AttackReport> {
    let made: Vec<_> = ATTACKS.iter().map(|attack| run_attack(zygote, clock, attack).boxed()).collect();
    stream::iter(made).buffered(AT_ONCE).collect().await
}

/// Makes one of them.
pub(super) async fn run_one(zygote: &Zygote, clock: WallClockLimit, name: &str) -> Option<AttackReport> {
    let attack = ATTACKS.iter().find(|attack| attack.name == name)?;
    Some(run_attack(zygote, clock, attack).await)
}

async fn run_attack(zygote: &Zygote, clock: WallClockLimit, attack: &Attack) -> AttackReport {
    let outcome = run_method(zygote, clock, &attack.means).await;
    AttackReport { name: attack.name, about: attack.about, outcome }
}

/// Whether any of them is known to have got through.
pub(super) fn has_escape(attacked: &[AttackReport]) -> bool {
    attacked.iter().any(|attack| matches!(attack.outcome, AttackOutcome::Escaped(_)))
}

/// What is to be said if any of them got through.
pub(super) fn verdict(attacked: &[AttackReport]) -> Option<SandboxUnavailable> {
    let through: Vec<_> = attacked
        .iter()
        .filter_map(|attack| match &attack.outcome {
            AttackOutcome::Held => None,
            AttackOutcome::Escaped(what) => Some(format!("{} ({what})", attack.name)),
            AttackOutcome::Unclear(why) => {
                Some(format!("{}, of which nothing is known ({why})", attack.name))
            }
        })
        .collect();
    (!through.is_empty()).then(|| SandboxUnavailable {
        reason: format!(
            "programs are switched off, because the sandbox did not hold against: {}",
            through.join("; ")
        ),
        suggestion: Some(
            "this kernel does not do what the sandbox needs of it; see the documentation of the sandbox"
                .into(),
        ),
    })
}

async fn run_method(zygote: &Zygote, clock: WallClockLimit, means: &AttackMethod) -> AttackOutcome {
    match means {
        AttackMethod::Script(code) => outcome_from_output(run(zygote, clock, "", code, TIME).await),
        AttackMethod::Each(code, words) => run_variants(zygote, clock, code, words, expect_killed).await,
        AttackMethod::ForgedFrames(code, words) => {
            run_variants(zygote, clock, code, words, expect_protocol_violation).await
        }
        AttackMethod::Pair(first, second) => {
            // One after the other: the second is born of the same process.
            match run(zygote, clock, "", first, TIME).await {
                Some(ProgramOutcome { exit_reason: ExitReason::Finished, .. }) => {
                    outcome_from_output(run(zygote, clock, "", second, TIME).await)
                }
                other => AttackOutcome::Unclear(format!("nothing was planted: {other:?}")),
            }
        }
        AttackMethod::Flood(code) => match run(zygote, clock, "", code, TIME).await {
            Some(ending) if ending.printed.text.len() as u64 > OUTPUT => {
                AttackOutcome::Escaped(format!("{} bytes of output", ending.printed.text.len()))
            }
            Some(ending) if ending.printed.left_out > 0 => AttackOutcome::Held,
            other => AttackOutcome::Unclear(format!("{other:?}")),
        },
        AttackMethod::Endless(code, patience) => {
            match tokio::time::timeout(SHORT + *patience, run(zygote, clock, "", code, SHORT)).await {
                Ok(Some(ProgramOutcome { exit_reason: ExitReason::TimedOut, .. })) => AttackOutcome::Held,
                Ok(Some(ProgramOutcome { exit_reason: ExitReason::Died { .. }, printed, .. }))
                    if printed.text == "trying\n" =>
                {
                    AttackOutcome::Held
                }
                Ok(other) => AttackOutcome::Unclear(format!("{other:?}")),
                Err(_) => AttackOutcome::Escaped("it runs and runs".into()),
            }
        }
    }
}

/// The first of them that gets through decides.
async fn run_variants(
    zygote: &Zygote,
    clock: WallClockLimit,
    code: &str,
    words: &[&str],
    judge: fn(Option<ProgramOutcome>) -> AttackOutcome,
) -> AttackOutcome {
    for word in words {
        let outcome = judge(run(zygote, clock, &format!("ONE = {word:?}\n"), code, TIME).await);
        if outcome != AttackOutcome::Held {
            return outcome;
        }
    }
    AttackOutcome::Held
}

/// What a script says of itself: the last line that it printed.
fn outcome_from_output(ending: Option<ProgramOutcome>) -> AttackOutcome {
    let Some(ending) = ending else { return AttackOutcome::Unclear("it could not be run".into()) };
    let mut lines = ending.printed.text.lines();
    let got = lines.clone().find_map(|line| line.strip_prefix("escaped: "));
    match (got, lines.next_back(), &ending.exit_reason) {
        (Some(got), _, _) => AttackOutcome::Escaped(got.to_owned()),
        (None, Some("held"), ExitReason::Finished) => AttackOutcome::Held,
        _ => AttackOutcome::Unclear(format!("{ending:?}")),
    }
}

/// Those that are ended at the attempt have said that they try.
fn expect_killed(ending: Option<ProgramOutcome>) -> AttackOutcome {
    match &ending {
        Some(ProgramOutcome { exit_reason: ExitReason::Died { .. }, printed, .. })
            if printed.text == "trying\n" =>
        {
            AttackOutcome::Held
        }
        _ => outcome_from_output(ending),
    }
}

fn expect_protocol_violation(ending: Option<ProgramOutcome>) -> AttackOutcome {
    match ending {
        Some(ProgramOutcome { exit_reason: ExitReason::ProtocolViolation { .. }, printed, .. })
            if printed.text == "trying\n" =>
        {
            AttackOutcome::Held
        }
        Some(ProgramOutcome { exit_reason: ExitReason::TimedOut | ExitReason::Finished, .. }) => {
            AttackOutcome::Escaped("it was believed".into())
        }
        other => AttackOutcome::Unclear(format!("{other:?}")),
    }
}

async fn run(
    zygote: &Zygote,
    clock: WallClockLimit,
    before: &str,
    code: &str,
    time: Duration,
) -> Option<ProgramOutcome> {
    let limits = ProgramLimits { time, memory: 96 << 20, output: OUTPUT };
    let code = format!("{PRELUDE}{before}{code}");
    let program = Program { code, bindings: Vec::new(), limits, printed: watch::Sender::default() };
    // Whoever asks is not answered.
    let (asked, _nobody) = mpsc::channel(1024);
    let time = match clock {
        WallClockLimit::Wall => Some(time),
        WallClockLimit::None => None,
    };
    let begun = session::start_worker(zygote, &program.limits).await.ok()?;
    session::run(zygote, begun, program, asked, StopConditions { time, cancel: CancellationToken::new() })
        .await
        .ok()
}
