//! The link to the remote yard: the client while it is connected, otherwise the reason why not.

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
    /// Notified to reconnect immediately.
    pub(super) retry_now: Notify,
    /// Commands that are still being sent to the yard.
    pub(super) tasks: TaskTracker,
}

struct LinkState {
    client: Result<Arc<ControlClient>, String>,
    permissions: RemotePermissions,
    /// The number of own calls, by subject, whose start event has not arrived yet. The yard reports
    /// them like those of other clients, but the hub has already reported them here.
    announced: HashMap<String, usize>,
}

/// The permissions of the token on the remote yard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemotePermissions {
    pub(super) manage: bool,
    pub(super) observe: bool,
}

impl RemoteLink {
    pub(super) fn new(address: String, notices: mpsc::Sender<RemoteNotice>) -> Arc<Self> {
        let state = LinkState {
            client: Err("it was never connected".to_owned()),
            permissions: RemotePermissions { manage: false, observe: false },
            announced: HashMap::new(),
        };
        let (retry_now, tasks) = (Notify::new(), TaskTracker::new());
        Arc::new(Self { address, state: Mutex::new(state), notices, retry_now, tasks })
    }

    pub(super) fn set_connected(&self, client: Arc<ControlClient>, permissions: RemotePermissions) {
        *self.lock() = LinkState { client: Ok(client), permissions, announced: HashMap::new() };
    }

    pub(super) fn set_disconnected(&self, why: &str) {
        self.lock().client = Err(why.to_owned());
    }

    pub(super) fn permissions(&self) -> RemotePermissions {
        self.lock().permissions
    }

    /// Returns the client, or an error if the yard is not connected.
    pub(super) fn client(&self) -> Result<Arc<ControlClient>, HubError> {
        self.lock().client.clone().map_err(|why| {
            let message = format!("the yard at {} cannot be reached: {why}", self.address);
            HubError::new(ErrorKind::NotConnected, message)
                .with_suggestion("the connection is retried automatically")
        })
    }

    /// Returns why the yard is not connected, if it is not.
    pub(super) fn disconnect_reason(&self) -> Option<String> {
        self.lock().client.as_ref().err().cloned()
    }

    /// Sends a request and waits for the response.
    pub(super) async fn request(&self, subtype: &str, params: Object) -> Result<Raw, HubError> {
        self.client()?.request(subtype, params).await?.response().await
    }

    pub(super) fn announce(&self, subject: &str) {
        *self.lock().announced.entry(subject.to_owned()).or_default() += 1;
    }

    /// Returns whether a call that started on the yard is an own call.
    pub(super) fn take_announced(&self, subject: &str) -> bool {
        let mut state = self.lock();
        let Some(count) = state.announced.get_mut(subject) else { return false };
        *count -= 1;
        if *count == 0 {
            state.announced.remove(subject);
        }
        true
    }

    /// Sends a notice to the front. Drops it if the queue is full.
    pub(super) fn try_notify(&self, notice: RemoteNotice) {
        let _ = self.notices.try_send(notice);
    }

    pub(super) fn log(&self, subject: RemoteLogSubject, server: Option<&str>, at: SystemTime, text: String) {
        let server = server.map(str::to_owned);
        self.try_notify(RemoteNotice::Log(RemoteLogLine { at, subject, server, text }));
    }

    /// Sends a notice to the front. Waits if the queue is full.
    pub(super) async fn notify(&self, notice: RemoteNotice) {
        let _ = self.notices.send(notice).await;
    }

    fn lock(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock()
    }
}
