//! The server's side of the wire: what a transport hands to the service, whatever transport it was.

pub(crate) mod http;
pub(crate) mod legacy;
pub(crate) mod outlet;
pub(crate) mod session;
pub(crate) mod stdio;

use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::Raw;
use crate::message::{Id, Request};
use crate::meta::{ClientSide, Meta};
use crate::rpc_error::RpcError;
use crate::version::Version;
use outlet::Outlet;
use session::Session;

/// Answers requests. Transports take care of everything that is the same for every server: envelopes,
/// versions, sessions, streams, `initialize`, `ping`, `logging/setLevel` and cancellation.
pub trait Service: Send + Sync + 'static {
    /// Who is asking, as the door found out. A legacy session belongs to the caller that opened it.
    type Caller: Clone + PartialEq + Send + Sync + 'static;

    /// What `initialize` answers with.
    fn about(&self, caller: &Self::Caller, version: Version) -> About;

    /// Charges the caller for a session, or says why it may have no more; what is charged is held for as long as the
    /// session is open.
    fn charge_session(&self, _caller: &Self::Caller) -> Result<Charge, RpcError> {
        Ok(None)
    }

    /// Charges the caller for an answer of this size until it is sent, or says why it may have no more in flight.
    fn charge_bytes(&self, _caller: &Self::Caller, _bytes: usize) -> Result<Charge, RpcError> {
        Ok(None)
    }

    /// Answers one request. Dropping the future cancels it.
    fn handle(self: Arc<Self>, request: Inbound<Self::Caller>) -> impl Future<Output = Answer> + Send;
}

/// What a caller was charged for something; dropping it gives that back.
pub type Charge = Option<Box<dyn std::any::Any + Send + Sync>>;

pub(crate) type Answer = Result<Raw, RpcError>;
pub(crate) type Handling = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// What a server says about itself.
#[derive(Debug, Clone)]
pub struct About {
    pub info: Raw,
    pub capabilities: Raw,
    pub instructions: Option<String>,
}

/// One request on its way to the service.
#[derive(Debug)]
pub struct Inbound<C> {
    pub id: Id,
    pub method: String,
    pub params: Option<Raw>,
    pub meta: Meta,
    pub version: Version,
    pub client: ClientSide,
    pub caller: C,
    /// Legacy era only.
    pub session: Option<Arc<Session>>,
    pub outlet: Outlet,
    pub transport: Transport,
    /// Cancelled when the server is shutting down: requests that never end by themselves should end now.
    pub closing: CancellationToken,
}

/// How the request came in.
#[derive(Debug, Clone)]
pub enum Transport {
    Stdio,
    Http(Arc<::http::HeaderMap>),
}

/// Makes a modern request ready for the service; it says itself in which version it speaks, and who the client is.
pub(crate) fn modern<C>(
    request: Request,
    meta: Meta,
    (version, client): (Version, ClientSide),
    caller: C,
    outlet: Outlet,
    transport: Transport,
    closing: CancellationToken,
) -> Inbound<C> {
    let Request { id, method, params } = request;
    let session = None;
    Inbound { id, method, params, meta, version, client, caller, session, outlet, transport, closing }
}
