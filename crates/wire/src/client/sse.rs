//! A server over the old transport of 2024-11-05: one event stream from the server, and POSTs to an
//! endpoint that the server names in the first event.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, header};
use reqwest::Url;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::authorization::auth_challenge;
use super::events::SseReader;
use super::http::{HttpClientSettings, is_event_stream, transport_error};
use super::message_log::WireDirection;
use super::pending_requests::PendingRequests;
use super::same_origin::cross_origin_error;
use super::stdio::{dispatch, write_cancelled};
use super::{OutboundRequest, ServerMessageHandler, WireError};
use crate::RawJson;
use crate::message::{RequestId, parse_all, write_request};

/// How long the server may take to name the endpoint.
const NAMING: Duration = Duration::from_secs(10);

/// A server over HTTP+SSE.
pub struct SseClient {
    settings: HttpClientSettings,
    endpoint: Url,
    pending: Arc<PendingRequests>,
    _reading: DropGuard,
}

impl SseClient {
    /// Opens the stream and waits for the endpoint.
    pub(crate) async fn open(settings: HttpClientSettings) -> Result<Self, WireError> {
        let mut headers = settings.headers.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        settings.authorization.add_to(&mut headers);
        let request = settings.http.request(Method::GET, settings.url.clone())?.headers(headers);
        let response = request.send().await.map_err(|error| transport_error(&error))?;
        let status = response.status().as_u16();
        let challenge = auth_challenge(response.headers());
        if status == 401 || (status == 403 && challenge.is_some()) {
            return Err(WireError::Unauthorized { challenge, status });
        }
        if let Some(crossing) = cross_origin_error(&settings.url, response.status(), response.headers()) {
            return Err(crossing);
        }
        if !response.status().is_success() || !is_event_stream(response.headers()) {
            return Err(WireError::Status { status, body: String::new() });
        }
        let mut events = SseReader::new(response.bytes_stream(), settings.max_message_bytes);
        let first = tokio::time::timeout(NAMING, events.next()).await;
        let first =
            first.map_err(|_| WireError::Protocol("the server named no endpoint in time".to_owned()))??;
        let named = first.filter(|event| event.kind == "endpoint").map(|event| event.data);
        let named = named
            .ok_or_else(|| WireError::Protocol("the first event does not name an endpoint".to_owned()))?;
        let to = settings
            .url
            .join(&named)
            .map_err(|error| WireError::Protocol(format!("invalid endpoint `{named}`: {error}")))?;
        if to.origin() != settings.url.origin() {
            // The headers may contain secrets that are only for this server.
            return Err(WireError::Protocol("the endpoint has another origin".to_owned()));
        }
        let pending = Arc::new(PendingRequests::new(Arc::clone(&settings.message_log)));
        let stop = CancellationToken::new();
        let (reading, listener) = (Arc::clone(&pending), Arc::clone(&settings.listener));
        // Ends with the connection, which owns the guard below.
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            let why = loop {
                match events.next().await {
                    Ok(Some(event)) => handle_event(&event.data, &reading, &listener),
                    Ok(None) => break "the server closed the stream".to_owned(),
                    Err(WireError::Lost(why)) => break why,
                    Err(failure) => break format!("the server {failure}"),
                }
            };
            reading.fail_all(&why);
        }));
        Ok(Self { settings, endpoint: to, pending, _reading: stop.drop_guard() })
    }

    pub(crate) async fn request(&self, request: OutboundRequest) -> Result<RawJson, WireError> {
        let id = self.pending.next_id();
        let answer = self.pending.register(&id)?;
        let _forget = ForgetOnDrop { client: self, id: id.clone() };
        self.send(write_request(&id, request.method, &request.params)).await?;
        answer.await.unwrap_or_else(|_| Err(WireError::Lost("the connection was closed".to_owned())))
    }

    pub(crate) async fn send(&self, text: String) -> Result<(), WireError> {
        self.pending.message_log.write(WireDirection::ToServer, &text);
        let response = self.build_post(text)?.send().await.map_err(|error| transport_error(&error))?;
        let status = response.status().as_u16();
        let challenge = auth_challenge(response.headers());
        if let Some(crossing) = cross_origin_error(&self.endpoint, response.status(), response.headers()) {
            return Err(crossing);
        }
        match status {
            200..=299 => Ok(()),
            401 => Err(WireError::Unauthorized { challenge, status }),
            403 if challenge.is_some() => Err(WireError::Unauthorized { challenge, status }),
            404 => Err(WireError::SessionGone),
            _ => Err(WireError::Status { status, body: String::new() }),
        }
    }

    pub(crate) async fn closed(&self) -> String {
        self.pending.closed().await
    }

    fn build_post(&self, text: String) -> Result<reqwest::RequestBuilder, WireError> {
        let mut headers = self.settings.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.settings.authorization.add_to(&mut headers);
        Ok(self.settings.http.request(Method::POST, self.endpoint.clone())?.headers(headers).body(text))
    }
}

impl fmt::Debug for SseClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseClient").field("url", &self.settings.url.host_str()).finish_non_exhaustive()
    }
}

struct ForgetOnDrop<'a> {
    client: &'a SseClient,
    id: RequestId,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        if self.client.pending.forget(&self.id) {
            let Ok(request) = self.client.build_post(write_cancelled(&self.id)) else { return };
            tokio::spawn(async move {
                let _ = tokio::time::timeout(Duration::from_secs(5), request.send()).await;
            });
        }
    }
}

fn handle_event(data: &str, pending: &PendingRequests, listener: &ServerMessageHandler) {
    pending.message_log.write(WireDirection::FromServer, data);
    for message in parse_all(data.as_bytes()) {
        dispatch(message, data.as_bytes(), "the event stream", pending, listener);
    }
}
