//! A server with invalid settings. It is listed with the reason and offers nothing.

use std::sync::Arc;

use toolyard_hub::{
    BoxFuture, ErrorKind, HubError, Outcome, Source, SourceCall, SourceName, SourceOffer, SourceState,
    SourceStatus,
};

#[derive(Debug)]
pub struct MisconfiguredServer {
    name: SourceName,
    state: SourceState,
    reason: String,
    permissions: Vec<String>,
    offer: Arc<SourceOffer>,
}

impl MisconfiguredServer {
    /// Creates the server. `permissions` are those required for its offer.
    pub fn new(name: SourceName, state: SourceState, reason: String, permissions: Vec<String>) -> Self {
        Self { name, state, reason, permissions, offer: Arc::default() }
    }
}

impl Source for MisconfiguredServer {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn permissions(&self) -> &[String] {
        &self.permissions
    }

    fn status(&self) -> SourceStatus {
        SourceStatus { reason: Some(self.reason.clone()), ..SourceStatus::new(self.state, true) }
    }

    fn call<'a>(&'a self, _call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        let message = format!("{} cannot be used: {}", self.name, self.reason);
        Box::pin(async { Err(HubError::new(ErrorKind::CannotConnect, message)) })
    }
}
