//! `toolyard run`: runs a script over the tools of the yard.

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
use crate::error::CommandError;
use crate::one_shot::strip_suggestion;
use crate::servers::StartMode;
use crate::{Exit, terminal};

/// How long to wait for servers to start before the script runs without them.
const SETTLING: Duration = Duration::from_secs(30);

pub(crate) async fn run(args: RunArgs) -> anyhow::Result<Exit> {
    let given = args.documents.config_inputs(args.config);
    let Some(config) = given.load() else {
        return Ok(Exit::Usage);
    };
    let code = match read(&args.script).await {
        Ok(code) => code,
        Err(error) => {
            terminal::print_error(&format!("{error:#}"));
            return Ok(Exit::Usage);
        }
    };
    let options = AssemblyOptions { programs: true, ..AssemblyOptions::new(StartMode::Shared) };
    let mut running = RunningYard::assemble(&config, options).await?;
    running.start_servers(config.servers().to_vec())?;
    let stop = CancellationToken::new();
    let mut arguments = json!({"code": code});
    if let Some(time) = args.timeout {
        arguments["timeout_ms"] = json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1));
    }
    let target = CallTarget::Tool { name: "execute_program".to_owned(), arguments: Some(to_raw(&arguments)) };
    let context = CallContext { front: Some(FrontName::Cli), ..CallContext::default() };
    let request = CallRequest::new(target, assembly::owner(&config));
    let request = CallRequest { cancel: stop.clone(), context, ..request };
    let show = if args.json { OutputTiming::Buffered } else { OutputTiming::Streamed };
    let work = execute(Arc::clone(&running.yard), running.programs.clone(), request, show);
    let Some(ended) = running.run(stop, work).await? else { return Ok(Exit::Interrupted) };
    if args.json {
        terminal::print(&format!("{}\n", ended.json()))?;
    } else if let Some(error) = ended.error {
        return Ok(CommandError::from(error).report());
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

/// When the output of the script is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputTiming {
    Streamed,
    Buffered,
}

/// Shows output until the program ends.
async fn stream_output(mut printed: watch::Receiver<Vec<u8>>) -> io::Result<()> {
    let mut shown = 0;
    while printed.changed().await.is_ok() {
        let more = printed.borrow_and_update()[shown..].to_vec();
        shown += more.len();
        // A slow reader must not block other work.
        tokio::task::spawn_blocking(move || terminal::print_bytes(&more))
            .await
            .map_err(io::Error::other)??;
    }
    Ok(())
}

/// Runs the script once every server is ready or has failed.
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
            // Closes the stream if the program was not run.
            drop(programs.watch_next_output());
            showing.await.map_err(io::Error::other)??;
            outcome
        }
        _ => yard.call(request).await,
    };
    Ok(match outcome {
        Ok(outcome) => ScriptOutcome::from_outcome(&outcome),
        Err(error) => ScriptOutcome::from_error(error),
    })
}

fn waiting_message(yard: &Yard) -> String {
    let late = yard.statuses().into_iter().filter(|(_, status)| !status.startup_complete);
    let names: Vec<String> = late.map(|(name, _)| name.to_string()).collect();
    format!("waiting for {}", names.join(", "))
}

/// Warns about missing servers, because the script may fail without their tools.
fn report_missing_servers(yard: &Yard) {
    for (name, status) in yard.statuses() {
        if !matches!(status.state, SourceState::Ready | SourceState::Disabled) {
            let why = status.reason.unwrap_or_else(|| "not ready".to_owned());
            let why = strip_suggestion(why, status.suggestion.as_deref());
            terminal::print_warning(&format!("the tools of server `{name}` are unavailable: {why}"));
            status.suggestion.iter().for_each(|suggestion| terminal::print_hint(suggestion));
        }
    }
}

/// How a script ended.
struct ScriptOutcome {
    status: String,
    printed: String,
    /// The value of the last expression, if nothing was printed.
    value: Option<String>,
    message: String,
    /// Why the script was not run, if it was not.
    error: Option<HubError>,
    exit: Exit,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ScriptMeta {
    ended: String,
    /// How many bytes of the response are output of the script.
    printed: usize,
    /// How many bytes of it are the value of the last expression, if nothing was printed.
    value: Option<usize>,
}

impl ScriptOutcome {
    fn from_outcome(outcome: &Outcome) -> Self {
        let body = Object::parse(&outcome.body).unwrap_or_default();
        let read = |key: &str| body.get(key).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let text = read("content").and_then(|blocks| Some(blocks[0]["text"].as_str()?.to_owned()));
        let text = text.unwrap_or_default();
        let meta =
            read("_meta").and_then(|meta| serde_json::from_value::<ScriptMeta>(meta[META].clone()).ok());
        let meta = meta.unwrap_or(ScriptMeta { ended: "unavailable".to_owned(), printed: 0, value: None });
        let exit = match meta.ended.as_str() {
            "succeeded" => Exit::Success,
            "timed_out" => Exit::TimedOut,
            "unavailable" => Exit::Failed,
            _ => Exit::ToolFailed,
        };
        if meta.ended == "unavailable" {
            let (status, printed) = (meta.ended, String::new());
            return Self { status, printed, value: None, message: text, error: None, exit };
        }
        let after = text.split_once('\n').map_or("", |(_, after)| after);
        let (value, after) = split_value(after, meta.value);
        let (printed, trouble) = split_output(after, meta.printed);
        Self { status: meta.ended, printed, value, message: trouble, error: None, exit }
    }

    fn from_error(error: HubError) -> Self {
        let status = error.kind().as_str().replace(' ', "_");
        let message = error.message_with_suggestion();
        let exit = error.kind().into();
        Self { status, printed: String::new(), value: None, message, error: Some(error), exit }
    }

    fn json(&self) -> Value {
        let success = self.exit == Exit::Success;
        let message = Some(&self.message).filter(|text| !text.is_empty());
        let error = message.filter(|_| !success);
        let mut result =
            json!({"success": success, "ended": self.status, "output": self.printed, "error": error});
        if let Some(value) = &self.value {
            result["value"] = json!(value);
        }
        if let Some(note) = message.filter(|_| success) {
            result["note"] = json!(note);
        }
        result
    }
}

/// Splits off the value of the last expression. The marker that nothing was printed is meant for
/// models and is removed.
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

/// Splits the output of the script, with its final newline, from the text that follows.
fn split_output(text: &str, printed: usize) -> (String, String) {
    match text.split_at_checked(printed) {
        Some((printed, trouble)) => {
            (printed.to_owned(), trouble.strip_prefix('\n').unwrap_or(trouble).to_owned())
        }
        // Only the final newline was left out.
        None => (format!("{text}\n"), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::{split_output, split_value};

    #[test]
    fn removes_the_marker_that_nothing_was_printed() {
        assert_eq!(split_value("[Nothing was printed] Use print", None), (None, ""));
        assert_eq!(split_value("[Nothing was printed]\nTraceback", None), (None, "Traceback"));
        let text = "[Nothing was printed] The value:\n[1]\n[Not awaited] x";
        assert_eq!(split_value(text, Some(3)), (Some("[1]".to_owned()), "[Not awaited] x"));
        assert_eq!(split_value("printed", None), (None, "printed"));
    }

    #[test]
    fn separates_output_from_errors() {
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
