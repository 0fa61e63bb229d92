//! Progress of a program and of its calls on the one scale that its caller sees, where every value must be larger than the
//! one before.

use parking_lot::Mutex;
use toolyard_hub::{CallerChannel, Progress};

/// What a word of a call moves the needle by, while the program says nothing itself.
const TICK: f64 = 0.001;

#[derive(Debug, Default)]
pub(crate) struct ProgressMeter {
    at: Mutex<ProgressState>,
}

#[derive(Debug, Default)]
struct ProgressState {
    /// Nothing was said yet where there is none: the first value may be zero.
    value: Option<f64>,
    total: Option<f64>,
}

impl ProgressMeter {
    /// The program says how far it is: that is what the caller sees.
    pub(crate) fn report_own(&self, client: &CallerChannel, said: Progress) {
        let mut at = self.at.lock();
        if said.progress.is_finite() && at.value.is_none_or(|value| said.progress > value) {
            at.value = Some(said.progress);
            at.total = said.total;
            client.report_progress(said);
        }
    }

    /// A call says how far it is. That is another scale, so it is told in words, and the needle moves a little.
    pub(crate) fn report_call(&self, client: &CallerChannel, tool: &str, said: &Progress) {
        let mut at = self.at.lock();
        let value = at.value.unwrap_or_default();
        let value = if at.total.is_some() { value.next_up() } else { value + TICK };
        at.value = Some(value);
        let (message, progress) = (said.message.as_deref().unwrap_or_default(), said.progress);
        let far = said.total.map_or_else(|| format!("{progress}"), |total| format!("{progress} of {total}"));
        let colon = if message.is_empty() { "" } else { ": " };
        let message = Some(format!("{tool} ({far}){colon}{message}"));
        client.report_progress(Progress { progress: value, total: at.total, message });
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
        let said = |progress| Progress { progress, total: Some(2.0), message: None };
        for progress in [0.0, 0.0, 1.0] {
            meter.report_own(&client, said(progress));
        }
        let mut seen = Vec::new();
        while let Ok(CallerUpdate::Progress(progress)) = updates.try_recv() {
            seen.push(progress.progress);
        }
        assert_eq!(seen, [0.0, 1.0]);
    }

    #[test]
    fn what_the_caller_sees_always_grows() {
        let (client, mut updates) = CallerChannel::new(ClientCapabilities::default());
        let meter = ProgressMeter::default();
        let said = |progress, total| Progress { progress, total, message: None };
        meter.report_call(&client, "fetch", &said(50.0, Some(100.0)));
        meter.report_own(&client, said(1.0, Some(3.0)));
        meter.report_call(&client, "fetch", &said(7.0, None));
        meter.report_own(&client, said(0.5, None));
        meter.report_own(&client, said(f64::NAN, None));
        meter.report_own(&client, said(3.0, Some(3.0)));
        let mut seen = Vec::new();
        while let Ok(CallerUpdate::Progress(progress)) = updates.try_recv() {
            seen.push((progress.progress, progress.total, progress.message));
        }
        assert!(seen.is_sorted_by(|one, other| one.0 < other.0), "{seen:?}");
        let words: Vec<Option<&str>> = seen.iter().map(|(_, _, message)| message.as_deref()).collect();
        assert_eq!(words, [Some("fetch (50 of 100)"), None, Some("fetch (7)"), None]);
        assert_eq!(seen[3].0, 3.0);
    }
}
