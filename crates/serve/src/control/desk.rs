//! Where the requests of one socket are taken and carried out: what is quick at once, everything else in a task that ends
//! with the socket. What each request means is next door.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{Kind, Order as Told, Permissions, Principal, Quota, QuotaCharge};
use toolyard_random::RandomError;

use super::call::{CallTool, Complete, GetPrompt, Read, Wanted, call};
use super::errors::Trouble;
use super::order::{
    Answer, Cancel, ControlRequest, Nothing, OfServer, OneServer, OneTool, Order, Subscribe, Transcript,
    Unsubscribe, error, response,
};
use super::outbox::Outbox;
use super::running::{Refused, Running};
use super::subscription::Subscription;
use super::{Control, past};

/// What the requests of one socket share.
pub(super) struct Desk {
    pub(super) control: Arc<Control>,
    pub(super) outbox: Outbox,
    pub(super) running: Running,
    pub(super) session: Arc<str>,
    /// Cancelled when the socket is over.
    pub(super) ended: CancellationToken,
    pub(super) headers: Vec<(String, String)>,
    principal: Mutex<Principal>,
}

impl Desk {
    /// Nobody's, until it is known whose.
    pub(super) fn new(
        control: Arc<Control>,
        headers: Vec<(String, String)>,
        ended: CancellationToken,
    ) -> Result<Arc<Self>, RandomError> {
        // Calls of one session may share a connection to a server, so no two sockets may have the same.
        let session = format!("control-{}", toolyard_random::hex_id()?).into();
        Ok(Arc::new(Self {
            control,
            outbox: Outbox::default(),
            running: Running::default(),
            session,
            ended,
            headers,
            principal: Mutex::new(Principal::new("", Permissions::Only(Default::default()))),
        }))
    }

    pub(super) fn belongs_to(&self, principal: Principal) {
        *self.principal.lock().unwrap_or_else(PoisonError::into_inner) = principal;
    }

    pub(super) fn principal(&self) -> Principal {
        self.principal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Takes a request: what is quick is answered at once, everything else gets a task.
pub(super) fn take(
    desk: &Arc<Desk>,
    tasks: &mut JoinSet<()>,
    subscription: &mut Subscription,
    order: Order,
) -> Result<(), Refused> {
    if let Some(answered) = quick(desk, subscription, &order) {
        let text = match answered {
            Ok(body) => response(&order.id, &order.subtype, &body.to_string()),
            Err(trouble) => error(&order.id, &order.subtype, &trouble),
        };
        desk.outbox.push(text);
        return Ok(());
    }
    let cancel = match desk.running.begin(&order.id) {
        Ok(cancel) => cancel,
        Err(Refused::TooMany) => {
            let trouble = Trouble::new(Kind::RateLimited, "too many requests of this socket are under way");
            desk.outbox.push(error(&order.id, &order.subtype, &trouble));
            return Ok(());
        }
        Err(same) => return Err(same),
    };
    let desk = Arc::clone(desk);
    tasks.spawn(async move {
        let answered = tokio::select! {
            biased;
            answered = carry_out(&desk, &order, cancel.clone()) => answered,
            () = waits_no_more(&order, &cancel) => Err(Trouble::new(Kind::Cancelled, "the request was cancelled")),
        };
        let (id, subtype) = (&order.id, order.subtype.as_str());
        desk.outbox
            .push_in_turn(|| match answered.and_then(|make| make.make(&desk)).and_then(|body| charged(&desk, body)) {
                Ok((body, charge)) => (response(id, subtype, &body), Some(charge)),
                Err(trouble) => (error(id, subtype, &trouble), None),
            })
            .await;
        desk.running.end(id);
    });
    Ok(())
}

/// A body that its reader is charged for until it is written.
fn charged(desk: &Desk, body: String) -> Result<(String, QuotaCharge), Trouble> {
    let charge = desk.control.yard.charge(&desk.principal(), Quota::Bytes, body.len());
    charge.map(|charge| (body, charge)).map_err(|error| Trouble::of(&error, ""))
}

/// A call that is cancelled says so itself.
async fn waits_no_more(order: &Order, cancel: &CancellationToken) {
    match order.request {
        Some(
            ControlRequest::Call | ControlRequest::Read | ControlRequest::Prompt | ControlRequest::Complete,
        ) => std::future::pending().await,
        _ => cancel.cancelled().await,
    }
}

fn quick(desk: &Desk, subscription: &mut Subscription, order: &Order) -> Option<Result<Value, Trouble>> {
    Some(match order.request? {
        ControlRequest::Cancel => {
            order.words::<Cancel>().map(|words| json!({"cancelled": desk.running.cancel(&words.request)}))
        }
        ControlRequest::Answer => order
            .words::<Answer>()
            .and_then(|words| desk.running.answer(&words.request, &words.answers))
            .map(|()| json!({})),
        ControlRequest::Subscribe => order.words::<Subscribe>().and_then(|words| {
            subscription.add(&words.events, words.after, &desk.control.journal, &desk.principal())
        }),
        ControlRequest::Unsubscribe => {
            order.words::<Unsubscribe>().and_then(|words| subscription.remove(words.events.as_deref()))
        }
        _ => return None,
    })
}

/// The body of a response: made, or to be made when it is its turn, because it may be large.
enum Body {
    Made(String),
    Servers,
    Tools(Option<String>),
    Prompts(Option<String>),
    List,
}

impl Body {
    fn make(self, desk: &Desk) -> Result<String, Trouble> {
        let (control, principal) = (&desk.control, desk.principal());
        match self {
            Self::Made(text) => Ok(text),
            Self::Servers => Ok(control.servers(&principal)),
            Self::Tools(server) => control.tools(&principal, server.as_deref()),
            Self::Prompts(server) => control.prompts(&principal, server.as_deref()),
            Self::List => Ok(control.list(&principal)),
        }
    }
}

async fn carry_out(desk: &Desk, order: &Order, cancel: CancellationToken) -> Result<Body, Trouble> {
    let control = &desk.control;
    let principal = desk.principal();
    let Some(request) = order.request else {
        return Err(Trouble::invalid(format!("there is no request {}", order.subtype)));
    };
    if request.is_list() {
        control.yard.admit_list(&principal).map_err(|error| Trouble::of(&error, ""))?;
    }
    let made = match request {
        ControlRequest::Servers => {
            order.words::<Nothing>()?;
            return Ok(Body::Servers);
        }
        ControlRequest::Tools => {
            let words: OfServer = order.words()?;
            control.yard.settle(control.start_wait).await;
            return Ok(Body::Tools(words.server_name));
        }
        ControlRequest::Tool => {
            let words: OneTool = order.words()?;
            control.yard.settle(control.start_wait).await;
            control.tool(&principal, &words.tool)
        }
        ControlRequest::Prompts => {
            let words: OfServer = order.words()?;
            control.yard.settle(control.start_wait).await;
            return Ok(Body::Prompts(words.server_name));
        }
        ControlRequest::List => {
            order.words::<Nothing>()?;
            control.yard.settle(control.start_wait).await;
            return Ok(Body::List);
        }
        ControlRequest::Call => call(desk, &order.id, Wanted::from(order.words::<CallTool>()?), cancel).await,
        ControlRequest::Read => call(desk, &order.id, Wanted::from(order.words::<Read>()?), cancel).await,
        ControlRequest::Prompt => {
            call(desk, &order.id, Wanted::from(order.words::<GetPrompt>()?), cancel).await
        }
        ControlRequest::Complete => {
            call(desk, &order.id, Wanted::from(order.words::<Complete>()?), cancel).await
        }
        ControlRequest::History => control.history(&principal, &order.words::<past::Wanted>()?).await,
        ControlRequest::Transcript => control.transcript(&principal, &order.words::<Transcript>()?),
        ControlRequest::Stderr => control.stderr(&principal, &order.words::<OneServer>()?),
        ControlRequest::Reconnect => {
            control.manage(&principal, &order.words::<OneServer>()?, Told::Reconnect)
        }
        ControlRequest::Enable => control.manage(&principal, &order.words::<OneServer>()?, Told::Enable),
        ControlRequest::Disable => control.manage(&principal, &order.words::<OneServer>()?, Told::Disable),
        ControlRequest::LogIn => control.log_in(&principal, &order.words::<OneServer>()?).await,
        // The socket itself and `quick` answer these.
        ControlRequest::Hello
        | ControlRequest::Cancel
        | ControlRequest::Answer
        | ControlRequest::Subscribe
        | ControlRequest::Unsubscribe => Err(Trouble::invalid(format!("{} comes too late", order.subtype))),
    };
    made.map(Body::Made)
}
