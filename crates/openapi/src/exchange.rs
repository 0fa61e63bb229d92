//! One HTTP call: sends the request with its credentials, follows redirects within the same origin,
//! honors `Retry-After`, and reads the response up to a size limit. Dropping the future closes the
//! connection.

mod content_coding;
mod retry;

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Response, Url};
use tokio::time::{Instant, sleep, timeout_at};
use toolyard_hub::{ErrorKind, HubError, Outcome, SourceCall};

use crate::auth::{TokenCache, TokenFetchContext, plan_auth};
use crate::base_url::{NAME_IT, SAY_WHERE, resolve_base_url};
use crate::clients::{HttpClients, is_private_address_error, root_cause};
use crate::host_policy::{AddressError, AllowedHosts, redact_url};
use crate::operation::{Operation, SecurityScheme};
use crate::request::{OperationRequest, Payload, RequestBuildError, build_request};
use crate::response::{BufferedResponse, TruncationCause, is_stream};
use crate::settings::DocumentSettings;
use content_coding::ContentCoding;

/// Maximum number of redirects per request.
const MOST_REDIRECTS: usize = 5;
/// Maximum number of retries that the server asks for.
const MOST_RETRIES: usize = 3;
/// How long before the deadline an endless stream is cut, so that the result still arrives in time.
const LAST: Duration = Duration::from_millis(250);

/// Upper bound of a call's duration, small enough to be added to an `Instant`.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// Everything that one call needs.
pub(crate) struct HttpExchange<'a> {
    pub(crate) http: &'a HttpClients,
    pub(crate) settings: &'a DocumentSettings,
    pub(crate) named: &'a AllowedHosts,
    pub(crate) tokens: &'a TokenCache,
    pub(crate) schemes: &'a [SecurityScheme],
    /// The URL that the document was fetched from.
    pub(crate) document: Option<&'a Url>,
    pub(crate) operation: &'a Operation,
}

/// The request on the wire, updated by redirects.
struct OutgoingRequest {
    method: Method,
    url: Url,
    headers: HeaderMap,
    payload: Option<Payload>,
}

impl HttpExchange<'_> {
    pub(crate) async fn run(
        &self,
        call: &SourceCall,
        arguments: &serde_json::value::RawValue,
    ) -> Result<Outcome, HubError> {
        let operation = self.operation;
        let refuse = |refusal: RequestBuildError| refusal.into_error(operation);
        let base = resolve_base_url(operation, self.settings, self.document).map_err(|nowhere| {
            HubError::new(
                ErrorKind::CannotConnect,
                format!("`{}` cannot be called: {nowhere}", operation.name),
            )
            .with_suggestion(SAY_WHERE)
        })?;
        self.named.check_access(&base).map_err(|error| self.address_error(&error))?;
        let ends = Instant::now() + self.settings.call_time.min(call.deadline.remaining()).min(LONGEST);
        let mut order = build_request(operation, &base, arguments).map_err(refuse)?;
        self.add_headers(call, &mut order)?;
        let auth = plan_auth(operation, self.schemes, &self.settings.auth, &order.headers)?;
        let ask = TokenFetchContext { http: self.http, named: self.named, base: &base };
        let (mut retries, mut refreshed) = (0, false);
        loop {
            let mut dressed = order.clone();
            let proving = auth.apply(&mut dressed, self.tokens, &ask);
            let used = timeout_at(ends, proving).await.map_err(|_| self.timeout_error())??;
            dressed.set_cookie_header().map_err(refuse)?;
            let (response, sent, note) = self.send(dressed, ends).await?;
            let status = response.status();
            if status == StatusCode::UNAUTHORIZED && !used.is_empty() && !refreshed {
                refreshed = true;
                for used in &used {
                    self.tokens.drop_stale(used).await;
                }
                continue;
            }
            if retries < MOST_RETRIES
                && retry::is_idempotent(&sent.method)
                && let Some(wait) = retry::retry_delay(status, response.headers())
                && Instant::now().checked_add(wait).is_some_and(|then| then < ends)
            {
                retries += 1;
                drop(response);
                sleep(wait).await;
                continue;
            }
            let answer = self.read_response(response, sent, note, ends).await?;
            return Ok(answer.into_outcome(operation).await);
        }
    }

    /// Adds the forwarded headers of the caller and the configured headers.
    fn add_headers(&self, call: &SourceCall, order: &mut OperationRequest) -> Result<(), HubError> {
        let odd = |name: &str| {
            HubError::new(
                ErrorKind::InvalidArguments,
                format!("the header `{name}` has an invalid name or value"),
            )
        };
        let forwarded = self.settings.forward_headers.iter().flat_map(|allowed| {
            let fits = move |(name, _): &&(String, String)| name.eq_ignore_ascii_case(allowed);
            call.headers.iter().filter(fits)
        });
        for (name, value) in forwarded {
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd(name))?;
            let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| odd(name))?;
            value.set_sensitive(true);
            order.headers.insert(key, value);
        }
        for (name, value) in &self.settings.headers {
            let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| odd(name))?;
            let mut value = HeaderValue::from_bytes(value.reveal().as_bytes()).map_err(|_| odd(name))?;
            value.set_sensitive(true);
            order.headers.insert(key, value);
        }
        Ok(())
    }

    /// Sends the request and follows redirects within its origin.
    async fn send(
        &self,
        order: OperationRequest,
        ends: Instant,
    ) -> Result<(Response, OutgoingRequest, Option<String>), HubError> {
        let method = Method::from_bytes(self.operation.method.as_str().as_bytes()).map_err(|_| {
            RequestBuildError::Document("its method is not a valid HTTP method".to_owned())
                .into_error(self.operation)
        })?;
        let OperationRequest { url, mut headers, payload, .. } = order;
        if let Some(payload) = &payload {
            let value = HeaderValue::from_str(&payload.content_type).map_err(|_| {
                RequestBuildError::Document("its media type is not a valid header value".to_owned())
                    .into_error(self.operation)
            })?;
            headers.insert(CONTENT_TYPE, value);
        }
        let mut sent = OutgoingRequest { method, url, headers, payload };
        for _ in 0..=MOST_REDIRECTS {
            let reach = self.named.check_access(&sent.url).map_err(|error| self.address_error(&error))?;
            let client = self.http.client(reach);
            let mut request =
                client.request(sent.method.clone(), sent.url.clone()).headers(sent.headers.clone());
            if let Some(payload) = &sent.payload {
                request = request.body(payload.bytes.clone());
            }
            let response = timeout_at(ends, request.send()).await.map_err(|_| self.timeout_error())?;
            let response = response.map_err(|error| self.request_error(&error, &sent.url))?;
            match retry::response_redirect(&response, &sent.method, &sent.url) {
                retry::Redirect::No => return Ok((response, sent, None)),
                retry::Redirect::Refused(why) => return Ok((response, sent, Some(format!("[{why}]")))),
                retry::Redirect::Same(url) => sent.url = url,
                retry::Redirect::AsGet(url) => {
                    sent.url = url;
                    sent.payload = None;
                    sent.headers.remove(CONTENT_TYPE);
                    if sent.method != Method::HEAD {
                        sent.method = Method::GET;
                    }
                }
            }
        }
        let message =
            format!("{} redirected the request more than {MOST_REDIRECTS} times", redact_url(&sent.url));
        Err(HubError::new(ErrorKind::ToolFailed, message))
    }

    async fn read_response(
        &self,
        mut response: Response,
        sent: OutgoingRequest,
        note: Option<String>,
        ends: Instant,
    ) -> Result<BufferedResponse, HubError> {
        let (status, headers) = (response.status(), response.headers().clone());
        let coding = ContentCoding::from_headers(&headers).map_err(|coding| {
            let message =
                format!("{} responded with the unsupported content encoding {coding}", redact_url(&sent.url));
            HubError::new(ErrorKind::ToolFailed, message)
                .with_suggestion("configure the server to send responses uncompressed or as gzip")
        })?;
        let most = self.settings.largest_answer;
        let streams = is_stream(&headers);
        let patience = if streams { ends.checked_sub(LAST).unwrap_or(ends) } else { ends };
        let mut bytes = Vec::new();
        let mut cut = None;
        loop {
            let piece = match timeout_at(patience, response.chunk()).await {
                Ok(piece) => piece.map_err(|error| self.request_error(&error, &sent.url))?,
                Err(_) if streams => {
                    cut = Some(TruncationCause::Time);
                    break;
                }
                Err(_) => return Err(self.timeout_error()),
            };
            let Some(piece) = piece else { break };
            let room = most.saturating_sub(bytes.len());
            if piece.len() > room {
                // A partial text is still useful; a partial binary is not.
                let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
                if !streams && !crate::response::is_text(kind) {
                    return Err(self.too_large_error(&sent.url, most));
                }
                bytes.extend_from_slice(&piece[..room]);
                cut = Some(TruncationCause::Size);
                break;
            }
            bytes.extend_from_slice(&piece);
        }
        let OutgoingRequest { method, url, .. } = sent;
        let unpacked = match coding {
            ContentCoding::Identity => None,
            _ if bytes.is_empty() => None,
            coding => Some(coding.decode(&bytes, most).map_err(|error| {
                HubError::new(
                    ErrorKind::ToolFailed,
                    format!("cannot decompress the response of {}: {error}", redact_url(&url)),
                )
            })?),
        };
        if let Some(unpacked) = unpacked {
            let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
            if unpacked.cut && !streams && !crate::response::is_text(kind) {
                return Err(self.too_large_error(&url, most));
            }
            bytes = unpacked.bytes;
            cut = cut.or(unpacked.cut.then_some(TruncationCause::Size));
        }
        Ok(BufferedResponse { method, url, status, headers, bytes, cut, note })
    }

    fn request_error(&self, error: &reqwest::Error, url: &Url) -> HubError {
        if is_private_address_error(error) {
            return self.address_error(&AddressError::Private(redact_url(url)));
        }
        let kind = if error.is_connect() { ErrorKind::CannotConnect } else { ErrorKind::ConnectionLost };
        HubError::new(
            kind,
            format!("`{}` at {}: {}", self.operation.name, redact_url(url), root_cause(error)),
        )
    }

    fn address_error(&self, error: &AddressError) -> HubError {
        HubError::new(
            ErrorKind::CannotConnect,
            format!("`{}` cannot be called: {error}", self.operation.name),
        )
        .with_suggestion(NAME_IT)
    }

    fn timeout_error(&self) -> HubError {
        let seconds = self.settings.call_time.as_secs_f64();
        HubError::new(
            ErrorKind::TimedOut,
            format!("`{}` did not answer within {seconds} s", self.operation.name),
        )
        .with_suggestion("increase `call_timeout` of this server")
    }

    fn too_large_error(&self, url: &Url, most: usize) -> HubError {
        let message = format!("the response of {} exceeds the limit of {most} bytes", redact_url(url));
        HubError::new(ErrorKind::ToolFailed, message)
            .with_suggestion("request less data, or increase `max_answer_bytes` of this server")
    }
}

#[cfg(test)]
mod tests;
