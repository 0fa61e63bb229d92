//! A yard that runs elsewhere, over its control socket. [`connect`] opens the socket; [`RemoteYard`] is a
//! yard whose sources are the servers of the other one, so that a front sees and calls them through the
//! hub like its own. When the socket breaks, the sources say so until the yard is back.

mod call;
mod control_client;
mod control_socket;
mod decode;
mod history;
mod link;
mod notice;
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

/// How long the first reading of the lists may take before the yard is shown as far as it is known.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// A yard that shows another one, until this is dropped.
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
    /// Attaches to the yard at this address. `told` hears what happens there, for the log, and when it is away.
    pub async fn connect(
        url: Url,
        token: Option<String>,
        told: mpsc::Sender<RemoteNotice>,
    ) -> Result<Self, RemoteError> {
        let attached = connect(&url, token.as_deref()).await?;
        let way = RemoteLink::new(strip_token(&url), told);
        let history = Arc::new(RemoteHistory { link: Arc::clone(&way) });
        let yard = Yard::new(YardSettings {
            limits: unlimited(),
            history: Some(history),
            ..YardSettings::default()
        });
        let mut follower = RemoteSync::new(Arc::clone(&yard), Arc::clone(&way));
        let mut looked = follower.first_sync();
        let keeping = tokio::spawn(async move {
            let mut patience = ReconnectBackoff::default();
            let mut attached = Some(attached);
            loop {
                let lost = match attached.take() {
                    Some(attached) => {
                        patience = ReconnectBackoff::default();
                        follower.run(attached).await
                    }
                    None => match connect(&url, token.as_deref()).await {
                        Ok(again) => {
                            attached = Some(again);
                            continue;
                        }
                        Err(lost) => lost,
                    },
                };
                follower.wait_to_reconnect(&lost, &mut patience).await;
            }
        });
        let _ = tokio::time::timeout(FIRST_LOOK, looked.wait_for(|looked| *looked)).await;
        Ok(Self { yard, link: way, sync_task: keeping })
    }

    /// Lets go of the yard, once what was cancelled has been told to it.
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

/// The yard that is mirrored has limits of its own, and they are the ones that count.
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
