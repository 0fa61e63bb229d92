//! The session with one program: forwards its requests to the broker, collects its output, and kills
//! its process at the end.

use std::collections::HashMap;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::Duration;

use bytes::BytesMut;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::frame::{self, ProgramEndFrame, ProgramFrame};
use super::zygote::{WorkerHandle, Zygote, kill};
use crate::program::{
    ExitReason, LastValue, PendingProgramQuestion, Program, ProgramLimits, ProgramOutcome, ProgramOutput,
    ProgramQuestion, ProgramReply, SandboxUnavailable, ToolFailure, UnawaitedCall, UnfinishedReason,
    UnfinishedTask,
};

/// The maximum number of open requests. The worker keeps fewer.
const MOST_OPEN: usize = 256;
/// The maximum size of a reply, in bytes.
const LONGEST_REPLY: usize = 256 << 20;
/// The maximum amount of output beyond the limit, in bytes. The worker discards that output, so only
/// a program that bypasses the worker reaches this.
const MOST_BEYOND: u64 = 64 << 20;
/// The maximum number of unawaited calls and of unfinished tasks in an outcome. The worker reports
/// fewer.
const MOST_UNAWAITED: usize = 100;
const NO_PYTHON: &str = "the shared Python process exited";
/// How long the zygote may take to report the state of a process.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

/// What stops a program from outside.
#[derive(Debug)]
pub(super) struct StopConditions {
    /// `None` for a sandbox that is tested without the wall-clock limit.
    pub(super) time: Option<Duration>,
    pub(super) cancel: CancellationToken,
}

/// A process that waits for its program.
#[derive(Debug)]
pub(super) struct IdleWorker {
    stream: UnixStream,
    handle: WorkerHandle,
}

/// Starts a process for a program with these limits.
pub(super) async fn start_worker(zygote: &Zygote, limits: &ProgramLimits) -> io::Result<IdleWorker> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let stream = UnixStream::from_std(ours)?;
    let handle = zygote.spawn_worker(OwnedFd::from(theirs), limits).await?;
    Ok(IdleWorker { stream, handle })
}

pub(super) async fn run(
    zygote: &Zygote,
    worker: IdleWorker,
    program: Program,
    questions: mpsc::Sender<PendingProgramQuestion>,
    stops: StopConditions,
) -> Result<ProgramOutcome, SandboxUnavailable> {
    let IdleWorker { stream, handle } = worker;
    let Program { code, bindings, limits, printed } = program;
    let first =
        frame::encode_program(&code, &bindings, limits.output).map_err(|error| unavailable(&error.into()))?;
    let mut conversation = Conversation {
        printed,
        unawaited: Vec::new(),
        unfinished: Vec::new(),
        value: None,
        left_out: 0,
        reported_left_out: 0,
        limits,
        last: 0,
        open: HashMap::new(),
        outbox: first,
        written: 0,
        process: Process(None),
    };
    let exit_reason = conversation.run(zygote, stream, handle, questions, stops).await?;
    Ok(conversation.into_outcome(exit_reason))
}

pub(super) fn unavailable(error: &io::Error) -> SandboxUnavailable {
    SandboxUnavailable { reason: format!("failed to start the program: {error}"), suggestion: None }
}

/// The process of the program, killed on drop.
#[derive(Debug)]
struct Process(Option<OwnedFd>);

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            kill(handle);
        }
    }
}

struct Conversation {
    printed: watch::Sender<Vec<u8>>,
    unawaited: Vec<UnawaitedCall>,
    unfinished: Vec<UnfinishedTask>,
    value: Option<LastValue>,
    left_out: u64,
    /// The number of bytes that the worker reports as omitted.
    reported_left_out: u64,
    limits: ProgramLimits,
    /// The highest request ID so far.
    last: u64,
    /// The open requests. Dropping a sender cancels the wait for the reply.
    open: HashMap<u64, oneshot::Sender<()>>,
    outbox: Vec<u8>,
    written: usize,
    process: Process,
}

/// The result of handling one frame.
enum Step {
    Continue,
    Ask(Box<(u64, ProgramQuestion)>),
    Done(ExitReason),
}

impl Conversation {
    async fn run(
        &mut self,
        zygote: &Zygote,
        mut stream: UnixStream,
        handle: WorkerHandle,
        questions: mpsc::Sender<PendingProgramQuestion>,
        stops: StopConditions,
    ) -> Result<ExitReason, SandboxUnavailable> {
        let WorkerHandle { mut started, ended } = handle;
        let (mut reader, mut writer) = stream.split();
        let mut inbox = BytesMut::with_capacity(16 << 10);
        let mut replies = FuturesUnordered::new();
        let mut question: Option<Box<(u64, ProgramQuestion)>> = None;
        let clock = async {
            match stops.time {
                Some(time) => tokio::time::sleep(time).await,
                None => pending().await,
            }
        };
        tokio::pin!(clock);
        loop {
            // Frames that have arrived come first, as long as the broker has room for requests.
            while question.is_none() {
                match self.next_step(&mut inbox)? {
                    None => break,
                    Some(Step::Continue) => {}
                    Some(Step::Ask(next)) => question = Some(next),
                    Some(Step::Done(reason)) => {
                        // Killing the process needs its handle.
                        self.adopt_process(&mut started).await;
                        return Ok(reason);
                    }
                }
            }
            tokio::select! {
                biased;
                () = stops.cancel.cancelled() => {
                    self.adopt_process(&mut started).await;
                    return Ok(ExitReason::Died { why: "it was canceled".into() });
                }
                () = &mut clock => {
                    self.adopt_process(&mut started).await;
                    return Ok(ExitReason::TimedOut);
                }
                () = zygote.gone.cancelled() => {
                    return Ok(ExitReason::Died { why: NO_PYTHON.into() });
                }
                process = &mut started, if self.process.0.is_none() => match process {
                    Ok(Ok(handle)) => self.process = Process(Some(handle)),
                    Ok(Err(why)) => return Err(unavailable(&io::Error::other(why))),
                    Err(_) => return Ok(ExitReason::Died { why: NO_PYTHON.into() }),
                },
                written = writer.write(&self.outbox[self.written..]), if self.written < self.outbox.len() => {
                    // On an error, reading from the pipe finds out the reason.
                    self.written = written.map_or(self.outbox.len(), |length| self.written + length);
                    if self.written == self.outbox.len() {
                        self.outbox = Vec::new();
                        self.written = 0;
                    }
                }
                Some((id, reply)) = replies.next(), if self.outbox.is_empty() => {
                    if self.open.remove(&id).is_some() {
                        self.outbox = encode_bounded_reply(id, reply)?;
                    }
                }
                slot = questions.reserve(), if question.is_some() => {
                    if let Some((id, question)) = question.take().map(|pending| *pending) {
                        let (reply, on_reply) = oneshot::channel();
                        // Progress reports have no reply.
                        if !matches!(question, ProgramQuestion::Progress { .. }) {
                            replies.push(wait_for_reply(id, on_reply, self.open_question(id)));
                        }
                        if let Ok(slot) = slot {
                            slot.send(PendingProgramQuestion { question, reply });
                        }
                    }
                }
                read = reader.read_buf(&mut inbox), if question.is_none() => {
                    if !matches!(read, Ok(1..)) {
                        self.adopt_process(&mut started).await;
                        return Ok(exit_reason(zygote, ended).await);
                    }
                }
            }
        }
    }

    /// Waits for the handle of the process, if it was started, so that dropping it kills the process.
    async fn adopt_process(&mut self, started: &mut oneshot::Receiver<Result<OwnedFd, String>>) {
        if self.process.0.is_none()
            && let Ok(Ok(Ok(handle))) = tokio::time::timeout(REPORT_TIMEOUT, started).await
        {
            self.process = Process(Some(handle));
        }
    }

    /// Handles the next frame, if it is complete.
    fn next_step(&mut self, inbox: &mut BytesMut) -> Result<Option<Step>, SandboxUnavailable> {
        let violation = |why: String| Ok(Some(Step::Done(ExitReason::ProtocolViolation { why })));
        match frame::decode_frame(inbox) {
            Err(why) => violation(why),
            Ok(None) => Ok(None),
            Ok(Some(ProgramFrame::Output(text))) => {
                self.append_output(&text);
                if self.left_out > MOST_BEYOND {
                    return violation(format!("it printed more than {MOST_BEYOND} bytes beyond its limit"));
                }
                Ok(Some(Step::Continue))
            }
            Ok(Some(ProgramFrame::Cancel { id })) => {
                self.open.remove(&id);
                Ok(Some(Step::Continue))
            }
            Ok(Some(ProgramFrame::Question { id, question })) => {
                if id <= self.last {
                    return violation(format!("request {id} after request {}", self.last));
                }
                self.last = id;
                if self.open.len() >= MOST_OPEN {
                    return violation(format!("more than {MOST_OPEN} open requests"));
                }
                Ok(Some(Step::Ask(Box::new((id, question)))))
            }
            Ok(Some(ProgramFrame::LeftOut { bytes })) => {
                self.reported_left_out = bytes;
                Ok(Some(Step::Continue))
            }
            Ok(Some(ProgramFrame::Unfinished(unfinished))) => {
                self.unfinished = unfinished;
                Ok(Some(Step::Continue))
            }
            Ok(Some(ProgramFrame::Ending(end))) => Ok(Some(Step::Done(self.record_end(end)))),
        }
    }

    /// Stores the worker's final report and returns the exit reason.
    fn record_end(&mut self, end: ProgramEndFrame) -> ExitReason {
        match end {
            ProgramEndFrame::Finished { left_out, unawaited, unfinished, value } => {
                self.reported_left_out = left_out;
                self.unawaited = unawaited;
                self.value = value;
                let has_stuck_task = unfinished.iter().any(|task| task.why == UnfinishedReason::Stuck);
                self.unfinished = unfinished;
                if has_stuck_task { ExitReason::Unfinished } else { ExitReason::Finished }
            }
            ProgramEndFrame::Raised { traceback, left_out, unawaited, unfinished } => {
                self.reported_left_out = left_out;
                (self.unawaited, self.unfinished) = (unawaited, unfinished);
                ExitReason::Raised { traceback }
            }
            ProgramEndFrame::Memory { left_out } => {
                self.reported_left_out = left_out;
                ExitReason::OutOfMemory
            }
            ProgramEndFrame::Broken { why } => ExitReason::Died { why: format!("the worker failed: {why}") },
        }
    }

    fn append_output(&mut self, text: &[u8]) {
        let room = self.limits.output.saturating_sub(self.printed.borrow().len() as u64);
        let fits = usize::try_from(room).map_or(text.len(), |room| room.min(text.len()));
        self.printed.send_modify(|printed| printed.extend(&text[..fits]));
        self.left_out += (text.len() - fits) as u64;
    }

    fn open_question(&mut self, id: u64) -> oneshot::Receiver<()> {
        let (canceler, canceled) = oneshot::channel();
        self.open.insert(id, canceler);
        canceled
    }

    fn into_outcome(self, exit_reason: ExitReason) -> ProgramOutcome {
        let mut printed = self.printed.borrow().clone();
        let mut left_out = self.left_out.saturating_add(self.reported_left_out);
        if left_out > 0 {
            // Removes an incomplete character at the end.
            let complete = match std::str::from_utf8(&printed) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => printed.len(),
            };
            left_out += (printed.len() - complete) as u64;
            printed.truncate(complete);
        }
        let text = String::from_utf8(printed)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        let (mut unawaited, mut unfinished) = (self.unawaited, self.unfinished);
        unawaited.truncate(MOST_UNAWAITED);
        unfinished.truncate(MOST_UNAWAITED);
        ProgramOutcome {
            printed: ProgramOutput { text, left_out },
            unawaited,
            unfinished,
            value: self.value,
            exit_reason,
        }
    }
}

/// Waits for a reply until the program cancels the request.
async fn wait_for_reply(
    id: u64,
    reply: oneshot::Receiver<ProgramReply>,
    canceled: oneshot::Receiver<()>,
) -> (u64, Option<ProgramReply>) {
    tokio::select! {
        reply = reply => (id, reply.ok()),
        // The sender never sends; it is only dropped.
        _ = canceled => (id, None),
    }
}

fn encode_bounded_reply(id: u64, reply: Option<ProgramReply>) -> Result<Vec<u8>, SandboxUnavailable> {
    let failed = |message: &str| {
        let (message, kind) = (message.to_owned(), "execution_error".to_owned());
        ProgramReply::Failed(ToolFailure { message, kind, tool: String::new(), details: None })
    };
    let reply = reply.unwrap_or_else(|| failed("the request was dropped without a reply"));
    let encode =
        |reply: &ProgramReply| frame::encode_reply(id, reply).map_err(|error| unavailable(&error.into()));
    let frame = encode(&reply)?;
    if frame.len() > LONGEST_REPLY {
        return encode(&failed("the reply is too large for a program"));
    }
    Ok(frame)
}

/// Returns the exit reason of a process that closed its pipe without a final report.
async fn exit_reason(zygote: &Zygote, ended: oneshot::Receiver<i32>) -> ExitReason {
    let died = |why: &str| ExitReason::Died { why: why.into() };
    let status = tokio::select! {
        status = tokio::time::timeout(REPORT_TIMEOUT, ended) => status,
        () = zygote.gone.cancelled() => return died(NO_PYTHON),
    };
    let status = match status {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => return died(NO_PYTHON),
        Err(_) => return died("its process exited"),
    };
    // The format of `wait`: the signal is in the low seven bits.
    match status & 0x7f {
        0 => died("its process exited without a result"),
        9 => died("its process was killed"),
        6 | 7 | 8 | 11 | 4 => died("Python crashed"),
        24 => ExitReason::TimedOut,
        25 => died("it tried to write a file"),
        31 => died("it made a forbidden system call"),
        signal => ExitReason::Died { why: format!("its process was killed by signal {signal}") },
    }
}
