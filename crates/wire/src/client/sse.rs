//! A server over the old transport of 2024-11-05: one stream of events from it, and POSTs to an address that
//! it names in the first of them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, header};
use reqwest::Url;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::authorization::challenge;
use super::events::Events;
use super::http::{PostSettings, is_events, unreachable};
use super::pending::Pending;
use super::same_origin::crossing;
use super::stdio::{cancelled, dispatch};
use super::tape::Direction;
use super::{Failure, Listener, Outbound};
use crate::Raw;
use crate::message::{Id, parse_all, write_request};

/// How long the server may take to name the address.
const NAMING: Duration = Duration::from_secs(10);

/// A server over HTTP+SSE.
pub struct Pair {
    settings: PostSettings,
    to: Url,
    pending: Arc<Pending>,
    _reading: DropGuard,
}

impl Pair {
    /// Opens the stream and waits for the address.
    pub(crate) async fn open(settings: PostSettings) -> Result<Self, Failure> {
        let mut headers = settings.headers.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        settings.authorization.add_to(&mut headers);
        let request = settings.http.request(Method::GET, settings.url.clone())?.headers(headers);
        let response = request.send().await.map_err(|error| unreachable(&error))?;
        let status = response.status().as_u16();
        let challenge = challenge(response.headers());
        if status == 401 || (status == 403 && challenge.is_some()) {
            return Err(Failure::Unauthorized { challenge, status });
        }
        if let Some(crossing) = crossing(&settings.url, response.status(), response.headers()) {
            return Err(crossing);
        }
        if !response.status().is_success() || !is_events(response.headers()) {
            return Err(Failure::Status { status, body: String::new() });
        }
        let mut events = Events::new(response.bytes_stream(), settings.longest);
        let first = tokio::time::timeout(NAMING, events.next()).await;
        let first =
            first.map_err(|_| Failure::Protocol("it never named an address to post to".to_owned()))??;
        let named = first.filter(|event| event.kind == "endpoint").map(|event| event.data);
        let named =
            named.ok_or_else(|| Failure::Protocol("its stream begins without an address".to_owned()))?;
        let to = settings
            .url
            .join(&named)
            .map_err(|error| Failure::Protocol(format!("address {named}: {error}")))?;
        if to.origin() != settings.url.origin() {
            // Our headers may hold secrets that are for this server alone.
            return Err(Failure::Protocol("it names an address on another server".to_owned()));
        }
        let pending = Arc::new(Pending::new(Arc::clone(&settings.tape)));
        let stop = CancellationToken::new();
        let (reading, listener) = (Arc::clone(&pending), Arc::clone(&settings.listener));
        // Ends with the connection: the guard below goes when the connection does.
        tokio::spawn(stop.clone().run_until_cancelled_owned(async move {
            let why = loop {
                match events.next().await {
                    Ok(Some(event)) => hear(&event.data, &reading, &listener),
                    Ok(None) => break "it closed its stream".to_owned(),
                    Err(Failure::Lost(why)) => break why,
                    Err(failure) => break format!("it {failure}"),
                }
            };
            reading.break_off(&why);
        }));
        Ok(Self { settings, to, pending, _reading: stop.drop_guard() })
    }

    pub(crate) async fn request(&self, request: Outbound) -> Result<Raw, Failure> {
        let id = self.pending.next_id();
        let answer = self.pending.wait(&id)?;
        let _forget = ForgetOnDrop { pair: self, id: id.clone() };
        self.send(write_request(&id, request.method, &request.params)).await?;
        answer.await.unwrap_or_else(|_| Err(Failure::Lost("the connection was given up".to_owned())))
    }

    pub(crate) async fn send(&self, text: String) -> Result<(), Failure> {
        self.pending.tape.write(Direction::ToServer, &text);
        let response = self.post(text)?.send().await.map_err(|error| unreachable(&error))?;
        let status = response.status().as_u16();
        let challenge = challenge(response.headers());
        if let Some(crossing) = crossing(&self.to, response.status(), response.headers()) {
            return Err(crossing);
        }
        match status {
            200..=299 => Ok(()),
            401 => Err(Failure::Unauthorized { challenge, status }),
            403 if challenge.is_some() => Err(Failure::Unauthorized { challenge, status }),
            404 => Err(Failure::SessionGone),
            _ => Err(Failure::Status { status, body: String::new() }),
        }
    }

    pub(crate) async fn broken(&self) -> String {
        self.pending.broken().await
    }

    fn post(&self, text: String) -> Result<reqwest::RequestBuilder, Failure> {
        let mut headers = self.settings.headers.clone();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.settings.authorization.add_to(&mut headers);
        Ok(self.settings.http.request(Method::POST, self.to.clone())?.headers(headers).body(text))
    }
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("url", &self.settings.url.host_str()).finish_non_exhaustive()
    }
}

struct ForgetOnDrop<'a> {
    pair: &'a Pair,
    id: Id,
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        if self.pair.pending.forget(&self.id) {
            let Ok(request) = self.pair.post(cancelled(&self.id)) else { return };
            tokio::spawn(async move {
                let _ = tokio::time::timeout(Duration::from_secs(5), request.send()).await;
            });
        }
    }
}

fn hear(data: &str, pending: &Pending, listener: &Listener) {
    pending.tape.write(Direction::FromServer, data);
    for message in parse_all(data.as_bytes()) {
        dispatch(message, data.as_bytes(), "its stream", pending, listener);
    }
}
