//! A server whose settings could not be made: it is there, it says what is wrong, and it offers nothing.

use std::sync::Arc;

use toolyard_hub::{BoxFuture, Call, Error, Kind, Offer, Outcome, Source, SourceName, State, Status};

#[derive(Debug)]
pub struct Broken {
    name: SourceName,
    state: State,
    reason: String,
    permissions: Vec<String>,
    offer: Arc<Offer>,
}

impl Broken {
    /// What it would offer needs these permissions.
    pub fn new(name: SourceName, state: State, reason: String, permissions: Vec<String>) -> Self {
        Self { name, state, reason, permissions, offer: Arc::default() }
    }
}

impl Source for Broken {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer)
    }

    fn permissions(&self) -> &[String] {
        &self.permissions
    }

    fn status(&self) -> Status {
        Status { reason: Some(self.reason.clone()), ..Status::new(self.state, true) }
    }

    fn call<'a>(&'a self, _call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        let message = format!("{} is not usable: {}", self.name, self.reason);
        Box::pin(async { Err(Error::new(Kind::CannotConnect, message)) })
    }
}
