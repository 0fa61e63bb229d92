//! Tests of process lifetimes: which processes die, which survive, and that nothing is left behind.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolyard_program::{
    AttackOutcome, Engine, EngineSettings, ExitReason, PendingProgramQuestion, ProgramOutcome, ProgramOutput,
};

use super::fixture::{engine, program, run};

fn children(pid: u32) -> BTreeSet<u32> {
    let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) else {
        return BTreeSet::new();
    };
    text.split_ascii_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-9", &pid.to_string()]).status().unwrap().success());
}

fn lives(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Returns the user CPU time of a process, in clock ticks.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    after_name.split(' ').nth(11).map_or(0, |ticks| ticks.parse().unwrap())
}

/// Waits until a condition holds. The timeout is long enough for a busy machine.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the engine is ready and all attack programs have exited. Returns the ID of the
/// zygote.
async fn quiet(engine: &Engine) -> u32 {
    engine.ready().await.unwrap();
    let zygote = engine.pid().unwrap();
    until("the attack programs did not exit", || children(zygote).is_empty()).await;
    zygote
}

/// Starts a program that sends a request and waits for a reply that never comes.
async fn waiting(engine: &Arc<Engine>) -> tokio::task::JoinHandle<ProgramOutcome> {
    let engine = Arc::clone(engine);
    let (sent, received) = oneshot::channel();
    let running = tokio::spawn(async move {
        let (sender, mut questions) = mpsc::channel::<PendingProgramQuestion>(1);
        let run =
            engine.run(program("print('asking')\nawait call_tool('x')"), sender, CancellationToken::new());
        let hold_reply = async {
            // Until the program has exited.
            if let Some(mut question) = questions.recv().await {
                sent.send(()).unwrap();
                question.reply.closed().await;
            }
        };
        tokio::join!(run, hold_reply).0.unwrap()
    });
    received.await.unwrap();
    running
}

fn died(why: &str) -> ProgramOutcome {
    let printed = ProgramOutput { text: "asking\n".into(), left_out: 0 };
    ProgramOutcome::new(ExitReason::Died { why: why.into() }, printed)
}

#[tokio::test]
async fn a_killed_worker_does_not_affect_other_programs() {
    let engine = engine();
    let zygote = quiet(&engine).await;
    let (first, second) = (waiting(&engine).await, waiting(&engine).await);
    assert_eq!(children(zygote).len(), 2);
    kill(*children(zygote).first().unwrap());
    let ending = tokio::select! {
        ending = first => ending.unwrap(),
        ending = second => ending.unwrap(),
    };
    assert_eq!(ending, died("its process was killed"));
    until("the killed worker did not exit", || children(zygote).len() == 1).await;
    assert_eq!(run(&engine, "print(2)").await.unwrap().printed.text, "2\n");
    assert_eq!(engine.pid(), Some(zygote));
    engine.stop().await;
}

/// Stores a word in many locations that another program could read, and waits.
const KEEPS: &str = "
import builtins, json, os, sys
word = 'need' + 'le'
builtins.kept = json.kept = sys.kept = os.kept = [word]
print('keeping', word)
await call_tool('x')
print('kept', word)
";

/// Looks for the word, and for the process that stores it.
const LOOKS: &str = "
import builtins, gc, json, os, sys
found = []
for module in (builtins, json, sys, os):
    if hasattr(module, 'kept'):
        found.append(module.__name__)
word = 'need' + 'le'
if any(isinstance(item, list) and word in [w for w in item if isinstance(w, str)] for item in gc.get_objects()):
    found.append('memory')
for number in range(64):
    try:
        os.fstat(number)
        if number != 3:
            found.append('descriptor %d' % number)
    except OSError:
        pass
for pid in range(1, 200):
    for look in (lambda: os.kill(pid, 0), lambda: open('/proc/%d/mem' % pid, 'rb'), lambda: os.getsid(pid)):
        try:
            look()
            found.append('process %d' % pid)
        except OSError:
            pass
print(found)
";

#[tokio::test]
async fn two_programs_at_once_cannot_see_each_other() {
    let engine = engine();
    let zygote = quiet(&engine).await;
    let (sender, mut questions) = mpsc::channel::<PendingProgramQuestion>(1);
    let keeper = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.run(program(KEEPS), sender, CancellationToken::new()).await })
    };
    let waiting = questions.recv().await.unwrap();
    let search = run(&engine, LOOKS).await.unwrap();
    assert!(!children(zygote).is_empty(), "the program that stores the word exited");
    let printed = |text: &str| ProgramOutput { text: text.into(), left_out: 0 };
    assert_eq!(search, ProgramOutcome::new(ExitReason::Finished, printed("[]\n")));
    waiting
        .reply
        .send(toolyard_program::ProgramReply::Data(toolyard_program::ProgramData::Text(String::new())))
        .unwrap();
    let keeper = keeper.await.unwrap().unwrap();
    assert_eq!(keeper, ProgramOutcome::new(ExitReason::Finished, printed("keeping needle\nkept needle\n")));
    engine.stop().await;
}

#[tokio::test]
async fn a_killed_zygote_is_replaced_for_the_next_program() {
    let engine = engine();
    let zygote = quiet(&engine).await;
    let running = waiting(&engine).await;
    let worker = *children(zygote).first().unwrap();
    kill(zygote);
    assert_eq!(running.await.unwrap(), died("the shared Python process exited"));
    assert_eq!(run(&engine, "print(2)").await.unwrap().printed.text, "2\n");
    assert_ne!(engine.pid(), Some(zygote));
    until("the worker did not exit", || !lives(worker)).await;
    engine.stop().await;
}

#[tokio::test]
async fn dropping_a_run_kills_its_program() {
    let engine = engine();
    let zygote = quiet(&engine).await;
    let (questions, _unanswered) = mpsc::channel(1);
    let run = engine.run(program("while True: pass"), questions.clone(), CancellationToken::new());
    assert!(tokio::time::timeout(Duration::from_millis(300), run).await.is_err());
    until("the worker did not exit", || children(zygote).is_empty()).await;
    // Also runs that are dropped before the process exists.
    for _ in 0..50 {
        let run = engine.run(program("while True: pass"), questions.clone(), CancellationToken::new());
        assert!(tokio::time::timeout(Duration::from_micros(200), run).await.is_err());
    }
    until("some workers did not exit", || children(zygote).is_empty()).await;
    engine.stop().await;
    assert!(!lives(zygote));
}

#[tokio::test]
async fn no_process_survives_when_the_yard_is_killed() {
    let mut host = Command::new(env!("CARGO_BIN_EXE_toolyard-sandbox"))
        .args(["host"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let zygote = {
        use std::io::{BufRead, BufReader};
        let mut line = String::new();
        BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
        line.trim().parse::<u32>().unwrap()
    };
    // Attack programs may still run. In the end, only the endless program is left, and it is busy.
    let alone = || children(zygote).first().copied().filter(|_| children(zygote).len() == 1);
    until("the program did not start", || alone().is_some_and(|worker| ticks(worker) > 10)).await;
    let worker = alone().unwrap();
    let launcher = *children(host.id()).first().unwrap();
    assert!(lives(worker) && lives(zygote) && lives(launcher));
    host.kill().unwrap();
    host.wait().unwrap();
    until("some processes did not exit", || !lives(worker) && !lives(zygote) && !lives(launcher)).await;
}

#[tokio::test]
async fn python_exits_when_the_launcher_is_killed() {
    let engine = engine();
    engine.ready().await.unwrap();
    let zygote = engine.pid().unwrap();
    let stat = fs::read_to_string(format!("/proc/{zygote}/stat")).unwrap();
    let launcher: u32 = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    kill(launcher);
    until("Python did not exit", || !lives(zygote)).await;
    assert_eq!(run(&engine, "print(3)").await.unwrap().printed.text, "3\n");
    engine.stop().await;
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// Returns the resident memory of a process, in kilobytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Runs in a separate process, because descriptors of other tests would be counted too.
#[test]
fn many_programs_leave_nothing_behind() {
    const ALONE: &str = "TOOLYARD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        eprintln!("{}", runtime.block_on(run_many_programs()));
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "programs::living::many_programs_leave_nothing_behind", "--nocapture"]);
    assert!(command.env(ALONE, "1").status().unwrap().success());
}

/// Returns a report of the resources used before and after.
async fn run_many_programs() -> String {
    let rounds = std::env::var("TOOLYARD_PROGRAM_ROUNDS").ok().map_or(200, |rounds| rounds.parse().unwrap());
    let engine = engine();
    let codes =
        ["print(1)", "x = bytearray(10**7)", "1 / 0", "import os; os._exit(3)", "await call_tool('x')"];
    let run_one = async |number: usize| {
        let code = codes[number % codes.len()];
        let ending = run(&engine, code).await.unwrap();
        assert_eq!(
            ending.exit_reason == ExitReason::Finished,
            number % codes.len() < 2,
            "{code}: {ending:?}"
        );
    };
    for number in 0..50 {
        run_one(number).await;
    }
    let (own, zygote) = (std::process::id(), engine.pid().unwrap());
    let now = || (descriptors(own), descriptors(zygote), resident(own), resident(zygote));
    let before = now();
    for number in 0..rounds {
        run_one(number).await;
    }
    until("some workers did not exit", || children(zygote).is_empty()).await;
    until("some descriptors were not closed", || (now().0, now().1) <= (before.0, before.1)).await;
    let after = now();
    assert_eq!(engine.pid(), Some(zygote));
    assert!(after.2 < before.2 + 8192 && after.3 < before.3 + 4096, "{before:?}, then {after:?}");
    engine.stop().await;
    format!(
        "{rounds} programs: descriptors and kilobytes of the test and of Python: {before:?}, then {after:?}"
    )
}

#[tokio::test]
async fn an_ordinary_user_gets_the_same_sandbox() {
    let user_id = Command::new("id").arg("-u").output().unwrap().stdout;
    let folder = std::env::temp_dir().join(format!("toolyard-nobody-{}", std::process::id()));
    let engine = if user_id == b"0\n" { as_nobody(&folder) } else { engine() };
    let reports = engine.run_attacks().await.unwrap();
    let failures: Vec<_> = reports.iter().filter(|report| report.outcome != AttackOutcome::Held).collect();
    assert_eq!(failures, Vec::<&toolyard_program::AttackReport>::new());
    assert_eq!(run(&engine, "import os; print(os.getuid())").await.unwrap().printed.text, "1000\n");
    engine.stop().await;
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
}

/// Returns an engine whose launcher runs as the user `nobody`. That user may not be able to read the
/// build folder, so the launcher is copied.
fn as_nobody(folder: &Path) -> Arc<Engine> {
    fs::create_dir(folder).unwrap();
    let launcher = folder.join("toolyard-sandbox");
    fs::copy(env!("CARGO_BIN_EXE_toolyard-sandbox"), &launcher).unwrap();
    let as_nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let launcher = as_nobody.map(Into::into).into_iter().chain([launcher.into()]).collect();
    Engine::new(EngineSettings { launcher, python: Some("/usr/bin/python3".into()), without: Vec::new() })
}
