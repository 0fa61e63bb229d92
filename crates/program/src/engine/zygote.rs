//! The engine's end of one running sandbox: starts the launcher, hands it programs, and hears what becomes of them.

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
/// What Python's own mappings are reckoned at where it cannot be seen.
const USUAL_BASELINE: u64 = 128 << 20;

/// What the launcher and the zygote say. No program can write here.
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
    /// The address space that Python takes up before a program does anything.
    baseline: u64,
    pub(super) pid: u32,
    /// Set when Python is gone.
    pub(super) gone: CancellationToken,
    stop: CancellationToken,
    listening: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct WorkerWaiter {
    started: Option<oneshot::Sender<Result<OwnedFd, String>>>,
    ended: Option<oneshot::Sender<i32>>,
}

/// A program that was handed over.
#[derive(Debug)]
pub(super) struct WorkerHandle {
    /// The process, or why there is none.
    pub(super) started: oneshot::Receiver<Result<OwnedFd, String>>,
    /// What the process left behind for its parent, as `wait` says it.
    pub(super) ended: oneshot::Receiver<i32>,
}

impl Zygote {
    pub(super) async fn start(settings: &EngineSettings) -> Result<Arc<Self>, SandboxUnavailable> {
        let (control, mut child) = spawn(settings).map_err(|error| SandboxUnavailable {
            reason: format!("the sandbox for programs cannot be started: {error}"),
            suggestion: None,
        })?;
        let stderr = child.stderr.take();
        let greeted = tokio::time::timeout(START, wait_for_hello(&control)).await;
        let (pid, hello) = match greeted {
            Ok(Ok(greeted)) => greeted,
            Ok(Err(ZygoteStartError::Unavailable(unavailable))) => return Err(unavailable),
            Ok(Err(ZygoteStartError::Gone(why))) => return Err(start_failure(&why, stderr).await),
            Err(_) => {
                let _ = child.start_kill();
                return Err(start_failure("it took too long to start", stderr).await);
            }
        };
        let left_out: Vec<_> = settings.without.iter().map(|layer| layer.name().to_owned()).collect();
        if hello.without != left_out {
            return Err(SandboxUnavailable {
                reason: format!(
                    "the sandbox was built without {:?}, and not without {left_out:?}",
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
            baseline: address_space(pid).unwrap_or(USUAL_BASELINE),
            pid,
            gone: CancellationToken::new(),
            stop: CancellationToken::new(),
            listening: Mutex::default(),
        });
        let task = tokio::spawn(listen(Arc::clone(&zygote), child, stderr));
        *lock(&zygote.listening) = Some(task);
        Ok(zygote)
    }

    /// Hands a program's end of its pipe over to a new process.
    pub(super) async fn spawn_worker(
        &self,
        pipe: OwnedFd,
        limits: &ProgramLimits,
    ) -> io::Result<WorkerHandle> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let ((started, on_start), (ended, on_end)) = (oneshot::channel(), oneshot::channel());
        lock(&self.slots).insert(id, WorkerWaiter { started: Some(started), ended: Some(ended) });
        let order = json!({
            "id": id,
            "address_space": self.baseline.saturating_add(limits.memory),
            // Whole seconds, and never sooner than the clock on the wall.
            "cpu": limits.time.as_secs().saturating_add(1),
        });
        let sent = self.send(order.to_string().as_bytes(), &pipe).await;
        if let Err(error) = sent {
            lock(&self.slots).remove(&id);
            return Err(error);
        }
        Ok(WorkerHandle { started: on_start, ended: on_end })
    }

    async fn send(&self, message: &[u8], pipe: &OwnedFd) -> io::Result<()> {
        let send = || {
            let pipes = [pipe.as_fd()];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            beside.push(SendAncillaryMessage::ScmRights(&pipes));
            Ok(sendmsg(&self.control, &[IoSlice::new(message)], &mut beside, SendFlags::NOSIGNAL)
                .map(drop)?)
        };
        self.control.async_io(Interest::WRITABLE, send).await
    }

    /// Ends Python, and with it every program.
    pub(super) async fn shutdown(&self) {
        self.stop.cancel();
        let task = lock(&self.listening).take();
        if let Some(task) = task {
            // A panic of the listener has ended it as well.
            let _ = task.await;
        }
    }

    /// Ends it without waiting.
    pub(super) fn request_stop(&self) {
        self.stop.cancel();
    }

    fn handle_message(&self, news: ZygoteMessage, handle: Option<OwnedFd>) {
        match news {
            ZygoteMessage::Started { id } => {
                let Some(handle) = handle else { return };
                let started = lock(&self.slots).get_mut(&id).and_then(|slot| slot.started.take());
                let unwanted = match started {
                    Some(started) => started.send(Ok(handle)).err().and_then(Result::ok),
                    None => Some(handle),
                };
                // Nobody waits for this program any more.
                if let Some(handle) = unwanted {
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
    // It may have ended by itself, which is as good.
    let _ = pidfd_send_signal(handle, Signal::KILL);
}

fn spawn(settings: &EngineSettings) -> io::Result<(UnixStream, Child)> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    rustix::io::ioctl_fionbio(&ours, true)?;
    let mut words = settings.launcher.iter();
    let program = words.next().ok_or_else(|| io::Error::other("no launcher was named"))?;
    let mut command = Command::new(program);
    command.args(words);
    if let Some(python) = &settings.python {
        command.arg("--python").arg(python);
    }
    for layer in &settings.without {
        command.args([OsString::from("--without"), layer.name().into()]);
    }
    command.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn()?;
    // It keeps messages apart, which a stream does not, but is watched like one.
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
    let mut born = None;
    loop {
        let (news, _) = receive(control).await.map_err(|error| ZygoteStartError::Gone(error.to_string()))?;
        match news {
            ZygoteMessage::Unavailable { reason, suggestion } => {
                return Err(ZygoteStartError::Unavailable(SandboxUnavailable { reason, suggestion }));
            }
            ZygoteMessage::Born { pid } => born = Some(pid),
            ZygoteMessage::Hello { version, modules, missing, without } => {
                let pid =
                    born.ok_or_else(|| ZygoteStartError::Gone("it said hello before it was born".into()))?;
                return Ok((pid, Hello { version, modules, missing, without }));
            }
            ZygoteMessage::Started { .. } | ZygoteMessage::Refused { .. } | ZygoteMessage::Ended { .. } => {}
        }
    }
}

/// One message of the other side, with the descriptor that came with it.
async fn receive(control: &UnixStream) -> io::Result<(ZygoteMessage, Option<OwnedFd>)> {
    let read = || {
        let mut text = [0; 16 << 10];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC;
        let message = recvmsg(control, &mut [IoSliceMut::new(&mut text)], &mut beside, flags)?;
        let handle = beside.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut handles) => handles.next(),
            _ => None,
        });
        Ok((text[..message.bytes].to_vec(), handle))
    };
    let (text, handle) = control.async_io(Interest::READABLE, read).await?;
    if text.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended"));
    }
    let news = serde_json::from_slice(&text).map_err(|_| io::Error::other("it says what cannot be read"))?;
    Ok((news, handle))
}

/// Hears the zygote out until it is gone, and sees to it that nothing of it stays.
async fn listen(zygote: Arc<Zygote>, mut child: Child, stderr: Option<ChildStderr>) {
    let drained = tokio::spawn(log_stderr(stderr));
    loop {
        tokio::select! {
            biased;
            () = zygote.stop.cancelled() => break,
            heard = receive(&zygote.control) => match heard {
                Ok((news, handle)) => zygote.handle_message(news, handle),
                Err(error) => {
                    tracing::warn!(%error, "the Python process of the programs is gone");
                    break;
                }
            },
        }
    }
    zygote.gone.cancel();
    lock(&zygote.slots).clear();
    // The launcher sees our end of the socket go, and takes Python along.
    let _ = rustix::net::shutdown(&zygote.control, rustix::net::Shutdown::Both);
    if tokio::time::timeout(END, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
    drained.abort();
}

/// What Python says on its standard error is for the log; a program cannot write there.
async fn log_stderr(stderr: Option<ChildStderr>) {
    let Some(mut stderr) = stderr else { return };
    let mut piece = vec![0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut piece).await {
        tracing::warn!(said = %String::from_utf8_lossy(&piece[..length]), "the Python process of the programs");
    }
}

/// The words for a sandbox that did not come up, with the last thing that it said.
async fn start_failure(why: &str, stderr: Option<ChildStderr>) -> SandboxUnavailable {
    let mut said = Vec::new();
    if let Some(stderr) = stderr {
        let _ = tokio::time::timeout(END, stderr.take(64 << 10).read_to_end(&mut said)).await;
    }
    let said = String::from_utf8_lossy(&said);
    let last = said.trim().lines().next_back().map(|line| format!("; it said: {line}")).unwrap_or_default();
    SandboxUnavailable {
        reason: format!("Python does not start in the sandbox: {why}{last}"),
        suggestion: None,
    }
}

/// In bytes, as the kernel counts it.
fn address_space(pid: u32) -> Option<u64> {
    let pages = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = pages.split_ascii_whitespace().next()?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    mutex.lock()
}

/// Whether a layer of the engine's own is there.
pub(super) fn has_layer(settings: &EngineSettings, layer: SandboxLayer) -> bool {
    !settings.without.contains(&layer)
}
