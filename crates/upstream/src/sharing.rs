//! Which clients share the connection to one server, and which need private sessions. `auto` starts
//! with all clients on the shared connection and adapts to the requests of the server. It never
//! guesses what state a server keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use toolyard_hub::{ClientCapabilities, ErrorKind, HubError, QuestionKind, SourceCall, SourceName};
use toolyard_wire::McpClient;

use crate::connection::LiveConnection;
use crate::in_flight::InFlightCall;
use crate::settings::{ServerSettings, SessionSharing};

/// How the clients of one server share its connection, for the lifetime of the process.
#[derive(Debug)]
pub(crate) struct SharingState {
    server: SourceName,
    mode: SessionSharing,
    /// A bit set of question kinds. Clients that support one of them get a private session.
    private_kinds: AtomicU8,
}

impl SharingState {
    pub(crate) fn new(settings: &ServerSettings) -> Self {
        let private_kinds = AtomicU8::new(0);
        Self { server: settings.name.clone(), mode: settings.sessions, private_kinds }
    }

    /// Returns the capabilities declared on the shared connection: all of them, because some client
    /// may have them.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { elicit_form: true, elicit_url: true, sample: true, roots: true, log_level: None }
    }

    /// Returns whether the client of this call needs a private session.
    pub(crate) fn needs_private_session(&self, shared: &LiveConnection, call: &SourceCall) -> bool {
        match self.mode {
            SessionSharing::Shared => false,
            // Modern HTTP has no sessions.
            SessionSharing::PerClient => !shared.is_modern() || matches!(*shared.client, McpClient::Stdio(_)),
            // A modern server asks in its results, so the client is always unambiguous.
            SessionSharing::Auto => !shared.is_modern() && self.client_needs_private_session(call),
        }
    }

    fn client_needs_private_session(&self, call: &SourceCall) -> bool {
        let private = self.private_kinds.load(Ordering::Relaxed);
        // If a client can be asked in some calls, all its calls use the private session, so that
        // all of them see the same state.
        let session = call.record.context.client_session.as_ref();
        let capabilities = session.map_or(call.client.capabilities(), |session| session.capabilities());
        private != 0 && KINDS.into_iter().any(|kind| private & bit(kind) != 0 && capabilities.supports(kind))
    }

    /// Gives private sessions to clients that can answer this kind of question, from now on.
    pub(crate) fn require_private_sessions(&self, kind: QuestionKind) {
        let before = self.private_kinds.fetch_or(bit(kind), Ordering::Relaxed);
        if self.mode == SessionSharing::Auto && before & bit(kind) == 0 {
            let (server, kind) = (&self.server, kind_label(kind));
            tracing::info!(%server, kind, "using private sessions for clients that can answer questions");
        }
    }

    /// Aborts the calls that an ambiguous question of the server may be about.
    pub(crate) fn abort_ambiguous_calls(
        &self,
        kind: QuestionKind,
        method: &str,
        calls: &[Arc<InFlightCall>],
    ) {
        self.require_private_sessions(kind);
        let server = &self.server;
        for flight in calls {
            let message = format!(
                "{server} sent {method} while calls of several clients were in flight, and it is not clear \
                 which client it is for; the call was aborted and may have had side effects"
            );
            let suggestion = match self.mode {
                SessionSharing::Shared => format!("set `sessions = \"per-client\"` for {server}"),
                SessionSharing::Auto | SessionSharing::PerClient => {
                    format!("repeat the call: from now on this client has a private session with {server}")
                }
            };
            flight.abort(HubError::new(ErrorKind::ToolFailed, message).with_suggestion(suggestion));
        }
    }
}

const KINDS: [QuestionKind; 4] =
    [QuestionKind::ElicitForm, QuestionKind::ElicitUrl, QuestionKind::Sample, QuestionKind::Roots];

fn bit(kind: QuestionKind) -> u8 {
    match kind {
        QuestionKind::ElicitForm => 1,
        QuestionKind::ElicitUrl => 2,
        QuestionKind::Sample => 4,
        QuestionKind::Roots => 8,
    }
}

fn kind_label(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::ElicitForm => "form",
        QuestionKind::ElicitUrl => "url",
        QuestionKind::Sample => "sampling",
        QuestionKind::Roots => "roots",
    }
}
