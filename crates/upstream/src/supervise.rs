//! The life of one connection after another: connect, list, attend, and when it breaks, back off and come back.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use toolyard_hub::json::Object;
use toolyard_hub::{Offer, State, Status};
use toolyard_wire::{Client, Era, Failure};

use crate::connect::{Refused, connect, introduce};
use crate::hear::Heard;
use crate::list::{self, Lists};
use crate::live::{Live, Mirrored};
use crate::question::{Whom, answer_all};
use crate::subscribe::keep_subscribed;
use crate::upstream::{Inner, Role};

/// Several changes in a row are one: lists are read again once it has been quiet for this long.
const QUIET: Duration = Duration::from_millis(50);
/// A server that never is quiet is listed anyway after this long.
const NEVER_QUIET: Duration = Duration::from_secs(1);
/// How often a server that says nothing is asked whether it is there, and how long it may take to say so.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
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
enum Over {
    Broken(String),
    /// The server is there but does not know our session any more.
    Forgotten,
    Told(Command),
}

pub(crate) async fn supervise(inner: Arc<Inner>, mut commands: mpsc::Receiver<Command>) {
    let mut wait = FIRST_WAIT;
    let mut known = inner.settings.era;
    let mut disabled = !inner.settings.enabled;
    loop {
        if std::mem::take(&mut disabled) {
            match idle(&inner, &mut commands).await {
                Command::Stop => return stopped(&inner),
                Command::Reconnect | Command::Disable => {}
            }
        }
        inner.set_status(Status::new(State::Starting, false));
        let began = tokio::select! {
            began = start(&inner, known) => began,
            told = commands.recv() => match told {
                Some(Command::Reconnect) => continue,
                Some(Command::Disable) => {
                    disabled = true;
                    continue;
                }
                Some(Command::Stop) | None => return stopped(&inner),
            },
        };
        let refused = match began {
            Ok((live, heard)) => {
                wait = FIRST_WAIT;
                known = Some(live.server.version.era());
                let over = attend(&inner, &live, heard, &mut commands).await;
                let stderr = live.stderr();
                inner.live.store(None);
                match over {
                    Over::Told(_) => drop(tokio::join!(inner.own.end_all(), end(live))),
                    // Private sessions are connections of their own: they notice themselves whether they are affected.
                    Over::Broken(_) | Over::Forgotten => end(live).await,
                }
                match over {
                    Over::Told(Command::Stop) => return stopped(&inner),
                    Over::Told(Command::Disable) => {
                        disabled = true;
                        continue;
                    }
                    Over::Told(Command::Reconnect) | Over::Forgotten => continue,
                    Over::Broken(why) => Refused { stderr, ..Refused::new(why) },
                }
            }
            Err(refused) if inner.role == Role::LegacySide && !inner.was_ready() => {
                tracing::debug!(server = %inner.settings.name, reason = refused.reason, "no legacy side");
                return inner.set_status(Status::new(State::Failed, true));
            }
            Err(refused) => refused,
        };
        let retry_at = Instant::now() + jittered(wait);
        let state = if refused.needs_person { State::NeedsAuthorization } else { State::BackingOff };
        tracing::warn!(server = %inner.settings.name, reason = refused.reason, "not connected");
        inner.set_status(Status {
            suggestion: refused.suggestion(&inner.settings),
            reason: Some(refused.reason),
            stderr: refused.stderr,
            retry_at: (!refused.needs_person).then_some(retry_at),
            transport: Some(inner.settings.transport.word()),
            authorization: inner.authorization(state).await,
            ..Status::new(state, true)
        });
        wait = (wait * 2).min(LONGEST_WAIT);
        let told = match refused.needs_person {
            // Trying again changes nothing until somebody logs in.
            true => tokio::select! {
                told = commands.recv() => told,
                () = inner.authoriser.changed() => Some(Command::Reconnect),
            },
            false => {
                tokio::time::timeout_at(retry_at, commands.recv()).await.unwrap_or(Some(Command::Reconnect))
            }
        };
        match told {
            Some(Command::Reconnect) => {}
            Some(Command::Disable) => disabled = true,
            Some(Command::Stop) | None => return stopped(&inner),
        }
    }
}

/// Offers nothing until somebody wants it again.
async fn idle(inner: &Inner, commands: &mut mpsc::Receiver<Command>) -> Command {
    inner.set_offer(Offer::default(), Mirrored::new());
    inner.set_status(Status::new(State::Disabled, true));
    loop {
        match commands.recv().await.unwrap_or(Command::Stop) {
            Command::Disable => {}
            told => return told,
        }
    }
}

fn stopped(inner: &Inner) {
    inner.set_status(Status::new(State::Disabled, true));
}

/// Between three quarters and five quarters of it, so that many do not come back at the same moment.
fn jittered(wait: Duration) -> Duration {
    let nanos =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().subsec_nanos();
    wait.mul_f64(0.75 + f64::from(nanos % 1_000) / 2_000.0)
}

async fn start(inner: &Inner, known: Option<Era>) -> Result<(Arc<Live>, Heard), Refused> {
    let time = inner.settings.start_time;
    let slow = || Refused::slow(&inner.settings);
    let mut tries = 0;
    loop {
        let seen = inner.authoriser.seen();
        let began = tokio::time::timeout(time, begin(inner, known)).await;
        let refused = match began.unwrap_or_else(|_| Err(slow())) {
            Ok(begun) => return Ok(begun),
            Err(refused) => refused,
        };
        // What a person takes to log in is not the server's time.
        introduce(&inner.authoriser, &inner.settings, refused, seen, &mut tries).await?;
    }
}

async fn begin(inner: &Inner, known: Option<Era>) -> Result<(Arc<Live>, Heard), Refused> {
    let (abilities, whom) = match &inner.visitor {
        Some(visitor) => (visitor.abilities.clone(), Whom::Caller),
        None => (inner.sharing.abilities(), Whom::Shared(Arc::clone(&inner.sharing))),
    };
    let met =
        connect(&inner.common, &inner.settings, &inner.authoriser, &abilities, known, &inner.tape).await;
    let met = match (met, known) {
        // It may have been replaced by one of the other era.
        (Err(refused), Some(Era::Legacy)) if refused.challenge.is_none() && inner.settings.era.is_none() => {
            tracing::debug!(reason = refused.reason, "trying both eras again");
            connect(&inner.common, &inner.settings, &inner.authoriser, &abilities, None, &inner.tape).await
        }
        (met, _) => met,
    };
    let (mut live, mut heard) = met?;
    let (_, nothing) = mpsc::channel(1);
    let questions = std::mem::replace(&mut heard.questions, nothing);
    let answering = answer_all(Arc::clone(&live.client), Arc::clone(&live.calls), whom, questions);
    live.tasks.spawn(answering);
    // Nobody waits for what it says unasked.
    drop(live.listen(inner.settings.name.as_str()));
    let (offer, mirrored) = read_offer(inner, &live)
        .await
        .map_err(|failure| Refused { stderr: live.stderr(), ..Refused::from(failure) })?;
    if let (Some(child), Some(feed)) = (&live.child, inner.feed()) {
        child.hear_stderr(Arc::new(move |line: &str| feed.stderr(line)));
    }
    let live = Arc::new(live);
    inner.live.store(Some(Arc::clone(&live)));
    inner.set_offer(offer, mirrored);
    inner.set_status(Status {
        transport: Some(live.client.transport()),
        version: Some(live.server.version.as_str()),
        era: Some(live.server.version.era().as_str()),
        authorization: inner.authorization(State::Ready).await,
        server_info: live.server.info.clone(),
        ..Status::new(State::Ready, true)
    });
    Ok((live, heard))
}

async fn read_offer(inner: &Inner, live: &Live) -> Result<(Offer, Mirrored), Failure> {
    let wanted = inner.visitor.as_ref().map(|visitor| visitor.lists.as_slice());
    let mut offer = list::offer(live, &inner.settings, wanted.unwrap_or(&Lists::ALL)).await?;
    let mut mirrored = Mirrored::new();
    if live.is_modern() && matches!(*live.client, Client::Post(_)) {
        mirrored = list::mirrored(&mut offer, inner.settings.name.as_str());
    }
    Ok((offer, mirrored))
}

/// Stays with a connection until it is over.
async fn attend(
    inner: &Arc<Inner>,
    live: &Arc<Live>,
    mut heard: Heard,
    commands: &mut mpsc::Receiver<Command>,
) -> Over {
    let mut ping = tokio::time::interval_at(Instant::now() + PING, PING);
    let subscription = keep_subscribed(inner, live);
    tokio::pin!(subscription);
    loop {
        tokio::select! {
            why = live.client.broken() => return Over::Broken(why),
            () = inner.lost.notified() => return Over::Forgotten,
            command = commands.recv() => return Over::Told(command.unwrap_or(Command::Stop)),
            () = &mut subscription => {}
            Some(uri) = heard.updated.recv() => inner.resource_updated(&uri),
            () = heard.lists.notified() => {
                if let Some(over) = unless_told(commands, list_again(inner, live, &heard)).await {
                    return over;
                }
            }
            _ = ping.tick() => {
                inner.own.sweep();
                if let Some(over) = unless_told(commands, ping_once(live)).await {
                    return over;
                }
            }
        }
    }
}

/// Does something that the server may take long for. A command that comes meanwhile, such as to stop, ends it.
async fn unless_told(
    commands: &mut mpsc::Receiver<Command>,
    work: impl Future<Output = Option<Over>>,
) -> Option<Over> {
    tokio::select! {
        over = work => over,
        command = commands.recv() => Some(Over::Told(command.unwrap_or(Command::Stop))),
    }
}

/// Reads the lists again. If that fails, what was offered before stays, and the status says why.
async fn list_again(inner: &Arc<Inner>, live: &Live, heard: &Heard) -> Option<Over> {
    quiet(heard).await;
    let why = match tokio::time::timeout(inner.settings.start_time, read_offer(inner, live)).await {
        Ok(Ok((offer, mirrored))) => {
            inner.set_warning(None);
            inner.set_offer(offer, mirrored);
            return None;
        }
        Ok(Err(Failure::SessionGone)) => return Some(Over::Forgotten),
        Ok(Err(failure)) => Refused::from(failure).reason,
        Err(_) => Refused::slow(&inner.settings).reason,
    };
    tracing::warn!(server = %inner.settings.name, reason = why, "cannot list again");
    inner
        .set_warning(Some(format!("its lists are out of date, because they cannot be read again: it {why}")));
    None
}

async fn ping_once(live: &Live) -> Option<Over> {
    match tokio::time::timeout(PONG, is_there(live)).await {
        Ok(Ok(())) => None,
        Ok(Err(Failure::SessionGone)) => Some(Over::Forgotten),
        Ok(Err(failure)) => Some(Over::Broken(Refused::from(failure).reason)),
        Err(_) => Some(Over::Broken("it does not answer any more".to_owned())),
    }
}

/// Waits until no further change has been announced for a moment.
async fn quiet(heard: &Heard) {
    let latest = Instant::now() + NEVER_QUIET;
    while Instant::now() < latest && tokio::time::timeout(QUIET, heard.lists.notified()).await.is_ok() {}
}

/// Asks a server whether it is there. An error from it is an answer too.
async fn is_there(live: &Live) -> Result<(), Failure> {
    let method = if live.is_modern() { "server/discover" } else { "ping" };
    match live.ask(method, Object::default()).await {
        Ok(_) | Err(Failure::Rpc(_)) => Ok(()),
        Err(failure) => Err(failure),
    }
}

/// Ends a session politely, then what was started for it.
async fn end(live: Arc<Live>) {
    if let Client::Post(post) = &*live.client {
        let _ = tokio::time::timeout(Duration::from_secs(3), post.end()).await;
    }
    if let Some(mut live) = Arc::into_inner(live)
        && let Some(child) = live.child.take()
    {
        child.end(Duration::from_secs(2)).await;
    }
}
