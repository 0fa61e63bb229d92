//! Captures standard error while the UI owns the screen: everything written to it becomes lines of
//! the UI's log. A panic restores the terminal before its message is printed.

use std::io::{BufRead, BufReader, IsTerminal, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use tokio::sync::mpsc;
use toolyard_tui::{UiLogEntry, UiLogKind, UiMessage};

/// How much of one line is read.
const LONGEST: u64 = 16 * 1024;

/// Captures standard error until this is dropped.
pub(crate) struct StderrCapture {
    /// The original standard error. `None` if it is not a terminal: a redirection is left alone.
    original: Option<Arc<OwnedFd>>,
}

impl StderrCapture {
    /// Starts sending lines to the UI. Lines that arrive faster than the UI reads them are dropped.
    pub(crate) fn start(ui: mpsc::Sender<UiMessage>) -> anyhow::Result<Self> {
        let original = match std::io::stderr().is_terminal() {
            true => Some(Arc::new(redirect(ui).context("cannot redirect standard error")?)),
            false => None,
        };
        // A panic of another thread goes to the log, like everything written to standard error.
        let to_restore = original.clone();
        toolyard_tui::restore_on_panic(move || restore(to_restore.as_deref()));
        Ok(Self { original })
    }
}

impl Drop for StderrCapture {
    fn drop(&mut self) {
        restore(self.original.as_deref());
    }
}

fn redirect(ui: mpsc::Sender<UiMessage>) -> std::io::Result<OwnedFd> {
    let original = std::io::stderr().as_fd().try_clone_to_owned()?;
    let (reader, writer) = std::io::pipe()?;
    std::thread::Builder::new().name("stderr".to_owned()).spawn(move || forward_lines(reader, &ui))?;
    rustix::stdio::dup2_stderr(&writer)?;
    Ok(original)
}

/// Returns when all writers have closed the pipe.
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

fn restore(original: Option<&OwnedFd>) {
    if let Some(original) = original {
        let _ = rustix::stdio::dup2_stderr(original);
    }
}
