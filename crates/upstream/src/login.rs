//! Logging in to a server of a running yard: the person is somewhere else, so the address is handed out and the login
//! goes on by itself. How it is done is the business of `auth`.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::LoginError;

use crate::auth::{self, AuthError, LoginPrompt, LoginPrompter};
use crate::supervise::Command;
use crate::upstream::UpstreamState;

/// A login that waits for a person.
#[derive(Debug)]
pub(crate) struct PendingLogin {
    address: String,
    task: AbortOnDropHandle<()>,
}

/// Begins a login, or finds the one that is under way; gives back the address to open.
pub(crate) async fn begin_login(
    inner: &Arc<UpstreamState>,
    commands: &mpsc::Sender<Command>,
) -> Result<String, LoginError> {
    // Held while the server is asked: two who begin at once are to open the same address.
    let mut login = inner.login.lock().await;
    if let Some(known) = login.as_ref().filter(|known| !known.task.is_finished()) {
        return Ok(known.address.clone());
    }
    *login = None;
    let (asked, address) = oneshot::channel();
    let asked = Mutex::new(Some(asked));
    let person: LoginPrompter = Arc::new(move |visit: LoginPrompt| {
        if let Some(asked) = asked.lock().take() {
            // Whoever asked may have left; then nobody comes, and the login ends by itself.
            let _ = asked.send(visit.address);
        }
    });
    let (failed, failure) = oneshot::channel();
    let (shared, commands) = (Arc::clone(inner), commands.clone());
    let task = tokio::spawn(async move {
        match auth::login(&shared.settings, &shared.common, &person).await {
            // What is kept has changed; a connection made with less is made anew.
            Ok(()) => drop(commands.try_send(Command::Reconnect)),
            Err(error) => {
                tracing::warn!(server = %shared.settings.name, %error, "a login failed");
                let _ = failed.send(error);
            }
        }
    });
    let task = AbortOnDropHandle::new(task);
    tokio::select! {
        biased;
        Ok(address) = address => {
            *login = Some(PendingLogin { address: address.clone(), task });
            Ok(address)
        }
        error = failure => Err(to_login_error(inner, error.ok())),
    }
}

fn to_login_error(inner: &UpstreamState, error: Option<AuthError>) -> LoginError {
    match error {
        Some(AuthError::NothingToDo(why)) => LoginError::NothingToDo(why.to_owned()),
        Some(error) => LoginError::Failed {
            message: format!("cannot log in to {}: {error}", inner.settings.name),
            suggestion: error.suggestion(inner.settings.name.as_str()),
        },
        // It was over before anybody had to be asked.
        None => LoginError::NothingToDo("it does not ask who we are".to_owned()),
    }
}
