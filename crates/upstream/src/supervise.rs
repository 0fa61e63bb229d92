//! The life of one connection after another: connect, list, attend, and when it breaks, back off and come back.

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

/// Several changes in a row are one: lists are read again once it has been quiet for this long.
const QUIET: Duration = Duration::from_millis(50);
/// A server that never is quiet is listed anyway after this long.
const NEVER_QUIET: Duration = Duration::from_secs(1);
/// How often a server that says nothing is asked whether it is there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// How long a failed server is left alone before it is tried again: twice as long each time, up to the longest.
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Command {
    Reconnect,
    /// Disconnect, and wait until told otherwise.
    Disable,
    Stop,
}

/// Why a connection is given up.
enum DisconnectReason {
    Broken(String),
    /// The server is there but does not know our session any more.
    SessionLost,
    Command(Command),
}

pub(crate) async fn supervise(inner: Arc<UpstreamState>, mut commands: mpsc::Receiver<Command>) {
    let mut wait = FIRST_WAIT;
    let mut known = inner.settings.era;
    let mut disabled = !inner.settings.enabled;
    loop {
        if std::mem::take(&mut disabled) {
            match wait_while_disabled(&inner, &mut commands).await {
                Command::Stop => return set_stopped(&inner),
                Command::Reconnect | Command::Disable => {}
            }
        }
        inner.set_status(SourceStatus::new(SourceState::Starting, false));
        let began = tokio::select! {
            began = connect_with_auth(&inner, known) => began,
            told = commands.recv() => match told {
                Some(Command::Reconnect) => continue,
                Some(Command::Disable) => {
                    disabled = true;
                    continue;
                }
                Some(Command::Stop) | None => return set_stopped(&inner),
            },
        };
        let refused = match began {
            Ok((live, heard)) => {
                wait = FIRST_WAIT;
                known = Some(live.server.version.era());
                let over = watch_connection(&inner, &live, heard, &mut commands).await;
                let stderr = live.stderr();
                inner.live.store(None);
                match over {
                    DisconnectReason::Command(_) => {
                        tokio::join!(inner.private_sessions.close_all(), close_connection(live));
                    }
                    // Private sessions are connections of their own: they notice themselves whether they are affected.
                    DisconnectReason::Broken(_) | DisconnectReason::SessionLost => {
                        close_connection(live).await
                    }
                }
                match over {
                    DisconnectReason::Command(Command::Stop) => return set_stopped(&inner),
                    DisconnectReason::Command(Command::Disable) => {
                        disabled = true;
                        continue;
                    }
                    DisconnectReason::Command(Command::Reconnect) | DisconnectReason::SessionLost => continue,
                    DisconnectReason::Broken(why) => ConnectError { stderr, ..ConnectError::new(why) },
                }
            }
            Err(refused) if inner.role == ConnectionRole::LegacySide && !inner.was_ready() => {
                tracing::debug!(server = %inner.settings.name, reason = refused.reason, "no legacy side");
                return inner.set_status(SourceStatus::new(SourceState::Failed, true));
            }
            Err(refused) => refused,
        };
        let retry_at = Instant::now() + jittered(wait);
        let state = if refused.requires_user_action {
            SourceState::NeedsAuthorization
        } else {
            SourceState::Retrying
        };
        tracing::warn!(server = %inner.settings.name, reason = refused.reason, "not connected");
        inner.set_status(SourceStatus {
            suggestion: refused.suggestion(&inner.settings),
            reason: Some(refused.reason),
            stderr: refused.stderr,
            retry_at: (!refused.requires_user_action).then_some(retry_at),
            transport: Some(inner.settings.transport.transport_name()),
            authorization: inner.auth_status_or_unsupported(state).await,
            ..SourceStatus::new(state, true)
        });
        wait = (wait * 2).min(LONGEST_WAIT);
        let told = match refused.requires_user_action {
            // Trying again changes nothing until somebody logs in.
            true => tokio::select! {
                told = commands.recv() => told,
                () = inner.authorizer.wait_for_login() => Some(Command::Reconnect),
            },
            false => {
                tokio::time::timeout_at(retry_at, commands.recv()).await.unwrap_or(Some(Command::Reconnect))
            }
        };
        match told {
            Some(Command::Reconnect) => {}
            Some(Command::Disable) => disabled = true,
            Some(Command::Stop) | None => return set_stopped(&inner),
        }
    }
}

/// Offers nothing until somebody wants it again.
async fn wait_while_disabled(inner: &UpstreamState, commands: &mut mpsc::Receiver<Command>) -> Command {
    inner.set_offer(SourceOffer::default(), HeaderSchemas::new());
    inner.set_status(SourceStatus::new(SourceState::Disabled, true));
    loop {
        match commands.recv().await.unwrap_or(Command::Stop) {
            Command::Disable => {}
            told => return told,
        }
    }
}

fn set_stopped(inner: &UpstreamState) {
    inner.set_status(SourceStatus::new(SourceState::Disabled, true));
}

/// Between three quarters and five quarters of it, so that many do not come back at the same moment.
fn jittered(wait: Duration) -> Duration {
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    wait.mul_f64(0.75 + f64::from(nanos % 1_000) / 2_000.0)
}

async fn connect_with_auth(
    inner: &UpstreamState,
    known: Option<Era>,
) -> Result<(Arc<LiveConnection>, ServerNotifications), ConnectError> {
    let time = inner.settings.start_timeout;
    let slow = || ConnectError::timed_out(&inner.settings);
    let mut tries = 0;
    loop {
        let seen = inner.authorizer.token_generation();
        let began = tokio::time::timeout(time, connect_and_list(inner, known)).await;
        let refused = match began.unwrap_or_else(|_| Err(slow())) {
            Ok(begun) => return Ok(begun),
            Err(refused) => refused,
        };
        // What a person takes to log in is not the server's time.
        authorize_retry(&inner.authorizer, &inner.settings, refused, seen, &mut tries).await?;
    }
}

async fn connect_and_list(
    inner: &UpstreamState,
    known: Option<Era>,
) -> Result<(Arc<LiveConnection>, ServerNotifications), ConnectError> {
    let (abilities, whom) = match &inner.dedicated_client {
        Some(visitor) => (visitor.capabilities.clone(), QuestionRouting::Caller),
        None => (inner.sharing.capabilities(), QuestionRouting::Shared(Arc::clone(&inner.sharing))),
    };
    let met =
        connect(&inner.common, &inner.settings, &inner.authorizer, &abilities, known, &inner.message_log)
            .await;
    let met = match (met, known) {
        // It may have been replaced by one of the other era.
        (Err(refused), Some(Era::Legacy)) if refused.challenge.is_none() && inner.settings.era.is_none() => {
            tracing::debug!(reason = refused.reason, "trying both eras again");
            connect(&inner.common, &inner.settings, &inner.authorizer, &abilities, None, &inner.message_log)
                .await
        }
        (met, _) => met,
    };
    let (mut live, mut heard) = met?;
    let (_, nothing) = mpsc::channel(1);
    let questions = std::mem::replace(&mut heard.questions, nothing);
    let answering = answer_questions(Arc::clone(&live.client), Arc::clone(&live.calls), whom, questions);
    live.tasks.spawn(answering);
    // Nobody waits for what it says unasked.
    drop(live.spawn_listener(inner.settings.name.as_str()));
    let (offer, mirrored) = read_offer(inner, &live)
        .await
        .map_err(|failure| ConnectError { stderr: live.stderr(), ..ConnectError::from(failure) })?;
    if let (Some(child), Some(feed)) = (&live.child, inner.notifier()) {
        child.forward_stderr(Arc::new(move |line: &str| feed.stderr(line)));
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
    Ok((live, heard))
}

async fn read_offer(
    inner: &UpstreamState,
    live: &LiveConnection,
) -> Result<(SourceOffer, HeaderSchemas), WireError> {
    let wanted = inner.dedicated_client.as_ref().map(|visitor| visitor.lists.as_slice());
    let mut offer = list::fetch_offer(live, &inner.settings, wanted.unwrap_or(&ServerListKind::ALL)).await?;
    let mut mirrored = HeaderSchemas::new();
    if live.is_modern() && matches!(*live.client, McpClient::StreamableHttp(_)) {
        mirrored = list::retain_mirrorable_tools(&mut offer, inner.settings.name.as_str());
    }
    Ok((offer, mirrored))
}

/// Stays with a connection until it is over.
async fn watch_connection(
    inner: &Arc<UpstreamState>,
    live: &Arc<LiveConnection>,
    mut heard: ServerNotifications,
    commands: &mut mpsc::Receiver<Command>,
) -> DisconnectReason {
    let mut ping = tokio::time::interval_at(Instant::now() + PING, PING);
    let subscription = keep_subscribed(inner, live);
    tokio::pin!(subscription);
    loop {
        tokio::select! {
            why = live.client.closed() => return DisconnectReason::Broken(why),
            () = inner.session_lost.notified() => return DisconnectReason::SessionLost,
            command = commands.recv() => return DisconnectReason::Command(command.unwrap_or(Command::Stop)),
            () = &mut subscription => {}
            Some(uri) = heard.updated_resources.recv() => inner.resource_updated(&uri),
            () = heard.lists_changed.notified() => {
                if let Some(over) = run_until_command(commands, refresh_offer(inner, live, &heard)).await {
                    return over;
                }
            }
            _ = ping.tick() => {
                inner.private_sessions.sweep();
                if let Some(over) = run_until_command(commands, check_alive(live)).await {
                    return over;
                }
            }
        }
    }
}

/// Does something that the server may take long for. A command that comes meanwhile, such as to stop, ends it.
async fn run_until_command(
    commands: &mut mpsc::Receiver<Command>,
    work: impl Future<Output = Option<DisconnectReason>>,
) -> Option<DisconnectReason> {
    tokio::select! {
        over = work => over,
        command = commands.recv() => Some(DisconnectReason::Command(command.unwrap_or(Command::Stop))),
    }
}

/// Reads the lists again. If that fails, what was offered before stays, and the status says why.
async fn refresh_offer(
    inner: &Arc<UpstreamState>,
    live: &LiveConnection,
    heard: &ServerNotifications,
) -> Option<DisconnectReason> {
    wait_for_quiet(heard).await;
    let why = match tokio::time::timeout(inner.settings.start_timeout, read_offer(inner, live)).await {
        Ok(Ok((offer, mirrored))) => {
            inner.set_warning(None);
            inner.set_offer(offer, mirrored);
            return None;
        }
        Ok(Err(WireError::SessionGone)) => return Some(DisconnectReason::SessionLost),
        Ok(Err(failure)) => short_reason(&failure),
        Err(_) => ConnectError::timed_out(&inner.settings).reason,
    };
    tracing::warn!(server = %inner.settings.name, reason = why, "cannot list again");
    inner
        .set_warning(Some(format!("its lists are out of date, because they cannot be read again: it {why}")));
    None
}

async fn check_alive(live: &LiveConnection) -> Option<DisconnectReason> {
    match tokio::time::timeout(PONG, send_ping(live)).await {
        Ok(Ok(())) => None,
        Ok(Err(WireError::SessionGone)) => Some(DisconnectReason::SessionLost),
        Ok(Err(failure)) => Some(DisconnectReason::Broken(ConnectError::from(failure).reason)),
        Err(_) => Some(DisconnectReason::Broken("it does not answer any more".to_owned())),
    }
}

/// Waits until no further change has been announced for a moment.
async fn wait_for_quiet(heard: &ServerNotifications) {
    let latest = Instant::now() + NEVER_QUIET;
    while Instant::now() < latest && tokio::time::timeout(QUIET, heard.lists_changed.notified()).await.is_ok()
    {
    }
}

/// Asks a server whether it is there. An error from it is an answer too.
async fn send_ping(live: &LiveConnection) -> Result<(), WireError> {
    let method = if live.is_modern() { "server/discover" } else { "ping" };
    match live.request(method, Object::default()).await {
        Ok(_) | Err(WireError::Rpc(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Ends a session politely, then what was started for it.
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
