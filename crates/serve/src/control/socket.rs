//! The life of one socket: who is it, what does it want, and when is it over. Each request has a task of its own; all of
//! them end with the socket.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::ws::{Message, WebSocket};
use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout_at};
use tokio_tungstenite::tungstenite;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::{ExecutionId, Kind, Order as Told, Principal, Timestamp};

use super::call::{CallTool, Complete, GetPrompt, Read, Wanted, call};
use super::errors::Trouble;
use super::order::{
    Answer, Cancel, Hello, Id, Nothing, OfServer, OneServer, Order, Subscribe, Transcript, Unsubscribe,
};
use super::order::{error, response};
use super::outbox::{Close, Outbox};
use super::past;
use super::running::{Refused, Running};
use super::subscription::{Left, Subscription};
use super::{Control, Place, may};
use crate::door::{Reason, Visitor};

/// The version of the protocol.
const VERSION: u32 = 1;
/// How long a client may take to say who it is.
const HELLO: Duration = Duration::from_secs(10);
/// How often it is looked whether the token is still good, and whether the client is still there.
const LOOK: Duration = Duration::from_secs(2);
const PING: Duration = Duration::from_secs(20);
/// A client of whom nothing is heard for so long is gone.
const SILENCE: Duration = Duration::from_secs(60);

const FULL: &str = "there are too many sockets";

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
    pub(super) fn principal(&self) -> Principal {
        self.principal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

pub(super) async fn live(
    control: Arc<Control>,
    socket: WebSocket,
    visitor: Visitor,
    headers: Vec<(String, String)>,
    place: Option<Place>,
) {
    let (sink, mut stream) = socket.split();
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    let desk = Arc::new(Desk {
        control,
        outbox: Outbox::default(),
        running: Running::default(),
        session: format!("control-{}", ExecutionId::fresh()).into(),
        ended,
        headers,
        // Nobody, until it is known who it is.
        principal: Mutex::new(Principal::new("", toolyard_hub::Permissions::Only(Default::default()))),
    });
    let talking = async {
        let why = match place {
            Some(place) => match introduce(&desk, &mut stream, visitor, place).await {
                Ok((visitor, _place)) => attend(&desk, &mut stream, visitor).await,
                Err(why) => why,
            },
            None => Close::Later(FULL),
        };
        desk.outbox.close(why);
        // The other side's goodbye is still to be read, else it may not get ours.
        while let Some(Ok(_)) = stream.next().await {}
        std::future::pending::<()>().await;
    };
    // In a task of its own, so that it goes on while the rest is busy.
    let writing = Arc::clone(&desk);
    let writing = AbortOnDropHandle::new(tokio::spawn(async move { writing.outbox.write(sink).await }));
    tokio::select! {
        _ = writing => {}
        () = talking => {}
    }
}

/// Finds out who it is, and says who we are.
async fn introduce(
    desk: &Desk,
    stream: &mut SplitStream<WebSocket>,
    mut visitor: Visitor,
    place: Place,
) -> Result<(Visitor, Place), Close> {
    let by = Instant::now() + HELLO;
    let mut asked = None;
    while visitor.needs_token() {
        let text = match timeout_at(by, read(stream)).await {
            Ok(text) => text?,
            Err(_) => return Err(Close::Token("nobody said who this is")),
        };
        let order = Order::read(&text).map_err(Close::NoMessage)?;
        let hello = if order.subtype == "hello" { order.words::<Hello>().ok() } else { None };
        let Some(Hello { token: Some(token) }) = hello else {
            return Err(Close::Token(Reason::TokenMissing.text()));
        };
        visitor.show(token);
        asked = Some(order.id);
    }
    let principal = visitor.principal().await.map_err(unknown)?;
    let place = place.among(&desk.control.places).ok_or(Close::Later(FULL))?;
    welcome(desk, &principal, asked.as_ref());
    *desk.principal.lock().unwrap_or_else(PoisonError::into_inner) = principal;
    Ok((visitor, place))
}

/// Why somebody is not let in.
fn unknown(reason: Reason) -> Close {
    match reason {
        // Not their fault.
        Reason::JwtKeysUnavailable => Close::Later(reason.text()),
        _ => Close::Token(reason.text()),
    }
}

fn welcome(desk: &Desk, principal: &Principal, asked: Option<&Id>) {
    let identity = &desk.control.identity;
    let mut welcome = json!({"type": "welcome"});
    if let Some(id) = asked {
        welcome["id"] = json!(id);
    }
    welcome["protocol"] = VERSION.into();
    welcome["server"] = json!({"name": identity.name, "version": identity.version});
    let (manage, observe) = (may(principal, "manage"), may(principal, "observe"));
    welcome["principal"] = json!({"name": principal.id(), "manage": manage, "observe": observe});
    welcome["now"] = Timestamp::now().to_string().into();
    desk.outbox.push(welcome.to_string());
}

/// The next message. Pings are answered by the library.
async fn read(stream: &mut SplitStream<WebSocket>) -> Result<String, Close> {
    loop {
        match heard(stream.next().await)? {
            Some(text) => return Ok(text),
            None => continue,
        }
    }
}

/// What was heard, if it is a message.
fn heard(message: Option<Result<Message, axum::Error>>) -> Result<Option<String>, Close> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Binary(_))) => Err(Close::NoMessage("messages are text")),
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => Ok(None),
        Some(Ok(Message::Close(_))) | None => Err(Close::Theirs),
        Some(Err(error)) => Err(broken(error)),
    }
}

/// Why nothing can be read any more.
fn broken(error: axum::Error) -> Close {
    match error.into_inner().downcast_ref::<tungstenite::Error>() {
        Some(tungstenite::Error::Capacity(_)) => Close::TooLarge,
        Some(tungstenite::Error::Utf8(_)) => Close::NoMessage("the message is no text"),
        Some(tungstenite::Error::Protocol(_)) => Close::NoMessage("that is no WebSocket"),
        _ => Close::Theirs,
    }
}

/// Stays with a socket until it is over, and says why it is.
async fn attend(desk: &Arc<Desk>, stream: &mut SplitStream<WebSocket>, mut visitor: Visitor) -> Close {
    let mut tasks = JoinSet::new();
    let mut subscription = Subscription::default();
    let mut latest = desk.control.journal.watch();
    let mut look = interval_at(Instant::now() + LOOK, LOOK);
    let mut ping = interval_at(Instant::now() + PING, PING);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    let mut left = Left::Nothing;
    let closing = desk.control.closing.clone();
    loop {
        tokio::select! {
            message = stream.next() => {
                last = Instant::now();
                let text = match heard(message) {
                    Ok(Some(text)) => text,
                    Ok(None) => continue,
                    Err(why) => return why,
                };
                let order = match Order::read(&text) {
                    Ok(order) => order,
                    Err(why) => return Close::NoMessage(why),
                };
                drop(text);
                if desk.running.has(&order.id) {
                    return Close::NoMessage("the id is in use");
                }
                if order.subtype == "hello" {
                    match again(desk, &order, &visitor).await {
                        Ok(known) => visitor = known,
                        Err(why) => return why,
                    }
                    continue;
                }
                if order.subtype == "subscribe" {
                    // What was missed is told without waiting for more.
                    latest.mark_changed();
                }
                if let Err(Refused::SameId) = take(desk, &mut tasks, &mut subscription, order) {
                    return Close::NoMessage("the id is in use");
                }
            }
            Ok(()) = latest.changed(), if !subscription.is_empty() && left != Left::NoRoom => {
                let principal = desk.principal();
                let (journal, yard) = (&desk.control.journal, &desk.control.yard);
                left = subscription.tell(journal, yard, &principal, &desk.outbox);
                if left == Left::More {
                    latest.mark_changed();
                    // Whoever writes, and everybody else, gets their turn in between.
                    tokio::task::yield_now().await;
                }
            }
            () = desk.outbox.room(), if left == Left::NoRoom => {
                left = Left::Nothing;
                latest.mark_changed();
            }
            Some(_) = tasks.join_next() => {}
            _ = look.tick() => match visitor.principal().await {
                // What they may do can have changed.
                Ok(principal) => *desk.principal.lock().unwrap_or_else(PoisonError::into_inner) = principal,
                // Not their fault, and they were let in before.
                Err(Reason::JwtKeysUnavailable) => {}
                Err(reason) => return Close::Token(reason.text()),
            },
            _ = ping.tick() => {
                if last.elapsed() > SILENCE {
                    return Close::Slow;
                }
                desk.outbox.ping();
            }
            () = closing.cancelled() => {
                while tasks.join_next().await.is_some() {}
                return Close::Stopping;
            }
        }
    }
}

/// Another token of the same principal.
async fn again(desk: &Desk, order: &Order, visitor: &Visitor) -> Result<Visitor, Close> {
    let hello = order.words::<Hello>().map_err(|_| Close::NoMessage("hello cannot be read"))?;
    let mut known = visitor.clone();
    if let Some(token) = hello.token {
        known.show(token);
    }
    let principal = known.principal().await.map_err(unknown)?;
    if principal != desk.principal() {
        return Err(Close::Token("the token is somebody else's"));
    }
    welcome(desk, &principal, Some(&order.id));
    *desk.principal.lock().unwrap_or_else(PoisonError::into_inner) = principal;
    Ok(known)
}

/// Takes a request: what is quick is answered at once, everything else gets a task.
fn take(
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
            .push_in_turn(|| match answered {
                Ok(make) => match make.make(&desk) {
                    Ok(body) => response(id, subtype, &body),
                    Err(trouble) => error(id, subtype, &trouble),
                },
                Err(trouble) => error(id, subtype, &trouble),
            })
            .await;
        desk.running.end(id);
    });
    Ok(())
}

/// A call that is cancelled says so itself.
async fn waits_no_more(order: &Order, cancel: &CancellationToken) {
    match order.subtype.as_str() {
        "mcp_call" | "mcp_read" | "mcp_prompt" | "mcp_complete" => std::future::pending().await,
        _ => cancel.cancelled().await,
    }
}

fn quick(desk: &Desk, subscription: &mut Subscription, order: &Order) -> Option<Result<Value, Trouble>> {
    Some(match order.subtype.as_str() {
        "mcp_cancel" => {
            order.words::<Cancel>().map(|words| json!({"cancelled": desk.running.cancel(&words.request)}))
        }
        "mcp_answer" => order
            .words::<Answer>()
            .and_then(|words| desk.running.answer(&words.request, &words.answers))
            .map(|()| json!({})),
        "subscribe" => order.words::<Subscribe>().and_then(|words| {
            subscription.add(&words.events, words.after, &desk.control.journal, &desk.principal())
        }),
        "unsubscribe" => {
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
    let made = match order.subtype.as_str() {
        "mcp_servers" => {
            order.words::<Nothing>()?;
            return Ok(Body::Servers);
        }
        "mcp_tools" => {
            let words: OfServer = order.words()?;
            control.yard.settle(control.start_wait).await;
            return Ok(Body::Tools(words.server_name));
        }
        "mcp_prompts" => {
            let words: OfServer = order.words()?;
            control.yard.settle(control.start_wait).await;
            return Ok(Body::Prompts(words.server_name));
        }
        "mcp_list" => {
            order.words::<Nothing>()?;
            control.yard.settle(control.start_wait).await;
            return Ok(Body::List);
        }
        "mcp_call" => call(desk, &order.id, Wanted::from(order.words::<CallTool>()?), cancel).await,
        "mcp_read" => call(desk, &order.id, Wanted::from(order.words::<Read>()?), cancel).await,
        "mcp_prompt" => call(desk, &order.id, Wanted::from(order.words::<GetPrompt>()?), cancel).await,
        "mcp_complete" => call(desk, &order.id, Wanted::from(order.words::<Complete>()?), cancel).await,
        "mcp_history" => control.history(&principal, &order.words::<past::Wanted>()?).await,
        "mcp_transcript" => control.transcript(&principal, &order.words::<Transcript>()?),
        "mcp_stderr" => control.stderr(&principal, &order.words::<OneServer>()?),
        "mcp_reconnect" => control.manage(&principal, &order.words::<OneServer>()?, Told::Reconnect),
        "mcp_enable" => control.manage(&principal, &order.words::<OneServer>()?, Told::Enable),
        "mcp_disable" => control.manage(&principal, &order.words::<OneServer>()?, Told::Disable),
        "mcp_login" => control.log_in(&principal, &order.words::<OneServer>()?).await,
        unknown => Err(Trouble::invalid(format!("there is no request {unknown}"))),
    };
    made.map(Body::Made)
}
