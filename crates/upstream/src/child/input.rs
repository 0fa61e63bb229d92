//! The standard input of a process, which can be closed while another task writes to it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;

/// The standard input of a process. Writes fail once it is closed.
#[derive(Debug, Clone)]
pub struct ChildInput(Arc<Mutex<Option<ChildStdin>>>);

impl ChildInput {
    pub(super) fn new(stdin: ChildStdin) -> Self {
        Self(Arc::new(Mutex::new(Some(stdin))))
    }

    pub(super) fn close(&self) {
        self.0.lock().take();
    }

    fn poll_stdin<T>(
        &self,
        act: impl FnOnce(Pin<&mut ChildStdin>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match self.0.lock().as_mut() {
            Some(stdin) => act(Pin::new(stdin)),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }
}

impl AsyncWrite for ChildInput {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_stdin(|stdin| stdin.poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_stdin(|stdin| stdin.poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.close();
        Poll::Ready(Ok(()))
    }
}
