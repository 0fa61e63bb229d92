//! The way to the yard that is mirrored: the line while there is one, and why there is none while there is not.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, mpsc};
use tokio_util::task::TaskTracker;
use toolyard_hub::json::Object;
use toolyard_hub::{ErrorKind, HubError, Raw};

use super::control_client::ControlClient;
use super::notice::{RemoteLogLine, RemoteLogSubject, RemoteNotice};

pub(super) struct RemoteLink {
    pub(super) address: String,
    state: Mutex<LinkState>,
    notices: mpsc::Sender<RemoteNotice>,
    /// Somebody wants it to be tried again at once.
    pub(super) retry_now: Notify,
    /// What is still to be said to the yard.
    pub(super) tasks: TaskTracker,
}

struct LinkState {
    client: Result<Arc<ControlClient>, String>,
    permissions: RemotePermissions,
    /// Calls of ours of which the yard has not told yet that they began, by what they are of. It will tell of them like
    /// of anybody's, but who watches this yard has heard of them already.
    announced: HashMap<String, usize>,
}

/// What the yard lets us do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemotePermissions {
    pub(super) manage: bool,
    pub(super) observe: bool,
}

impl RemoteLink {
    pub(super) fn new(address: String, told: mpsc::Sender<RemoteNotice>) -> Arc<Self> {
        let line = Err("it was never connected".to_owned());
        let state = LinkState {
            client: line,
            permissions: RemotePermissions { manage: false, observe: false },
            announced: HashMap::new(),
        };
        let (nudge, tasks) = (Notify::new(), TaskTracker::new());
        Arc::new(Self { address, state: Mutex::new(state), notices: told, retry_now: nudge, tasks })
    }

    pub(super) fn set_connected(&self, line: Arc<ControlClient>, may: RemotePermissions) {
        *self.lock() = LinkState { client: Ok(line), permissions: may, announced: HashMap::new() };
    }

    pub(super) fn set_disconnected(&self, why: &str) {
        self.lock().client = Err(why.to_owned());
    }

    pub(super) fn permissions(&self) -> RemotePermissions {
        self.lock().permissions
    }

    /// The line, or the error of whoever needs one.
    pub(super) fn client(&self) -> Result<Arc<ControlClient>, HubError> {
        self.lock().client.clone().map_err(|why| {
            let message = format!("the yard at {} cannot be reached: {why}", self.address);
            HubError::new(ErrorKind::NotConnected, message).with_suggestion("it is tried again by itself")
        })
    }

    /// Why there is no line, if there is none.
    pub(super) fn disconnect_reason(&self) -> Option<String> {
        self.lock().client.as_ref().err().cloned()
    }

    /// Asks the yard something that it answers at once.
    pub(super) async fn request(&self, subtype: &str, words: Object) -> Result<Raw, HubError> {
        self.client()?.request(subtype, words).await?.response().await
    }

    pub(super) fn announce(&self, subject: &str) {
        *self.lock().announced.entry(subject.to_owned()).or_default() += 1;
    }

    /// Whether a call of this that has begun there is one of ours.
    pub(super) fn take_announced(&self, subject: &str) -> bool {
        let mut state = self.lock();
        let Some(number) = state.announced.get_mut(subject) else { return false };
        *number -= 1;
        if *number == 0 {
            state.announced.remove(subject);
        }
        true
    }

    /// Tells whoever shows this yard. Who does not listen just now misses it.
    pub(super) fn try_notify(&self, message: RemoteNotice) {
        let _ = self.notices.try_send(message);
    }

    pub(super) fn log(&self, subject: RemoteLogSubject, server: Option<&str>, at: SystemTime, text: String) {
        let server = server.map(str::to_owned);
        self.try_notify(RemoteNotice::Log(RemoteLogLine { at, subject, server, text }));
    }

    /// The same, and not missed unless nobody listens any more.
    pub(super) async fn notify(&self, message: RemoteNotice) {
        let _ = self.notices.send(message).await;
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock()
    }
}
