//! One TCP connection as hyper sees it. It ends when the client stops reading, because a client
//! that never reads must not hold memory forever. If a response was sent before the whole request
//! was read, the connection lingers before it closes, so that the client can still read the
//! response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::connections::ConnectionState;

/// How long a write may wait for the client.
const STALLED: Duration = Duration::from_secs(60);
/// How much of a rejected request is read and discarded, for how long in total, and for how long
/// without receiving a byte.
const LINGER_BYTES: usize = 64 * 1024 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(10);
const LINGER_SILENCE: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct TcpConnection {
    stream: TcpStream,
    state: Arc<ConnectionState>,
    stalled: Option<Pin<Box<Sleep>>>,
    linger: Option<Linger>,
}

/// Reading and discarding before a close. Closing with unread bytes resets the connection, and a
/// reset discards data that the client has not read yet.
#[derive(Debug)]
struct Linger {
    until: Instant,
    left: usize,
    timer: Pin<Box<Sleep>>,
}

impl TcpConnection {
    pub(crate) fn new(stream: TcpStream, state: Arc<ConnectionState>) -> Self {
        Self { stream, state, stalled: None, linger: None }
    }

    fn watch<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stalled = None;
            return poll;
        }
        let stalled =
            self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALLED)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Linger {
    fn new() -> Self {
        let now = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(now + LINGER_SILENCE));
        Self { until: now + LINGER_TIME, left: LINGER_BYTES, timer }
    }

    /// Completes when the client closes the connection or a limit is reached.
    fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut scrap = [0_u8; 16 * 1024];
        while self.left > 0 {
            let mut buffer = ReadBuf::new(&mut scrap);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.left = self.left.saturating_sub(buffer.filled().len());
                    let silence = (Instant::now() + LINGER_SILENCE).min(self.until);
                    self.timer.as_mut().reset(silence);
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.timer.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for TcpConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for TcpConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.watch(cx, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.watch(cx, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger.is_none() {
            let poll = Pin::new(&mut this.stream).poll_shutdown(cx);
            let closed = ready!(this.watch(cx, poll));
            if closed.is_err() || this.state.has_read_body() {
                return Poll::Ready(closed);
            }
        }
        let linger = this.linger.get_or_insert_with(Linger::new);
        linger.poll(&mut this.stream, cx).map(Ok)
    }
}
