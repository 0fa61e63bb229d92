//! The engine's end of one running sandbox: starts the launcher, requests processes for programs,
//! and receives their status.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Signal, pidfd_send_signal};
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::EngineSettings;
use super::layer::SandboxLayer;
use crate::program::{ProgramLimits, SandboxUnavailable};

/// How long Python may take to load the standard library.
const START: Duration = Duration::from_secs(30);
/// How long the launcher may take to end.
const END: Duration = Duration::from_secs(5);
/// The assumed address space of Python itself, if it cannot be read.
const DEFAULT_BASELINE: u64 = 128 << 20;

/// A message from the launcher or the zygote. Programs cannot write to this socket.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ZygoteMessage {
    Unavailable { reason: String, suggestion: Option<String> },
    Born { pid: u32 },
    Hello { version: String, modules: Vec<String>, missing: Vec<String>, without: Vec<String> },
    Started { id: u64 },
    Refused { id: u64, why: String },
    Ended { id: u64, status: i32 },
}

/// One sandbox with Python in it.
#[derive(Debug)]
pub(super) struct Zygote {
    control: UnixStream,
    slots: Mutex<HashMap<u64, WorkerWaiter>>,
    next: AtomicU64,
    pub(super) version: String,
    pub(super) modules: Vec<String>,
    pub(super) missing: Vec<String>,
    /// The address space of Python before a program runs, in bytes.
    baseline: u64,
    pub(super) pid: u32,
    /// Canceled when Python exits.
    pub(super) gone: CancellationToken,
    stop: CancellationToken,
    listening: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct WorkerWaiter {
    started: Option<oneshot::Sender<Result<OwnedFd, String>>>,
    ended: Option<oneshot::Sender<i32>>,
}

/// The status of a requested process.
#[derive(Debug)]
pub(super) struct WorkerHandle {
    /// The process, or the reason why it was not started.
    pub(super) started: oneshot::Receiver<Result<OwnedFd, String>>,
    /// The exit status, in the format of `wait`.
    pub(super) ended: oneshot::Receiver<i32>,
}

impl Zygote {
    pub(super) async fn start(settings: &EngineSettings) -> Result<Arc<Self>, SandboxUnavailable> {
        let (control, mut child) = spawn(settings).map_err(|error| SandboxUnavailable {
            reason: format!("failed to start the sandbox: {error}"),
            suggestion: None,
        })?;
        let stderr = child.stderr.take();
        let greeting = tokio::time::timeout(START, wait_for_hello(&control)).await;
        let (pid, hello) = match greeting {
            Ok(Ok(greeting)) => greeting,
            Ok(Err(ZygoteStartError::Unavailable(unavailable))) => return Err(unavailable),
            Ok(Err(ZygoteStartError::Gone(why))) => return Err(start_failure(&why, stderr).await),
            Err(_) => {
                let _ = child.start_kill();
                return Err(start_failure("the start timed out", stderr).await);
            }
        };
        let omitted: Vec<_> = settings.without.iter().map(|layer| layer.name().to_owned()).collect();
        if hello.without != omitted {
            return Err(SandboxUnavailable {
                reason: format!(
                    "the sandbox was built without the layers {:?}, expected without {omitted:?}",
                    hello.without
                ),
                suggestion: None,
            });
        }
        let zygote = Arc::new(Self {
            control,
            slots: Mutex::default(),
            next: AtomicU64::new(1),
            version: hello.version,
            modules: hello.modules,
            missing: hello.missing,
            baseline: address_space(pid).unwrap_or(DEFAULT_BASELINE),
            pid,
            gone: CancellationToken::new(),
            stop: CancellationToken::new(),
            listening: Mutex::default(),
        });
        let task = tokio::spawn(listen(Arc::clone(&zygote), child, stderr));
        *lock(&zygote.listening) = Some(task);
        Ok(zygote)
    }

    /// Requests a new process and passes it the program's end of the pipe.
    pub(super) async fn spawn_worker(
        &self,
        pipe: OwnedFd,
        limits: &ProgramLimits,
    ) -> io::Result<WorkerHandle> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let ((started, on_start), (ended, on_end)) = (oneshot::channel(), oneshot::channel());
        lock(&self.slots).insert(id, WorkerWaiter { started: Some(started), ended: Some(ended) });
        let request = json!({
            "id": id,
            "address_space": self.baseline.saturating_add(limits.memory),
            // Whole seconds, and never before the wall-clock limit.
            "cpu": limits.time.as_secs().saturating_add(1),
        });
        let result = self.send(request.to_string().as_bytes(), &pipe).await;
        if let Err(error) = result {
            lock(&self.slots).remove(&id);
            return Err(error);
        }
        Ok(WorkerHandle { started: on_start, ended: on_end })
    }

    async fn send(&self, message: &[u8], pipe: &OwnedFd) -> io::Result<()> {
        let send = || {
            let pipes = [pipe.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&pipes));
            Ok(sendmsg(&self.control, &[IoSlice::new(message)], &mut ancillary, SendFlags::NOSIGNAL)
                .map(drop)?)
        };
        self.control.async_io(Interest::WRITABLE, send).await
    }

    /// Stops Python and all programs, and waits for the end.
    pub(super) async fn shutdown(&self) {
        self.stop.cancel();
        let task = lock(&self.listening).take();
        if let Some(task) = task {
            // A panic also ends the task.
            let _ = task.await;
        }
    }

    /// Stops Python and all programs without waiting.
    pub(super) fn request_stop(&self) {
        self.stop.cancel();
    }

    fn handle_message(&self, message: ZygoteMessage, handle: Option<OwnedFd>) {
        match message {
            ZygoteMessage::Started { id } => {
                let Some(handle) = handle else { return };
                let started = lock(&self.slots).get_mut(&id).and_then(|slot| slot.started.take());
                let unclaimed = match started {
                    Some(started) => started.send(Ok(handle)).err().and_then(Result::ok),
                    None => Some(handle),
                };
                // The session of this program has ended.
                if let Some(handle) = unclaimed {
                    kill(&handle);
                }
            }
            ZygoteMessage::Refused { id, why } => {
                let slot = lock(&self.slots).remove(&id);
                if let Some(started) = slot.and_then(|slot| slot.started) {
                    let _ = started.send(Err(why));
                }
            }
            ZygoteMessage::Ended { id, status } => {
                let slot = lock(&self.slots).remove(&id);
                if let Some(ended) = slot.and_then(|slot| slot.ended) {
                    let _ = ended.send(status);
                }
            }
            ZygoteMessage::Unavailable { .. } | ZygoteMessage::Born { .. } | ZygoteMessage::Hello { .. } => {}
        }
    }
}

pub(super) fn kill(handle: &OwnedFd) {
    // Fails if the process has already exited.
    let _ = pidfd_send_signal(handle, Signal::KILL);
}

fn spawn(settings: &EngineSettings) -> io::Result<(UnixStream, Child)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    let mut launcher = settings.launcher.iter();
    let program = launcher.next().ok_or_else(|| io::Error::other("no launcher is configured"))?;
    let mut command = Command::new(program);
    command.args(launcher);
    if let Some(python) = &settings.python {
        command.arg("--python").arg(python);
    }
    for layer in &settings.without {
        command.args([OsString::from("--without"), layer.name().into()]);
    }
    command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn()?;
    // The socket is `SEQPACKET` and preserves message boundaries, but it can be polled like a stream.
    Ok((UnixStream::from_std(ours.into())?, child))
}

enum ZygoteStartError {
    Unavailable(SandboxUnavailable),
    Gone(String),
}

struct Hello {
    version: String,
    modules: Vec<String>,
    missing: Vec<String>,
    without: Vec<String>,
}

async fn wait_for_hello(control: &UnixStream) -> Result<(u32, Hello), ZygoteStartError> {
    let mut python = None;
    loop {
        let (message, _) =
            receive(control).await.map_err(|error| ZygoteStartError::Gone(error.to_string()))?;
        match message {
            ZygoteMessage::Unavailable { reason, suggestion } => {
                return Err(ZygoteStartError::Unavailable(SandboxUnavailable { reason, suggestion }));
            }
            ZygoteMessage::Born { pid } => python = Some(pid),
            ZygoteMessage::Hello { version, modules, missing, without } => {
                let pid = python.ok_or_else(|| {
                    ZygoteStartError::Gone("the launcher did not report the process".into())
                })?;
                return Ok((pid, Hello { version, modules, missing, without }));
            }
            ZygoteMessage::Started { .. } | ZygoteMessage::Refused { .. } | ZygoteMessage::Ended { .. } => {}
        }
    }
}

/// Receives one message, with the descriptor that is attached to it.
async fn receive(control: &UnixStream) -> io::Result<(ZygoteMessage, Option<OwnedFd>)> {
    let read = || {
        let mut text = [0; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(control, &mut [IoSliceMut::new(&mut text)], &mut ancillary, flags)?;
        let handle = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
            _ => None,
        });
        Ok((text[..message.bytes].to_vec(), handle))
    };
    let (text, handle) = control.async_io(Interest::READABLE, read).await?;
    if text.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process exited"));
    }
    let message = serde_json::from_slice(&text).map_err(|_| io::Error::other("malformed message"))?;
    Ok((message, handle))
}

/// Receives messages until the zygote exits, and then cleans up all processes.
async fn listen(zygote: Arc<Zygote>, mut child: Child, stderr: Option<ChildStderr>) {
    let logging = tokio::spawn(log_stderr(stderr));
    loop {
        tokio::select! {
            biased;
            () = zygote.stop.cancelled() => break,
            received = receive(&zygote.control) => match received {
                Ok((message, handle)) => zygote.handle_message(message, handle),
                Err(error) => {
                    tracing::warn!(%error, "shared Python process exited");
                    break;
                }
            },
        }
    }
    zygote.gone.cancel();
    lock(&zygote.slots).clear();
    // The launcher kills Python when the socket closes.
    let _ = rustix::net::shutdown(&zygote.control, rustix::net::Shutdown::Both);
    if tokio::time::timeout(END, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
    logging.abort();
}

/// Logs the standard error of Python. Programs cannot write there.
async fn log_stderr(stderr: Option<ChildStderr>) {
    let Some(mut stderr) = stderr else { return };
    let mut buffer = vec![0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        let output = String::from_utf8_lossy(&buffer[..length]);
        tracing::warn!(%output, "shared Python process wrote to standard error");
    }
}

/// Returns the error for a sandbox that did not start, with the last line of its standard error.
async fn start_failure(why: &str, stderr: Option<ChildStderr>) -> SandboxUnavailable {
    let mut output = Vec::new();
    if let Some(stderr) = stderr {
        let _ = tokio::time::timeout(END, stderr.take(64 << 10).read_to_end(&mut output)).await;
    }
    let output = String::from_utf8_lossy(&output);
    let last = output.trim().lines().next_back().map(|line| format!(": {line}")).unwrap_or_default();
    SandboxUnavailable {
        reason: format!("Python did not start in the sandbox: {why}{last}"),
        suggestion: None,
    }
}

/// Returns the size of the address space of a process, in bytes.
fn address_space(pid: u32) -> Option<u64> {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = pages.split_ascii_whitespace().next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}

/// Returns whether a layer that the engine itself enforces is on.
pub(super) fn has_layer(settings: &EngineSettings, layer: SandboxLayer) -> bool {
    !settings.without.contains(&layer)
}
