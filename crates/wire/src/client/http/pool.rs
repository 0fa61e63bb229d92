//! A pool of connections to one server over plain HTTP. The task that sends a request also drives
//! its connection. No data crosses tasks, and dropping the request closes the connection.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower::ServiceExt;

use super::super::WireError;
use super::reply::root_cause;

/// How many idle connections are kept, and for how long.
const MOST_IDLE: usize = 256;
const LONGEST_IDLE: Duration = Duration::from_secs(90);
const CONNECTING: Duration = Duration::from_secs(10);
/// How often TCP checks that the peer of an idle connection is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The pool of connections to one server.
pub(super) struct ConnectionPool {
    connector: HttpConnector,
    /// The server's address.
    uri: Uri,
    idle: Mutex<VecDeque<(Instant, Box<PooledConnection>)>>,
}

/// A connection. `connection` is `None` once it has ended. Boxed in the pool because it is large.
struct PooledConnection {
    sender: SendRequest<Full<Bytes>>,
    connection: Option<Connection<TokioIo<TcpStream>, Full<Bytes>>>,
}

impl ConnectionPool {
    pub(super) fn new(to: Uri) -> Arc<Self> {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECTING));
        connector.set_keepalive(Some(KEEP_ALIVE));
        connector.set_keepalive_interval(Some(KEEP_ALIVE));
        connector.set_keepalive_retries(Some(3));
        Arc::new(Self { connector, uri: to, idle: Mutex::default() })
    }

    /// Sends a request and waits for the head of the response.
    pub(super) async fn send(
        self: &Arc<Self>,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<PooledBody>, WireError> {
        loop {
            let idle = self.take();
            let is_reused = idle.is_some();
            let mut lane = match idle {
                Some(lane) => lane,
                // Boxed because this future is large and rarely used.
                None => Box::pin(self.connect()).await?,
            };
            let mut sent = pin!(lane.sender.try_send_request(request));
            let answer = std::future::poll_fn(|cx| {
                lane.drive(cx);
                sent.as_mut().poll(cx)
            });
            match answer.await {
                Ok(response) => {
                    let lanes = Arc::clone(self);
                    return Ok(response.map(|body| PooledBody { body, connection: Some(lane), pool: lanes }));
                }
                Err(mut failed) => match failed.take_message() {
                    // The server closed the idle connection and has not seen the request.
                    Some(unsent) if is_reused => request = unsent,
                    _ => return Err(WireError::Lost(root_cause(failed.error()))),
                },
            }
        }
    }

    async fn connect(&self) -> Result<Box<PooledConnection>, WireError> {
        let stream = self.connector.clone().oneshot(self.uri.clone()).await;
        let stream = stream.map_err(|error| WireError::Unreachable(root_cause(&error)))?;
        let (sender, connection) =
            handshake(stream).await.map_err(|error| WireError::Unreachable(root_cause(&error)))?;
        Ok(Box::new(PooledConnection { sender, connection: Some(connection) }))
    }

    fn take(&self) -> Option<Box<PooledConnection>> {
        let mut idle = self.idle.lock();
        // The oldest connections are at the front. The newest is the most likely to be alive.
        while idle.front().is_some_and(|(since, _)| since.elapsed() > LONGEST_IDLE) {
            idle.pop_front();
        }
        idle.pop_back().map(|(_, lane)| lane)
    }

    fn put_back(&self, lane: Box<PooledConnection>) {
        let mut idle = self.idle.lock();
        if idle.len() < MOST_IDLE {
            idle.push_back((Instant::now(), lane));
        }
    }
}

impl PooledConnection {
    /// Drives reads and writes of the connection. Errors are reported to the task that waits for
    /// the response.
    fn drive(&mut self, cx: &mut Context<'_>) {
        let over =
            self.connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready());
        if over {
            self.connection = None;
        }
    }
}

/// The body of a response. The connection returns to the pool when the body has been read to its
/// end, and is closed if the body is dropped earlier.
pub(super) struct PooledBody {
    body: Incoming,
    connection: Option<Box<PooledConnection>>,
    pool: Arc<ConnectionPool>,
}

impl PooledBody {
    fn finish(&mut self, cx: &mut Context<'_>) {
        let Some(mut lane) = self.connection.take() else { return };
        lane.drive(cx);
        if lane.connection.is_some() && lane.sender.is_ready() {
            self.pool.put_back(lane);
        }
    }
}

impl Stream for PooledBody {
    type Item = Result<Bytes, hyper::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            // The connection reads only what the body requests, so poll the body first.
            let mut frame = Pin::new(&mut this.body).poll_frame(cx);
            if frame.is_pending()
                && let Some(lane) = &mut this.connection
            {
                lane.drive(cx);
                frame = Pin::new(&mut this.body).poll_frame(cx);
            }
            let Some(frame) = ready!(frame) else {
                this.finish(cx);
                return Poll::Ready(None);
            };
            match frame.map(hyper::body::Frame::into_data) {
                Ok(Ok(piece)) => return Poll::Ready(Some(Ok(piece))),
                // Trailers are ignored.
                Ok(Err(_)) => {}
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }
}
