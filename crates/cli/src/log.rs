//! The log: written to standard error, and sent line by line to the clients that watch a running
//! yard.

mod flood;
mod truncating_writer;

use std::fmt::{self, Write};
use std::io::IsTerminal;
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::SystemTime;

use flood::FloodLimit;
use tokio::sync::broadcast;
use toolyard_hub::Redaction;
use toolyard_serve::LogEntry;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::FormatFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use truncating_writer::TruncatingStderr;

use crate::clean::clean_name;

/// How many lines are buffered for a watcher. The log never waits for one.
const KEPT: usize = 256;
/// Replaces the value of a secret field.
const HIDDEN: &str = "[redacted]";
/// How much of one line a watcher receives.
const LONGEST: usize = 4 * 1024;

static FLOODS: LazyLock<FloodLimit> = LazyLock::new(FloodLimit::default);

static LINES: LazyLock<broadcast::Sender<Arc<LogEntry>>> = LazyLock::new(|| broadcast::channel(KEPT).0);

/// Where watchers subscribe to log lines.
pub(crate) fn line_sender() -> broadcast::Sender<Arc<LogEntry>> {
    LINES.clone()
}

/// The redaction rules: the defaults until the configuration has been read, then its rules.
static USUAL: LazyLock<Redaction> = LazyLock::new(Redaction::default);
static CONFIGURED: OnceLock<Redaction> = OnceLock::new();

/// Applies these redaction rules from now on. Only the first configuration of a process takes
/// effect.
pub(crate) fn set_redaction(redaction: Redaction) {
    let _ = CONFIGURED.set(redaction);
}

fn redaction() -> &'static Redaction {
    CONFIGURED.get().unwrap_or(&USUAL)
}

/// Starts logging with this filter.
pub(crate) fn start(filter: Option<&str>) {
    let colour =
        std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let filter = tracing_subscriber::EnvFilter::new(filter.unwrap_or("warn"));
    let printed = tracing_subscriber::fmt::layer()
        .fmt_fields(SafeFields)
        .with_writer(TruncatingStderr)
        .with_ansi(colour);
    tracing_subscriber::registry().with(filter).with(&*FLOODS).with(printed).with(BroadcastLayer).init();
}

/// Logs how many lines were suppressed and not reported yet.
pub(crate) fn finish() {
    FLOODS.report_all();
}

/// Sends log lines to watchers.
struct BroadcastLayer;

impl<S: Subscriber> Layer<S> for BroadcastLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if LINES.receiver_count() == 0 {
            return;
        }
        let mut line = LogFields::default();
        event.record(&mut line);
        let LogFields { mut message, fields, source } = line;
        message.push_str(&fields);
        if let Some((end, _)) = message.char_indices().nth(LONGEST) {
            message.truncate(end);
        }
        let entry = LogEntry {
            at: SystemTime::now(),
            level: level_name(*event.metadata().level()),
            target: event.metadata().target().to_owned(),
            source,
            message,
        };
        let _ = LINES.send(Arc::new(entry));
    }
}

/// Formats the fields of a line without secrets. Every value is on one line and free of deceptive
/// characters, so that names, addresses and messages of others cannot forge or hide lines.
struct SafeFields;

impl<'writer> FormatFields<'writer> for SafeFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'writer>, fields: R) -> fmt::Result {
        let mut line = LogFields::default();
        fields.record(&mut line);
        let text = line.message + &line.fields;
        writer.write_str(text.trim_start())
    }
}

/// A log line as one redacted text: the message, then its fields.
#[derive(Default)]
struct LogFields {
    message: String,
    fields: String,
    /// The source that the line is about.
    source: Option<String>,
}

impl Visit for LogFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let (name, value) = (field.name(), format!("{value:?}"));
        if name.starts_with("log.") {
            return;
        }
        if name == "message" {
            self.message.push_str(&clean_name(&redaction().redact_text(&value)));
            return;
        }
        if matches!(name, "server" | "source") {
            self.source = Some(value.trim_matches('"').to_owned());
        }
        let shown =
            if redaction().is_secret_key(name) { HIDDEN.into() } else { redaction().redact_text(&value) };
        // Writing to a string cannot fail.
        let _ = write!(self.fields, " {name}={}", clean_name(&shown));
    }
}

fn level_name(level: Level) -> &'static str {
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
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing_subscriber::layer::SubscriberExt;

    use super::{BroadcastLayer, LONGEST, SafeFields, line_sender};

    /// Collects what is written.
    #[derive(Clone, Default)]
    struct Printed(Arc<Mutex<Vec<u8>>>);

    impl Write for Printed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_others_say_stays_on_its_line_and_hides_nothing() {
        let printed = Printed::default();
        let writer = printed.clone();
        let layer = tracing_subscriber::fmt::layer().fmt_fields(SafeFields).without_time().with_ansi(false);
        let layer = layer.with_writer(move || writer.clone());
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let hostile = "a\nWARN forged\u{202e}\u{1b}[2J\u{200b}b\u{2028}";
            tracing::warn!(target: "yard", server = %hostile, quoted = hostile, tries = 3, "not connected: {hostile}");
        });
        let text = String::from_utf8(printed.0.lock().clone()).unwrap();
        let shown = r"a\nWARN forged\u{202e}\u{1b}[2J\u{200b}b\u{2028}";
        assert_eq!(
            text,
            format!(" WARN yard: not connected: {shown} server={shown} quoted=\"{shown}\" tries=3\n")
        );
    }

    #[test]
    fn watchers_receive_each_log_line() {
        let mut receiver = line_sender().subscribe();
        tracing::subscriber::with_default(tracing_subscriber::registry().with(BroadcastLayer), || {
            tracing::warn!(target: "yard", server = %"files", tries = 3, "not connected");
            tracing::info!(target: "yard", "{}", "x".repeat(2 * LONGEST));
        });
        let line = receiver.try_recv().unwrap();
        let fields = (line.level, line.target.as_str(), line.source.as_deref(), line.message.as_str());
        assert_eq!(fields, ("warn", "yard", Some("files"), "not connected server=files tries=3"));
        assert_eq!(receiver.try_recv().unwrap().message.len(), LONGEST);
    }

    #[test]
    fn secrets_are_neither_told_nor_printed() {
        let printed = Printed::default();
        let writer = printed.clone();
        let layer = tracing_subscriber::fmt::layer()
            .with_writer(move || writer.clone())
            .with_ansi(true)
            .fmt_fields(SafeFields);
        let mut receiver = line_sender().subscribe();
        tracing::subscriber::with_default(
            tracing_subscriber::registry().with(BroadcastLayer).with(layer),
            || {
                let url = "http://h/sse?token=hunter2&page=2";
                tracing::warn!(target: "secrets", url, otp = 1234, "refused: Authorization: Bearer hunter2");
            },
        );
        let expected =
            "refused: Authorization: [redacted] url=\"http://h/sse?token=[redacted]&page=2\" otp=[redacted]";
        let line = std::iter::from_fn(|| receiver.try_recv().ok()).find(|line| line.target == "secrets");
        assert_eq!(line.unwrap().message, expected);
        let printed = String::from_utf8(printed.0.lock().clone()).unwrap();
        assert!(printed.contains(expected) && !printed.contains("hunter2"), "{printed}");
    }
}
