//! A yard that mirrors one that runs elsewhere, over its control socket: every server there is a source here, so that a
//! front sees and calls them through the hub as it would its own. The socket may break; then the sources say so, and the
//! mirror comes back when the yard does.

mod call;
mod follow;
mod line;
mod past;
mod read;
mod server;
mod way;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use toolyard_hub::{Limits, Yard, YardSettings};
use toolyard_tui::Message;

use self::follow::Follower;
use self::past::Past;
use self::way::Way;
use crate::attach::{Lost, Patience, attach, shown};

/// How long the first reading of the lists may take before the yard is shown as far as it is known.
const FIRST_LOOK: Duration = Duration::from_secs(10);

/// A yard that shows another one, until this is dropped.
pub(crate) struct Mirror {
    pub(crate) yard: Arc<Yard>,
    way: Arc<Way>,
    keeping: JoinHandle<()>,
}

impl Mirror {
    /// Attaches to the yard at this address. `told` hears what happens there, for the log, and when it is away.
    pub(crate) async fn of(
        url: Url,
        token: Option<String>,
        told: mpsc::Sender<Message>,
    ) -> Result<Self, Lost> {
        let attached = attach(&url, token.as_deref()).await?;
        let way = Way::new(shown(&url), told);
        let history = Arc::new(Past { way: Arc::clone(&way) });
        let yard = Yard::new(YardSettings {
            limits: unlimited(),
            history: Some(history),
            ..YardSettings::default()
        });
        let mut follower = Follower::new(Arc::clone(&yard), Arc::clone(&way));
        let mut looked = follower.looked();
        let keeping = tokio::spawn(async move {
            let mut patience = Patience::default();
            let mut attached = Some(attached);
            loop {
                let lost = match attached.take() {
                    Some(attached) => {
                        patience = Patience::default();
                        follower.live(attached).await
                    }
                    None => match attach(&url, token.as_deref()).await {
                        Ok(again) => {
                            attached = Some(again);
                            continue;
                        }
                        Err(lost) => lost,
                    },
                };
                follower.away(&lost, &mut patience).await;
            }
        });
        let _ = tokio::time::timeout(FIRST_LOOK, looked.wait_for(|looked| *looked)).await;
        Ok(Self { yard, way, keeping })
    }

    /// Lets go of the yard, once what was cancelled has been told to it.
    pub(crate) async fn end(self) {
        self.way.tasks.close();
        let _ = tokio::time::timeout(Duration::from_secs(1), self.way.tasks.wait()).await;
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.keeping.abort();
    }
}

/// The yard that is mirrored has limits of its own, and they are the ones that count.
fn unlimited() -> Limits {
    Limits {
        call_time: Duration::MAX,
        payload: usize::MAX,
        per_source: None,
        rate: None,
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests;
