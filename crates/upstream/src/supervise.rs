//! Supervision of the connection to one server: connect, list, watch, and reconnect with backoff
//! after a failure.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use toolyard_hub::json::Object;
use toolyard_hub::{SourceOffer, SourceState, SourceStatus};
use toolyard_wire::{Era, McpClient, WireError};

use crate::connect::{ConnectError, authorize_retry, connect, short_reason};
use crate::connection::{HeaderSchemas, LiveConnection};
use crate::list::{self, ServerListKind};
use crate::notifications::ServerNotifications;
use crate::question::{QuestionRouting, answer_questions};
use crate::subscribe::keep_subscribed;
use crate::upstream::{ConnectionRole, UpstreamState};

/// Debounce interval for list changes: lists are read again once no further change has been
/// announced for this long.
const QUIET: Duration = Duration::from_millis(50);
/// Upper limit of the debounce, for servers that announce changes continuously.
const NEVER_QUIET: Duration = Duration::from_secs(1);
/// Ping interval, and the timeout for the response.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// Reconnect backoff: doubles after each failure, up to the maximum.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Reconnect,
    /// Disconnect, and stay disconnected until the next command.
    Disable,
    Stop,
}

/// Why a connection ended.
enum DisconnectReason {
    Broken(String),
    /// The server is reachable but no longer knows the session.
    SessionLost,
    Command(Command),
}

pub(crate) async fn supervise(inner: Arc<UpstreamState>, mut commands: mpsc::Receiver<Command>) {
    let mut wait = FIRST_WAIT;
    let mut known_era = inner.settings.era;
    let mut disabled = !inner.settings.enabled;
    loop {
        if std::mem::take(&mut disabled) {
            match wait_while_disabled(&inner, &mut commands).await {
                Command::Stop => return set_stopped(&inner),
                Command::Reconnect | Command::Disable => {}
            }
        }
        inner.set_status(SourceStatus::new(SourceState::Starting, false));
        let connected = tokio::select! {
            connected = connect_with_auth(&inner, known_era) => connected,
            command = commands.recv() => match command {
                Some(Command::Reconnect) => continue,
                Some(Command::Disable) => {
                    disabled = true;
                    continue;
                }
                Some(Command::Stop) | None => return set_stopped(&inner),
            },
        };
        let error = match connected {
            Ok((live, notifications)) => {
                wait = FIRST_WAIT;
                known_era = Some(live.server.version.era());
                let reason = watch_connection(&inner, &live, notifications, &mut commands).await;
                let stderr = live.stderr();
                inner.live.store(None);
                match reason {
                    DisconnectReason::Command(_) => {
                        tokio::join!(inner.private_sessions.close_all(), close_connection(live));
                    }
                    // Private sessions are separate connections and detect failures on their own.
                    DisconnectReason::Broken(_) | DisconnectReason::SessionLost => {
                        close_connection(live).await
                    }
                }
                match reason {
                    DisconnectReason::Command(Command::Stop) => return set_stopped(&inner),
                    DisconnectReason::Command(Command::Disable) => {
                        disabled = true;
                        continue;
                    }
                    DisconnectReason::Command(Command::Reconnect) | DisconnectReason::SessionLost => continue,
                    DisconnectReason::Broken(reason) => ConnectError { stderr, ..ConnectError::new(reason) },
                }
            }
            Err(error) if inner.role == ConnectionRole::LegacySide && !inner.was_ready() => {
                tracing::debug!(server = %inner.settings.name, reason = error.reason, "no legacy side");
                return inner.set_status(SourceStatus::new(SourceState::Failed, true));
            }
            Err(error) => error,
        };
        let retry_at = Instant::now() + jittered(wait);
        let state =
            if error.requires_user_action { SourceState::NeedsAuthorization } else { SourceState::Retrying };
        let withheld = error.withheld_note();
        tracing::warn!(server = %inner.settings.name, reason = error.reason, withheld, "not connected");
        inner.set_status(SourceStatus {
            suggestion: error.suggestion(&inner.settings),
            reason: Some(error.reason),
            stderr: error.stderr,
            retry_at: (!error.requires_user_action).then_some(retry_at),
            transport: Some(inner.settings.transport.transport_name()),
            authorization: inner.auth_status_or_unsupported(state).await,
            ..SourceStatus::new(state, true)
        });
        wait = (wait * 2).min(LONGEST_WAIT);
        let command = match error.requires_user_action {
            // A retry is pointless until a user logs in.
            true => tokio::select! {
                command = commands.recv() => command,
                () = inner.authorizer.wait_for_login() => Some(Command::Reconnect),
            },
            false => {
                tokio::time::timeout_at(retry_at, commands.recv()).await.unwrap_or(Some(Command::Reconnect))
            }
        };
        match command {
            Some(Command::Reconnect) => {}
            Some(Command::Disable) => disabled = true,
            Some(Command::Stop) | None => return set_stopped(&inner),
        }
    }
}

/// Publishes an empty offer and waits for a command other than [`Command::Disable`].
async fn wait_while_disabled(inner: &UpstreamState, commands: &mut mpsc::Receiver<Command>) -> Command {
    inner.set_offer(SourceOffer::default(), HeaderSchemas::new());
    inner.set_status(SourceStatus::new(SourceState::Disabled, true));
    loop {
        match commands.recv().await.unwrap_or(Command::Stop) {
            Command::Disable => {}
            command => return command,
        }
    }
}

fn set_stopped(inner: &UpstreamState) {
    inner.set_status(SourceStatus::new(SourceState::Disabled, true));
}

/// Returns 75 % to 125 % of the wait, so that many servers do not reconnect at the same moment.
fn jittered(wait: Duration) -> Duration {
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    wait.mul_f64(0.75 + f64::from(nanos % 1_000) / 2_000.0)
}

async fn connect_with_auth(
    inner: &UpstreamState,
    known_era: Option<Era>,
) -> Result<(Arc<LiveConnection>, ServerNotifications), ConnectError> {
    let limit = inner.settings.start_timeout;
    let timed_out = || ConnectError::timed_out(&inner.settings);
    let mut attempts = 0;
    loop {
        let generation = inner.authorizer.token_generation();
        let connected = tokio::time::timeout(limit, connect_and_list(inner, known_era)).await;
        let error = match connected.unwrap_or_else(|_| Err(timed_out())) {
            Ok(connected) => return Ok(connected),
            Err(error) => error,
        };
        // The start timeout does not include the time that a user takes to log in.
        authorize_retry(&inner.authorizer, &inner.settings, error, generation, &mut attempts).await?;
    }
}

async fn connect_and_list(
    inner: &UpstreamState,
    known_era: Option<Era>,
) -> Result<(Arc<LiveConnection>, ServerNotifications), ConnectError> {
    let (capabilities, routing) = match &inner.dedicated_client {
        Some(client) => (client.capabilities.clone(), QuestionRouting::Caller),
        None => (inner.sharing.capabilities(), QuestionRouting::Shared(Arc::clone(&inner.sharing))),
    };
    let (common, settings, authorizer) = (&inner.common, &inner.settings, &inner.authorizer);
    let connected = connect(common, settings, authorizer, &capabilities, known_era, &inner.message_log).await;
    let connected = match (connected, known_era) {
        // The server may have been replaced by one of the other era.
        (Err(error), Some(Era::Legacy)) if error.challenge.is_none() && settings.era.is_none() => {
            tracing::debug!(reason = error.reason, "retrying with both eras");
            connect(common, settings, authorizer, &capabilities, None, &inner.message_log).await
        }
        (connected, _) => connected,
    };
    let (mut live, mut notifications) = connected?;
    let (_, closed) = mpsc::channel(1);
    let questions = std::mem::replace(&mut notifications.questions, closed);
    let answering = answer_questions(Arc::clone(&live.client), Arc::clone(&live.calls), routing, questions);
    live.tasks.spawn(answering);
    // Startup does not depend on the standing stream.
    drop(live.spawn_listener(inner.settings.name.as_str()));
    let (offer, mirrored) = read_offer(inner, &live)
        .await
        .map_err(|failure| ConnectError { stderr: live.stderr(), ..ConnectError::from(failure) })?;
    if let (Some(child), Some(notifier)) = (&live.child, inner.notifier()) {
        child.forward_stderr(Arc::new(move |line: &str| notifier.stderr(line)));
    }
    let live = Arc::new(live);
    inner.live.store(Some(Arc::clone(&live)));
    inner.set_offer(offer, mirrored);
    inner.set_status(SourceStatus {
        transport: Some(live.client.transport()),
        version: Some(live.server.version.as_str()),
        era: Some(live.server.version.era().as_str()),
        authorization: inner.auth_status_or_unsupported(SourceState::Ready).await,
        server_info: live.server.info.clone(),
        ..SourceStatus::new(SourceState::Ready, true)
    });
    Ok((live, notifications))
}

async fn read_offer(
    inner: &UpstreamState,
    live: &LiveConnection,
) -> Result<(SourceOffer, HeaderSchemas), WireError> {
    let lists = inner.dedicated_client.as_ref().map(|client| client.lists.as_slice());
    let mut offer = list::fetch_offer(live, &inner.settings, lists.unwrap_or(&ServerListKind::ALL)).await?;
    let mut mirrored = HeaderSchemas::new();
    if live.is_modern() && matches!(*live.client, McpClient::StreamableHttp(_)) {
        mirrored = list::retain_mirrorable_tools(&mut offer, inner.settings.name.as_str());
    }
    Ok((offer, mirrored))
}

/// Watches a connection until it ends.
async fn watch_connection(
    inner: &Arc<UpstreamState>,
    live: &Arc<LiveConnection>,
    mut notifications: ServerNotifications,
    commands: &mut mpsc::Receiver<Command>,
) -> DisconnectReason {
    let mut ping = tokio::time::interval_at(Instant::now() + PING, PING);
    let subscription = keep_subscribed(inner, live);
    let logout = inner.authorizer.follow_store();
    tokio::pin!(subscription, logout);
    loop {
        tokio::select! {
            reason = live.client.closed() => return DisconnectReason::Broken(reason),
            () = inner.session_lost.notified() => return DisconnectReason::SessionLost,
            command = commands.recv() => return DisconnectReason::Command(command.unwrap_or(Command::Stop)),
            () = &mut subscription => {}
            // Without its token, the server asks for a login again.
            () = &mut logout => return DisconnectReason::Command(Command::Reconnect),
            Some(uri) = notifications.updated_resources.recv() => inner.resource_updated(&uri),
            () = notifications.lists_changed.notified() => {
                let refresh = refresh_offer(inner, live, &notifications);
                if let Some(reason) = run_until_command(commands, refresh).await {
                    return reason;
                }
            }
            _ = ping.tick() => {
                inner.private_sessions.sweep();
                if let Some(reason) = run_until_command(commands, check_alive(live)).await {
                    return reason;
                }
            }
        }
    }
}

/// Runs work that may take the server a long time. A command that arrives in the meantime, such as
/// [`Command::Stop`], ends it.
async fn run_until_command(
    commands: &mut mpsc::Receiver<Command>,
    work: impl Future<Output = Option<DisconnectReason>>,
) -> Option<DisconnectReason> {
    tokio::select! {
        reason = work => reason,
        command = commands.recv() => Some(DisconnectReason::Command(command.unwrap_or(Command::Stop))),
    }
}

/// Reads the lists again. If that fails, the previous offer stays and the status gets a warning.
async fn refresh_offer(
    inner: &Arc<UpstreamState>,
    live: &LiveConnection,
    notifications: &ServerNotifications,
) -> Option<DisconnectReason> {
    wait_for_quiet(notifications).await;
    let reason = match tokio::time::timeout(inner.settings.start_timeout, read_offer(inner, live)).await {
        Ok(Ok((offer, mirrored))) => {
            inner.set_warning(None);
            inner.set_offer(offer, mirrored);
            return None;
        }
        Ok(Err(WireError::SessionGone)) => return Some(DisconnectReason::SessionLost),
        Ok(Err(failure)) => short_reason(&failure),
        Err(_) => ConnectError::timed_out(&inner.settings).reason,
    };
    tracing::warn!(server = %inner.settings.name, reason, "cannot refresh the lists");
    inner.set_warning(Some(format!("the lists are out of date: refreshing them failed: {reason}")));
    None
}

async fn check_alive(live: &LiveConnection) -> Option<DisconnectReason> {
    match tokio::time::timeout(PONG, send_ping(live)).await {
        Ok(Ok(())) => None,
        Ok(Err(WireError::SessionGone)) => Some(DisconnectReason::SessionLost),
        Ok(Err(failure)) => Some(DisconnectReason::Broken(ConnectError::from(failure).reason)),
        Err(_) => {
            Some(DisconnectReason::Broken(format!("no response to a ping within {} s", PONG.as_secs())))
        }
    }
}

/// Waits until no further change has been announced for [`QUIET`].
async fn wait_for_quiet(notifications: &ServerNotifications) {
    let latest = Instant::now() + NEVER_QUIET;
    while Instant::now() < latest
        && tokio::time::timeout(QUIET, notifications.lists_changed.notified()).await.is_ok()
    {}
}

/// Pings the server. An error response also proves that it is alive.
async fn send_ping(live: &LiveConnection) -> Result<(), WireError> {
    let method = if live.is_modern() { "server/discover" } else { "ping" };
    match live.request(method, Object::default()).await {
        Ok(_) | Err(WireError::Rpc(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Ends the session, then stops the process that was started for it.
async fn close_connection(live: Arc<LiveConnection>) {
    if let McpClient::StreamableHttp(post) = &*live.client {
        let _ = tokio::time::timeout(Duration::from_secs(3), post.end_session()).await;
    }
    if let Some(mut live) = Arc::into_inner(live)
        && let Some(child) = live.child.take()
    {
        child.stop(Duration::from_secs(2)).await;
    }
}
