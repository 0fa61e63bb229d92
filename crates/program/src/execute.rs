//! `execute_program`: runs one script and renders its result.

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

/// The maximum size of a script, in bytes.
const LONGEST_CODE: usize = 1 << 20;
/// The number of requests of a program that may wait to be read.
const QUEUE: usize = 16;
/// The part of the caller's time that is reserved for reporting the result.
const MARGIN: Duration = Duration::from_millis(500);

/// The `_meta` key of a result under which the end of the program is described.
pub const META: &str = "dev.toolyard/program";
/// The start of the line that reports that a program printed nothing.
pub const NOTHING_PRINTED: &str = "[Nothing was printed]";

#[derive(Debug, Deserialize)]
pub(crate) struct ExecuteArguments {
    code: String,
    timeout_ms: Option<u64>,
}

impl ExecuteArguments {
    /// Returns the time limit of the script, given the configured limit and the caller's remaining
    /// time.
    fn time_limit(&self, limit: Duration, remaining: Duration) -> Duration {
        let requested = self.timeout_ms.map_or(limit, Duration::from_millis);
        requested.min(limit).min(remaining.saturating_sub(MARGIN).max(remaining / 2))
    }
}

impl ProgramSource {
    pub(crate) async fn execute(
        &self,
        arguments: ExecuteArguments,
        broker: Broker,
    ) -> Result<Outcome, HubError> {
        if arguments.code.len() > LONGEST_CODE {
            let message = format!(
                "the script of {} bytes exceeds the limit of {LONGEST_CODE} bytes",
                arguments.code.len()
            );
            return Err(HubError::new(ErrorKind::TooLarge, message));
        }
        // Held while the program waits and while it runs.
        let _charge = broker.yard.charge(&broker.caller.record.principal, Quota::Programs, 1)?;
        let (deadline, limit) = (broker.caller.deadline.clone(), self.settings.time);
        let waiting = self.slots.acquire(&broker.caller.record.principal);
        let permit = tokio::time::timeout(arguments.time_limit(limit, deadline.remaining()), waiting).await;
        let Ok(Ok(_permit)) = permit else {
            let message = format!(
                "the program could not start within its time limit: at most {} programs run at once, {} per \
                 principal",
                self.settings.programs,
                self.slots.per_principal_limit()
            );
            return Err(HubError::new(ErrorKind::TimedOut, message).with_suggestion("retry later"));
        };
        let limits = ProgramLimits {
            time: arguments.time_limit(limit, deadline.remaining()),
            memory: self.settings.memory,
            output: self.settings.output,
        };
        let program = Program {
            bindings: broker.bindings(&arguments.code),
            code: arguments.code,
            limits: limits.clone(),
            printed: self.followed.lock().take().unwrap_or_default(),
        };
        let (sender, questions) = mpsc::channel(QUEUE);
        let cancel = broker.caller.cancel.clone();
        let broker = Arc::new(broker);
        // When the program ends, its running calls are canceled. Requests that it sent before are
        // still read.
        let running = async {
            let result = self.engine.run(program, sender, cancel).await;
            broker.ended.cancel();
            result
        };
        let (result, ()) = tokio::join!(running, Arc::clone(&broker).serve(questions));
        Ok(match result {
            Ok(outcome) => render_outcome(&outcome, &limits),
            Err(unavailable) => unavailable_outcome(&unavailable),
        })
    }
}

/// Renders the result of a program that has ended.
fn render_outcome(ending: &ProgramOutcome, limits: &ProgramLimits) -> Outcome {
    let (word, error) = match &ending.exit_reason {
        ExitReason::Finished => ("succeeded", None),
        ExitReason::Unfinished => ("unfinished", None),
        ExitReason::Raised { traceback } => ("raised", Some(traceback.trim_end().to_owned())),
        ExitReason::TimedOut => {
            let time = limits.time.as_secs_f64();
            ("timed_out", Some(format!("TimeoutError: the program exceeded its time limit of {time} s")))
        }
        ExitReason::OutOfMemory => {
            let memory = limits.memory >> 20;
            (
                "out_of_memory",
                Some(format!("MemoryError: the program exceeded its memory limit of {memory} MB")),
            )
        }
        ExitReason::Died { why } => ("died", Some(format!("The program was stopped: {why}"))),
        ExitReason::ProtocolViolation { why } => {
            ("broke", Some(format!("The program was stopped because it violated the protocol: {why}")))
        }
    };
    let failed = ending.exit_reason != ExitReason::Finished;
    let header = if failed { "[Script failed]" } else { "[Script executed successfully]" };
    // An empty line counts as output.
    let silent = ending.printed == ProgramOutput::default();
    let value = ending.value.as_ref().filter(|_| silent && !failed);
    let printed = match (silent, value, failed) {
        (false, ..) => render_output(&ending.printed, limits),
        (true, Some(value), _) => render_last_value(value, limits),
        (true, None, false) => format!("{NOTHING_PRINTED} Use print(...) to return results"),
        (true, None, true) => NOTHING_PRINTED.to_owned(),
    };
    let unfinished = ending.unfinished.iter().map(render_unfinished);
    let unawaited = ending.unawaited.iter().map(render_unawaited);
    let parts = [Some(header.to_owned()), Some(printed), error].into_iter().flatten();
    let text = parts.chain(unfinished).chain(unawaited).collect::<Vec<_>>().join("\n");
    let mut body = json!({"content": [{"type": "text", "text": text}]});
    if failed {
        body["isError"] = json!(true);
    }
    // The text already contains the output. Its length is enough to extract it.
    let ProgramOutput { text, left_out } = &ending.printed;
    let mut meta = json!({"ended": word, "printed": text.len(), "leftOut": left_out});
    if let Some(value) = value {
        meta["value"] = json!(value.text.len());
    }
    body["_meta"] = json!({META: meta});
    if failed { Outcome::failure(to_raw(&body)) } else { Outcome::success(to_raw(&body)) }
}

/// Renders the value of the last expression, on separate lines.
fn render_last_value(value: &LastValue, limits: &ProgramLimits) -> String {
    let text = format!("{NOTHING_PRINTED} The value of the last expression:\n{}", value.text);
    if value.left_out == 0 {
        return text;
    }
    format!("{text}\n{}", truncation_note(value.left_out, limits))
}

fn truncation_note(omitted: u64, limits: &ProgramLimits) -> String {
    format!("[Output truncated: {omitted} more bytes; the limit is {} bytes]", limits.output)
}

fn render_unfinished(UnfinishedTask { call, line, at, why }: &UnfinishedTask) -> String {
    let origin = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let position = at.filter(|at| Some(*at) != *line);
    let position = position.map(|line| format!(" in line {line}")).unwrap_or_default();
    let reason = match why {
        UnfinishedReason::Running => format!("was still running{position} when the time limit was reached"),
        UnfinishedReason::Stuck => format!(
            "waits{position} for something that never happens; await the task, or cancel it before the program ends"
        ),
        UnfinishedReason::Cancelled => {
            "was canceled because the program failed before the task finished".to_owned()
        }
    };
    format!("[Not finished] {origin}{call}(...) {reason}")
}

fn render_unawaited(UnawaitedCall { call, line }: &UnawaitedCall) -> String {
    format!(
        "[Not awaited] line {line}: {call}(...) did not run because it was not awaited; write `await` before it"
    )
}

/// Renders the output without its last line break. Truncated output gets a note.
fn render_output(printed: &ProgramOutput, limits: &ProgramLimits) -> String {
    let text = printed.text.strip_suffix('\n').unwrap_or(&printed.text);
    if printed.left_out == 0 {
        return text.to_owned();
    }
    format!("{text}\n{}", truncation_note(printed.left_out, limits))
}

/// Renders the reason why the sandbox cannot run programs.
fn unavailable_outcome(unavailable: &SandboxUnavailable) -> Outcome {
    let SandboxUnavailable { reason, suggestion } = unavailable;
    let mut text = format!("[Script not executed] Programs are not available: {reason}");
    if let Some(suggestion) = suggestion {
        text.push_str(&format!("\nhint: {suggestion}"));
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

    fn rendered(reason: ExitReason, text: &str, left_out: u64) -> String {
        let limits = ProgramLimits { time: Duration::from_millis(2_500), memory: 512 << 20, output: 10 };
        let printed = ProgramOutput { text: text.to_owned(), left_out };
        rendered_outcome(&ProgramOutcome::new(reason, printed), &limits)
    }

    fn rendered_outcome(ending: &ProgramOutcome, limits: &ProgramLimits) -> String {
        let outcome = render_outcome(ending, limits);
        let body: Value = serde_json::from_str(outcome.body.get()).unwrap();
        assert_eq!(body["isError"] == true, outcome.failed);
        format!("{}\n{}", body["content"][0]["text"].as_str().unwrap(), body["_meta"])
    }

    #[test]
    fn every_exit_reason_is_rendered() {
        let traceback = "Traceback (most recent call last):\n  File \"program\", line 2\nKeyError: 'x'\n";
        let all = [
            rendered(ExitReason::Finished, "170000000000\n165300000000\n", 0),
            rendered(ExitReason::Finished, "", 0),
            rendered(ExitReason::Finished, "no newline", 0),
            rendered(ExitReason::Finished, "\n\n", 0),
            rendered(ExitReason::Finished, "\n", 0),
            rendered(ExitReason::Raised { traceback: traceback.to_owned() }, "\n", 0),
            rendered(ExitReason::Finished, "0123456789", 90),
            rendered(ExitReason::Raised { traceback: traceback.to_owned() }, "before\n", 0),
            rendered(ExitReason::Raised { traceback: traceback.to_owned() }, "", 0),
            rendered(ExitReason::TimedOut, "before\n", 0),
            rendered(ExitReason::OutOfMemory, "", 0),
            rendered(ExitReason::Died { why: "it was killed by signal 31".to_owned() }, "", 0),
            rendered(ExitReason::ProtocolViolation { why: "malformed end frame".to_owned() }, "", 0),
        ];
        insta::assert_snapshot!(all.join("\n----\n"));
    }

    #[test]
    fn unawaited_calls_are_listed_after_the_output() {
        let limits = ProgramLimits { time: Duration::from_secs(1), memory: 512 << 20, output: 100 };
        let forgotten = |call: &str, line: u64| UnawaitedCall { call: call.to_owned(), line };
        let ending = |reason: ExitReason, text: &str| ProgramOutcome {
            printed: ProgramOutput { text: text.to_owned(), left_out: 0 },
            unawaited: vec![forgotten("mcp__shop__buy", 3), forgotten("echo", 7)],
            ..ProgramOutcome::new(reason, ProgramOutput::default())
        };
        let all = [
            rendered_outcome(&ending(ExitReason::Finished, "done\n"), &limits),
            rendered_outcome(&ending(ExitReason::Finished, ""), &limits),
            rendered_outcome(
                &ending(ExitReason::Raised { traceback: "ValueError: x\n".to_owned() }, "done\n"),
                &limits,
            ),
        ];
        insta::assert_snapshot!(all.join("\n----\n"));
    }

    #[test]
    fn an_unavailable_sandbox_is_reported_with_the_reason_and_a_hint() {
        let suggestion = Some("install python3".to_owned());
        let outcome = unavailable_outcome(&SandboxUnavailable {
            reason: "python3 was not found".to_owned(),
            suggestion,
        });
        assert!(outcome.failed);
        let body: Value = serde_json::from_str(outcome.body.get()).unwrap();
        assert_eq!(
            body["content"][0]["text"],
            "[Script not executed] Programs are not available: python3 was not found\nhint: install python3"
        );
    }

    #[test]
    fn a_program_gets_no_more_time_than_its_caller_has() {
        let (limit, second) = (Duration::from_secs(300), Duration::from_secs(1));
        let time =
            |timeout_ms, left| ExecuteArguments { code: String::new(), timeout_ms }.time_limit(limit, left);
        assert_eq!(time(None, 1_000 * second), limit);
        assert_eq!(time(Some(1_500), 1_000 * second), Duration::from_millis(1_500));
        assert_eq!(time(Some(9_000_000), 1_000 * second), limit);
        assert_eq!(time(None, 10 * second), Duration::from_millis(9_500));
        assert_eq!(time(None, Duration::from_millis(100)), Duration::from_millis(50));
    }

    #[tokio::test]
    async fn a_program_starts_immediately_while_another_principal_runs_its_maximum() {
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
        // As many as the quota allows. Each keeps its permit once it has one.
        let holding = futures_util::future::join_all((0..16).map(|_| async {
            let _permit = programs.slots.acquire(&ada).await;
            held.add_permits(1);
            std::future::pending::<()>().await;
        }));
        let arguments = Some(super::to_raw(&super::json!({"code": "print(1)"})));
        let target = CallTarget::Tool { name: "execute_program".to_owned(), arguments };
        let bob = Principal::new("bob", Permissions::All);
        let running = async {
            while let Ok(permit) = held.try_acquire() {
                permit.forget();
                count += 1;
            }
            // The launcher does not exist, so the call fails, but without waiting for a permit.
            tokio::time::timeout(Duration::from_secs(20), yard.call(CallRequest::new(target, bob))).await
        };
        let outcome = tokio::select! { biased; _ = holding => unreachable!(), outcome = running => outcome };
        assert_eq!(count, ProgramSettings::default().programs - 1);
        let outcome = outcome.expect("the program waits for those of the other principal");
        assert!(outcome.is_ok_and(|outcome| outcome.failed));
    }

    #[tokio::test]
    async fn programs_of_one_principal_do_not_block_those_of_another() {
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
            let target = CallTarget::Tool { name: "execute_program".to_owned(), arguments };
            yard.call(CallRequest::new(target, principal(name))).await.map_err(|error| error.kind())
        };
        let running = yard.charge(&principal("ada"), Quota::Programs, 1).unwrap();
        assert_eq!(run("ada").await.err(), Some(ErrorKind::RateLimited));
        // The launcher does not exist, so the call fails after the quota check.
        assert!(run("bob").await.is_ok_and(|outcome| outcome.failed));
        drop(running);
        assert!(run("ada").await.is_ok());
    }
}
