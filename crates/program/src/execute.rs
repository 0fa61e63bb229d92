//! `execute_program`: one script from its text to the answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use toolyard_hub::json::to_raw;
use toolyard_hub::{ErrorKind, HubError, Outcome, Quota};

use crate::broker::Broker;
use crate::program::{
    ExitReason, LastValue, Program, ProgramLimits, ProgramOutcome, ProgramOutput, SandboxUnavailable,
    UnawaitedCall, UnfinishedReason, UnfinishedTask,
};
use crate::source::ProgramSource;

/// Longer scripts are refused: nobody writes them.
const LONGEST_CODE: usize = 1 << 20;
/// Questions of a program that wait to be read.
const QUEUE: usize = 16;
/// What is kept back of the caller's time to say how it ended.
const MARGIN: Duration = Duration::from_millis(500);

/// Under this key the result's `_meta` says how the program ended.
pub const META: &str = "dev.toolyard/program";
/// How the line begins that says that a program printed nothing.
pub const NOTHING_PRINTED: &str = "[Nothing was printed]";

#[derive(Debug, Deserialize)]
pub(crate) struct ExecuteArguments {
    code: String,
    timeout_ms: Option<u64>,
}

impl ExecuteArguments {
    /// The time that it gets, of what its caller still has.
    fn time_limit(&self, most: Duration, left: Duration) -> Duration {
        let wanted = self.timeout_ms.map_or(most, Duration::from_millis);
        wanted.min(most).min(left.saturating_sub(MARGIN).max(left / 2))
    }
}

impl ProgramSource {
    pub(crate) async fn execute(&self, order: ExecuteArguments, broker: Broker) -> Result<Outcome, HubError> {
        if order.code.len() > LONGEST_CODE {
            let message = format!("a script of {} bytes; {LONGEST_CODE} are allowed", order.code.len());
            return Err(HubError::new(ErrorKind::TooLarge, message));
        }
        // Held while it waits and while it runs.
        let _charge = broker.yard.charge(&broker.caller.record.principal, Quota::Programs, 1)?;
        let (deadline, most) = (broker.caller.deadline.clone(), self.settings.time);
        // Those that wait are let in one after the other.
        let waiting = self.slots.acquire(&broker.caller.record.principal);
        let slot = tokio::time::timeout(order.time_limit(most, deadline.remaining()), waiting).await;
        let Ok(Ok(_slot)) = slot else {
            let message = format!(
                "the program did not start in its time: {} run at once, {} of one principal",
                self.settings.programs,
                self.slots.per_principal_limit()
            );
            return Err(HubError::new(ErrorKind::TimedOut, message).with_suggestion("try again later"));
        };
        let limits = ProgramLimits {
            time: order.time_limit(most, deadline.remaining()),
            memory: self.settings.memory,
            output: self.settings.output,
        };
        let program = Program {
            bindings: broker.bindings(&order.code),
            code: order.code,
            limits: limits.clone(),
            printed: self.followed.lock().take().unwrap_or_default(),
        };
        let (asked, asking) = mpsc::channel(QUEUE);
        let cancel = broker.caller.cancel.clone();
        let broker = Arc::new(broker);
        // However it ends, what it still asks for ends with it; what it said before is heard.
        let running = async {
            let ended = self.engine.run(program, asked, cancel).await;
            broker.ended.cancel();
            ended
        };
        let (ended, ()) = tokio::join!(running, Arc::clone(&broker).serve(asking));
        Ok(match ended {
            Ok(ending) => render_outcome(&ending, &limits),
            Err(unavailable) => unavailable_outcome(&unavailable),
        })
    }
}

/// What is said of a program that has ended.
fn render_outcome(ending: &ProgramOutcome, limits: &ProgramLimits) -> Outcome {
    let (word, trouble) = match &ending.exit_reason {
        ExitReason::Finished => ("succeeded", None),
        ExitReason::Unfinished => ("unfinished", None),
        ExitReason::Raised { traceback } => ("raised", Some(traceback.trim_end().to_owned())),
        ExitReason::TimedOut => {
            let time = limits.time.as_secs_f64();
            (
                "timed_out",
                Some(format!(
                    "TimeoutError: the program was stopped after {time} s, which is all that it may take"
                )),
            )
        }
        ExitReason::OutOfMemory => {
            let memory = limits.memory >> 20;
            (
                "out_of_memory",
                Some(format!("MemoryError: the program needed more than the {memory} MB that it may use")),
            )
        }
        ExitReason::Died { why } => ("died", Some(format!("The program was stopped: {why}"))),
        ExitReason::ProtocolViolation { why } => {
            ("broke", Some(format!("The program was stopped, because it broke the rules: {why}")))
        }
    };
    let failed = ending.exit_reason != ExitReason::Finished;
    let header = if failed { "[Script failed]" } else { "[Script executed successfully]" };
    // An empty line is something, too.
    let silent = ending.printed == ProgramOutput::default();
    let value = ending.value.as_ref().filter(|_| silent && !failed);
    let printed = match (silent, value, failed) {
        (false, ..) => render_output(&ending.printed, limits),
        (true, Some(value), _) => render_last_value(value, limits),
        (true, None, false) => format!("{NOTHING_PRINTED} Use print(...) to show what you need"),
        (true, None, true) => NOTHING_PRINTED.to_owned(),
    };
    let unfinished = ending.unfinished.iter().map(render_unfinished);
    let unawaited = ending.unawaited.iter().map(render_unawaited);
    let pieces = [Some(header.to_owned()), Some(printed), trouble].into_iter().flatten();
    let text = pieces.chain(unfinished).chain(unawaited).collect::<Vec<_>>().join("\n");
    let mut body = json!({"content": [{"type": "text", "text": text}]});
    if failed {
        body["isError"] = json!(true);
    }
    // What was printed is in the text already; whoever wants it alone needs only know how long it is.
    let ProgramOutput { text, left_out } = &ending.printed;
    let mut meta = json!({"ended": word, "printed": text.len(), "leftOut": left_out});
    if let Some(value) = value {
        meta["value"] = json!(value.text.len());
    }
    body["_meta"] = json!({META: meta});
    if failed { Outcome::failure(to_raw(&body)) } else { Outcome::success(to_raw(&body)) }
}

/// What the last line came to, on lines of its own.
fn render_last_value(value: &LastValue, limits: &ProgramLimits) -> String {
    let shown = format!("{NOTHING_PRINTED} The value of the last expression:\n{}", value.text);
    if value.left_out == 0 {
        return shown;
    }
    format!("{shown}\n[Output cut: {} more bytes; a program may print {}]", value.left_out, limits.output)
}

fn render_unfinished(UnfinishedTask { call, line, at, why }: &UnfinishedTask) -> String {
    let made = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let at = at.filter(|at| Some(*at) != *line);
    let waits = |before: &str| at.map(|at| format!("{before}in line {at}")).unwrap_or_default();
    let why = match why {
        UnfinishedReason::Running => {
            format!("was still running when the time was up{}", waits("; it waits "))
        }
        UnfinishedReason::Stuck => format!(
            "waits for something that never happens{}; await it, or cancel it before the program ends",
            waits(", ")
        ),
        UnfinishedReason::Cancelled => {
            "was cancelled, because the program failed before it finished".to_owned()
        }
    };
    format!("[Not finished] {made}{call}(...) {why}")
}

fn render_unawaited(UnawaitedCall { call, line }: &UnawaitedCall) -> String {
    format!(
        "[Not awaited] line {line}: {call}(...) was not called, because nobody awaited it; write `await` before it"
    )
}

/// What was printed, without the end of its last line, and marked where something is missing.
fn render_output(printed: &ProgramOutput, limits: &ProgramLimits) -> String {
    let text = printed.text.strip_suffix('\n').unwrap_or(&printed.text);
    if printed.left_out == 0 {
        return text.to_owned();
    }
    let (more, most) = (printed.left_out, limits.output);
    format!("{text}\n[Output cut: {more} more bytes were printed; a program may print {most}]")
}

/// There is no way to run programs here.
fn unavailable_outcome(unavailable: &SandboxUnavailable) -> Outcome {
    let SandboxUnavailable { reason, suggestion } = unavailable;
    let mut text = format!("[Script not executed] Programs cannot be run here: {reason}");
    if let Some(suggestion) = suggestion {
        text.push_str(&format!("\n{suggestion}"));
    }
    let meta = json!({META: {"ended": "unavailable", "printed": 0, "leftOut": 0}});
    Outcome::failure(to_raw(
        &json!({"content": [{"type": "text", "text": text}], "isError": true, "_meta": meta}),
    ))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::Value;

    use super::{ExecuteArguments, render_outcome, unavailable_outcome};
    use crate::program::{
        ExitReason, ProgramLimits, ProgramOutcome, ProgramOutput, SandboxUnavailable, UnawaitedCall,
    };

    fn told(how: ExitReason, text: &str, left_out: u64) -> String {
        let limits = ProgramLimits { time: Duration::from_millis(2_500), memory: 512 << 20, output: 10 };
        let printed = ProgramOutput { text: text.to_owned(), left_out };
        told_of(&ProgramOutcome::new(how, printed), &limits)
    }

    fn told_of(ending: &ProgramOutcome, limits: &ProgramLimits) -> String {
        let outcome = render_outcome(ending, limits);
        let body: Value = serde_json::from_str(outcome.body.get()).unwrap();
        assert_eq!(body["isError"] == true, outcome.failed);
        format!("{}\n{}", body["content"][0]["text"].as_str().unwrap(), body["_meta"])
    }

    #[test]
    fn every_end_has_its_words() {
        let traceback = "Traceback (most recent call last):\n  File \"program\", line 2\nKeyError: 'x'\n";
        let all = [
            told(ExitReason::Finished, "170000000000\n165300000000\n", 0),
            told(ExitReason::Finished, "", 0),
            told(ExitReason::Finished, "no newline", 0),
            told(ExitReason::Finished, "\n\n", 0),
            told(ExitReason::Finished, "\n", 0),
            told(ExitReason::Raised { traceback: traceback.to_owned() }, "\n", 0),
            told(ExitReason::Finished, "0123456789", 90),
            told(ExitReason::Raised { traceback: traceback.to_owned() }, "before\n", 0),
            told(ExitReason::Raised { traceback: traceback.to_owned() }, "", 0),
            told(ExitReason::TimedOut, "before\n", 0),
            told(ExitReason::OutOfMemory, "", 0),
            told(ExitReason::Died { why: "it was killed by signal 31".to_owned() }, "", 0),
            told(ExitReason::ProtocolViolation { why: "a message that is no JSON".to_owned() }, "", 0),
        ];
        insta::assert_snapshot!(all.join("\n----\n"));
    }

    #[test]
    fn calls_that_nobody_awaited_are_named_after_what_was_printed() {
        let limits = ProgramLimits { time: Duration::from_secs(1), memory: 512 << 20, output: 100 };
        let forgotten = |call: &str, line: u64| UnawaitedCall { call: call.to_owned(), line };
        let ending = |how: ExitReason, text: &str| ProgramOutcome {
            printed: ProgramOutput { text: text.to_owned(), left_out: 0 },
            unawaited: vec![forgotten("mcp__shop__buy", 3), forgotten("echo", 7)],
            ..ProgramOutcome::new(how, ProgramOutput::default())
        };
        let all = [
            told_of(&ending(ExitReason::Finished, "done\n"), &limits),
            told_of(&ending(ExitReason::Finished, ""), &limits),
            told_of(
                &ending(ExitReason::Raised { traceback: "ValueError: x\n".to_owned() }, "done\n"),
                &limits,
            ),
        ];
        insta::assert_snapshot!(all.join("\n----\n"));
    }

    #[test]
    fn where_programs_cannot_run_the_answer_says_why_and_what_to_do() {
        let suggestion = Some("install python3".to_owned());
        let outcome =
            unavailable_outcome(&SandboxUnavailable { reason: "there is no python3".to_owned(), suggestion });
        assert!(outcome.failed);
        let body: Value = serde_json::from_str(outcome.body.get()).unwrap();
        assert_eq!(
            body["content"][0]["text"],
            "[Script not executed] Programs cannot be run here: there is no python3\ninstall python3"
        );
    }

    #[test]
    fn a_program_gets_no_more_time_than_its_caller_has() {
        let (most, second) = (Duration::from_secs(300), Duration::from_secs(1));
        let time =
            |timeout_ms, left| ExecuteArguments { code: String::new(), timeout_ms }.time_limit(most, left);
        assert_eq!(time(None, 1_000 * second), most);
        assert_eq!(time(Some(1_500), 1_000 * second), Duration::from_millis(1_500));
        assert_eq!(time(Some(9_000_000), 1_000 * second), most);
        assert_eq!(time(None, 10 * second), Duration::from_millis(9_500));
        assert_eq!(time(None, Duration::from_millis(100)), Duration::from_millis(50));
    }

    #[tokio::test]
    async fn a_program_of_another_principal_starts_at_once_beside_all_that_one_can_start() {
        use std::sync::Arc;
        use std::time::Duration;

        use toolyard_hub::{CallRequest, CallTarget, Permissions, Principal, Source, Yard};

        use crate::engine::{Engine, EngineSettings};
        use crate::settings::ProgramSettings;
        use crate::source::ProgramSource;

        let yard = Yard::with_sources([]);
        let launcher = vec!["/nonexistent/launcher".into()];
        let engine = Engine::new(EngineSettings { launcher, python: None, without: Vec::new() });
        let programs = ProgramSource::new(&yard, engine, ProgramSettings::default());
        yard.add(Arc::clone(&programs) as Arc<dyn Source>);
        let ada = Principal::new("ada", Permissions::All);
        let (held, mut count) = (tokio::sync::Semaphore::new(0), 0);
        // As many as its quota allows, each of which holds on to its slot as soon as it has one.
        let holding = futures_util::future::join_all((0..16).map(|_| async {
            let _slot = programs.slots.acquire(&ada).await;
            held.add_permits(1);
            std::future::pending::<()>().await;
        }));
        let arguments = Some(super::to_raw(&super::json!({"code": "print(1)"})));
        let what = CallTarget::Tool { name: "execute_program".to_owned(), arguments };
        let bob = Principal::new("bob", Permissions::All);
        let running = async {
            while let Ok(permit) = held.try_acquire() {
                permit.forget();
                count += 1;
            }
            // Nothing can run here, but it is tried.
            tokio::time::timeout(Duration::from_secs(20), yard.call(CallRequest::new(what, bob))).await
        };
        let outcome = tokio::select! { biased; _ = holding => unreachable!(), outcome = running => outcome };
        assert_eq!(count, ProgramSettings::default().programs - 1);
        assert!(outcome.expect("it waits for the other's").is_ok_and(|outcome| outcome.failed));
    }

    #[tokio::test]
    async fn programs_of_one_principal_never_keep_another_from_running_theirs() {
        use std::sync::Arc;

        use toolyard_hub::{
            CallRequest, CallTarget, ErrorKind, Permissions, Principal, Quota, QuotaLimits, Source, Yard,
            YardLimits, YardSettings,
        };

        use crate::engine::{Engine, EngineSettings};
        use crate::settings::ProgramSettings;
        use crate::source::ProgramSource;

        let quotas = QuotaLimits { programs: 1, ..QuotaLimits::default() };
        let limits = YardLimits { quotas, ..YardLimits::default() };
        let yard = Yard::new(YardSettings { limits, ..YardSettings::default() });
        let launcher = vec!["/nonexistent/launcher".into()];
        let engine = Engine::new(EngineSettings { launcher, python: None, without: Vec::new() });
        yard.add(ProgramSource::new(&yard, engine, ProgramSettings::default()) as Arc<dyn Source>);
        let principal = |name: &str| Principal::new(name, Permissions::All);
        let run = async |name: &str| {
            let arguments = Some(super::to_raw(&super::json!({"code": "print(1)"})));
            let what = CallTarget::Tool { name: "execute_program".to_owned(), arguments };
            yard.call(CallRequest::new(what, principal(name))).await.map_err(|error| error.kind())
        };
        let running = yard.charge(&principal("ada"), Quota::Programs, 1).unwrap();
        assert_eq!(run("ada").await.err(), Some(ErrorKind::RateLimited));
        // Nothing can run here, but it is tried.
        assert!(run("bob").await.is_ok_and(|outcome| outcome.failed));
        drop(running);
        assert!(run("ada").await.is_ok());
    }
}
