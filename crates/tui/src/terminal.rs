//! The terminal itself: taken over, and always given back as it was.

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

/// Whether the terminal is ours now. Giving it back twice would move the cursor into what was printed in between.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// How long it may take to be stopped.
const NO_SHELL: Duration = Duration::from_millis(500);

/// A terminal that is taken over until this is dropped.
pub(crate) struct TerminalSession {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl TerminalSession {
    pub(crate) fn enter() -> io::Result<Self> {
        enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| restore())?;
        Ok(Self { terminal })
    }

    /// Draws what has changed, at once for whoever looks.
    pub(crate) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        execute!(stdout(), BeginSynchronizedUpdate)?;
        let drawn = self.terminal.draw(|frame| app.draw(frame)).map(|_| ());
        execute!(stdout(), EndSynchronizedUpdate)?;
        drawn
    }

    /// Lets the shell have the terminal until it wants us back.
    pub(crate) async fn suspend(&mut self) -> io::Result<()> {
        let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        restore();
        kill_process(getpid(), Signal::TSTP)?;
        // The kernel may take any thread to stop all of them, and this one goes on for a moment: the terminal must not be
        // taken before the shell has had it. Where nobody could wake us the signal is ignored, and nothing is to be waited for.
        let _ = tokio::time::timeout(NO_SHELL, continued.recv()).await;
        enter()?;
        // A new one draws everything. The old one would ask the terminal where its cursor is first, and whoever waits for keys
        // would hear the answer instead.
        execute!(stdout(), Clear(ClearType::All))?;
        self.terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        Ok(())
    }

    /// Asks the terminal to put a text on its clipboard.
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

/// From now on a panic of this thread, which ends the UI, is told only when the terminal is back as it was and `also` is
/// done, so that it can be read. One of another thread is told as before.
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

/// Gives the terminal back. Harmless where it was not taken; for whoever must print at once, such as a panic.
pub fn restore() {
    if !TAKEN.swap(false, Ordering::Relaxed) {
        return;
    }
    // There is nobody to tell if this fails.
    let _ = disable_raw_mode();
    let _ = execute!(stdout(), EndSynchronizedUpdate, DisableBracketedPaste, LeaveAlternateScreen, Show);
}
