//! The log: on standard error for the person who started us, and line by line for whoever watches a running yard.

mod flood;
mod line;

use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use flood::FloodLimit;
use line::ShortLines;
use tokio::sync::broadcast;
use toolyard_serve::LogEntry;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::clean::clean_name;

/// How many lines wait for a watcher; the log never does.
const KEPT: usize = 256;
/// How much of one line a watcher sees.
const LONGEST: usize = 4 * 1024;

static FLOODS: LazyLock<FloodLimit> = LazyLock::new(FloodLimit::default);

static LINES: LazyLock<broadcast::Sender<Arc<LogEntry>>> = LazyLock::new(|| broadcast::channel(KEPT).0);

/// Where the lines of the log can be heard.
pub(crate) fn lines() -> broadcast::Sender<Arc<LogEntry>> {
    LINES.clone()
}

/// Begins to log what this filter lets through.
pub(crate) fn start(filter: Option<&str>) {
    let colour =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let filter = tracing_subscriber::EnvFilter::new(filter.unwrap_or("warn"));
    let printed =
        tracing_subscriber::fmt::layer().fmt_fields(Harmless).with_writer(ShortLines).with_ansi(colour);
    tracing_subscriber::registry().with(filter).with(&*FLOODS).with(printed).with(Told).init();
}

/// Says how many lines were left out and not told yet.
pub(crate) fn finish() {
    FLOODS.report_all();
}

/// Formats the fields of a line as the default formatter does, but every value on one line and without deceptive
/// characters: names, addresses and messages of others must not forge or hide lines.
struct Harmless;

impl<'writer> FormatFields<'writer> for Harmless {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut values = Values { writer: &mut writer, first: true, result: Ok(()) };
        fields.record(&mut values);
        values.result
    }
}

struct Values<'a, 'writer> {
    writer: &'a mut Writer<'writer>,
    first: bool,
    result: fmt::Result,
}

impl Visit for Values<'_, '_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if self.result.is_err() || field.name().starts_with("log.") {
            return;
        }
        let space = if std::mem::take(&mut self.first) { "" } else { " " };
        let value = format!("{value:?}");
        let value = clean_name(&value);
        self.result = match (field.name(), self.writer.has_ansi_escapes()) {
            ("message", _) => write!(self.writer, "{space}{value}"),
            (name, true) => write!(self.writer, "{space}\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}"),
            (name, false) => write!(self.writer, "{space}{name}={value}"),
        };
    }
}

/// Tells watchers.
struct Told;

impl<S: Subscriber> Layer<S> for Told {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if LINES.receiver_count() == 0 {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let Line { mut message, fields, source } = line;
        message.push_str(&fields);
        if let Some((end, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(end);
        }
        let entry = LogEntry {
            at: SystemTime::now(),
            level: word(*event.metadata().level()),
            target: event.metadata().target().to_owned(),
            source,
            message,
        };
        let _ = LINES.send(Arc::new(entry));
    }
}

/// A line of the log as one text: the message, then what it is about.
#[derive(Default)]
struct Line {
    message: String,
    fields: String,
    /// The source that it is about.
    source: Option<String>,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if matches!(field.name(), "server" | "source") {
            self.source = Some(format!("{value:?}").trim_matches('"').to_owned());
        }
        // Writing into a string cannot fail.
        let value = format!("{value:?}");
        let value = clean_name(&value);
        let _ = match field.name() {
            "message" => write!(self.message, "{value}"),
            name => write!(self.fields, " {name}={value}"),
        };
    }
}

fn word(level: Level) -> &'static str {
    match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt;

    use super::{Harmless, LONGEST, Told, lines};

    /// Keeps what is printed.
    #[derive(Clone, Default)]
    struct Printed(Arc<Mutex<Vec<u8>>>);

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_others_say_stays_on_its_line_and_hides_nothing() {
        let printed = Printed::default();
        let writer = printed.clone();
        let layer = tracing_subscriber::fmt::layer().fmt_fields(Harmless).without_time().with_ansi(false);
        let layer = layer.with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let said = "a\nWARN forged\u{202e}\u{1b}[2J\u{200b}b\u{2028}";
            tracing::warn!(target: "yard", server = %said, quoted = said, tries = 3, "not connected: {said}");
        });
        let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
        let shown = r"a\nWARN forged\u{202e}\u{1b}[2J\u{200b}b\u{2028}";
        assert_eq!(
            text,
            format!(" WARN yard: not connected: {shown} server={shown} quoted=\"{shown}\" tries=3\n")
        );
    }

    #[test]
    fn whoever_watches_hears_the_log_line_by_line() {
        let mut heard = lines().subscribe();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(Told), || {
            tracing::warn!(target: "yard", server = %"files", tries = 3, "not connected");
            tracing::info!(target: "yard", "{}", "x".repeat(2 * LONGEST));
        });
        let line = heard.try_recv().unwrap();
        let told = (line.level, line.target.as_str(), line.source.as_deref(), line.message.as_str());
        assert_eq!(told, ("warn", "yard", Some("files"), "not connected server=files tries=3"));
        assert_eq!(heard.try_recv().unwrap().message.len(), LONGEST);
    }
}
