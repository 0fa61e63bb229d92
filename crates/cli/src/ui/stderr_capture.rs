//! Standard error, put aside while the UI has the screen: whatever is written to it becomes lines for the log. A panic
//! gets the terminal back as it was before it is told.

use std::io::{BufRead, BufReader, IsTerminal, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use tokio::sync::mpsc;
use toolyard_tui::{UiLogEntry, UiLogKind, UiMessage};

/// How much of one line is read.
const LONGEST: u64 = 16 * 1024;

/// Standard error is aside until this is dropped.
pub(crate) struct StderrCapture {
    /// Where it went before. Nothing where it is not the terminal: who sent it elsewhere wants it there.
    original: Option<Arc<OwnedFd>>,
}

impl StderrCapture {
    /// What is written to it from now on is told to the UI; of a flood the rest is left out.
    pub(crate) fn start(ui: mpsc::Sender<UiMessage>) -> anyhow::Result<Self> {
        let before = match std::io::stderr().is_terminal() {
            true => Some(Arc::new(redirect(ui).context("cannot put standard error aside")?)),
            false => None,
        };
        // One of another thread goes into the log, like everything that is written to standard error.
        let as_it_was = before.clone();
        toolyard_tui::restore_on_panic(move || restore(as_it_was.as_deref()));
        Ok(Self { original: before })
    }
}

impl Drop for StderrCapture {
    fn drop(&mut self) {
        restore(self.original.as_deref());
    }
}

fn redirect(ui: mpsc::Sender<UiMessage>) -> std::io::Result<OwnedFd> {
    let before = std::io::stderr().as_fd().try_clone_to_owned()?;
    let (reader, writer) = std::io::pipe()?;
    std::thread::Builder::new().name("stderr".to_owned()).spawn(move || forward_lines(reader, &ui))?;
    rustix::stdio::dup2_stderr(&writer)?;
    Ok(before)
}

/// Ends when nobody can write any more.
fn forward_lines(reader: PipeReader, ui: &mpsc::Sender<UiMessage>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.by_ref().take(LONGEST).read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        let entry = UiLogEntry { at: SystemTime::now(), kind: UiLogKind::Own, source: None, text };
        let _ = ui.try_send(UiMessage::LogEntries(vec![entry]));
        line.clear();
    }
}

fn restore(before: Option<&OwnedFd>) {
    if let Some(before) = before {
        let _ = rustix::stdio::dup2_stderr(before);
    }
}
