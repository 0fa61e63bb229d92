//! A server over its standard streams: lines in, lines out.

use std::sync::Arc;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::Mutex;

use super::message::Message;
use super::process::Process;
use super::schema::Checker;
use super::version::Version;
use super::within_timeout;

/// One server process and its two pipes. Clones share them.
#[derive(Clone)]
pub struct Line {
    inner: Arc<Inner>,
}

struct Inner {
    process: Mutex<Process>,
    stdin: Mutex<Option<ChildStdin>>,
    stdout: Mutex<Option<Lines<BufReader<ChildStdout>>>>,
    checker: Checker,
}

impl Line {
    /// Starts a server without sending anything. Its messages are checked against this version.
    pub fn start(program: &str, arguments: &[&str], version: Version) -> Self {
        let (process, stdin, stdout) = Process::start(program, arguments);
        let stdout = BufReader::new(stdout).lines();
        let inner = Inner {
            process: Mutex::new(process),
            stdin: Mutex::new(Some(stdin)),
            stdout: Mutex::new(Some(stdout)),
            checker: Checker::new(version),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Sends a line, valid or not.
    pub async fn send(&self, text: &str) {
        self.inner.checker.record_sent(text);
        self.send_bytes(format!("{text}\n").as_bytes()).await;
    }

    /// Sends bytes unchanged.
    pub async fn send_bytes(&self, bytes: &[u8]) {
        let mut stdin = self.inner.stdin.lock().await;
        within_timeout("the server to read", stdin.as_mut().unwrap().write_all(bytes)).await.unwrap();
    }

    /// Returns the next message, or `None` after the server has closed its standard output.
    pub async fn try_next(&self) -> Option<Message> {
        let mut stdout = self.inner.stdout.lock().await;
        let line =
            within_timeout("a message of the server", stdout.as_mut().unwrap().next_line()).await.unwrap()?;
        Some(self.inner.checker.read(&line))
    }

    pub async fn next(&self) -> Message {
        self.try_next().await.unwrap_or_else(|| panic!("the server has closed its side"))
    }

    /// Sends a line and reads the next message.
    pub async fn exchange(&self, text: &str) -> Message {
        self.send(text).await;
        self.next().await
    }

    /// Closes the server's standard input.
    pub async fn close_stdin(&self) {
        self.inner.stdin.lock().await.take();
    }

    /// Closes both pipes, as the end of a client process would.
    pub async fn close_stdio(&self) {
        self.inner.stdin.lock().await.take();
        self.inner.stdout.lock().await.take();
    }

    /// Returns the process, to send signals or wait for its end.
    pub async fn process(&self) -> tokio::sync::MutexGuard<'_, Process> {
        self.inner.process.lock().await
    }
}
