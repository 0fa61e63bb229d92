//! What a caller did on a connection, as a test file. The file is returned on disconnect, so that an
//! assistant can save what it has found out.

use parking_lot::Mutex;
use serde_json::Value;
use toolyard_hub::{HubError, Outcome, Raw};
use toolyard_suite::{SavedCall, SavedOutcome, SavedRequest, SavedServer, render_saved_tests};
use toolyard_upstream::TransportSettings;

use crate::target::TesterTarget;

/// How many calls are kept, and how many bytes of their arguments and results. The file is part of
/// an assistant's context.
const MOST: usize = 50;
const MOST_BYTES: usize = 16 * 1024;

/// The calls of a connection, oldest first.
#[derive(Debug)]
pub(crate) struct SavedCallLog {
    server: SavedServer,
    state: Mutex<SavedCallState>,
}

#[derive(Debug, Default)]
struct SavedCallState {
    calls: Vec<SavedCall>,
    bytes: usize,
    dropped: usize,
}

impl SavedCallLog {
    pub(crate) fn new(server: SavedServer) -> Self {
        Self { server, state: Mutex::default() }
    }

    /// Adds a call that the server has answered.
    pub(crate) fn add(&self, request: SavedRequest, result: &Result<Outcome, HubError>) {
        let (outcome, bytes) = match result {
            Ok(outcome) => {
                let Ok(result) = serde_json::from_str(outcome.body.get()) else { return };
                (SavedOutcome::Result(result), outcome.body.get().len())
            }
            // Without an answer, there is nothing to expect.
            Err(error) => match error.source_error() {
                Some(answer) => (SavedOutcome::Error(Some(answer.code)), 0),
                None => return,
            },
        };
        let arguments = match &request {
            SavedRequest::Call { arguments, .. } | SavedRequest::Prompt { arguments, .. } => {
                arguments.to_string().len()
            }
            SavedRequest::Read { uri } => uri.len(),
        };
        let mut state = self.state.lock();
        let bytes = state.bytes + bytes + arguments;
        if state.calls.len() >= MOST || bytes > MOST_BYTES {
            state.dropped += 1;
            return;
        }
        state.bytes = bytes;
        state.calls.push(SavedCall { request, outcome });
    }

    /// Returns the test file. `None` if nothing was called.
    pub(crate) fn render(&self) -> Option<String> {
        let state = self.state.lock();
        if state.calls.is_empty() {
            return None;
        }
        let mut text = render_saved_tests(&self.server, &state.calls);
        if state.dropped > 0 {
            text.push_str(&format!(
                "# Left out, because the file would be too large: {} calls\n",
                state.dropped
            ));
        }
        Some(text)
    }
}

/// Returns the server of a test file for a target. Values of variables and headers stay outside.
pub(crate) fn saved_server(target: &TesterTarget) -> SavedServer {
    match target {
        TesterTarget::Configured(settings) => SavedServer::Configured(settings.name.to_string()),
        TesterTarget::Address(settings) | TesterTarget::Command(settings) => match &settings.transport {
            TransportSettings::Command(command) => SavedServer::Command {
                program: command.program.clone(),
                args: command.args.clone(),
                env: command.env.keys().cloned().collect(),
                // The file can be saved anywhere.
                cwd: std::env::current_dir().ok().map(|folder| folder.display().to_string()),
            },
            TransportSettings::Url(url) => {
                SavedServer::Url { url: url.url.clone(), headers: url.headers.keys().cloned().collect() }
            }
        },
    }
}

/// Reads arguments, which the yard has parsed before.
pub(crate) fn read_arguments(arguments: &Raw) -> Value {
    serde_json::from_str(arguments.get()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use toolyard_hub::json::to_raw;
    use toolyard_hub::{ErrorKind, HubError, Outcome};
    use toolyard_suite::{SavedRequest, SavedServer};

    use super::{MOST, SavedCallLog};

    fn call(log: &SavedCallLog, length: usize) {
        let result = json!({"content": [{"type": "text", "text": "x".repeat(length)}]});
        let request = SavedRequest::Call { tool: "a".to_owned(), arguments: json!({}) };
        log.add(request, &Ok(Outcome::success(to_raw(&result))));
    }

    #[test]
    fn the_file_is_bounded() {
        let log = SavedCallLog::new(SavedServer::Configured("s".to_owned()));
        assert_eq!(log.render(), None);
        let request = SavedRequest::Read { uri: "a:b".to_owned() };
        log.add(request, &Err(HubError::new(ErrorKind::TimedOut, "late")));
        assert_eq!(log.render(), None);
        call(&log, 20_000);
        for _ in 0..MOST {
            call(&log, 1);
        }
        call(&log, 1);
        let text = log.render().unwrap();
        assert_eq!(text.matches("  - name: ").count(), MOST);
        assert!(text.ends_with("# Left out, because the file would be too large: 2 calls\n"), "{text}");
    }
}
