//! Processes: who is killed, who goes on, and that nothing is left over.

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

/// The time that a process has worked itself, in the system's hundredths of a second.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    after_name.split(' ').nth(11).map_or(0, |ticks| ticks.parse().unwrap())
}

/// Waits until something is so, for as long as a busy machine may take.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The Python process of an engine that is ready, once the programs that attacked it are gone too.
async fn quiet(engine: &Engine) -> u32 {
    engine.ready().await.unwrap();
    let zygote = engine.pid().unwrap();
    until("the attackers to go", || children(zygote).is_empty()).await;
    zygote
}

/// A program that has asked and waits for an answer that never comes.
async fn waiting(engine: &Arc<Engine>) -> tokio::task::JoinHandle<ProgramOutcome> {
    let engine = Arc::clone(engine);
    let (has_asked, heard) = oneshot::channel();
    let flying = tokio::spawn(async move {
        let (asked, mut questions) = mpsc::channel::<PendingProgramQuestion>(1);
        let run =
            engine.run(program("print('asking')\nawait call_tool('x')"), asked, CancellationToken::new());
        let kept = async {
            let asked = questions.recv().await;
            // Until the program is gone.
            if let Some(mut asked) = asked {
                has_asked.send(()).unwrap();
                asked.reply.closed().await;
            }
        };
        tokio::join!(run, kept).0.unwrap()
    });
    heard.await.unwrap();
    flying
}

fn died(why: &str) -> ProgramOutcome {
    let printed = ProgramOutput { text: "asking\n".into(), left_out: 0 };
    ProgramOutcome::new(ExitReason::Died { why: why.into() }, printed)
}

#[tokio::test]
async fn a_worker_that_is_killed_hurts_nobody_else() {
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
    until("only the other to be there", || children(zygote).len() == 1).await;
    assert_eq!(run(&engine, "print(2)").await.unwrap().printed.text, "2\n");
    assert_eq!(engine.pid(), Some(zygote));
    engine.stop().await;
}

/// Keeps a word in every place that another program could look at, and waits.
const KEEPS: &str = "
import builtins, json, os, sys
word = 'need' + 'le'
builtins.kept = json.kept = sys.kept = os.kept = [word]
print('keeping', word)
await call_tool('x')
print('kept', word)
";

/// Looks for the word, and for the one who keeps it.
const LOOKS: &str = "
import builtins, gc, json, os, sys
found = []
for place in (builtins, json, sys, os):
    if hasattr(place, 'kept'):
        found.append(place.__name__)
wanted = 'need' + 'le'
if any(isinstance(one, list) and wanted in [w for w in one if isinstance(w, str)] for one in gc.get_objects()):
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
    let (asked, mut questions) = mpsc::channel::<PendingProgramQuestion>(1);
    let keeper = {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move { engine.run(program(KEEPS), asked, CancellationToken::new()).await })
    };
    let waiting = questions.recv().await.unwrap();
    let looked = run(&engine, LOOKS).await.unwrap();
    assert!(!children(zygote).is_empty(), "the one who keeps it is there all the time");
    let printed = |text: &str| ProgramOutput { text: text.into(), left_out: 0 };
    assert_eq!(looked, ProgramOutcome::new(ExitReason::Finished, printed("[]\n")));
    waiting
        .reply
        .send(toolyard_program::ProgramReply::Data(toolyard_program::ProgramData::Text(String::new())))
        .unwrap();
    let kept = keeper.await.unwrap().unwrap();
    assert_eq!(kept, ProgramOutcome::new(ExitReason::Finished, printed("keeping needle\nkept needle\n")));
    engine.stop().await;
}

#[tokio::test]
async fn after_the_zygote_was_killed_the_next_program_has_another_one() {
    let engine = engine();
    let zygote = quiet(&engine).await;
    let flying = waiting(&engine).await;
    let worker = *children(zygote).first().unwrap();
    kill(zygote);
    assert_eq!(flying.await.unwrap(), died("the Python process of all programs is gone"));
    assert_eq!(run(&engine, "print(2)").await.unwrap().printed.text, "2\n");
    assert_ne!(engine.pid(), Some(zygote));
    until("the worker to go", || !lives(worker)).await;
    engine.stop().await;
}

#[tokio::test]
async fn dropping_a_run_kills_its_program() {
    let engine = engine();
    let zygote = quiet(&engine).await;
    let (asked, _nobody) = mpsc::channel(1);
    let run = engine.run(program("while True: pass"), asked.clone(), CancellationToken::new());
    assert!(tokio::time::timeout(Duration::from_millis(300), run).await.is_err());
    until("the worker to go", || children(zygote).is_empty()).await;
    // Also one that was dropped before it was born.
    for _ in 0..50 {
        let run = engine.run(program("while True: pass"), asked.clone(), CancellationToken::new());
        assert!(tokio::time::timeout(Duration::from_micros(200), run).await.is_err());
    }
    until("all workers to go", || children(zygote).is_empty()).await;
    engine.stop().await;
    assert!(!lives(zygote));
}

#[tokio::test]
async fn when_the_yard_is_killed_nothing_of_it_lives_on() {
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
    // Programs that attacked it may still be there; the one that never ends is alone in the end, and busy.
    let alone = || children(zygote).first().copied().filter(|_| children(zygote).len() == 1);
    until("the program to run", || alone().is_some_and(|worker| ticks(worker) > 10)).await;
    let worker = alone().unwrap();
    let launcher = *children(host.id()).first().unwrap();
    assert!(lives(worker) && lives(zygote) && lives(launcher));
    host.kill().unwrap();
    host.wait().unwrap();
    until("everything to go", || !lives(worker) && !lives(zygote) && !lives(launcher)).await;
}

#[tokio::test]
async fn when_the_launcher_is_killed_python_goes_with_it() {
    let engine = engine();
    engine.ready().await.unwrap();
    let zygote = engine.pid().unwrap();
    let stat = fs::read_to_string(format!("/proc/{zygote}/stat")).unwrap();
    let launcher: u32 = stat.rsplit(") ").next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    kill(launcher);
    until("Python to go", || !lives(zygote)).await;
    assert_eq!(run(&engine, "print(3)").await.unwrap().printed.text, "3\n");
    engine.stop().await;
}

fn descriptors(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// In kilobytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

/// In a process of its own: what other tests open and close would be counted too.
#[test]
fn many_programs_leave_nothing_behind() {
    const ALONE: &str = "TOOLYARD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        eprintln!("{}", runtime.block_on(run_many_programs()));
        return;
    }
    let mut itself = Command::new(std::env::current_exe().unwrap());
    itself.args(["--exact", "programs::living::many_programs_leave_nothing_behind", "--nocapture"]);
    assert!(itself.env(ALONE, "1").status().unwrap().success());
}

/// Says what was used before and after.
async fn run_many_programs() -> String {
    let rounds = std::env::var("TOOLYARD_PROGRAM_ROUNDS").ok().map_or(200, |rounds| rounds.parse().unwrap());
    let engine = engine();
    let codes =
        ["print(1)", "x = bytearray(10**7)", "1 / 0", "import os; os._exit(3)", "await call_tool('x')"];
    let one = async |number: usize| {
        let code = codes[number % codes.len()];
        let ending = run(&engine, code).await.unwrap();
        assert_eq!(
            ending.exit_reason == ExitReason::Finished,
            number % codes.len() < 2,
            "{code}: {ending:?}"
        );
    };
    for number in 0..50 {
        one(number).await;
    }
    let (own, zygote) = (std::process::id(), engine.pid().unwrap());
    let now = || (descriptors(own), descriptors(zygote), resident(own), resident(zygote));
    let before = now();
    for number in 0..rounds {
        one(number).await;
    }
    until("all workers to go", || children(zygote).is_empty()).await;
    until("the last descriptor to go", || (now().0, now().1) <= (before.0, before.1)).await;
    let after = now();
    assert_eq!(engine.pid(), Some(zygote));
    assert!(after.2 < before.2 + 8192 && after.3 < before.3 + 4096, "{before:?}, then {after:?}");
    engine.stop().await;
    format!("{rounds} programs: descriptors and kilobytes, ours and Python's: {before:?}, then {after:?}")
}

#[tokio::test]
async fn an_ordinary_user_gets_the_same_sandbox() {
    let me = Command::new("id").arg("-u").output().unwrap().stdout;
    let folder = std::env::temp_dir().join(format!("toolyard-nobody-{}", std::process::id()));
    let engine = if me == b"0\n" { as_nobody(&folder) } else { engine() };
    let attacked = engine.run_attacks().await.unwrap();
    let through: Vec<_> = attacked.iter().filter(|attack| attack.outcome != AttackOutcome::Held).collect();
    assert_eq!(through, Vec::<&toolyard_program::AttackReport>::new());
    assert_eq!(run(&engine, "import os; print(os.getuid())").await.unwrap().printed.text, "1000\n");
    engine.stop().await;
    if folder.exists() {
        fs::remove_dir_all(folder).unwrap();
    }
}

/// The launcher in the hands of nobody, who can read neither root's folders nor perhaps the folder it was built in.
fn as_nobody(folder: &Path) -> Arc<Engine> {
    fs::create_dir(folder).unwrap();
    let launcher = folder.join("toolyard-sandbox");
    fs::copy(env!("CARGO_BIN_EXE_toolyard-sandbox"), &launcher).unwrap();
    let nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let words = nobody.map(Into::into).into_iter().chain([launcher.into()]).collect();
    Engine::new(EngineSettings {
        launcher: words,
        python: Some("/usr/bin/python3".into()),
        without: Vec::new(),
    })
}
