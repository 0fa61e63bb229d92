//! Terminal output of the commands: data on standard output, messages on standard error. Colors,
//! tables and animations appear only on a terminal.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};
use std::time::Duration;

use anstyle::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use unicode_width::UnicodeWidthStr;

use crate::clean::clean;

/// How long work may take before a spinner appears.
const PATIENCE: Duration = Duration::from_millis(300);
const FRAME: Duration = Duration::from_millis(100);
const USUAL_WIDTH: usize = 100;

/// Standard output.
pub(crate) struct StdoutWriter {
    writer: BufWriter<StdoutLock<'static>>,
    terminal: bool,
    color: bool,
}

impl StdoutWriter {
    pub(crate) fn new() -> Self {
        let terminal = io::stdout().is_terminal();
        Self { writer: BufWriter::new(io::stdout().lock()), terminal, color: terminal && wants_color() }
    }

    /// Whether standard output is a terminal.
    pub(crate) fn is_terminal(&self) -> bool {
        self.terminal
    }

    pub(crate) fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes)
    }

    pub(crate) fn write_line(&mut self, line: &str) -> io::Result<()> {
        self.writer.write_all(line.as_bytes())?;
        self.writer.write_all(b"\n")
    }

    /// Writes text received from a server, with a trailing newline. It is unchanged in a file or a
    /// pipe, and sanitized on a terminal.
    pub(crate) fn write_text(&mut self, text: &str) -> io::Result<()> {
        match self.terminal {
            true => self.writer.write_all(clean(text).as_bytes())?,
            false => self.writer.write_all(text.as_bytes())?,
        }
        if text.ends_with('\n') { Ok(()) } else { self.writer.write_all(b"\n") }
    }

    pub(crate) fn styled(&self, style: Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Writes rows of sanitized cells: as a table on a terminal, else separated by tabs. The last
    /// column is truncated to the width of the terminal.
    pub(crate) fn write_table(&mut self, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
        if !self.terminal {
            for row in rows {
                self.write_line(&row.join("\t"))?;
            }
            return Ok(());
        }
        let wide = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width());
            cells.chain(head.get(column).map(|title| title.width())).max().unwrap_or(0)
        };
        let last = head.len().saturating_sub(1);
        let widths: Vec<usize> = (0..last).map(wide).collect();
        let room = width().saturating_sub(widths.iter().map(|width| width + 2).sum()).max(20);
        let titles: Vec<String> = head.iter().map(|title| title.to_uppercase()).collect();
        let line = |cells: &[String]| {
            let mut text = String::new();
            for (column, cell) in cells.iter().enumerate() {
                match widths.get(column) {
                    Some(width) => {
                        text.push_str(cell);
                        text.push_str(&" ".repeat(width.saturating_sub(cell.width()) + 2));
                    }
                    None => text.push_str(&truncate_to_width(cell, room)),
                }
            }
            text.trim_end().to_owned()
        };
        let title = self.styled(Style::new().dimmed(), &line(&titles));
        self.write_line(&title)?;
        rows.iter().try_for_each(|row| self.write_line(&line(row)))
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Prints data unchanged. A closed pipe is not an error, because the reader may have read enough.
pub(crate) fn print(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Like [`print`], for bytes that may not be text.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints `error: MESSAGE` to standard error, like clap does.
pub(crate) fn print_error(message: &str) {
    print_message("error: ", message);
}

/// Prints `warning: MESSAGE` to standard error.
pub(crate) fn print_warning(message: &str) {
    print_message("warning: ", message);
}

/// Prints `note: MESSAGE` to standard error.
pub(crate) fn print_note(message: &str) {
    print_message("note: ", message);
}

/// Prints the suggestion that belongs to the message printed before: `  hint: SUGGESTION`. Further
/// lines of the suggestion are aligned with the first.
pub(crate) fn print_hint(suggestion: &str) {
    print_message("  hint: ", &suggestion.lines().collect::<Vec<_>>().join("\n        "));
}

/// Prints an indented detail of the message printed before.
pub(crate) fn print_detail(text: &str) {
    print_message("  ", text);
}

/// Every message of the CLI goes through here. Errors are ignored because standard error may be
/// closed.
fn print_message(prefix: &str, text: &str) {
    let _ = writeln!(io::stderr(), "{prefix}{}", clean(text));
}

/// Prints text received from a server to standard error, sanitized if that is a terminal.
pub(crate) fn print_stderr_text(text: &str) {
    let cleaned = if io::stderr().is_terminal() { clean(text) } else { text.into() };
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(io::stderr(), "{cleaned}{end}");
}

/// Whether a user is present to answer questions.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Whether animations are possible on standard error.
pub(crate) fn can_animate() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn wants_color() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    !unwanted && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn width() -> usize {
    terminal_size::terminal_size().map_or(USUAL_WIDTH, |(width, _)| usize::from(width.0))
}

/// Runs `work` and shows a spinner if it takes a while.
pub(crate) async fn with_spinner<T>(words: impl Fn() -> String, work: impl Future<Output = T>) -> T {
    if !can_animate() {
        return work.await;
    }
    tokio::pin!(work);
    if let Ok(done) = tokio::time::timeout(PATIENCE, &mut work).await {
        return done;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.set_style(ProgressStyle::default_spinner());
    loop {
        bar.set_message(clean(&words()).into_owned());
        bar.tick();
        if let Ok(done) = tokio::time::timeout(FRAME, &mut work).await {
            bar.finish_and_clear();
            return done;
        }
    }
}

/// Clears the spinner, so that a message can be printed. The spinner reappears below.
pub(crate) fn clear_line() {
    if can_animate() {
        let _ = write!(io::stderr(), "\r\x1b[2K");
    }
}

/// The progress bar of a call.
pub(crate) fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent}% {msg}") {
        bar.set_style(style);
    }
    bar
}

/// Formats a count with its noun, such as `1 server` or `2 servers`.
pub(crate) fn format_count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// The start of a text that fits this width.
fn truncate_to_width(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut shown = String::new();
    for letter in text.chars() {
        if shown.width() + letter.len_utf8().min(2) >= room {
            break;
        }
        shown.push(letter);
    }
    shown + "…"
}
