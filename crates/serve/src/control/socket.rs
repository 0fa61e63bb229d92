//! The lifetime of one socket: handshake, subscriptions and close. `dispatch.rs` executes its
//! requests.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::OptionFuture;
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
use crate::auth::{ConnectionCredentials, RECHECK, RejectionReason};

/// The version of the protocol.
const VERSION: u32 = 1;
/// Time limit for a client to authenticate.
const HELLO: Duration = Duration::from_secs(10);
/// Interval between two pings.
const PING: Duration = Duration::from_secs(20);
/// A client that has sent nothing for this long is considered disconnected.
const SILENCE: Duration = Duration::from_secs(60);

const FULL: &str = "too many control sockets are open";
const TOO_MANY_STREAMS: &str = "this principal has too many open streams";
const NO_HELLO: &str = "the client did not authenticate in time";

pub(super) async fn run_socket(control: Arc<ControlFront>, arrival: PendingSocket) {
    let PendingSocket { mut io, credentials, authentication, headers, permit } = arrival;
    let ended = CancellationToken::new();
    let _ended = ended.clone().drop_guard();
    let Ok(session) = ControlSession::new(Arc::clone(&control), headers, ended) else {
        tracing::error!("control socket rejected: the random number generator failed");
        return;
    };
    let (socket, admitted) = match admit(&mut io, &credentials, authentication, permit).await {
        Ok((read, permit)) => (handshake::accept(io, read, control.longest).await, Ok(permit)),
        Err(reason) => (handshake::reject(io).await, Err(reason)),
    };
    let (sink, mut stream) = socket.split();
    let session_task = async {
        let reason = match admitted {
            Ok(permit) => match complete_handshake(&session, &mut stream, credentials, permit).await {
                Ok((credentials, _permit)) => {
                    let stream_charge = session.control.yard.charge(&session.principal(), Quota::Streams, 1);
                    match stream_charge {
                        Ok(_charge) => {
                            let _reader = session.control.journal.attach().await;
                            let cluster = session.control.cluster.as_ref();
                            let _watcher = OptionFuture::from(cluster.map(|cluster| cluster.attach())).await;
                            run_session(&session, &mut stream, credentials).await
                        }
                        Err(_) => CloseReason::TryAgainLater(TOO_MANY_STREAMS),
                    }
                }
                Err(reason) => reason,
            },
            Err(reason) => reason,
        };
        session.outbox.close(reason);
        // Reads until the client's close frame. Otherwise the client may not receive ours.
        while let Some(Ok(_)) = stream.next().await {}
        std::future::pending::<()>().await;
    };
    // A separate task, so that writing continues while the session is busy.
    let writing = Arc::clone(&session);
    let writing = AbortOnDropHandle::new(tokio::spawn(async move { writing.outbox.write(sink).await }));
    tokio::select! {
        _ = writing => {}
        () = session_task => {}
    }
}

/// Waits for the first message of an unauthenticated client, which must be short. An authenticated
/// client need not send anything.
async fn admit(
    io: &mut TokioIo<Upgraded>,
    credentials: &ConnectionCredentials,
    authentication: Result<Principal, RejectionReason>,
    permit: Option<SocketPermit>,
) -> Result<(Vec<u8>, SocketPermit), CloseReason> {
    let permit = permit.ok_or(CloseReason::TryAgainLater(FULL))?;
    match authentication {
        Ok(_) => Ok((Vec::new(), permit)),
        Err(_) if credentials.needs_token() => match timeout(HELLO, read_first_message(io)).await {
            Ok(read) => Ok((read?, permit)),
            Err(_) => Err(CloseReason::Unauthorized(NO_HELLO)),
        },
        Err(reason) => Err(close_reason_for_rejection(reason)),
    }
}

/// Authenticates the client and sends the welcome message. Reads nothing beyond what arrived with
/// the first message.
async fn complete_handshake(
    session: &ControlSession,
    stream: &mut SplitStream<ControlStream>,
    mut credentials: ConnectionCredentials,
    permit: SocketPermit,
) -> Result<(ConnectionCredentials, SocketPermit), CloseReason> {
    let deadline = Instant::now() + HELLO;
    let mut hello_id = None;
    while credentials.needs_token() {
        let text = match timeout_at(deadline, read(stream)).await {
            Ok(text) => text?,
            Err(_) => return Err(CloseReason::Unauthorized(NO_HELLO)),
        };
        let envelope = ControlEnvelope::read(&text).map_err(CloseReason::InvalidMessage)?;
        let hello = if envelope.request == Some(ControlRequest::Hello) {
            envelope.params::<HelloParams>().ok()
        } else {
            None
        };
        let Some(HelloParams { token: Some(token) }) = hello else {
            return Err(CloseReason::Unauthorized(RejectionReason::TokenMissing.text()));
        };
        credentials.set_token(token);
        hello_id = Some(envelope.id);
    }
    let principal = credentials.authenticate().await.map_err(close_reason_for_rejection)?;
    let permit = permit.promote(&session.control.socket_permits).ok_or(CloseReason::TryAgainLater(FULL))?;
    send_welcome(session, &principal, hello_id.as_ref());
    session.set_principal(principal);
    Ok((credentials, permit))
}

/// Returns the close reason for a rejection.
fn close_reason_for_rejection(reason: RejectionReason) -> CloseReason {
    match reason {
        // The client did not cause this.
        RejectionReason::JwtKeysUnavailable => CloseReason::TryAgainLater(reason.text()),
        _ => CloseReason::Unauthorized(reason.text()),
    }
}

fn send_welcome(session: &ControlSession, principal: &Principal, hello_id: Option<&ControlRequestId>) {
    let identity = &session.control.identity;
    let mut welcome = json!({"type": "welcome"});
    if let Some(id) = hello_id {
        welcome["id"] = json!(id);
    }
    welcome["protocol"] = VERSION.into();
    welcome["server"] = json!({"name": identity.name, "version": identity.version});
    let (manage, observe) = (principal.has_permission(MANAGE), principal.has_permission(OBSERVE));
    welcome["principal"] = json!({"name": principal.id(), "manage": manage, "observe": observe});
    if let Some(own) = session.control.journal.own_name() {
        welcome["replica"] = own.into();
    }
    welcome["now"] = Timestamp::now().to_string().into();
    session.outbox.push(welcome.to_string());
}

/// Reads the next message. The library answers pings.
async fn read(stream: &mut SplitStream<ControlStream>) -> Result<String, CloseReason> {
    loop {
        match message_text(stream.next().await)? {
            Some(text) => return Ok(text),
            None => continue,
        }
    }
}

/// Returns the text of a frame, or `None` if the frame is not a message.
fn message_text(message: Option<Result<Message, tungstenite::Error>>) -> Result<Option<String>, CloseReason> {
    match message {
        Some(Ok(Message::Text(text))) => Ok(Some(text.as_str().to_owned())),
        Some(Ok(Message::Binary(_))) => Err(CloseReason::InvalidMessage("messages must be text")),
        Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => Ok(None),
        Some(Ok(Message::Close(_))) | None => Err(CloseReason::PeerClosed),
        Some(Err(error)) => Err(close_reason_for_error(&error)),
    }
}

/// Returns the close reason for a read error.
fn close_reason_for_error(error: &tungstenite::Error) -> CloseReason {
    match error {
        tungstenite::Error::Capacity(_) => CloseReason::TooLarge,
        tungstenite::Error::Utf8(_) => CloseReason::InvalidMessage("the message is not valid UTF-8"),
        tungstenite::Error::Protocol(_) => CloseReason::InvalidMessage("invalid WebSocket frame"),
        _ => CloseReason::PeerClosed,
    }
}

/// Runs a session until the socket must close, and returns the reason.
async fn run_session(
    session: &Arc<ControlSession>,
    stream: &mut SplitStream<ControlStream>,
    mut credentials: ConnectionCredentials,
) -> CloseReason {
    let mut tasks = JoinSet::new();
    let mut subscription = Subscription::default();
    let mut latest = session.control.journal.watch();
    let mut recheck = interval_at(Instant::now() + RECHECK, RECHECK);
    let mut ping = interval_at(Instant::now() + PING, PING);
    recheck.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut last_message = Instant::now();
    let mut backlog = Backlog::Empty;
    let closing = session.control.closing.clone();
    loop {
        tokio::select! {
            message = stream.next() => {
                last_message = Instant::now();
                let text = match message_text(message) {
                    Ok(Some(text)) => text,
                    Ok(None) => continue,
                    Err(reason) => return reason,
                };
                let envelope = match ControlEnvelope::read(&text) {
                    Ok(envelope) => envelope,
                    Err(reason) => return CloseReason::InvalidMessage(reason),
                };
                drop(text);
                if session.running.has(&envelope.id) {
                    return CloseReason::InvalidMessage("the `id` is already in use");
                }
                if envelope.request == Some(ControlRequest::Hello) {
                    match reauthenticate(session, &envelope, &credentials).await {
                        Ok(renewed) => credentials = renewed,
                        Err(reason) => return reason,
                    }
                    continue;
                }
                if envelope.request == Some(ControlRequest::Subscribe) {
                    // Delivers missed events without waiting for a new one.
                    latest.mark_changed();
                }
                if let Err(RequestStartError::DuplicateId) = dispatch(session, &mut tasks, &mut subscription, envelope) {
                    return CloseReason::InvalidMessage("the `id` is already in use");
                }
            }
            Ok(()) = latest.changed(), if !subscription.is_empty() && backlog != Backlog::NoRoom => {
                let principal = session.principal();
                let (journal, yard) = (&session.control.journal, &session.control.yard);
                backlog = subscription.deliver(journal, yard, &principal, &session.outbox);
                if backlog == Backlog::More {
                    latest.mark_changed();
                    // Lets the writer and all other tasks run in between.
                    tokio::task::yield_now().await;
                }
            }
            () = session.outbox.wait_for_room(), if backlog == Backlog::NoRoom => {
                backlog = Backlog::Empty;
                latest.mark_changed();
            }
            Some(_) = tasks.join_next() => {}
            _ = recheck.tick() => match credentials.authenticate().await {
                // The permissions may have changed.
                Ok(principal) => session.set_principal(principal),
                // The client did not cause this, and the token was valid before.
                Err(RejectionReason::JwtKeysUnavailable) => {}
                Err(reason) => return CloseReason::Unauthorized(reason.text()),
            },
            _ = ping.tick() => {
                if last_message.elapsed() > SILENCE {
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

/// Accepts a new token of the same principal.
async fn reauthenticate(
    session: &ControlSession,
    envelope: &ControlEnvelope,
    credentials: &ConnectionCredentials,
) -> Result<ConnectionCredentials, CloseReason> {
    let hello = envelope
        .params::<HelloParams>()
        .map_err(|_| CloseReason::InvalidMessage("invalid parameters of hello"))?;
    let mut renewed = credentials.clone();
    if let Some(token) = hello.token {
        renewed.set_token(token);
    }
    let principal = renewed.authenticate().await.map_err(close_reason_for_rejection)?;
    if principal != session.principal() {
        return Err(CloseReason::Unauthorized("the token belongs to a different principal"));
    }
    send_welcome(session, &principal, Some(&envelope.id));
    session.set_principal(principal);
    Ok(renewed)
}
