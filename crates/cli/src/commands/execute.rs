//! One call and what is said while it runs: progress, log lines, pieces of the result, and questions.

use std::time::Duration;

use indicatif::ProgressBar;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, CallerChannel, CallerUpdate, Deadline, FrontName, HubError,
    LogLine, Outcome, Progress,
};

use crate::clean::clean_line;
use crate::elicitation;
use crate::one_shot::{OneShotYard, abilities};
use crate::terminal::{can_animate, note, progress_bar};

/// How progress is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressMode {
    /// With a bar, where there is a terminal.
    Bar,
    /// Also with lines, where there is none.
    Lines,
}

/// What is to be done, and how.
pub(super) struct CommandCall {
    pub(super) what: CallTarget,
    pub(super) time: Option<Duration>,
    pub(super) telling: ProgressMode,
}

impl CommandCall {
    pub(super) fn new(what: CallTarget) -> Self {
        Self { what, time: None, telling: ProgressMode::Bar }
    }
}

/// The outcome, and the pieces that came ahead of it, as blocks of content.
pub(super) struct CommandOutcome {
    pub(super) outcome: Outcome,
    pub(super) chunks: Vec<Value>,
}

pub(super) async fn execute(
    visit: &OneShotYard,
    order: CommandCall,
    stop: &CancellationToken,
) -> Result<CommandOutcome, HubError> {
    let (client, mut updates) = CallerChannel::new(abilities());
    let time = order.time.unwrap_or(Duration::MAX);
    let request = CallRequest {
        client,
        deadline: Deadline::after(time),
        cancel: stop.clone(),
        context: CallContext { front: Some(FrontName::Cli), ..CallContext::default() },
        ..CallRequest::new(order.what, visit.principal.clone())
    };
    let mut heard =
        UpdateHandler { telling: order.telling, bar: None, chunks: Vec::new(), asking: JoinSet::new() };
    let call = visit.yard.call(request);
    tokio::pin!(call);
    let ended = loop {
        tokio::select! {
            biased;
            Some(update) = updates.recv() => heard.take(update),
            ended = &mut call => break ended,
        }
    };
    while let Ok(update) = updates.try_recv() {
        heard.take(update);
    }
    heard.clear();
    Ok(CommandOutcome { outcome: ended?, chunks: heard.chunks })
}

struct UpdateHandler {
    telling: ProgressMode,
    bar: Option<ProgressBar>,
    chunks: Vec<Value>,
    asking: JoinSet<()>,
}

impl UpdateHandler {
    fn take(&mut self, update: CallerUpdate) {
        match update {
            CallerUpdate::Progress(progress) => self.progress(&progress),
            CallerUpdate::Chunk(chunk) => {
                let text = chunk.as_str().map_or_else(|| chunk.to_string(), ToOwned::to_owned);
                self.chunks.push(json!({"type": "text", "text": text}));
            }
            CallerUpdate::Log(line) => {
                self.clear();
                log(&line);
            }
            CallerUpdate::Ask(ask) => {
                // A person cannot read a question below a bar that moves.
                self.clear();
                self.asking.spawn(elicitation::answer(ask));
            }
            CallerUpdate::Pause(_) => {}
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let message = progress.message.as_deref().map(clean_line).unwrap_or_default();
        if can_animate() {
            let bar = self.bar.get_or_insert_with(progress_bar);
            bar.set_length(steps(progress.total.unwrap_or(progress.progress)));
            bar.set_position(steps(progress.progress));
            bar.set_message(message);
            bar.tick();
        } else if self.telling == ProgressMode::Lines {
            let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
            let more = if message.is_empty() { String::new() } else { format!(": {message}") };
            note(&format!("progress {}{of}{more}", progress.progress));
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A bar counts whole steps; a share of one is shown in thousandths.
fn steps(number: f64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a float is cut to what fits")]
    let steps = (number.max(0.0) * 1000.0) as u64;
    steps
}

fn log(line: &LogLine) {
    let level = serde_json::to_value(line.level).unwrap_or_default();
    let level = level.as_str().unwrap_or("log");
    let words = match &line.data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    note(&format!("{level}: {}", clean_line(&words)));
}
