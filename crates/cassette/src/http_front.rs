//! A small HTTP listener for this machine, shared by the recording proxy and the replay. It needs no
//! token, so it listens on loopback addresses only and refuses requests of web pages.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// At this many connections, the next one waits.
const MOST_CONNECTIONS: usize = 256;
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How long open responses may take when the listener stops.
const DRAIN: Duration = Duration::from_secs(1);

pub(crate) type FrontBody = UnsyncBoxBody<Bytes, std::io::Error>;

/// Why the listener cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FrontError {
    #[error("cannot listen on {address}: {error}")]
    Listen { address: SocketAddr, error: std::io::Error },
    #[error("`{0}` is not a loopback address; recordings are served to this machine only")]
    NotLoopback(SocketAddr),
}

/// A listener that does not accept connections yet.
#[derive(Debug)]
pub struct BoundFront {
    listener: TcpListener,
    address: SocketAddr,
}

impl BoundFront {
    /// Binds the address. Port 0 picks a free port.
    pub async fn bind(address: SocketAddr) -> Result<Self, FrontError> {
        if !address.ip().is_loopback() {
            return Err(FrontError::NotLoopback(address));
        }
        let listen_error = |error| FrontError::Listen { address, error };
        let listener = TcpListener::bind(address).await.map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is canceled.
    pub(crate) async fn serve<F>(
        self,
        handle: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        stop: CancellationToken,
    ) where
        F: Future<Output = Response<FrontBody>> + Send + 'static,
    {
        let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut open = JoinSet::new();
        loop {
            let accepted = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                accepted = accepted => accepted,
                () = stop.cancelled() => break,
            };
            let Ok((stream, _)) = accepted else {
                // Too many open files. Connections that end make room.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let handle = handle.clone();
            let stop = stop.clone();
            open.spawn(async move {
                let _permit = permit;
                let service = service_fn(move |request: Request<Incoming>| {
                    let refusal = check_origin(request.headers()).err();
                    let answer = refusal.is_none().then(|| handle(request));
                    async move {
                        Ok::<_, Infallible>(match (answer, refusal) {
                            (Some(answer), _) => answer.await,
                            (None, refusal) => {
                                text_response(StatusCode::FORBIDDEN, refusal.unwrap_or_default())
                            }
                        })
                    }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIMEOUT)
                    .serve_connection(TokioIo::new(stream), service);
                tokio::pin!(connection);
                // If the client disconnects, there is nowhere to report that.
                tokio::select! {
                    _ = &mut connection => return,
                    () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
                }
                let _ = connection.await;
            });
            while open.try_join_next().is_some() {}
        }
        let drained = async { while open.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAIN, drained).await;
        open.shutdown().await;
    }
}

/// Refuses requests that a web page can make a browser send: those for a name that is not this
/// machine, and those from the page of another one.
fn check_origin(headers: &HeaderMap) -> Result<(), &'static str> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    if !text(header::HOST).is_some_and(is_local) {
        return Err("the Host header does not name this machine\n");
    }
    match text(header::ORIGIN) {
        None => Ok(()),
        Some(origin) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            if host.is_some_and(is_local) { Ok(()) } else { Err("requests of this Origin are refused\n") }
        }
    }
}

fn is_local(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Reads a body up to the limit, or returns the refusal.
pub(crate) async fn read_body(body: Incoming, limit: usize) -> Result<Bytes, Response<FrontBody>> {
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            let text = format!("the message exceeds the limit of {limit} bytes\n");
            Err(text_response(StatusCode::PAYLOAD_TOO_LARGE, text))
        }
        Ok(Err(error)) => {
            Err(text_response(StatusCode::BAD_REQUEST, format!("cannot read the body: {error}\n")))
        }
        Err(_) => Err(text_response(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time\n")),
    }
}

pub(crate) fn full_body(bytes: impl Into<Bytes>) -> FrontBody {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn response(status: StatusCode, kind: &'static str, body: FrontBody) -> Response<FrontBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if !kind.is_empty() {
        response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    }
    response
}

pub(crate) fn text_response(status: StatusCode, text: impl Into<Bytes>) -> Response<FrontBody> {
    response(status, "text/plain; charset=utf-8", full_body(text))
}

pub(crate) fn empty_response(status: StatusCode) -> Response<FrontBody> {
    response(status, "", full_body(Bytes::new()))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::{BoundFront, check_origin, is_local};

    #[test]
    fn only_this_machine_is_local() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "127.1.2.3", "[::1]:80"] {
            assert!(is_local(host), "{host}");
        }
        for host in ["example.com", "localhost.example.com:80", "10.0.0.1", "[::2]", "", "127.0.0.1.nip.io"] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let check = |host: &str, origin: Option<&str>| {
            let mut headers = HeaderMap::new();
            headers.insert("host", host.parse().unwrap());
            if let Some(origin) = origin {
                headers.insert("origin", origin.parse().unwrap());
            }
            check_origin(&headers).is_ok()
        };
        assert!(check("127.0.0.1:1", None) && check("127.0.0.1:1", Some("http://localhost:5173")));
        assert!(!check("127.0.0.1:1", Some("https://example.com")) && !check("127.0.0.1:1", Some("null")));
        assert!(!check("rebound.example.com:1", None));
        assert!(check_origin(&HeaderMap::new()).is_err());
    }

    #[tokio::test]
    async fn only_loopback_addresses_are_bound() {
        let error = BoundFront::bind("0.0.0.0:0".parse().unwrap()).await.unwrap_err().to_string();
        let expect = "`0.0.0.0:0` is not a loopback address; recordings are served to this machine only";
        assert_eq!(error, expect);
    }
}
