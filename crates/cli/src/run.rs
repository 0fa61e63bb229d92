//! `toolyard run`: a script over the tools of the yard, from the command line.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{CallContext, CallRequest, CallTarget, FrontName, HubError, Outcome, SourceState, Yard};
use toolyard_program::{META, NOTHING_PRINTED, ProgramSource};

use crate::args::RunArgs;
use crate::assembly::{self, AssemblyOptions, RunningYard};
use crate::servers::StartMode;
use crate::{Exit, terminal};

/// How long servers may take to start before the script runs without those that have not.
const SETTLING: Duration = Duration::from_secs(30);

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<Exit> {
    let given = args.documents.config_inputs(args.config);
    let Some(config) = given.load() else {
        return Ok(Exit::Usage);
    };
    let code = match read(&args.script).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("toolyard: {error:#}");
            return Ok(Exit::Usage);
        }
    };
    let options = AssemblyOptions { programs: true, ..AssemblyOptions::new(StartMode::Shared) };
    let mut running = RunningYard::assemble(&config, options)?;
    running.start_servers(config.servers().to_vec())?;
    let stop = CancellationToken::new();
    let mut arguments = json!({"code": code});
    if let Some(time) = args.timeout {
        arguments["timeout_ms"] = json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
    }
    let what = CallTarget::Tool { name: "execute_program".to_owned(), arguments: Some(to_raw(&arguments)) };
    let context = CallContext { front: Some(FrontName::Cli), ..CallContext::default() };
    let request = CallRequest::new(what, assembly::owner(&config));
    let request = CallRequest { cancel: stop.clone(), context, ..request };
    let show = if args.json { OutputTiming::Buffered } else { OutputTiming::Streamed };
    let work = execute(Arc::clone(&running.yard), running.programs.clone(), request, show);
    let Some(ended) = running.run(stop, work).await? else { return Ok(Exit::Interrupted) };
    if args.json {
        terminal::print(&format!("{}\n", ended.json()))?;
    } else if !ended.message.is_empty() {
        eprintln!("{}", ended.message);
    }
    Ok(ended.exit)
}

async fn read(script: &Path) -> anyhow::Result<String> {
    if script == Path::new("-") {
        let mut code = String::new();
        tokio::io::stdin().read_to_string(&mut code).await.context("cannot read standard input")?;
        return Ok(code);
    }
    std::fs::read_to_string(script).with_context(|| format!("cannot read {}", script.display()))
}

/// When what the script prints is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputTiming {
    Streamed,
    Buffered,
}

/// Shows what is printed until nothing more can come.
async fn stream_output(mut printed: watch::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut shown = 0;
    while printed.changed().await.is_ok() {
        let more = printed.borrow_and_update()[shown..].to_vec();
        shown += more.len();
        // Whoever reads it may be slow, which is not to hold up anything else.
        tokio::task::spawn_blocking(move || terminal::print_bytes(&more))
            .await
            .map_err(io::Error::other)??;
    }
    Ok(())
}

/// Runs the script once the servers are there, or have failed to start.
async fn execute(
    yard: Arc<Yard>,
    programs: Option<Arc<ProgramSource>>,
    request: CallRequest,
    when: OutputTiming,
) -> anyhow::Result<ScriptOutcome> {
    let stop = request.cancel.clone();
    let settled = async {
        tokio::select! {
            () = yard.wait_for_startup(SETTLING) => {}
            () = stop.cancelled() => {}
        }
    };
    terminal::with_spinner(|| waiting_message(&yard), settled).await;
    report_missing_servers(&yard);
    let outcome = match (when, programs) {
        (OutputTiming::Streamed, Some(programs)) => {
            let showing = tokio::spawn(stream_output(programs.watch_next_output()));
            let outcome = yard.call(request).await;
            // Nobody follows a program that was not run.
            drop(programs.watch_next_output());
            showing.await.map_err(io::Error::other)??;
            outcome
        }
        _ => yard.call(request).await,
    };
    Ok(match outcome {
        Ok(outcome) => ScriptOutcome::from_outcome(&outcome),
        Err(error) => ScriptOutcome::from_error(&error),
    })
}

fn waiting_message(yard: &Yard) -> String {
    let late = yard.statuses().into_iter().filter(|(_, status)| !status.startup_complete);
    let names: Vec<String> = late.map(|(name, _)| name.to_string()).collect();
    format!("waiting for {}", names.join(", "))
}

/// The script may do without them, or fail and wonder why.
fn report_missing_servers(yard: &Yard) {
    for (name, status) in yard.statuses() {
        if !matches!(status.state, SourceState::Ready | SourceState::Disabled) {
            let why = status.reason.unwrap_or_else(|| "it is not ready".to_owned());
            eprintln!("toolyard: the tools of {name} are missing: {why}");
        }
    }
}

/// How a script ended, for a person.
struct ScriptOutcome {
    status: String,
    printed: String,
    /// The value of the last expression, where nothing was printed.
    value: Option<String>,
    message: String,
    exit: Exit,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScriptMeta {
    ended: String,
    /// How many bytes of the answer were printed by the script.
    printed: usize,
    /// How many bytes of it are the value of the last expression, where nothing was printed.
    value: Option<usize>,
}

impl ScriptOutcome {
    fn from_outcome(outcome: &Outcome) -> Self {
        let body = Object::parse(&outcome.body).unwrap_or_default();
        let read = |key: &str| body.get(key).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let text = read("content").and_then(|blocks| Some(blocks[0]["text"].as_str()?.to_owned()));
        let text = text.unwrap_or_default();
        let said =
            read("_meta").and_then(|meta| serde_json::from_value::<ScriptMeta>(meta[META].clone()).ok());
        let said = said.unwrap_or(ScriptMeta { ended: "unavailable".to_owned(), printed: 0, value: None });
        let exit = match said.ended.as_str() {
            "succeeded" => Exit::Success,
            "timed_out" => Exit::TimedOut,
            "unavailable" => Exit::Failed,
            _ => Exit::ToolFailed,
        };
        if said.ended == "unavailable" {
            return Self { status: said.ended, printed: String::new(), value: None, message: text, exit };
        }
        let after = text.split_once('\n').map_or("", |(_, after)| after);
        let (value, after) = split_value(after, said.value);
        let (printed, trouble) = split_output(after, said.printed);
        Self { status: said.ended, printed, value, message: trouble, exit }
    }

    fn from_error(error: &HubError) -> Self {
        let status = error.kind().as_str().replace(' ', "_");
        let message = format!("toolyard: {}", error.message_with_suggestion());
        Self { status, printed: String::new(), value: None, message, exit: error.kind().into() }
    }

    fn json(&self) -> Value {
        let success = self.exit == Exit::Success;
        let said = Some(&self.message).filter(|text| !text.is_empty());
        let error = said.filter(|_| !success);
        let mut told =
            json!({"success": success, "ended": self.status, "output": self.printed, "error": error});
        if let Some(value) = &self.value {
            told["value"] = json!(value);
        }
        if let Some(note) = said.filter(|_| success) {
            told["note"] = json!(note);
        }
        told
    }
}

/// The value of the last expression, and what is said after it. That nothing was printed is for models; people see it.
fn split_value(text: &str, value: Option<usize>) -> (Option<String>, &str) {
    if !text.starts_with(NOTHING_PRINTED) {
        return (None, text);
    }
    let after = text.split_once('\n').map_or("", |(_, after)| after);
    match value.and_then(|length| after.split_at_checked(length)) {
        Some((value, after)) => (Some(value.to_owned()), after.strip_prefix('\n').unwrap_or(after)),
        None => (None, after),
    }
}

/// What the script printed, with the end of its last line, and what is said after that.
fn split_output(text: &str, printed: usize) -> (String, String) {
    match text.split_at_checked(printed) {
        Some((printed, trouble)) => {
            (printed.to_owned(), trouble.strip_prefix('\n').unwrap_or(trouble).to_owned())
        }
        // Only the end of the last line was left out.
        None => (format!("{text}\n"), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::{split_output, split_value};

    #[test]
    fn that_nothing_was_printed_is_not_told_to_people() {
        assert_eq!(split_value("[Nothing was printed] Use print", None), (None, ""));
        assert_eq!(split_value("[Nothing was printed]\nTraceback", None), (None, "Traceback"));
        let said = "[Nothing was printed] The value:\n[1]\n[Not awaited] x";
        assert_eq!(split_value(said, Some(3)), (Some("[1]".to_owned()), "[Not awaited] x"));
        assert_eq!(split_value("printed", None), (None, "printed"));
    }

    #[test]
    fn what_was_printed_is_told_from_what_went_wrong() {
        let parts = |text: &str, printed: usize| {
            let (printed, trouble) = split_output(text, printed);
            format!("{printed:?} {trouble:?}")
        };
        assert_eq!(parts("a\nb", 4), r#""a\nb\n" """#);
        assert_eq!(parts("a\nb", 3), r#""a\nb" """#);
        assert_eq!(parts("a\nTraceback", 2), r#""a\n" "Traceback""#);
        assert_eq!(parts("a\nTraceback", 1), r#""a" "Traceback""#);
        assert_eq!(parts("Traceback", 0), r#""" "Traceback""#);
        assert_eq!(parts("\nTraceback", 1), r#""\n" "Traceback""#);
        assert_eq!(parts("", 1), r#""\n" """#);
        assert_eq!(parts("", 0), r#""" """#);
    }
}
