//! The lifetime of one socket: handshake, subscriptions, and why it closes. `dispatch.rs` carries out its requests.

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

use super::dispatch::{ControlSession, dispatch};
use super::handshake::{self, ControlStream, read_first_message};
use super::in_flight::RequestStartError;
use super::outbox::CloseReason;
use super::request::{ControlEnvelope, ControlRequest, ControlRequestId, HelloParams};
use super::subscription::{Backlog, Subscription};
use super::{ControlFront, PendingSocket, SocketPermit};
use crate::auth::{ConnectionCredentials, RejectionReason};

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

pub(super) async fn run_socket(control: Arc<ControlFront>, arrival: PendingSocket) {
    let PendingSocket { mut io, credentials: visitor, authentication: proof, headers, permit: place } =
        arrival;
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    let Ok(session) = ControlSession::new(Arc::clone(&control), headers, ended) else {
        tracing::error!("a control socket is refused: the system's source of random numbers failed");
        return;
    };
    let (socket, welcomed) = match admit(&mut io, &visitor, proof, place).await {
        Ok((read, place)) => (handshake::accept(io, read, control.longest).await, Ok(place)),
        Err(why) => (handshake::reject(io).await, Err(why)),
    };
    let (sink, mut stream) = socket.split();
    let talking = async {
        let why = match welcomed {
            Ok(place) => match complete_handshake(&session, &mut stream, visitor, place).await {
                Ok((visitor, _place)) => {
                    let stream_charge = session.control.yard.charge(&session.principal(), Quota::Streams, 1);
                    match stream_charge {
                        Ok(_charge) => {
                            let _guest = session.control.journal.attach().await;
                            run_session(&session, &mut stream, visitor).await
                        }
                        Err(_) => CloseReason::TryAgainLater(TOO_MANY_STREAMS),
                    }
                }
                Err(why) => why,
            },
            Err(why) => why,
        };
        session.outbox.close(why);
        // The other side's goodbye is still to be read, else it may not get ours.
        while let Some(Ok(_)) = stream.next().await {}
        std::future::pending::<()>().await;
    };
    // In a task of its own, so that it goes on while the rest is busy.
    let writing = Arc::clone(&session);
    let writing = AbortOnDropHandle::new(tokio::spawn(async move { writing.outbox.write(sink).await }));
    tokio::select! {
        _ = writing => {}
        () = talking => {}
    }
}

/// Waits for a stranger's first message, which must be short; whoever is known already need not say anything.
async fn admit(
    io: &mut TokioIo<Upgraded>,
    visitor: &ConnectionCredentials,
    proof: Result<Principal, RejectionReason>,
    place: Option<SocketPermit>,
) -> Result<(Vec<u8>, SocketPermit), CloseReason> {
    let place = place.ok_or(CloseReason::TryAgainLater(FULL))?;
    match proof {
        Ok(_) => Ok((Vec::new(), place)),
        Err(_) if visitor.needs_token() => match timeout(HELLO, read_first_message(io)).await {
            Ok(read) => Ok((read?, place)),
            Err(_) => Err(CloseReason::Unauthorized(NO_HELLO)),
        },
        Err(reason) => Err(close_reason_for_rejection(reason)),
    }
}

/// Finds out who it is, and says who we are. Nothing is read beyond what came with the first message.
async fn complete_handshake(
    session: &ControlSession,
    stream: &mut SplitStream<ControlStream>,
    mut visitor: ConnectionCredentials,
    place: SocketPermit,
) -> Result<(ConnectionCredentials, SocketPermit), CloseReason> {
    let by = Instant::now() + HELLO;
    let mut asked = None;
    while visitor.needs_token() {
        let text = match timeout_at(by, read(stream)).await {
            Ok(text) => text?,
            Err(_) => return Err(CloseReason::Unauthorized(NO_HELLO)),
        };
        let order = ControlEnvelope::read(&text).map_err(CloseReason::InvalidMessage)?;
        let hello = if order.request == Some(ControlRequest::Hello) {
            order.params::<HelloParams>().ok()
        } else {
            None
        };
        let Some(HelloParams { token: Some(token) }) = hello else {
            return Err(CloseReason::Unauthorized(RejectionReason::TokenMissing.text()));
        };
        visitor.set_token(token);
        asked = Some(order.id);
    }
    let principal = visitor.authenticate().await.map_err(close_reason_for_rejection)?;
    let place = place.promote(&session.control.socket_permits).ok_or(CloseReason::TryAgainLater(FULL))?;
    send_welcome(session, &principal, asked.as_ref());
    session.set_principal(principal);
    Ok((visitor, place))
}

/// Why somebody is not let in.
fn close_reason_for_rejection(reason: RejectionReason) -> CloseReason {
    match reason {
        // Not their fault.
        RejectionReason::JwtKeysUnavailable => CloseReason::TryAgainLater(reason.text()),
        _ => CloseReason::Unauthorized(reason.text()),
    }
}

fn send_welcome(session: &ControlSession, principal: &Principal, asked: Option<&ControlRequestId>) {
    let identity = &session.control.identity;
    let mut welcome = json!({"type": "welcome"});
    if let Some(id) = asked {
        welcome["id"] = json!(id);
    }
    welcome["protocol"] = VERSION.into();
    welcome["server"] = json!({"name": identity.name, "version": identity.version});
    let (manage, observe) = (principal.has_permission(MANAGE), principal.has_permission(OBSERVE));
    welcome["principal"] = json!({"name": principal.id(), "manage": manage, "observe": observe});
    welcome["now"] = Timestamp::now().to_string().into();
    session.outbox.push(welcome.to_string());
}

/// The next message. Pings are answered by the library.
async fn read(stream: &mut SplitStream<ControlStream>) -> Result<String, CloseReason> {
    loop {
        match message_text(stream.next().await)? {
            Some(text) => return Ok(text),
            None => continue,
        }
    }
}

/// What was heard, if it is a message.
fn message_text(message: Option<Result<Message, tungstenite::Error>>) -> Result<Option<String>, CloseReason> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Binary(_))) => Err(CloseReason::InvalidMessage("messages are text")),
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Close(_))) | None => Err(CloseReason::PeerClosed),
        Some(Err(error)) => Err(close_reason_for_error(&error)),
    }
}

/// Why nothing can be read any more.
fn close_reason_for_error(error: &tungstenite::Error) -> CloseReason {
    match error {
        tungstenite::Error::Capacity(_) => CloseReason::TooLarge,
        tungstenite::Error::Utf8(_) => CloseReason::InvalidMessage("the message is no text"),
        tungstenite::Error::Protocol(_) => CloseReason::InvalidMessage("that is no WebSocket"),
        _ => CloseReason::PeerClosed,
    }
}

/// Stays with a socket until it is over, and says why it is.
async fn run_session(
    session: &Arc<ControlSession>,
    stream: &mut SplitStream<ControlStream>,
    mut visitor: ConnectionCredentials,
) -> CloseReason {
    let mut tasks = JoinSet::new();
    let mut subscription = Subscription::default();
    let mut latest = session.control.journal.watch();
    let mut look = interval_at(Instant::now() + LOOK, LOOK);
    let mut ping = interval_at(Instant::now() + PING, PING);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last = Instant::now();
    let mut left = Backlog::Empty;
    let closing = session.control.closing.clone();
    loop {
        tokio::select! {
            message = stream.next() => {
                last = Instant::now();
                let text = match message_text(message) {
                    Ok(Some(text)) => text,
                    Ok(None) => continue,
                    Err(why) => return why,
                };
                let order = match ControlEnvelope::read(&text) {
                    Ok(order) => order,
                    Err(why) => return CloseReason::InvalidMessage(why),
                };
                drop(text);
                if session.running.has(&order.id) {
                    return CloseReason::InvalidMessage("the id is in use");
                }
                if order.request == Some(ControlRequest::Hello) {
                    match reauthenticate(session, &order, &visitor).await {
                        Ok(known) => visitor = known,
                        Err(why) => return why,
                    }
                    continue;
                }
                if order.request == Some(ControlRequest::Subscribe) {
                    // What was missed is told without waiting for more.
                    latest.mark_changed();
                }
                if let Err(RequestStartError::DuplicateId) = dispatch(session, &mut tasks, &mut subscription, order) {
                    return CloseReason::InvalidMessage("the id is in use");
                }
            }
            Ok(()) = latest.changed(), if !subscription.is_empty() && left != Backlog::NoRoom => {
                let principal = session.principal();
                let (journal, yard) = (&session.control.journal, &session.control.yard);
                left = subscription.deliver(journal, yard, &principal, &session.outbox);
                if left == Backlog::More {
                    latest.mark_changed();
                    // Whoever writes, and everybody else, gets their turn in between.
                    tokio::task::yield_now().await;
                }
            }
            () = session.outbox.wait_for_room(), if left == Backlog::NoRoom => {
                left = Backlog::Empty;
                latest.mark_changed();
            }
            Some(_) = tasks.join_next() => {}
            _ = look.tick() => match visitor.authenticate().await {
                // What they may do can have changed.
                Ok(principal) => session.set_principal(principal),
                // Not their fault, and they were let in before.
                Err(RejectionReason::JwtKeysUnavailable) => {}
                Err(reason) => return CloseReason::Unauthorized(reason.text()),
            },
            _ = ping.tick() => {
                if last.elapsed() > SILENCE {
                    return CloseReason::Slow;
                }
                session.outbox.ping();
            }
            () = closing.cancelled() => {
                while tasks.join_next().await.is_some() {}
                return CloseReason::Stopping;
            }
        }
    }
}

/// Another token of the same principal.
async fn reauthenticate(
    session: &ControlSession,
    order: &ControlEnvelope,
    visitor: &ConnectionCredentials,
) -> Result<ConnectionCredentials, CloseReason> {
    let hello =
        order.params::<HelloParams>().map_err(|_| CloseReason::InvalidMessage("hello cannot be read"))?;
    let mut known = visitor.clone();
    if let Some(token) = hello.token {
        known.set_token(token);
    }
    let principal = known.authenticate().await.map_err(close_reason_for_rejection)?;
    if principal != session.principal() {
        return Err(CloseReason::Unauthorized("the token is somebody else's"));
    }
    send_welcome(session, &principal, Some(&order.id));
    session.set_principal(principal);
    Ok(known)
}
