//! The attacks that the sandbox must withstand before it is trusted. Each attack is an ordinary
//! program with short limits. Most report what they achieved; some are judged by how they ended.
//!
//! The same list proves each layer. A test builds the sandbox without the layers in the second
//! column, where the attack must still fail, and then without the layer as well, where the attack
//! must succeed.
//!
//! | layer | also omitted | attack |
//! |---|---|---|
//! | user namespace, the user `nobody` | seccomp | administer |
//! | network namespace | seccomp, Landlock | network |
//! | process namespace | seccomp | processes |
//! | root folder | seccomp, Landlock | read files |
//! | IPC namespace | seccomp | shared memory |
//! | UTS namespace | none | host name |
//! | no `/proc` | Landlock | read /proc |
//! | read-only mounts | seccomp, Landlock, file size | write files |
//! | empty environment | none | environment |
//! | descriptors closed | none | descriptors |
//! | no new privileges | seccomp, Landlock (both require it) | new privileges |
//! | not dumpable | seccomp | peek |
//! | Landlock | seccomp, read-only mounts, file size | write files |
//! | seccomp | none | sockets, signals, deadly calls, foreign calls, files in memory, raise limits |
//! | seccomp | Landlock | execute |
//! | seccomp | number of processes | subprocess |
//! | address space | none | memory |
//! | CPU time | wall clock | endless loop, watched patiently |
//! | file size | seccomp, Landlock, read-only mounts | write files |
//! | open files | none | open files |
//! | core | none | core |
//! | number of processes | seccomp | fork |
//! | wall clock | CPU time | endless loop |
//!
//! Two layers are proven by querying the kernel instead of by an effect: *no new privileges*,
//! because no file in the sandbox grants privileges, and *core*, because no folder in the sandbox
//! is writable. The user namespace can be omitted only if root builds the sandbox; other users need
//! it to build any other layer.

use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::session::{self, StopConditions};
use super::zygote::Zygote;
use super::{AttackOutcome, AttackReport};
use crate::program::{ExitReason, Program, ProgramLimits, ProgramOutcome, SandboxUnavailable};

/// Whether the engine under attack enforces the wall-clock limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WallClockLimit {
    Wall,
    None,
}

struct Attack {
    name: &'static str,
    about: &'static str,
    method: AttackMethod,
}

/// How an attack is run and judged.
enum AttackMethod {
    /// The script reports what it achieved.
    Script(&'static str),
    /// Runs one process for each variant, which is available as `ONE`. The kernel may kill each
    /// process for its attempt.
    Each(&'static str, &'static [&'static str]),
    /// Like `Each`, but every variant must be detected as a protocol violation.
    ForgedFrames(&'static str, &'static [&'static str]),
    /// The first script leaves data behind, the second looks for it.
    Pair(&'static str, &'static str),
    /// The output must not exceed its limit.
    Flood(&'static str),
    /// The program must be stopped at most this long after its time limit.
    Endless(&'static str, Duration),
}

const PRELUDE: &str = include_str!("attacks/prelude.py");
/// The number of attacks that run concurrently.
const CONCURRENCY: usize = 4;
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

const FORGERIES: &[&str] = &[
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

/// Long attacks come first, so that they do not delay the end.
const ATTACKS: &[Attack] = &[
    Attack {
        name: "endless loop",
        about: "computes forever where Python cannot be interrupted",
        method: AttackMethod::Endless(script!("endless"), Duration::from_secs(5)),
    },
    Attack {
        name: "endless loop, watched patiently",
        about: "computes forever, against the CPU time limit",
        method: AttackMethod::Endless(script!("endless"), Duration::from_secs(20)),
    },
    Attack {
        name: "deadly calls",
        about: "makes system calls that no program needs",
        method: AttackMethod::Each(script!("deadly"), DEADLY),
    },
    Attack {
        name: "lies",
        about: "writes requests to its pipe that the worker never sends",
        method: AttackMethod::ForgedFrames(script!("forged"), FORGERIES),
    },
    Attack {
        name: "garbage",
        about: "writes garbage to its pipe",
        method: AttackMethod::ForgedFrames(script!("garbage"), &[""]),
    },
    Attack {
        name: "memory",
        about: "allocates more memory than allowed",
        method: AttackMethod::Script(script!("memory")),
    },
    Attack {
        name: "output flood",
        about: "prints more than allowed",
        method: AttackMethod::Flood(script!("output_flood")),
    },
    Attack {
        name: "raw flood",
        about: "bypasses the worker and prints forever",
        method: AttackMethod::Flood(script!("raw_flood")),
    },
    Attack {
        name: "other programs' data",
        about: "looks for data of an earlier program",
        method: AttackMethod::Pair(script!("plant"), script!("others_data")),
    },
    Attack {
        name: "other programs' pipes",
        about: "passes descriptors to other processes",
        method: AttackMethod::Script(script!("others_pipe")),
    },
    Attack {
        name: "read files",
        about: "reads files of the machine",
        method: AttackMethod::Script(script!("read_files")),
    },
    Attack {
        name: "write files",
        about: "creates, changes and removes files",
        method: AttackMethod::Script(script!("write_files")),
    },
    Attack {
        name: "files in memory",
        about: "creates anonymous files, pipes and counters",
        method: AttackMethod::Script(script!("memory_files")),
    },
    Attack {
        name: "read /proc",
        about: "inspects processes through /proc",
        method: AttackMethod::Script(script!("read_proc")),
    },
    Attack {
        name: "peek",
        about: "reads the memory of other processes",
        method: AttackMethod::Each(script!("peek"), &[""]),
    },
    Attack {
        name: "network",
        about: "connects to the network",
        method: AttackMethod::Script(script!("network")),
    },
    Attack { name: "sockets", about: "creates sockets", method: AttackMethod::Script(script!("sockets")) },
    Attack {
        name: "fork",
        about: "creates processes and threads",
        method: AttackMethod::Script(script!("fork")),
    },
    Attack {
        name: "execute",
        about: "executes another program",
        method: AttackMethod::Script(script!("execute")),
    },
    Attack {
        name: "subprocess",
        about: "runs commands",
        method: AttackMethod::Script(script!("subprocess_")),
    },
    Attack {
        name: "signals",
        about: "signals other processes",
        method: AttackMethod::Script(script!("signals")),
    },
    Attack {
        name: "foreign calls",
        about: "makes system calls through the x32 and 32-bit interfaces",
        method: AttackMethod::Each(script!("foreign_calls"), &[""]),
    },
    Attack {
        name: "administer",
        about: "does what only root may do",
        method: AttackMethod::Script(script!("administer")),
    },
    Attack {
        name: "raise limits",
        about: "raises its own limits",
        method: AttackMethod::Script(script!("raise_limits")),
    },
    Attack {
        name: "open files",
        about: "opens more files than allowed",
        method: AttackMethod::Script(script!("open_files")),
    },
    Attack {
        name: "core",
        about: "leaves its memory in a core file",
        method: AttackMethod::Script(script!("core")),
    },
    Attack {
        name: "new privileges",
        about: "gains privileges from an executable file",
        method: AttackMethod::Script(script!("new_privileges")),
    },
    Attack {
        name: "environment",
        about: "reads the environment",
        method: AttackMethod::Script(script!("environment")),
    },
    Attack {
        name: "descriptors",
        about: "finds descriptors of other processes",
        method: AttackMethod::Script(script!("descriptors")),
    },
    Attack {
        name: "host name",
        about: "reads the host name",
        method: AttackMethod::Script(script!("host_name")),
    },
    Attack {
        name: "shared memory",
        about: "finds shared memory of other processes",
        method: AttackMethod::Script(script!("ipc")),
    },
    Attack {
        name: "processes",
        about: "finds other processes",
        method: AttackMethod::Script(script!("processes")),
    },
];

/// Runs all attacks and reports the results.
pub(super) async fn run_all(zygote: &Zygote, clock: WallClockLimit) -> Vec<AttackReport> {
    let runs: Vec<_> = ATTACKS.iter().map(|attack| run_attack(zygote, clock, attack).boxed()).collect();
    stream::iter(runs).buffered(CONCURRENCY).collect().await
}

/// Runs one attack, selected by name.
pub(super) async fn run_one(zygote: &Zygote, clock: WallClockLimit, name: &str) -> Option<AttackReport> {
    let attack = ATTACKS.iter().find(|attack| attack.name == name)?;
    Some(run_attack(zygote, clock, attack).await)
}

async fn run_attack(zygote: &Zygote, clock: WallClockLimit, attack: &Attack) -> AttackReport {
    let outcome = run_method(zygote, clock, &attack.method).await;
    AttackReport { name: attack.name, about: attack.about, outcome }
}

/// Returns whether any attack is known to have succeeded.
pub(super) fn has_escape(reports: &[AttackReport]) -> bool {
    reports.iter().any(|report| matches!(report.outcome, AttackOutcome::Escaped(_)))
}

/// Returns the reason why programs are disabled, if the sandbox did not withstand all attacks.
pub(super) fn verdict(reports: &[AttackReport]) -> Option<SandboxUnavailable> {
    let failures: Vec<_> = reports
        .iter()
        .filter_map(|report| match &report.outcome {
            AttackOutcome::Held => None,
            AttackOutcome::Escaped(what) => Some(format!("{} ({what})", report.name)),
            AttackOutcome::Unclear(why) => Some(format!("{} (inconclusive: {why})", report.name)),
        })
        .collect();
    (!failures.is_empty()).then(|| SandboxUnavailable {
        reason: format!(
            "programs are disabled because the sandbox did not withstand these attacks: {}",
            failures.join("; ")
        ),
        suggestion: Some(
            "this kernel does not provide what the sandbox needs; see the documentation of the sandbox"
                .into(),
        ),
    })
}

async fn run_method(zygote: &Zygote, clock: WallClockLimit, method: &AttackMethod) -> AttackOutcome {
    match method {
        AttackMethod::Script(code) => outcome_from_output(run(zygote, clock, "", code, TIME).await),
        AttackMethod::Each(code, variants) => {
            run_variants(zygote, clock, code, variants, expect_killed).await
        }
        AttackMethod::ForgedFrames(code, variants) => {
            run_variants(zygote, clock, code, variants, expect_protocol_violation).await
        }
        AttackMethod::Pair(first, second) => {
            // In sequence: the second is forked from the same process after the first ended.
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
                Err(_) => AttackOutcome::Escaped("it was not stopped".into()),
            }
        }
    }
}

/// Runs all variants. Returns the outcome of the first that does not fail as expected.
async fn run_variants(
    zygote: &Zygote,
    clock: WallClockLimit,
    code: &str,
    variants: &[&str],
    judge: fn(Option<ProgramOutcome>) -> AttackOutcome,
) -> AttackOutcome {
    for variant in variants {
        let outcome = judge(run(zygote, clock, &format!("ONE = {variant:?}\n"), code, TIME).await);
        if outcome != AttackOutcome::Held {
            return outcome;
        }
    }
    AttackOutcome::Held
}

/// Reads the outcome that a script prints.
fn outcome_from_output(ending: Option<ProgramOutcome>) -> AttackOutcome {
    let Some(ending) = ending else { return AttackOutcome::Unclear("it could not be run".into()) };
    let mut lines = ending.printed.text.lines();
    let escape = lines.clone().find_map(|line| line.strip_prefix("escaped: "));
    match (escape, lines.next_back(), &ending.exit_reason) {
        (Some(escape), _, _) => AttackOutcome::Escaped(escape.to_owned()),
        (None, Some("held"), ExitReason::Finished) => AttackOutcome::Held,
        _ => AttackOutcome::Unclear(format!("{ending:?}")),
    }
}

/// Accepts a program that was killed during its attempt, after printing `trying`.
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
            AttackOutcome::Escaped("the frame was accepted".into())
        }
        other => AttackOutcome::Unclear(format!("{other:?}")),
    }
}

async fn run(
    zygote: &Zygote,
    clock: WallClockLimit,
    header: &str,
    code: &str,
    time: Duration,
) -> Option<ProgramOutcome> {
    let limits = ProgramLimits { time, memory: 96 << 20, output: OUTPUT };
    let code = format!("{PRELUDE}{header}{code}");
    let program = Program { code, bindings: Vec::new(), limits, printed: watch::Sender::default() };
    // Requests of the program are never answered.
    let (questions, _unanswered) = mpsc::channel(1024);
    let time = match clock {
        WallClockLimit::Wall => Some(time),
        WallClockLimit::None => None,
    };
    let worker = session::start_worker(zygote, &program.limits).await.ok()?;
    let stops = StopConditions { time, cancel: CancellationToken::new() };
    session::run(zygote, worker, program, questions, stops).await.ok()
}
