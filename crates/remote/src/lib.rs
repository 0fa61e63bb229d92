//! A remote yard, accessed over its control socket. [`connect`] opens the socket. [`RemoteYard`] is
//! a local yard whose sources are the servers of the remote one, so that a front can list and call
//! them through the hub. While the connection is lost, the status of the sources shows it.

mod call;
mod control_client;
mod control_socket;
mod decode;
mod history;
mod link;
mod notice;
mod replicas;
mod server;
mod sync;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolyard_hub::{Yard, YardLimits, YardSettings};

use self::history::RemoteHistory;
use self::link::RemoteLink;
use self::sync::RemoteSync;

pub use self::control_socket::{
    ReconnectBackoff, RemoteConnection, RemoteError, WelcomeMessage, connect, strip_token,
};
pub use self::notice::{RemoteLogLine, RemoteLogSubject, RemoteNotice};
pub use self::replicas::ReplicaSummary;

/// The timeout for the first sync. After it, the yard is returned with what is known so far.
const FIRST_SYNC: Duration = Duration::from_secs(10);

/// A local mirror of a remote yard. Dropping it closes the connection.
pub struct RemoteYard {
    pub yard: Arc<Yard>,
    link: Arc<RemoteLink>,
    sync_task: JoinHandle<()>,
}

impl std::fmt::Debug for RemoteYard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RemoteYard({})", self.link.address)
    }
}

impl RemoteYard {
    /// Connects to the yard at a URL. `notices` receives log lines of the yard and changes of the
    /// connection.
    pub async fn connect(
        url: Url,
        token: Option<String>,
        notices: mpsc::Sender<RemoteNotice>,
    ) -> Result<Self, RemoteError> {
        let connection = connect(&url, token.as_deref()).await?;
        let link = RemoteLink::new(strip_token(&url), notices);
        let history = Arc::new(RemoteHistory { link: Arc::clone(&link) });
        let yard = Yard::new(YardSettings {
            limits: unlimited(),
            history: Some(history),
            ..YardSettings::default()
        });
        let mut sync = RemoteSync::new(Arc::clone(&yard), Arc::clone(&link));
        let mut synced = sync.first_sync();
        let sync_task = tokio::spawn(async move {
            let mut backoff = ReconnectBackoff::default();
            let mut connection = Some(connection);
            loop {
                let error = match connection.take() {
                    Some(connection) => {
                        backoff = ReconnectBackoff::default();
                        sync.run(connection).await
                    }
                    None => match connect(&url, token.as_deref()).await {
                        Ok(reconnected) => {
                            connection = Some(reconnected);
                            continue;
                        }
                        Err(error) => error,
                    },
                };
                sync.wait_to_reconnect(&error, &mut backoff).await;
            }
        });
        let _ = tokio::time::timeout(FIRST_SYNC, synced.wait_for(|synced| *synced)).await;
        Ok(Self { yard, link, sync_task })
    }

    /// Closes the connection after pending commands are sent. Waits at most one second.
    pub async fn close(self) {
        self.link.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.link.tasks.wait()).await;
    }
}

impl Drop for RemoteYard {
    fn drop(&mut self) {
        self.sync_task.abort();
    }
}

/// Returns limits that never apply, because the remote yard enforces its own.
fn unlimited() -> YardLimits {
    YardLimits {
        call_time: Duration::MAX,
        payload: usize::MAX,
        per_source: None,
        rate: None,
        ..YardLimits::default()
    }
}

#[cfg(test)]
mod tests;
