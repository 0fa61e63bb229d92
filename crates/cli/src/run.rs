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
    let show = if args.json { OutputTiming::AtTheEnd } else { OutputTiming::AsItComes };
    let work = execute(Arc::clone(&running.yard), running.programs.clone(), request, show);
    let Some(ended) = running.run(stop, work).await? else { return Ok(Exit::Interrupted) };
    if args.json {
        terminal::print(&format!("{}\n", ended.json()))?;
    } else if !ended.trouble.is_empty() {
        eprintln!("{}", ended.trouble);
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
    AsItComes,
    AtTheEnd,
}

/// Shows what is printed until nothing more can come.
async fn show(mut printed: watch::Receiver<Vec<u8>>) -> io::Result<()> {
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
            () = yard.settle(SETTLING) => {}
            () = stop.cancelled() => {}
        }
    };
    terminal::with_spinner(|| waiting_for(&yard), settled).await;
    tell_absent(&yard);
    let outcome = match (when, programs) {
        (OutputTiming::AsItComes, Some(programs)) => {
            let showing = tokio::spawn(show(programs.follow_next()));
            let outcome = yard.call(request).await;
            // Nobody follows a program that was not run.
            drop(programs.follow_next());
            showing.await.map_err(io::Error::other)??;
            outcome
        }
        _ => yard.call(request).await,
    };
    Ok(match outcome {
        Ok(outcome) => ScriptOutcome::of(&outcome),
        Err(error) => ScriptOutcome::refused(&error),
    })
}

fn waiting_for(yard: &Yard) -> String {
    let late = yard.statuses().into_iter().filter(|(_, status)| !status.settled);
    let names: Vec<String> = late.map(|(name, _)| name.to_string()).collect();
    format!("waiting for {}", names.join(", "))
}

/// The script may do without them, or fail and wonder why.
fn tell_absent(yard: &Yard) {
    for (name, status) in yard.statuses() {
        if !matches!(status.state, SourceState::Ready | SourceState::Disabled) {
            let why = status.reason.unwrap_or_else(|| "it is not ready".to_owned());
            eprintln!("toolyard: the tools of {name} are missing: {why}");
        }
    }
}

/// How a script ended, for a person.
struct ScriptOutcome {
    how: String,
    printed: String,
    /// The value of the last expression, where nothing was printed.
    value: Option<String>,
    trouble: String,
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
    fn of(outcome: &Outcome) -> Self {
        let body = Object::parse(&outcome.body).unwrap_or_default();
        let read = |key: &str| body.get(key).and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let text = read("content").and_then(|blocks| Some(blocks[0]["text"].as_str()?.to_owned()));
        let text = text.unwrap_or_default();
        let said =
            read("_meta").and_then(|meta| serde_json::from_value::<ScriptMeta>(meta[META].clone()).ok());
        let said = said.unwrap_or(ScriptMeta { ended: "unavailable".to_owned(), printed: 0, value: None });
        let exit = match said.ended.as_str() {
            "succeeded" => Exit::Fine,
            "timed_out" => Exit::TimedOut,
            "unavailable" => Exit::Failed,
            _ => Exit::ToolFailed,
        };
        if said.ended == "unavailable" {
            return Self { how: said.ended, printed: String::new(), value: None, trouble: text, exit };
        }
        let after = text.split_once('\n').map_or("", |(_, after)| after);
        let (value, after) = silent(after, said.value);
        let (printed, trouble) = parted(after, said.printed);
        Self { how: said.ended, printed, value, trouble, exit }
    }

    fn refused(error: &HubError) -> Self {
        let how = error.kind().as_str().replace(' ', "_");
        let trouble = format!("toolyard: {}", error.sentence());
        Self { how, printed: String::new(), value: None, trouble, exit: error.kind().into() }
    }

    fn json(&self) -> Value {
        let success = self.exit == Exit::Fine;
        let said = Some(&self.trouble).filter(|text| !text.is_empty());
        let error = said.filter(|_| !success);
        let mut told = json!({"success": success, "ended": self.how, "output": self.printed, "error": error});
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
fn silent(text: &str, value: Option<usize>) -> (Option<String>, &str) {
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
fn parted(text: &str, printed: usize) -> (String, String) {
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
    use super::{parted, silent};

    #[test]
    fn that_nothing_was_printed_is_not_told_to_people() {
        assert_eq!(silent("[Nothing was printed] Use print", None), (None, ""));
        assert_eq!(silent("[Nothing was printed]\nTraceback", None), (None, "Traceback"));
        let said = "[Nothing was printed] The value:\n[1]\n[Not awaited] x";
        assert_eq!(silent(said, Some(3)), (Some("[1]".to_owned()), "[Not awaited] x"));
        assert_eq!(silent("printed", None), (None, "printed"));
    }

    #[test]
    fn what_was_printed_is_told_from_what_went_wrong() {
        let parts = |text: &str, printed: usize| {
            let (printed, trouble) = parted(text, printed);
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
