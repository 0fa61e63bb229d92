//! Takes over the terminal and always restores it.

use std::io::{self, Stdout, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossterm::clipboard::CopyToClipboard;
use crossterm::cursor::Show;
use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    BeginSynchronizedUpdate, Clear, ClearType, EndSynchronizedUpdate, EnterAlternateScreen,
    LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::process::{Signal, getpid, kill_process};
use tokio::signal::unix::{SignalKind, signal};

use crate::app::App;

/// Whether the UI owns the terminal. Restoring it twice would move the cursor into output printed
/// in between.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// How long to wait for the stop signal to take effect.
const NO_SHELL: Duration = Duration::from_millis(500);

/// Owns the terminal until dropped.
pub(crate) struct TerminalSession {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl TerminalSession {
    pub(crate) fn enter() -> io::Result<Self> {
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| restore())?;
        Ok(Self { terminal })
    }

    /// Draws what has changed as one synchronized update.
    pub(crate) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        execute!(stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(|frame| app.draw(frame)).map(|_| ());
        execute!(stdout(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Returns the terminal to the shell until the process is resumed.
    pub(crate) async fn suspend(&mut self) -> io::Result<()> {
        let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        restore();
        kill_process(getpid(), Signal::TSTP)?;
        // The kernel may deliver the signal to any thread, so this one runs on for a moment. It
        // must not take the terminal back before the shell had it. In an orphaned process group the
        // signal is ignored and there is no SIGCONT to wait for.
        let _ = tokio::time::timeout(NO_SHELL, continued.recv()).await;
        enter()?;
        // A new terminal redraws everything. The old one would first query the cursor position, and
        // the event stream would consume the reply.
        execute!(stdout(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(())
    }

    /// Asks the terminal to copy text to its clipboard.
    pub(crate) fn copy(&self, text: &str) -> io::Result<()> {
        execute!(stdout(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        restore();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    TAKEN.store(true, Ordering::Relaxed);
    execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste).inspect_err(|_| restore())
}

/// Installs a panic hook that restores the terminal and runs `also` before it reports a panic of
/// the current thread, which ends the UI, so that the report is readable. Panics of other threads
/// are reported as before.
pub fn restore_on_panic(also: impl Fn() + Send + Sync + 'static) {
    let own = std::thread::current().id();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == own {
            restore();
            also();
        }
        usual(info);
    }));
}

/// Restores the terminal. Does nothing if the UI does not own it, so that a panic hook can call it
/// before printing.
pub fn restore() {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    // A failure here cannot be reported anywhere.
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, Show);
}
