//! The server side of the wire: what a transport passes to the service, independent of the
//! transport.

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
use http::stream_log::{LoggedStream, StreamLog};
use session::{RestoredSession, Session, SessionId, SessionRegistry};
use toolyard_random::RandomError;

/// Responds to requests. Transports handle everything that is common to all servers: envelopes,
/// versions, sessions, streams, `initialize`, `ping`, `logging/setLevel` and cancellation.
pub trait Service: Send + Sync + 'static {
    /// The authenticated caller. A legacy session belongs to the caller that opened it.
    type Caller: Clone + PartialEq + Send + Sync + 'static;

    /// Returns the server's part of the `initialize` result.
    fn describe(&self, caller: &Self::Caller, version: Version) -> ServerDescription;

    /// Creates the ID of a new session.
    fn create_session_id(
        &self,
        _caller: &Self::Caller,
        _version: Version,
        _client: &ClientProfile,
    ) -> Result<SessionId, RandomError> {
        toolyard_random::hex_id().map(SessionId::plain)
    }

    /// Opens a session of another process from its ID, if it may continue here.
    fn restore_session(&self, _caller: &Self::Caller, _id: &str) -> Option<RestoredSession> {
        None
    }

    /// Returns the log of the streams of a session.
    fn stream_log(&self, _session: &SessionId) -> Option<Arc<dyn StreamLog>> {
        None
    }

    /// Returns what was logged of a stream of another process.
    fn logged_stream(
        &self,
        _session: &Session,
        _stream: u64,
    ) -> impl Future<Output = Option<LoggedStream>> + Send {
        std::future::ready(None)
    }

    /// Called after the client has changed the log level of a session.
    fn session_changed(&self, _session: &Session) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Returns the response of another process to an HTTP request that this one must not answer
    /// itself.
    fn forward(
        &self,
        _caller: &Self::Caller,
        _sessions: &SessionRegistry<Self::Caller>,
        _head: &::http::request::Parts,
        _body: &bytes::Bytes,
    ) -> impl Future<Output = Option<::http::Response<axum::body::Body>>> + Send {
        std::future::ready(None)
    }

    /// Charges the caller for a session, or returns why it is refused another one. The charge is
    /// held as long as the session is open.
    fn charge_session(&self, _caller: &Self::Caller) -> Result<Charge, RpcError> {
        Ok(None)
    }

    /// Charges the caller for a response of this size until it is sent, or returns why the caller
    /// may not have more bytes in flight.
    fn charge_bytes(&self, _caller: &Self::Caller, _bytes: usize) -> Result<Charge, RpcError> {
        Ok(None)
    }

    /// Responds to one request. Dropping the future cancels the request.
    fn handle(
        self: Arc<Self>,
        request: InboundRequest<Self::Caller>,
    ) -> impl Future<Output = RpcResult> + Send;
}

/// What a caller was charged. Dropping it releases the charge.
pub type Charge = Option<Box<dyn std::any::Any + Send + Sync>>;

pub(crate) type RpcResult = Result<RawJson, RpcError>;
pub(crate) type ResponseFuture = Pin<Box<dyn Future<Output = RpcResult> + Send>>;

/// What a server declares about itself.
#[derive(Debug, Clone)]
pub struct ServerDescription {
    pub info: RawJson,
    pub capabilities: RawJson,
    pub instructions: Option<String>,
}

/// A request to the service.
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
    /// Canceled when the server shuts down. Requests that never end on their own should end then.
    pub closing: CancellationToken,
}

/// The transport on which the request arrived.
#[derive(Debug, Clone)]
pub enum RequestTransport {
    Stdio,
    Http(Arc<::http::HeaderMap>),
}

/// Builds a modern request for the service. The request itself declares its version and its client.
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
