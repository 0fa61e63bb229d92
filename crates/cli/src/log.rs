//! The log: on standard error for the person who started us, and line by line for whoever watches a running yard.

use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use tokio::sync::broadcast;
use toolyard_serve::LogEntry;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// How many lines wait for a watcher; the log never does.
const KEPT: usize = 256;
/// How much of one line a watcher sees.
const LONGEST: usize = 4 * 1024;

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
    let printed = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colour);
    tracing_subscriber::registry().with(filter).with(printed).with(Told).init();
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
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
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
    use tracing_subscriber::layer::SubscriberExt;

    use super::{LONGEST, Told, lines};

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
