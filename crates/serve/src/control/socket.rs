//! The life of one socket: who is it, what does it want to hear, and when is it over. What it asks for is carried out at its
//! desk.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::SplitStream;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout, timeout_at};
use tokio_tungstenite::tungstenite::{self, Message};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::{MANAGE, OBSERVE, Principal, Quota, Timestamp};

use super::desk::{Desk, take};
use super::handshake::{self, ControlStream, read_first_message};
use super::order::{ControlRequest, Hello, Id, Order};
use super::outbox::Close;
use super::running::Refused;
use super::subscription::{Left, Subscription};
use super::{Arrival, Control, Place};
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
const TOO_MANY_STREAMS: &str = "this principal has too many open streams";
const NO_HELLO: &str = "nobody said who this is";

pub(super) async fn live(control: Arc<Control>, arrival: Arrival) {
    let Arrival { mut io, visitor, proof, headers, place } = arrival;
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    let Ok(desk) = Desk::new(Arc::clone(&control), headers, ended) else {
        tracing::error!("a control socket is refused: the system's source of random numbers failed");
        return;
    };
    let (socket, welcomed) = match admit(&mut io, &visitor, proof, place).await {
        Ok((read, place)) => (handshake::welcome(io, read, control.longest).await, Ok(place)),
        Err(why) => (handshake::dismiss(io).await, Err(why)),
    };
    let (sink, mut stream) = socket.split();
    let talking = async {
        let why = match welcomed {
            Ok(place) => match introduce(&desk, &mut stream, visitor, place).await {
                Ok((visitor, _place)) => {
                    let stream_charge = desk.control.yard.charge(&desk.principal(), Quota::Streams, 1);
                    match stream_charge {
                        Ok(_charge) => {
                            let _guest = desk.control.journal.attach().await;
                            attend(&desk, &mut stream, visitor).await
                        }
                        Err(_) => Close::Later(TOO_MANY_STREAMS),
                    }
                }
                Err(why) => why,
            },
            Err(why) => why,
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

/// Waits for a stranger's first message, which must be short; whoever is known already need not say anything.
async fn admit(
    io: &mut TokioIo<Upgraded>,
    visitor: &Visitor,
    proof: Result<Principal, Reason>,
    place: Option<Place>,
) -> Result<(Vec<u8>, Place), Close> {
    let place = place.ok_or(Close::Later(FULL))?;
    match proof {
        Ok(_) => Ok((Vec::new(), place)),
        Err(_) if visitor.needs_token() => match timeout(HELLO, read_first_message(io)).await {
            Ok(read) => Ok((read?, place)),
            Err(_) => Err(Close::Token(NO_HELLO)),
        },
        Err(reason) => Err(unknown(reason)),
    }
}

/// Finds out who it is, and says who we are. Nothing is read beyond what came with the first message.
async fn introduce(
    desk: &Desk,
    stream: &mut SplitStream<ControlStream>,
    mut visitor: Visitor,
    place: Place,
) -> Result<(Visitor, Place), Close> {
    let by = Instant::now() + HELLO;
    let mut asked = None;
    while visitor.needs_token() {
        let text = match timeout_at(by, read(stream)).await {
            Ok(text) => text?,
            Err(_) => return Err(Close::Token(NO_HELLO)),
        };
        let order = Order::read(&text).map_err(Close::NoMessage)?;
        let hello =
            if order.request == Some(ControlRequest::Hello) { order.words::<Hello>().ok() } else { None };
        let Some(Hello { token: Some(token) }) = hello else {
            return Err(Close::Token(Reason::TokenMissing.text()));
        };
        visitor.show(token);
        asked = Some(order.id);
    }
    let principal = visitor.principal().await.map_err(unknown)?;
    let place = place.among(&desk.control.places).ok_or(Close::Later(FULL))?;
    welcome(desk, &principal, asked.as_ref());
    desk.belongs_to(principal);
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
    let (manage, observe) = (principal.holds(MANAGE), principal.holds(OBSERVE));
    welcome["principal"] = json!({"name": principal.id(), "manage": manage, "observe": observe});
    welcome["now"] = Timestamp::now().to_string().into();
    desk.outbox.push(welcome.to_string());
}

/// The next message. Pings are answered by the library.
async fn read(stream: &mut SplitStream<ControlStream>) -> Result<String, Close> {
    loop {
        match heard(stream.next().await)? {
            Some(text) => return Ok(text),
            None => continue,
        }
    }
}

/// What was heard, if it is a message.
fn heard(message: Option<Result<Message, tungstenite::Error>>) -> Result<Option<String>, Close> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Binary(_))) => Err(Close::NoMessage("messages are text")),
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Close(_))) | None => Err(Close::Theirs),
        Some(Err(error)) => Err(broken(&error)),
    }
}

/// Why nothing can be read any more.
fn broken(error: &tungstenite::Error) -> Close {
    match error {
        tungstenite::Error::Capacity(_) => Close::TooLarge,
        tungstenite::Error::Utf8(_) => Close::NoMessage("the message is no text"),
        tungstenite::Error::Protocol(_) => Close::NoMessage("that is no WebSocket"),
        _ => Close::Theirs,
    }
}

/// Stays with a socket until it is over, and says why it is.
async fn attend(desk: &Arc<Desk>, stream: &mut SplitStream<ControlStream>, mut visitor: Visitor) -> Close {
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
                if order.request == Some(ControlRequest::Hello) {
                    match again(desk, &order, &visitor).await {
                        Ok(known) => visitor = known,
                        Err(why) => return why,
                    }
                    continue;
                }
                if order.request == Some(ControlRequest::Subscribe) {
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
                Ok(principal) => desk.belongs_to(principal),
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
    desk.belongs_to(principal);
    Ok(known)
}
