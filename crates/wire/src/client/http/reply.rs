//! HTTP requests and uninterpreted replies. Requests use a connection pool of our own if the server
//! is reached directly over plain HTTP, and a full HTTP client otherwise.

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{BoxStream, Stream, StreamExt};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::Full;
use hyper_util::client::proxy::matcher::Matcher;
use reqwest::Url;

use super::super::same_origin::{SameOriginHttp, is_followed};
use super::super::{WireError, too_large};
use super::pool::{ConnectionPool, PooledBody};

/// Sends requests to one server.
pub(super) struct HttpSender {
    http: SameOriginHttp,
    url: Url,
    plain: Option<PlainEndpoint>,
    /// Whether the server redirects within its origin. The HTTP client then follows the redirects.
    redirected: AtomicBool,
}

/// A server that is reached without TLS, proxy or password.
struct PlainEndpoint {
    pool: Arc<ConnectionPool>,
    host: HeaderValue,
    path: Uri,
}

impl PlainEndpoint {
    fn new(url: &Url) -> Option<Self> {
        let to: Uri = url.as_str().parse().ok()?;
        let named = url.username().is_empty() && url.password().is_none();
        if url.scheme() != "http" || !named || Matcher::from_system().intercept(&to).is_some() {
            return None;
        }
        let host = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str()?),
            None => url.host_str()?.to_owned(),
        };
        let path = Uri::from(to.path_and_query()?.clone());
        Some(Self { pool: ConnectionPool::new(to), host: host.try_into().ok()?, path })
    }

    async fn send(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, WireError> {
        headers.entry(header::HOST).or_insert_with(|| self.host.clone());
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.path.clone();
        *request.headers_mut() = headers;
        let (parts, pieces) = self.pool.send(request).await?.into_parts();
        Ok(HttpReply { status: parts.status, headers: parts.headers, body: ReplyBody::Plain(pieces) })
    }
}

impl HttpSender {
    pub(super) fn new(http: SameOriginHttp, url: Url) -> Self {
        let plain = if http.is_unfiltered() { PlainEndpoint::new(&url) } else { None };
        Self { http, plain, url, redirected: AtomicBool::new(false) }
    }

    /// Sends a request. `headers` is called for every location that the request is sent to, usually
    /// once.
    pub(super) async fn send(
        &self,
        method: Method,
        headers: impl Fn() -> HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<HttpReply, WireError> {
        let body = body.into();
        if let Some(plain) = self.plain.as_ref().filter(|_| !self.redirected.load(Ordering::Relaxed)) {
            let reply = plain.send(method.clone(), headers(), body.clone()).await?;
            if !is_followed(&self.url, reply.status, &reply.headers) {
                return Ok(reply);
            }
            self.redirected.store(true, Ordering::Relaxed);
        }
        // Boxed because this future is large and plain endpoints do not need it.
        Box::pin(self.send_with_reqwest(method, headers(), body)).await
    }

    async fn send_with_reqwest(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<HttpReply, WireError> {
        let request = self.http.request(method, self.url.clone())?.headers(headers).body(body);
        let response = request.send().await.map_err(|error| transport_error(&error))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes_stream().map(|piece| piece.map_err(|error| error.to_string()));
        Ok(HttpReply { status, headers, body: ReplyBody::Other(body.boxed()) })
    }
}

/// The reply to an HTTP request, before its body is read.
pub(super) struct HttpReply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: ReplyBody,
}

impl HttpReply {
    /// Reads the complete body. Fails if it exceeds `longest` bytes.
    pub(super) async fn read_body(mut self, longest: usize) -> Result<Bytes, WireError> {
        let too_long = || WireError::TooLarge(too_large(longest));
        let mut first = Bytes::new();
        let mut all = Vec::new();
        while let Some(piece) = self.body.next().await {
            let piece = piece.map_err(WireError::Lost)?;
            if all.len() + first.len() + piece.len() > longest {
                return Err(too_long());
            }
            if first.is_empty() && all.is_empty() {
                // Most replies arrive in one piece, which need not be copied.
                first = piece;
                continue;
            }
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&piece);
        }
        Ok(if all.is_empty() { first } else { all.into() })
    }
}

pub(super) enum ReplyBody {
    Plain(PooledBody),
    Other(BoxStream<'static, Result<Bytes, String>>),
}

impl Stream for ReplyBody {
    type Item = Result<Bytes, String>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match self.get_mut() {
            Self::Plain(pieces) => Pin::new(pieces)
                .poll_next(cx)
                .map(|next| next.map(|piece| piece.map_err(|error| root_cause(&error)))),
            Self::Other(pieces) => Pin::new(pieces).poll_next(cx),
        }
    }
}

pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().starts_with("text/event-stream"))
}

pub(crate) fn transport_error(error: &reqwest::Error) -> WireError {
    let why = root_cause(error);
    if error.is_connect() || error.is_builder() { WireError::Unreachable(why) } else { WireError::Lost(why) }
}

/// Returns the innermost error. The outermost one only says that sending failed.
pub(super) fn root_cause(error: &dyn Error) -> String {
    let mut deepest = error;
    while let Some(deeper) = deepest.source() {
        deepest = deeper;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests;
