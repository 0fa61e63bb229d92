//! Merges the progress of a program and of its calls into one scale for the caller. MCP requires
//! every value to be larger than the previous one.

use parking_lot::Mutex;
use toolyard_hub::{CallerChannel, Progress};

/// The increment for a progress report of a call, as long as the program has not set a total.
const TICK: f64 = 0.001;

#[derive(Debug, Default)]
pub(crate) struct ProgressMeter {
    state: Mutex<ProgressState>,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// The last value; `None` before the first report, which may be zero.
    value: Option<f64>,
    total: Option<f64>,
}

impl ProgressMeter {
    /// Forwards progress that the program reports, if the value increases.
    pub(crate) fn report_own(&self, client: &CallerChannel, report: Progress) {
        let mut state = self.state.lock();
        if report.progress.is_finite() && state.value.is_none_or(|value| report.progress > value) {
            state.value = Some(report.progress);
            state.total = report.total;
            client.report_progress(report);
        }
    }

    /// Forwards progress that a tool reports. Its scale differs from the program's, so its values
    /// go into the message and the progress increases by a small step.
    pub(crate) fn report_call(&self, client: &CallerChannel, tool: &str, report: &Progress) {
        let mut state = self.state.lock();
        let value = state.value.unwrap_or_default();
        let value = if state.total.is_some() { value.next_up() } else { value + TICK };
        state.value = Some(value);
        let (message, progress) = (report.message.as_deref().unwrap_or_default(), report.progress);
        let fraction =
            report.total.map_or_else(|| format!("{progress}"), |total| format!("{progress} of {total}"));
        let colon = if message.is_empty() { "" } else { ": " };
        let message = Some(format!("{tool} ({fraction}){colon}{message}"));
        client.report_progress(Progress { progress: value, total: state.total, message });
    }
}

#[cfg(test)]
mod tests {
    use toolyard_hub::{CallerChannel, CallerUpdate, ClientCapabilities, Progress};

    use super::ProgressMeter;

    #[test]
    fn the_first_progress_may_be_zero() {
        let (client, mut updates) = CallerChannel::new(ClientCapabilities::default());
        let meter = ProgressMeter::default();
        let report = |progress| Progress { progress, total: Some(2.0), message: None };
        for progress in [0.0, 0.0, 1.0] {
            meter.report_own(&client, report(progress));
        }
        let mut seen = Vec::new();
        while let Ok(CallerUpdate::Progress(progress)) = updates.try_recv() {
            seen.push(progress.progress);
        }
        assert_eq!(seen, [0.0, 1.0]);
    }

    #[test]
    fn the_callers_progress_always_increases() {
        let (client, mut updates) = CallerChannel::new(ClientCapabilities::default());
        let meter = ProgressMeter::default();
        let report = |progress, total| Progress { progress, total, message: None };
        meter.report_call(&client, "fetch", &report(50.0, Some(100.0)));
        meter.report_own(&client, report(1.0, Some(3.0)));
        meter.report_call(&client, "fetch", &report(7.0, None));
        meter.report_own(&client, report(0.5, None));
        meter.report_own(&client, report(f64::NAN, None));
        meter.report_own(&client, report(3.0, Some(3.0)));
        let mut seen = Vec::new();
        while let Ok(CallerUpdate::Progress(progress)) = updates.try_recv() {
            seen.push((progress.progress, progress.total, progress.message));
        }
        assert!(seen.is_sorted_by(|one, other| one.0 < other.0), "{seen:?}");
        let messages: Vec<Option<&str>> = seen.iter().map(|(_, _, message)| message.as_deref()).collect();
        assert_eq!(messages, [Some("fetch (50 of 100)"), None, Some("fetch (7)"), None]);
        assert_eq!(seen[3].0, 3.0);
    }
}
