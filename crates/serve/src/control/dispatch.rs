//! Where the requests of one socket are taken and carried out: what is quick at once, everything else in a task that ends
//! with the socket. What each request means is next door.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{ErrorKind, Permissions, Principal, Quota, QuotaCharge, SourceCommand as Told};
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

/// What the requests of one socket share.
pub(super) struct ControlSession {
    pub(super) control: Arc<ControlFront>,
    pub(super) outbox: Outbox,
    pub(super) running: SocketRequests,
    pub(super) id: Arc<str>,
    /// Cancelled when the socket is over.
    pub(super) ended: CancellationToken,
    pub(super) headers: Vec<(String, String)>,
    principal: Mutex<Principal>,
}

impl ControlSession {
    /// Has no permissions until the handshake sets the principal.
    pub(super) fn new(
        control: Arc<ControlFront>,
        headers: Vec<(String, String)>,
        ended: CancellationToken,
    ) -> Result<Arc<Self>, RandomError> {
        // Calls of one session may share a connection to a server, so no two sockets may have the same.
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

/// Takes a request: what is quick is answered at once, everything else gets a task.
pub(super) fn dispatch(
    session: &Arc<ControlSession>,
    tasks: &mut JoinSet<()>,
    subscription: &mut Subscription,
    order: ControlEnvelope,
) -> Result<(), RequestStartError> {
    if let Some(answered) = handle_immediate(session, subscription, &order) {
        let text = match answered {
            Ok(body) => response(&order.id, &order.subtype, &body.to_string()),
            Err(trouble) => error(&order.id, &order.subtype, &trouble),
        };
        session.outbox.push(text);
        return Ok(());
    }
    let cancel = match session.running.begin(&order.id) {
        Ok(cancel) => cancel,
        Err(RequestStartError::TooMany) => {
            let trouble =
                ControlError::new(ErrorKind::RateLimited, "too many requests of this socket are under way");
            session.outbox.push(error(&order.id, &order.subtype, &trouble));
            return Ok(());
        }
        Err(same) => return Err(same),
    };
    let session = Arc::clone(session);
    tasks.spawn(async move {
        let answered = tokio::select! {
            biased;
            answered = handle_request(&session, &order, cancel.clone()) => answered,
            () = wait_cancelled(&order, &cancel) => Err(ControlError::new(ErrorKind::Cancelled, "the request was cancelled")),
        };
        let (id, subtype) = (&order.id, order.subtype.as_str());
        session.outbox
            .push_deferred(|| match answered.and_then(|body| body.render(&session)).and_then(|body| charge_body(&session, body)) {
                Ok((body, charge)) => (response(id, subtype, &body), Some(charge)),
                Err(trouble) => (error(id, subtype, &trouble), None),
            })
            .await;
        session.running.end(id);
    });
    Ok(())
}

/// A body that its reader is charged for until it is written.
fn charge_body(session: &ControlSession, body: String) -> Result<(String, QuotaCharge), ControlError> {
    let charge = session.control.yard.charge(&session.principal(), Quota::Bytes, body.len());
    charge.map(|charge| (body, charge)).map_err(|error| ControlError::from_hub_error(&error, ""))
}

/// A call that is cancelled says so itself.
async fn wait_cancelled(order: &ControlEnvelope, cancel: &CancellationToken) {
    match order.request {
        Some(
            ControlRequest::Call | ControlRequest::Read | ControlRequest::Prompt | ControlRequest::Complete,
        ) => std::future::pending().await,
        _ => cancel.cancelled().await,
    }
}

fn handle_immediate(
    session: &ControlSession,
    subscription: &mut Subscription,
    order: &ControlEnvelope,
) -> Option<Result<Value, ControlError>> {
    Some(match order.request? {
        ControlRequest::Cancel => order
            .params::<CancelParams>()
            .map(|words| json!({"cancelled": session.running.cancel(&words.request)})),
        ControlRequest::Answer => order
            .params::<AnswerParams>()
            .and_then(|words| session.running.answer(&words.request, &words.answers))
            .map(|()| json!({})),
        ControlRequest::Subscribe => order.params::<SubscribeParams>().and_then(|words| {
            subscription.add(&words.events, words.after, &session.control.journal, &session.principal())
        }),
        ControlRequest::Unsubscribe => {
            order.params::<UnsubscribeParams>().and_then(|words| subscription.remove(words.events.as_deref()))
        }
        _ => return None,
    })
}

/// The body of a response: made, or to be made when it is its turn, because it may be large.
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
    order: &ControlEnvelope,
    cancel: CancellationToken,
) -> Result<Body, ControlError> {
    let control = &session.control;
    let principal = session.principal();
    let Some(request) = order.request else {
        return Err(ControlError::invalid(format!("there is no request {}", order.subtype)));
    };
    if request.is_list() {
        control.yard.admit_list(&principal).map_err(|error| ControlError::from_hub_error(&error, ""))?;
    }
    let made = match request {
        ControlRequest::Servers => {
            order.params::<EmptyParams>()?;
            return Ok(Body::Servers);
        }
        ControlRequest::Tools => {
            let words: ServerFilterParams = order.params()?;
            control.yard.wait_for_startup(control.start_wait).await;
            return Ok(Body::Tools(words.server_name));
        }
        ControlRequest::Tool => {
            let words: ToolNameParams = order.params()?;
            control.yard.wait_for_startup(control.start_wait).await;
            control.tool(&principal, &words.tool)
        }
        ControlRequest::Prompts => {
            let words: ServerFilterParams = order.params()?;
            control.yard.wait_for_startup(control.start_wait).await;
            return Ok(Body::Prompts(words.server_name));
        }
        ControlRequest::List => {
            order.params::<EmptyParams>()?;
            control.yard.wait_for_startup(control.start_wait).await;
            return Ok(Body::List);
        }
        ControlRequest::Call => {
            call(session, &order.id, SocketCall::from(order.params::<CallParams>()?), cancel).await
        }
        ControlRequest::Read => {
            call(session, &order.id, SocketCall::from(order.params::<ReadParams>()?), cancel).await
        }
        ControlRequest::Prompt => {
            call(session, &order.id, SocketCall::from(order.params::<PromptParams>()?), cancel).await
        }
        ControlRequest::Complete => {
            call(session, &order.id, SocketCall::from(order.params::<CompleteParams>()?), cancel).await
        }
        ControlRequest::History => {
            control.history(&principal, &order.params::<history::HistoryParams>()?).await
        }
        ControlRequest::Transcript => control.transcript(&principal, &order.params::<TranscriptParams>()?),
        ControlRequest::Stderr => control.stderr(&principal, &order.params::<ServerNameParams>()?),
        ControlRequest::Reconnect => {
            control.manage(&principal, &order.params::<ServerNameParams>()?, Told::Reconnect)
        }
        ControlRequest::Enable => {
            control.manage(&principal, &order.params::<ServerNameParams>()?, Told::Enable)
        }
        ControlRequest::Disable => {
            control.manage(&principal, &order.params::<ServerNameParams>()?, Told::Disable)
        }
        ControlRequest::LogIn => control.log_in(&principal, &order.params::<ServerNameParams>()?).await,
        // The socket itself and `quick` answer these.
        ControlRequest::Hello
        | ControlRequest::Cancel
        | ControlRequest::Answer
        | ControlRequest::Subscribe
        | ControlRequest::Unsubscribe => {
            Err(ControlError::invalid(format!("{} comes too late", order.subtype)))
        }
    };
    made.map(Body::Rendered)
}
