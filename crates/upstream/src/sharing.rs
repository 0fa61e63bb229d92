//! Which clients share the connection to one server, and which need private sessions. `auto` starts with everybody on the
//! shared connection and learns from what the server asks; it never guesses what state a server keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use toolyard_hub::{ClientCapabilities, ErrorKind, HubError, QuestionKind, SourceCall, SourceName};
use toolyard_wire::McpClient;

use crate::connection::LiveConnection;
use crate::in_flight::InFlightCall;
use crate::settings::{ServerSettings, SessionSharing};

/// How the clients of one server share it, as long as the process runs.
#[derive(Debug)]
pub(crate) struct SharingState {
    server: SourceName,
    mode: SessionSharing,
    /// The kinds of questions, as bits, that clients who can answer them are asked in private sessions.
    private_kinds: AtomicU8,
}

impl SharingState {
    pub(crate) fn new(settings: &ServerSettings) -> Self {
        let private_kinds = AtomicU8::new(0);
        Self { server: settings.name.clone(), mode: settings.sessions, private_kinds }
    }

    /// What the shared connection says that its client can be asked: everything, because some client can be.
    pub(crate) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { elicit_form: true, elicit_url: true, sample: true, roots: true, log_level: None }
    }

    /// Whether the client of this call has a private session with the server.
    pub(crate) fn needs_private_session(&self, shared: &LiveConnection, call: &SourceCall) -> bool {
        match self.mode {
            SessionSharing::Shared => false,
            // Over modern HTTP there are no sessions.
            SessionSharing::PerClient => !shared.is_modern() || matches!(*shared.client, McpClient::Stdio(_)),
            // A modern server asks in its answers, so whose question it is is always clear.
            SessionSharing::Auto => !shared.is_modern() && self.client_needs_private_session(call),
        }
    }

    fn client_needs_private_session(&self, call: &SourceCall) -> bool {
        let private = self.private_kinds.load(Ordering::Relaxed);
        // A session that can be asked in some calls is used by all calls of its client, so that all see the same state.
        let session = call.record.context.client_session.as_ref();
        let abilities = session.map_or(call.client.capabilities(), |session| session.capabilities());
        private != 0 && KINDS.into_iter().any(|kind| private & bit(kind) != 0 && abilities.supports(kind))
    }

    /// From now on clients that can answer this kind of question have private sessions.
    pub(crate) fn require_private_sessions(&self, kind: QuestionKind) {
        let before = self.private_kinds.fetch_or(bit(kind), Ordering::Relaxed);
        if self.mode == SessionSharing::Auto && before & bit(kind) == 0 {
            let (server, kind) = (&self.server, kind_label(kind));
            tracing::info!(%server, kind, "clients that can answer get private sessions");
        }
    }

    /// The server has asked something that may be about any of these calls: they end, and say why.
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
                "{server} sent {method} while it was working on calls of several clients, so it is not clear \
                 which client it asks; the call was ended, and may have had effects"
            );
            let next = match self.mode {
                SessionSharing::Shared => format!("set `sessions = \"per-client\"` for {server}"),
                SessionSharing::Auto | SessionSharing::PerClient => {
                    format!("call again: from now on this client has a session of its own with {server}")
                }
            };
            flight.abort(HubError::new(ErrorKind::ToolFailed, message).with_suggestion(next));
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
