//! Dispatches the requests of one socket: quick requests immediately, all others in a task that
//! ends with the socket. The sibling modules implement the requests.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{ErrorKind, Permissions, Principal, Quota, QuotaCharge, SourceCommand};
use toolyard_random::RandomError;

use super::call::{CallParams, CompleteParams, PromptParams, ReadParams, SocketCall, call};
use super::errors::ControlError;
use super::in_flight::{RequestStartError, SocketRequests};
use super::outbox::Outbox;
use super::request::{
    AnswerParams, CancelParams, ControlEnvelope, ControlRequest, EmptyParams, ServerFilterParams,
    ServerNameParams, SubscribeParams, ToolNameParams, TranscriptParams, UnsubscribeParams, error, response,
};
use super::subscription::Subscription;
use super::{ControlFront, history};

/// The state that the requests of one socket share.
pub(super) struct ControlSession {
    pub(super) control: Arc<ControlFront>,
    pub(super) outbox: Outbox,
    pub(super) running: SocketRequests,
    pub(super) id: Arc<str>,
    /// Canceled when the socket is closed.
    pub(super) ended: CancellationToken,
    pub(super) headers: Vec<(String, String)>,
    principal: Mutex<Principal>,
}

impl ControlSession {
    /// Creates a session without permissions. The handshake sets the principal.
    pub(super) fn new(
        control: Arc<ControlFront>,
        headers: Vec<(String, String)>,
        ended: CancellationToken,
    ) -> Result<Arc<Self>, RandomError> {
        // Calls of one session may share a connection to a server, so the ID must be unique.
        let id = format!("control-{}", toolyard_random::hex_id()?).into();
        Ok(Arc::new(Self {
            control,
            outbox: Outbox::default(),
            running: SocketRequests::default(),
            id,
            ended,
            headers,
            principal: Mutex::new(Principal::new("", Permissions::Only(Default::default()))),
        }))
    }

    pub(super) fn set_principal(&self, principal: Principal) {
        *self.principal.lock() = principal;
    }

    pub(super) fn principal(&self) -> Principal {
        self.principal.lock().clone()
    }
}

/// Answers a quick request immediately, and starts a task for any other.
pub(super) fn dispatch(
    session: &Arc<ControlSession>,
    tasks: &mut JoinSet<()>,
    subscription: &mut Subscription,
    envelope: ControlEnvelope,
) -> Result<(), RequestStartError> {
    if let Some(result) = handle_immediate(session, subscription, &envelope) {
        let text = match result {
            Ok(body) => response(&envelope.id, &envelope.subtype, &body.to_string()),
            Err(failure) => error(&envelope.id, &envelope.subtype, &failure),
        };
        session.outbox.push(text);
        return Ok(());
    }
    let cancel = match session.running.begin(&envelope.id) {
        Ok(cancel) => cancel,
        Err(RequestStartError::TooMany) => {
            let failure =
                ControlError::new(ErrorKind::RateLimited, "too many concurrent requests on this socket");
            session.outbox.push(error(&envelope.id, &envelope.subtype, &failure));
            return Ok(());
        }
        Err(duplicate) => return Err(duplicate),
    };
    let session = Arc::clone(session);
    tasks.spawn(async move {
        let result = tokio::select! {
            biased;
            result = handle_request(&session, &envelope, cancel.clone()) => result,
            () = wait_cancelled(&envelope, &cancel) => Err(ControlError::new(ErrorKind::Cancelled, "the request was canceled")),
        };
        let (id, subtype) = (&envelope.id, envelope.subtype.as_str());
        session.outbox
            .push_deferred(|| match result.and_then(|body| body.render(&session)).and_then(|body| charge_body(&session, body)) {
                Ok((body, charge)) => (response(id, subtype, &body), Some(charge)),
                Err(failure) => (error(id, subtype, &failure), None),
            })
            .await;
        session.running.end(id);
    });
    Ok(())
}

/// Charges the principal for a body until it is written.
fn charge_body(session: &ControlSession, body: String) -> Result<(String, QuotaCharge), ControlError> {
    let charge = session.control.yard.charge(&session.principal(), Quota::Bytes, body.len());
    charge.map(|charge| (body, charge)).map_err(|error| ControlError::from_hub_error(&error, ""))
}

/// Completes when a request is canceled. A canceled call reports that itself.
async fn wait_cancelled(envelope: &ControlEnvelope, cancel: &CancellationToken) {
    match envelope.request {
        Some(
            ControlRequest::Call | ControlRequest::Read | ControlRequest::Prompt | ControlRequest::Complete,
        ) => std::future::pending().await,
        _ => cancel.cancelled().await,
    }
}

fn handle_immediate(
    session: &ControlSession,
    subscription: &mut Subscription,
    envelope: &ControlEnvelope,
) -> Option<Result<Value, ControlError>> {
    Some(match envelope.request? {
        ControlRequest::Cancel => envelope
            .params::<CancelParams>()
            .map(|params| json!({"cancelled": session.running.cancel(&params.request)})),
        ControlRequest::Answer => envelope
            .params::<AnswerParams>()
            .and_then(|params| session.running.answer(&params.request, &params.answers))
            .map(|()| json!({})),
        ControlRequest::Subscribe => envelope.params::<SubscribeParams>().and_then(|params| {
            subscription.add(&params.events, params.after, &session.control.journal, &session.principal())
        }),
        ControlRequest::Unsubscribe => envelope
            .params::<UnsubscribeParams>()
            .and_then(|params| subscription.remove(params.events.as_deref())),
        _ => return None,
    })
}

/// The body of a response. Large lists are rendered only when there is room for them.
enum Body {
    Rendered(String),
    Servers,
    Tools(Option<String>),
    Prompts(Option<String>),
    List,
}

impl Body {
    fn render(self, session: &ControlSession) -> Result<String, ControlError> {
        let (control, principal) = (&session.control, session.principal());
        match self {
            Self::Rendered(text) => Ok(text),
            Self::Servers => Ok(control.servers(&principal)),
            Self::Tools(server) => control.tools(&principal, server.as_deref()),
            Self::Prompts(server) => control.prompts(&principal, server.as_deref()),
            Self::List => Ok(control.list(&principal)),
        }
    }
}

async fn handle_request(
    session: &ControlSession,
    envelope: &ControlEnvelope,
    cancel: CancellationToken,
) -> Result<Body, ControlError> {
    let control = &session.control;
    let principal = session.principal();
    let Some(request) = envelope.request else {
        return Err(ControlError::invalid(format!("unknown request {}", envelope.subtype)));
    };
    if request.is_list() {
        control
            .yard
            .admit_list(&principal)
            .await
            .map_err(|error| ControlError::from_hub_error(&error, ""))?;
    }
    let body = match request {
        ControlRequest::Servers => {
            envelope.params::<EmptyParams>()?;
            return Ok(Body::Servers);
        }
        ControlRequest::Tools => {
            let params: ServerFilterParams = envelope.params()?;
            control.yard.wait_for_startup(control.start_wait).await;
            return Ok(Body::Tools(params.server_name));
        }
        ControlRequest::Tool => {
            let params: ToolNameParams = envelope.params()?;
            control.yard.wait_for_startup(control.start_wait).await;
            control.tool(&principal, &params.tool)
        }
        ControlRequest::Prompts => {
            let params: ServerFilterParams = envelope.params()?;
            control.yard.wait_for_startup(control.start_wait).await;
            return Ok(Body::Prompts(params.server_name));
        }
        ControlRequest::List => {
            envelope.params::<EmptyParams>()?;
            control.yard.wait_for_startup(control.start_wait).await;
            return Ok(Body::List);
        }
        ControlRequest::Call => {
            call(session, &envelope.id, SocketCall::from(envelope.params::<CallParams>()?), cancel).await
        }
        ControlRequest::Read => {
            call(session, &envelope.id, SocketCall::from(envelope.params::<ReadParams>()?), cancel).await
        }
        ControlRequest::Prompt => {
            call(session, &envelope.id, SocketCall::from(envelope.params::<PromptParams>()?), cancel).await
        }
        ControlRequest::Complete => {
            call(session, &envelope.id, SocketCall::from(envelope.params::<CompleteParams>()?), cancel).await
        }
        ControlRequest::History => {
            control.history(&principal, &envelope.params::<history::HistoryParams>()?).await
        }
        ControlRequest::Transcript => control.transcript(&principal, &envelope.params::<TranscriptParams>()?),
        ControlRequest::Stderr => control.stderr(&principal, &envelope.params::<ServerNameParams>()?),
        ControlRequest::Replicas => {
            envelope.params::<EmptyParams>()?;
            control.replicas(&principal)
        }
        ControlRequest::Reconnect => {
            control.manage(&principal, &envelope.params::<ServerNameParams>()?, SourceCommand::Reconnect)
        }
        ControlRequest::Enable => {
            control.manage(&principal, &envelope.params::<ServerNameParams>()?, SourceCommand::Enable)
        }
        ControlRequest::Disable => {
            control.manage(&principal, &envelope.params::<ServerNameParams>()?, SourceCommand::Disable)
        }
        ControlRequest::LogIn => control.log_in(&principal, &envelope.params::<ServerNameParams>()?).await,
        // The socket itself and `handle_immediate` answer these.
        ControlRequest::Hello
        | ControlRequest::Cancel
        | ControlRequest::Answer
        | ControlRequest::Subscribe
        | ControlRequest::Unsubscribe => {
            Err(ControlError::invalid(format!("unexpected request {}", envelope.subtype)))
        }
    };
    body.map(Body::Rendered)
}
