//! Login to a server of a running yard. The user is at a front, so the address is returned and the
//! login continues in the background. The flow itself belongs to `auth`.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::LoginError;

use crate::auth::{self, AuthError, LoginPrompt, LoginPrompter};
use crate::supervise::Command;
use crate::upstream::UpstreamState;

/// A login that waits for the user.
#[derive(Debug)]
pub(crate) struct PendingLogin {
    address: String,
    task: AbortOnDropHandle<()>,
}

/// Starts a login, or joins the one in progress, and returns the address to open.
pub(crate) async fn begin_login(
    inner: &Arc<UpstreamState>,
    commands: &mpsc::Sender<Command>,
) -> Result<String, LoginError> {
    // Held while the server is contacted, so that concurrent logins get the same address.
    let mut login = inner.login.lock().await;
    if let Some(known) = login.as_ref().filter(|known| !known.task.is_finished()) {
        return Ok(known.address.clone());
    }
    *login = None;
    let (sender, address) = oneshot::channel();
    let sender = Mutex::new(Some(sender));
    let prompter: LoginPrompter = Arc::new(move |prompt: LoginPrompt| {
        if let Some(sender) = sender.lock().take() {
            // If the requester is gone, the login times out.
            let _ = sender.send(prompt.address);
        }
    });
    let (failed, failure) = oneshot::channel();
    let (shared, commands) = (Arc::clone(inner), commands.clone());
    let task = tokio::spawn(async move {
        match auth::login(&shared.settings, &shared.common, &prompter).await {
            // Reconnects with the new credentials.
            Ok(()) => drop(commands.try_send(Command::Reconnect)),
            Err(error) => {
                tracing::warn!(server = %shared.settings.name, %error, "login failed");
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
        Some(AuthError::NothingToDo(reason)) => LoginError::NothingToDo(reason.to_owned()),
        Some(error) => LoginError::Failed {
            message: format!("cannot log in to `{}`: {error}", inner.settings.name),
            suggestion: error.suggestion(inner.settings.name.as_str()),
        },
        // The login ended before the user had to be prompted.
        None => LoginError::NothingToDo("the server does not require authentication".to_owned()),
    }
}
