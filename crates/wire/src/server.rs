//! The server's side of the wire: what a transport hands to the service, whatever transport it was.

pub(crate) mod client_channel;
pub(crate) mod http;
pub(crate) mod legacy;
pub(crate) mod session;
pub(crate) mod stdio;

use std::pin::Pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::RawJson;
use crate::message::{RequestId, RpcRequest};
use crate::meta::{ClientProfile, Meta};
use crate::rpc_error::RpcError;
use crate::version::Version;
use client_channel::ClientChannel;
use session::Session;

/// Answers requests. Transports take care of everything that is the same for every server: envelopes,
/// versions, sessions, streams, `initialize`, `ping`, `logging/setLevel` and cancellation.
pub trait Service: Send + Sync + 'static {
    /// Who is asking, as the door found out. A legacy session belongs to the caller that opened it.
    type Caller: Clone + PartialEq + Send + Sync + 'static;

    /// What `initialize` answers with.
    fn describe(&self, caller: &Self::Caller, version: Version) -> ServerDescription;

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
    fn handle(
        self: Arc<Self>,
        request: InboundRequest<Self::Caller>,
    ) -> impl Future<Output = RpcResult> + Send;
}

/// What a caller was charged for something; dropping it gives that back.
pub type Charge = Option<Box<dyn std::any::Any + Send + Sync>>;

pub(crate) type RpcResult = Result<RawJson, RpcError>;
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = RpcResult> + Send>>;

/// What a server says about itself.
#[derive(Debug, Clone)]
pub struct ServerDescription {
    pub info: RawJson,
    pub capabilities: RawJson,
    pub instructions: Option<String>,
}

/// One request on its way to the service.
#[derive(Debug)]
pub struct InboundRequest<C> {
    pub id: RequestId,
    pub method: String,
    pub params: Option<RawJson>,
    pub meta: Meta,
    pub version: Version,
    pub client: ClientProfile,
    pub caller: C,
    /// Legacy era only.
    pub session: Option<Arc<Session>>,
    pub channel: ClientChannel,
    pub transport: RequestTransport,
    /// Cancelled when the server is shutting down: requests that never end by themselves should end now.
    pub closing: CancellationToken,
}

/// How the request came in.
#[derive(Debug, Clone)]
pub enum RequestTransport {
    Stdio,
    Http(Arc<::http::HeaderMap>),
}

/// Makes a modern request ready for the service; it says itself in which version it speaks, and who the client is.
pub(crate) fn build_modern_request<C>(
    request: RpcRequest,
    meta: Meta,
    (version, client): (Version, ClientProfile),
    caller: C,
    outlet: ClientChannel,
    transport: RequestTransport,
    closing: CancellationToken,
) -> InboundRequest<C> {
    let RpcRequest { id, method, params } = request;
    let session = None;
    InboundRequest {
        id,
        method,
        params,
        meta,
        version,
        client,
        caller,
        session,
        channel: outlet,
        transport,
        closing,
    }
}
