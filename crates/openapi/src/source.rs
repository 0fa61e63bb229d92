//! A document as a source of the yard.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use reqwest::Url;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{
    BoxFuture, Call, DefinitionBudget, Error, Feed, Kind, Offer, Outcome, Source, SourceName, State, Status,
    Target,
};

use crate::address::Named;
use crate::auth::Tokens;
use crate::clients::Http;
use crate::exchange::Exchange;
use crate::follow::follow;
use crate::operation::{Operation, Scheme};
use crate::settings::DocumentSettings;

/// One document: it is read, watched and called for as long as this lives.
#[derive(Debug)]
pub struct OpenApi {
    inner: Arc<Inner>,
    stop: CancellationToken,
    follower: Mutex<Option<JoinHandle<()>>>,
}

/// What the source and its follower share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) settings: DocumentSettings,
    pub(crate) http: Http,
    /// Where the bytes of its tools are reserved.
    pub(crate) definitions: DefinitionBudget,
    tokens: Tokens,
    served: ArcSwapOption<Served>,
    offer: ArcSwap<Offer>,
    status: RwLock<Status>,
    changed: Notify,
    feed: OnceLock<Feed>,
}

/// One version of the document, as calls need it. A call keeps the version that it began with.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) operations: HashMap<String, Operation>,
    pub(crate) schemes: Vec<Scheme>,
    /// The address that it came from, if it came from one.
    pub(crate) document: Option<Url>,
    pub(crate) named: Named,
}

impl OpenApi {
    /// How this is called where other sources name their transport.
    pub const TRANSPORT: &'static str = "openapi";

    /// Begins to read the document in the background. Must be called inside a runtime.
    pub fn start(settings: DocumentSettings, http: Http, definitions: DefinitionBudget) -> Arc<Self> {
        let state = if settings.enabled { State::Starting } else { State::Disabled };
        let status = Status { transport: Some(Self::TRANSPORT), ..Status::new(state, !settings.enabled) };
        let inner = Arc::new(Inner {
            settings,
            http,
            definitions,
            tokens: Tokens::default(),
            served: ArcSwapOption::empty(),
            offer: ArcSwap::default(),
            status: RwLock::new(status),
            changed: Notify::new(),
            feed: OnceLock::new(),
        });
        let stop = CancellationToken::new();
        let follower = inner.settings.enabled.then(|| tokio::spawn(follow(Arc::clone(&inner), stop.clone())));
        Arc::new(Self { inner, stop, follower: Mutex::new(follower) })
    }

    pub fn settings(&self) -> &DocumentSettings {
        &self.inner.settings
    }

    /// Stops watching the document. Calls in flight are their callers' to end.
    pub async fn stop(&self) {
        self.stop.cancel();
        let follower = self.follower.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(follower) = follower {
            let _ = follower.await;
        }
    }
}

impl Inner {
    pub(crate) fn status(&self) -> Status {
        self.status.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes the status and tells whoever watches.
    pub(crate) fn set_status(&self, status: Status) {
        {
            let mut now = self.status.write().unwrap_or_else(PoisonError::into_inner);
            let settled = now.settled || status.settled;
            *now = Status { settled, transport: Some(OpenApi::TRANSPORT), ..status };
        }
        self.changed.notify_waiters();
        if let Some(feed) = self.feed.get() {
            feed.status_changed();
        }
    }

    /// Serves another version of the document.
    pub(crate) fn serve(&self, served: Served, offer: Offer) {
        self.served.store(Some(Arc::new(served)));
        let before = self.offer.load_full();
        let same = before.tools.len() == offer.tools.len()
            && before.tools.iter().zip(&offer.tools).all(|(one, other)| {
                one.definition.get() == other.definition.get() && one.permissions == other.permissions
            });
        if same {
            return;
        }
        self.offer.store(Arc::new(offer));
        if let Some(feed) = self.feed.get() {
            feed.offer_changed();
        }
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.served.load().is_some()
    }

    /// The document; waits for it while it is being read for the first time.
    async fn served(&self) -> Result<Arc<Served>, Error> {
        loop {
            let changed = self.changed.notified();
            if let Some(served) = self.served.load_full() {
                return Ok(served);
            }
            let status = self.status();
            if status.state != State::Starting || status.settled {
                let reason = status.reason.as_deref().unwrap_or("it is not served");
                let message = format!("{} is {}: {reason}", self.settings.name, status.state.as_str());
                return Err(Error::new(Kind::CannotConnect, message));
            }
            changed.await;
        }
    }

    async fn call(&self, call: Call) -> Result<Outcome, Error> {
        let Target::Tool { name, arguments } = &call.target else {
            return Err(Error::new(
                Kind::UnknownResource,
                format!("{} offers tools only", self.settings.name),
            ));
        };
        let served = self.served().await?;
        let Some(operation) = served.operations.get(name) else {
            let message = format!("{} has no operation {name} any more", self.settings.name);
            return Err(Error::new(Kind::UnknownTool, message));
        };
        let exchange = Exchange {
            http: &self.http,
            settings: &self.settings,
            named: &served.named,
            tokens: &self.tokens,
            schemes: &served.schemes,
            document: served.document.as_ref(),
            operation,
        };
        exchange.run(&call, arguments).await
    }
}

impl Source for OpenApi {
    fn name(&self) -> &SourceName {
        &self.inner.settings.name
    }

    fn offer(&self) -> Arc<Offer> {
        self.inner.offer.load_full()
    }

    fn status(&self) -> Status {
        self.inner.status()
    }

    fn permissions(&self) -> &[String] {
        &self.inner.settings.permissions
    }

    fn starting_since(&self) -> Option<Instant> {
        let status = self.inner.status.read().unwrap_or_else(PoisonError::into_inner);
        (!status.settled).then_some(status.since)
    }

    fn attach(&self, feed: Feed) {
        // A source is attached to one yard for as long as it lives.
        let _ = self.inner.feed.set(feed);
    }

    fn call<'a>(&'a self, call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.inner.call(call))
    }
}

impl Drop for OpenApi {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests;
