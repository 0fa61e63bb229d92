//! Forwarding HTTP requests to another replica. The caller's own credentials travel along, so the
//! other replica authenticates the caller itself and the header of this module grants nothing. It
//! says that the request is not to be forwarded again, and which replica it is for.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use axum::response::IntoResponse;
use futures_util::StreamExt;
use futures_util::stream::unfold;
use reqwest::redirect::Policy;
use toolyard_hub::{Replica, ReplicaId, Replicas};
use toolyard_seal::{Purpose, SealingKeys};

/// Names the replica that a forwarded request is for, sealed with the keys of the yard.
pub(super) const FORWARDED: HeaderName = HeaderName::from_static("toolyard-forwarded-to");
/// Marks the response of a replica that must not answer a forwarded request.
pub(super) const MISDIRECTED: HeaderName = HeaderName::from_static("toolyard-misdirected");
/// Headers of one connection, which are not forwarded.
const HOP_BY_HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_LENGTH,
];
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How often to check whether a replica that has not answered yet is still alive.
const CHECK: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) enum ForwardError {
    /// The request was certainly not handled.
    NotHandled(&'static str),
    /// The other replica may have handled the request.
    Lost,
}

#[derive(Debug)]
pub(super) struct Forwarder {
    replicas: Arc<dyn Replicas>,
    keys: SealingKeys,
    tls: rustls::ClientConfig,
    /// Built for the first request.
    http: OnceLock<reqwest::Client>,
}

impl Forwarder {
    pub(super) fn new(replicas: Arc<dyn Replicas>, keys: SealingKeys, tls: rustls::ClientConfig) -> Self {
        Self { replicas, keys, tls, http: OnceLock::new() }
    }

    /// Returns whether another replica has forwarded this request to this one. A request that was
    /// meant for another process, or that was sealed with unknown keys, is refused.
    pub(super) fn check_forwarded(&self, headers: &HeaderMap) -> Result<bool, Response<Body>> {
        let Some(value) = headers.get(FORWARDED) else { return Ok(false) };
        let target = value.to_str().ok().and_then(|text| self.keys.open(Purpose::Forward, text));
        match target {
            Some(target) if target == self.replicas.own_id().as_str().as_bytes() => Ok(true),
            _ => Err(misdirected()),
        }
    }

    /// Sends a request to another replica and returns the response, which may be a stream.
    pub(super) async fn forward(
        &self,
        to: &Replica,
        head: &Parts,
        body: &Bytes,
    ) -> Result<Response<Body>, ForwardError> {
        let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
        let mut headers = head.headers.clone();
        remove_connection_headers(&mut headers);
        let target = self.keys.seal(Purpose::Forward, to.id.as_str().as_bytes());
        let target = target.ok().and_then(|target| HeaderValue::from_str(&target).ok());
        let target = target.ok_or(ForwardError::NotHandled("the request cannot be sealed"))?;
        headers.insert(FORWARDED, target);
        let http = self.http().ok_or(ForwardError::NotHandled("the HTTP client cannot be created"))?;
        let request = http.request(head.method.clone(), format!("{}{path}", to.url)).headers(headers);
        let response = tokio::select! {
            response = request.body(body.clone()).send() => response,
            // A stopped process accepts requests but does not answer.
            () = self.wait_until_dead(&to.id) => return Err(ForwardError::Lost),
        };
        let response = response.map_err(|error| match error.is_connect() {
            true => ForwardError::NotHandled("the connection failed"),
            false => ForwardError::Lost,
        })?;
        if response.headers().contains_key(MISDIRECTED) {
            return Err(ForwardError::NotHandled("it does not hold the session"));
        }
        Ok(self.relay(&to.id, response))
    }

    /// Passes a response on. Its body ends when the replica is considered dead.
    fn relay(&self, from: &ReplicaId, response: reqwest::Response) -> Response<Body> {
        let mut relayed = Response::new(Body::empty());
        *relayed.status_mut() = response.status();
        *relayed.headers_mut() = response.headers().clone();
        let length = response.headers().get(header::CONTENT_LENGTH).cloned();
        remove_connection_headers(relayed.headers_mut());
        if let Some(length) = length {
            relayed.headers_mut().insert(header::CONTENT_LENGTH, length);
        }
        let (replicas, from) = (Arc::clone(&self.replicas), from.clone());
        let stream = unfold(Some(response.bytes_stream()), move |stream| {
            let (replicas, from) = (Arc::clone(&replicas), from.clone());
            async move {
                let mut stream = stream?;
                let chunk = tokio::select! {
                    chunk = stream.next() => chunk?,
                    () = wait_until_dead(&*replicas, &from) => return None,
                };
                // A broken connection ends the stream, and a legacy client resumes it.
                Some((chunk, Some(stream)))
            }
        });
        *relayed.body_mut() = Body::from_stream(stream);
        relayed
    }

    async fn wait_until_dead(&self, id: &ReplicaId) {
        wait_until_dead(&*self.replicas, id).await;
    }

    /// Returns the HTTP client. It uses neither redirects nor proxies, because replicas talk to each
    /// other directly.
    pub(super) fn http(&self) -> Option<&reqwest::Client> {
        if let Some(http) = self.http.get() {
            return Some(http);
        }
        let http = build_http(&self.tls)?;
        Some(self.http.get_or_init(|| http))
    }
}

/// Creates the HTTP client for requests to other replicas. It uses neither redirects nor proxies,
/// because replicas talk to each other directly.
pub(super) fn build_http(tls: &rustls::ClientConfig) -> Option<reqwest::Client> {
    let http = reqwest::Client::builder().tls_backend_preconfigured(tls.clone());
    let http = http.redirect(Policy::none()).no_proxy().connect_timeout(CONNECT_TIMEOUT).build();
    http.inspect_err(|error| tracing::warn!(%error, "cannot create the HTTP client")).ok()
}

pub(super) async fn wait_until_dead(replicas: &dyn Replicas, id: &ReplicaId) {
    while replicas.find(id).is_some() {
        tokio::time::sleep(CHECK).await;
    }
}

fn remove_connection_headers(headers: &mut HeaderMap) {
    for name in HOP_BY_HOP {
        headers.remove(name);
    }
    headers.remove("keep-alive");
}

/// Tells the forwarding replica to look again for the one that must answer.
pub(super) fn misdirected() -> Response<Body> {
    let mut response = StatusCode::MISDIRECTED_REQUEST.into_response();
    response.headers_mut().insert(MISDIRECTED, HeaderValue::from_static("1"));
    response
}
