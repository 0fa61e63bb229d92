//! Runs the UI: reads the terminal, executes effects in separate tasks, and draws when something
//! changed. The loop never waits for anything that takes time.

mod calls;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use crossterm::event::{Event as Input, EventStream};
use futures_util::StreamExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{History, HistoryQuery, Principal, SourceCommand, SourceName, Yard};

use self::calls::CallRunner;
pub use self::calls::client_capabilities;
use crate::app::App;
use crate::key::KeyPress;
use crate::message::{ClockTime, Effect, SaveContents, UiMessage, UiSettings};
use crate::terminal::TerminalSession;
use crate::watch::{snapshot, watch};

/// The capacity of the message queue of the UI.
const QUEUE: usize = 256;
/// The minimum time between two frames, and the tick interval when nothing happens.
const FRAME: Duration = Duration::from_millis(33);
const TICK: Duration = Duration::from_millis(500);
/// How often the history is polled while it is on the screen, and how many calls are read.
const REMEMBER: Duration = Duration::from_secs(1);
const REMEMBERED: usize = 200;
/// The redraw interval while something is animated.
const LIVELY: Duration = Duration::from_millis(100);

/// An error that ends the UI.
#[derive(Debug, thiserror::Error)]
pub enum UiError {
    #[error("cannot use the terminal: {0}")]
    Terminal(#[from] io::Error),
}

/// Shows the yard until the user quits or `stop` is cancelled. `external` delivers messages from the
/// caller: lines for the log, or that a remote yard cannot be reached.
pub async fn run(
    yard: Arc<Yard>,
    principal: Principal,
    settings: UiSettings,
    mut external: mpsc::Receiver<UiMessage>,
    stop: CancellationToken,
) -> Result<(), UiError> {
    let (sender, mut messages) = mpsc::channel(QUEUE);
    let folder = settings.folder.clone();
    let mut app = App::new(settings, snapshot(&yard, &principal), ClockTime::now());
    let mut memory = HistoryPoller::new(&yard, &principal, &mut app);
    let mut screen = TerminalSession::enter()?;
    let tasks = TaskTracker::new();
    let over = stop.child_token();
    let watching = tokio::spawn(watch(Arc::clone(&yard), principal.clone(), sender.clone()));
    let mut running = CallRunner::new(Arc::clone(&yard), principal.clone(), sender.clone(), tasks.clone());
    let mut input = EventStream::new();
    let mut drawn = None;
    let ended = loop {
        if let Err(error) = screen.draw(&mut app) {
            break Err(error.into());
        }
        drawn.replace(Instant::now());
        let pause = if app.is_animating() { LIVELY } else { TICK };
        let mut pending = Vec::new();
        let mut closed = false;
        tokio::select! {
            () = over.cancelled() => break Ok(()),
            event = input.next() => match event {
                Some(Ok(event)) => pending.extend(message_from_event(event)),
                Some(Err(error)) => break Err(error.into()),
                None => closed = true,
            },
            Some(message) = messages.recv() => pending.push(message),
            Some(message) = external.recv() => pending.push(message),
            () = tokio::time::sleep(pause) => {}
        }
        // The terminal is closed.
        if closed {
            break Ok(());
        }
        // Messages that are already queued are handled too, so that a burst is drawn once instead
        // of line by line.
        while let Ok(message) = messages.try_recv() {
            pending.push(message);
            if pending.len() >= QUEUE {
                break;
            }
        }
        while let Ok(message) = external.try_recv() {
            pending.push(message);
            if pending.len() >= 2 * QUEUE {
                break;
            }
        }
        let typed = pending.iter().any(|message| matches!(message, UiMessage::Key(_) | UiMessage::Paste(_)));
        let mut quit = false;
        app.update(UiMessage::Tick(ClockTime::now()));
        for message in pending {
            let Some(effect) = app.update(message) else { continue };
            match effect {
                Effect::Quit => quit = true,
                Effect::Call(id, what) => running.start(id, what),
                Effect::Cancel(id) => running.cancel(id),
                Effect::Answer(id, answer) => running.answer(id, answer),
                Effect::Manage(name, order) => {
                    app.update(manage(&yard, &principal, &name, order));
                }
                Effect::Copy(text) => {
                    app.update(match screen.copy(&text) {
                        Ok(()) => {
                            UiMessage::Done("copied, if the terminal allows clipboard access".to_owned())
                        }
                        Err(error) => UiMessage::Failed(format!("cannot copy: {error}")),
                    });
                }
                Effect::Save(name, contents) => {
                    let (folder, sender) = (folder.clone(), sender.clone());
                    tasks.spawn(async move {
                        let message = match tokio::task::spawn_blocking(move || {
                            save(&folder, &name, &contents)
                        })
                        .await
                        {
                            Ok(Ok(path)) => UiMessage::Done(format!("saved as {}", path.display())),
                            Ok(Err(error)) => UiMessage::Failed(format!("cannot save: {error}")),
                            Err(_) => UiMessage::Failed("cannot save".to_owned()),
                        };
                        let _ = sender.send(message).await;
                    });
                }
                Effect::Suspend => {
                    // The event stream reads the terminal, which now belongs to the shell.
                    drop(std::mem::replace(&mut input, EventStream::new()));
                    if let Err(error) = screen.suspend().await {
                        app.update(UiMessage::Failed(format!("cannot suspend: {error}")));
                    }
                }
            }
        }
        if quit {
            break Ok(());
        }
        if app.shows_yard_history() {
            memory.poll(&tasks, &sender);
        }
        // Keys are handled immediately; everything else can wait for the next frame.
        if let (false, Some(drawn)) = (typed, drawn)
            && drawn.elapsed() < FRAME
        {
            tokio::time::sleep_until(drawn + FRAME).await;
        }
    };
    drop(screen);
    watching.abort();
    running.cancel_all();
    tasks.close();
    // Calls are canceled upstream; a call that does not react in time is abandoned.
    let _ = tokio::time::timeout(Duration::from_secs(2), tasks.wait()).await;
    ended
}

fn message_from_event(event: Input) -> Option<UiMessage> {
    match event {
        Input::Key(key) => KeyPress::from_event(key).map(UiMessage::Key),
        Input::Paste(text) => Some(UiMessage::Paste(text)),
        // A resize is redrawn like any other change.
        _ => None,
    }
}

/// Polls the call history of the yard, one query at a time.
struct HistoryPoller {
    history: Option<Arc<dyn History>>,
    yard: Arc<Yard>,
    principal: Principal,
    reading: Arc<AtomicBool>,
    next: Option<Instant>,
}

impl HistoryPoller {
    fn new(yard: &Arc<Yard>, principal: &Principal, app: &mut App) -> Self {
        let history = yard.history().cloned();
        if history.is_some() {
            app.update(UiMessage::History(Vec::new()));
        }
        let (yard, principal) = (Arc::clone(yard), principal.clone());
        Self { history, yard, principal, reading: Arc::default(), next: None }
    }

    fn poll(&mut self, tasks: &TaskTracker, ui: &mpsc::Sender<UiMessage>) {
        let Some(history) = &self.history else { return };
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) || self.reading.swap(true, Ordering::SeqCst) {
            return;
        }
        self.next = Some(now + REMEMBER);
        let query = HistoryQuery { limit: REMEMBERED, ..HistoryQuery::default() };
        let (reading, ui, history) = (Arc::clone(&self.reading), ui.clone(), Arc::clone(history));
        let visibility = self.yard.visibility(&self.principal);
        tasks.spawn(async move {
            let message = match visibility.recent_calls(&*history, query).await {
                Ok(calls) => UiMessage::History(calls),
                Err(error) => UiMessage::Failed(error.to_string()),
            };
            let _ = ui.send(message).await;
            reading.store(false, Ordering::SeqCst);
        });
    }
}

fn manage(yard: &Yard, principal: &Principal, name: &SourceName, order: SourceCommand) -> UiMessage {
    let state = match order {
        SourceCommand::Reconnect => "is reconnecting",
        SourceCommand::Enable => "is enabled",
        SourceCommand::Disable => "is disabled",
    };
    match yard.manage(principal, name.as_str(), order) {
        Ok(()) => UiMessage::Done(format!("{name} {state}")),
        Err(error) => UiMessage::Failed(format!("{name}: {error}")),
    }
}

/// Writes to a new file; existing files are never overwritten.
fn save(folder: &Path, name: &str, contents: &SaveContents) -> io::Result<PathBuf> {
    use std::io::Write;
    let decoded;
    let bytes: &[u8] = match contents {
        SaveContents::Text(text) => text.as_bytes(),
        SaveContents::Base64(text) => {
            let bare: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            decoded = BASE64_STANDARD
                .decode(bare)
                .map_err(|error| io::Error::other(format!("invalid base64: {error}")))?;
            &decoded
        }
    };
    let (stem, ending) = name.rsplit_once('.').unwrap_or((name, "bin"));
    for number in 1..10_000 {
        let path = folder.join(format!("toolyard-{stem}-{number}.{ending}"));
        match std::fs::File::options().write(true).create_new(true).open(&path) {
            Ok(mut file) => return file.write_all(bytes).map(|()| path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many files with this name"))
}

#[cfg(test)]
mod tests;
