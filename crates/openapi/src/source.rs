//! An OpenAPI document as a source of the yard.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use reqwest::Url;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{
    BoxFuture, DefinitionBudget, ErrorKind, HubError, Outcome, PublishedSource, Source, SourceCall,
    SourceName, SourceNotifier, SourceOffer, SourceState, SourceStatus, SourceTarget,
};

use crate::auth::TokenCache;
use crate::clients::HttpClients;
use crate::exchange::HttpExchange;
use crate::host_policy::AllowedHosts;
use crate::operation::{Operation, SecurityScheme};
use crate::settings::DocumentSettings;
use crate::watch::watch_document;

/// A source that loads and watches one document and calls its operations until it is dropped.
#[derive(Debug)]
pub struct OpenApiSource {
    inner: Arc<OpenApiState>,
    stop: CancellationToken,
    watcher: Mutex<Option<JoinHandle<()>>>,
}

/// State that is shared with the document watcher.
#[derive(Debug)]
pub(crate) struct OpenApiState {
    pub(crate) settings: DocumentSettings,
    pub(crate) http: HttpClients,
    /// The budget for the size of the tool definitions.
    pub(crate) definitions: DefinitionBudget,
    tokens: TokenCache,
    served: ArcSwapOption<DocumentVersion>,
    published: PublishedSource,
}

/// One version of the document. A call uses the same version from start to end.
#[derive(Debug)]
pub(crate) struct DocumentVersion {
    pub(crate) operations: HashMap<String, Operation>,
    pub(crate) schemes: Vec<SecurityScheme>,
    /// The URL that the document was fetched from, if any.
    pub(crate) document: Option<Url>,
    pub(crate) named: AllowedHosts,
}

impl OpenApiSource {
    /// The transport name in the status of this source.
    pub const TRANSPORT: &'static str = "openapi";

    /// Starts to load the document in the background. Must be called inside a Tokio runtime.
    pub fn start(settings: DocumentSettings, http: HttpClients, definitions: DefinitionBudget) -> Arc<Self> {
        let state = if settings.enabled { SourceState::Starting } else { SourceState::Disabled };
        let status =
            SourceStatus { transport: Some(Self::TRANSPORT), ..SourceStatus::new(state, !settings.enabled) };
        let inner = Arc::new(OpenApiState {
            settings,
            http,
            definitions,
            tokens: TokenCache::default(),
            served: ArcSwapOption::empty(),
            published: PublishedSource::new(status),
        });
        let stop = CancellationToken::new();
        let follower =
            inner.settings.enabled.then(|| tokio::spawn(watch_document(Arc::clone(&inner), stop.clone())));
        Arc::new(Self { inner, stop, watcher: Mutex::new(follower) })
    }

    pub fn settings(&self) -> &DocumentSettings {
        &self.inner.settings
    }

    /// Stops watching the document. Calls in flight are not canceled.
    pub async fn stop(&self) {
        self.stop.cancel();
        let follower = self.watcher.lock().take();
        if let Some(follower) = follower {
            let _ = follower.await;
        }
    }
}

impl OpenApiState {
    pub(crate) fn status(&self) -> SourceStatus {
        self.published.status()
    }

    pub(crate) fn set_status(&self, status: SourceStatus) {
        self.published.set_status(SourceStatus { transport: Some(OpenApiSource::TRANSPORT), ..status });
    }

    /// Replaces the served version of the document.
    pub(crate) fn serve(&self, served: DocumentVersion, offer: SourceOffer) {
        self.served.store(Some(Arc::new(served)));
        let before = self.published.offer();
        let same = before.tools.len() == offer.tools.len()
            && before.tools.iter().zip(&offer.tools).all(|(one, other)| {
                one.definition.get() == other.definition.get() && one.permissions == other.permissions
            });
        if !same {
            self.published.set_offer(offer);
        }
    }

    pub(crate) fn is_serving(&self) -> bool {
        self.served.load().is_some()
    }

    /// Returns the document. Waits while it is being loaded for the first time.
    async fn wait_for_document(&self) -> Result<Arc<DocumentVersion>, HubError> {
        let or_given_up = |status: &SourceStatus| match self.served.load_full() {
            Some(served) => Some(Ok(served)),
            None if status.state == SourceState::Starting && !status.startup_complete => None,
            None => {
                let reason = status.reason.as_deref().unwrap_or("the document is not loaded");
                let message =
                    format!("server `{}` is {}: {reason}", self.settings.name, status.state.label());
                Some(Err(HubError::new(ErrorKind::CannotConnect, message)))
            }
        };
        self.published.wait_for(or_given_up).await
    }

    async fn call(&self, call: SourceCall) -> Result<Outcome, HubError> {
        let SourceTarget::Tool { name, arguments } = &call.target else {
            return Err(HubError::new(
                ErrorKind::UnknownResource,
                format!("`{}` provides only tools", self.settings.name),
            ));
        };
        let served = self.wait_for_document().await?;
        let Some(operation) = served.operations.get(name) else {
            let message = format!("`{}` no longer has the operation `{name}`", self.settings.name);
            return Err(HubError::new(ErrorKind::UnknownTool, message));
        };
        let exchange = HttpExchange {
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

impl Source for OpenApiSource {
    fn name(&self) -> &SourceName {
        &self.inner.settings.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        self.inner.published.offer()
    }

    fn status(&self) -> SourceStatus {
        self.inner.status()
    }

    fn permissions(&self) -> &[String] {
        &self.inner.settings.permissions
    }

    fn starting_since(&self) -> Option<Instant> {
        self.inner.published.starting_since()
    }

    fn attach(&self, notifier: SourceNotifier) {
        self.inner.published.attach(notifier);
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(self.inner.call(call))
    }
}

impl Drop for OpenApiSource {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests;
