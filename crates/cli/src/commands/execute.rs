//! Executes one call and handles its updates: progress, log lines, chunks of the result, and
//! questions.

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
use crate::one_shot::{OneShotYard, client_capabilities};
use crate::terminal::{can_animate, print_note, progress_bar};

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressMode {
    /// As a bar, on a terminal only.
    Bar,
    /// As a bar on a terminal, else as lines.
    Lines,
}

/// What to call, and how.
pub(super) struct CommandCall {
    pub(super) target: CallTarget,
    pub(super) timeout: Option<Duration>,
    pub(super) progress_mode: ProgressMode,
}

impl CommandCall {
    pub(super) fn new(target: CallTarget) -> Self {
        Self { target, timeout: None, progress_mode: ProgressMode::Bar }
    }
}

/// The outcome, and the chunks streamed before it, as content blocks.
pub(super) struct CommandOutcome {
    pub(super) outcome: Outcome,
    pub(super) chunks: Vec<Value>,
}

pub(super) async fn execute(
    visit: &OneShotYard,
    order: CommandCall,
    stop: &CancellationToken,
) -> Result<CommandOutcome, HubError> {
    let (client, mut updates) = CallerChannel::new(client_capabilities());
    let time = order.timeout.unwrap_or(Duration::MAX);
    let request = CallRequest {
        client,
        deadline: Deadline::after(time),
        cancel: stop.clone(),
        context: CallContext { front: Some(FrontName::Cli), ..CallContext::default() },
        ..CallRequest::new(order.target, visit.principal.clone())
    };
    let mut handler = UpdateHandler {
        progress_mode: order.progress_mode,
        bar: None,
        chunks: Vec::new(),
        question_tasks: JoinSet::new(),
    };
    let call = visit.yard.call(request);
    tokio::pin!(call);
    let ended = loop {
        tokio::select! {
            biased;
            Some(update) = updates.recv() => handler.handle(update),
            ended = &mut call => break ended,
        }
    };
    while let Ok(update) = updates.try_recv() {
        handler.handle(update);
    }
    handler.clear();
    Ok(CommandOutcome { outcome: ended?, chunks: handler.chunks })
}

struct UpdateHandler {
    progress_mode: ProgressMode,
    bar: Option<ProgressBar>,
    chunks: Vec<Value>,
    question_tasks: JoinSet<()>,
}

impl UpdateHandler {
    fn handle(&mut self, update: CallerUpdate) {
        match update {
            CallerUpdate::Progress(progress) => self.show_progress(&progress),
            CallerUpdate::Chunk(chunk) => {
                let text = chunk.as_str().map_or_else(|| chunk.to_string(), ToOwned::to_owned);
                self.chunks.push(json!({"type": "text", "text": text}));
            }
            CallerUpdate::Log(line) => {
                self.clear();
                print_log_line(&line);
            }
            CallerUpdate::Ask(ask) => {
                // A moving bar would make the question unreadable.
                self.clear();
                self.question_tasks.spawn(elicitation::answer(ask));
            }
            CallerUpdate::Pause(_) => {}
        }
    }

    fn show_progress(&mut self, progress: &Progress) {
        let message = progress.message.as_deref().map(clean_line).unwrap_or_default();
        if can_animate() {
            let bar = self.bar.get_or_insert_with(progress_bar);
            bar.set_length(to_bar_units(progress.total.unwrap_or(progress.progress)));
            bar.set_position(to_bar_units(progress.progress));
            bar.set_message(message);
            bar.tick();
        } else if self.progress_mode == ProgressMode::Lines {
            let of = progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
            let more = if message.is_empty() { String::new() } else { format!(": {message}") };
            print_note(&format!("progress {}{of}{more}", progress.progress));
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// The bar counts whole steps. A fraction is shown in thousandths.
fn to_bar_units(number: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float is truncated to the range of the bar"
    )]
    let steps = (number.max(0.0) * 1000.0) as u64;
    steps
}

fn print_log_line(line: &LogLine) {
    let level = serde_json::to_value(line.level).unwrap_or_default();
    let level = level.as_str().unwrap_or("log");
    let words = match &line.data {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    print_note(&format!("server log ({level}): {}", clean_line(&words)));
}
