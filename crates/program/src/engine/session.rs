//! One program from its first byte to its last: what it asks goes to the broker, what it prints is kept, and when it ends,
//! or has to, its process is gone.

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

/// More questions than this are never open at once; the worker keeps fewer.
const MOST_OPEN: usize = 256;
/// The longest answer that is passed on.
const LONGEST_REPLY: usize = 256 << 20;
/// Printing far beyond the limit is no accident, for the worker keeps it.
const MOST_BEYOND: u64 = 64 << 20;
/// More calls that were not awaited, and more tasks, are not told of; the worker says fewer.
const MOST_UNAWAITED: usize = 100;
const NO_PYTHON: &str = "the Python process of all programs is gone";
/// How long the zygote may take to say what became of a process.
const PATIENCE: Duration = Duration::from_secs(5);

/// What stops a program from outside.
#[derive(Debug)]
pub(super) struct StopConditions {
    /// None for a sandbox that is tested without its clock.
    pub(super) time: Option<Duration>,
    pub(super) cancel: CancellationToken,
}

/// A process that waits for its program.
#[derive(Debug)]
pub(super) struct IdleWorker {
    stream: UnixStream,
    handed: WorkerHandle,
}

/// Has a process started for a program with these limits.
pub(super) async fn start_worker(zygote: &Zygote, limits: &ProgramLimits) -> io::Result<IdleWorker> {
    let (ours, theirs) = StdUnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let stream = UnixStream::from_std(ours)?;
    let handed = zygote.spawn_worker(OwnedFd::from(theirs), limits).await?;
    Ok(IdleWorker { stream, handed })
}

pub(super) async fn run(
    zygote: &Zygote,
    begun: IdleWorker,
    program: Program,
    asked: mpsc::Sender<PendingProgramQuestion>,
    stops: StopConditions,
) -> Result<ProgramOutcome, SandboxUnavailable> {
    let IdleWorker { stream, handed } = begun;
    let Program { code, bindings: faces, limits, printed } = program;
    let first =
        frame::encode_program(&code, &faces, limits.output).map_err(|error| unavailable(&error.into()))?;
    let mut talk = Conversation {
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
    let how = talk.run(zygote, stream, handed, asked, stops).await?;
    Ok(talk.into_outcome(how))
}

pub(super) fn unavailable(error: &io::Error) -> SandboxUnavailable {
    SandboxUnavailable { reason: format!("the program cannot be started: {error}"), suggestion: None }
}

/// The process of the program; it does not outlive this.
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
    /// What the worker has left out itself, as far as it has said so.
    reported_left_out: u64,
    limits: ProgramLimits,
    /// The highest number that a question has had.
    last: u64,
    /// Dropping a sender tells the one who waits for the answer that it is not wanted any more.
    open: HashMap<u64, oneshot::Sender<()>>,
    outbox: Vec<u8>,
    written: usize,
    process: Process,
}

/// What one step of the conversation comes to.
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
        handed: WorkerHandle,
        asked: mpsc::Sender<PendingProgramQuestion>,
        stops: StopConditions,
    ) -> Result<ExitReason, SandboxUnavailable> {
        let WorkerHandle { mut started, ended } = handed;
        let (mut reader, mut writer) = stream.split();
        let mut inbox = BytesMut::with_capacity(16 << 10);
        let mut answers = FuturesUnordered::new();
        let mut question: Option<Box<(u64, ProgramQuestion)>> = None;
        let clock = async {
            match stops.time {
                Some(time) => tokio::time::sleep(time).await,
                None => pending().await,
            }
        };
        tokio::pin!(clock);
        loop {
            // Whatever has arrived comes first, as long as the broker has room for questions.
            while question.is_none() {
                match self.next_step(&mut inbox)? {
                    None => break,
                    Some(Step::Continue) => {}
                    Some(Step::Ask(asks)) => question = Some(asks),
                    Some(Step::Done(how)) => {
                        // The process is only sure to be gone when there is something to kill it by.
                        self.adopt_process(&mut started).await;
                        return Ok(how);
                    }
                }
            }
            tokio::select! {
                biased;
                () = stops.cancel.cancelled() => {
                    self.adopt_process(&mut started).await;
                    return Ok(ExitReason::Died { why: "it was cancelled".into() });
                }
                () = &mut clock => {
                    self.adopt_process(&mut started).await;
                    return Ok(ExitReason::TimedOut);
                }
                () = zygote.gone.cancelled() => {
                    return Ok(ExitReason::Died { why: NO_PYTHON.into() });
                }
                born = &mut started, if self.process.0.is_none() => match born {
                    Ok(Ok(handle)) => self.process = Process(Some(handle)),
                    Ok(Err(why)) => return Err(unavailable(&io::Error::other(why))),
                    Err(_) => return Ok(ExitReason::Died { why: NO_PYTHON.into() }),
                },
                written = writer.write(&self.outbox[self.written..]), if self.written < self.outbox.len() => {
                    // Where it does not read any more, reading from it says why.
                    self.written = written.map_or(self.outbox.len(), |length| self.written + length);
                    if self.written == self.outbox.len() {
                        self.outbox = Vec::new();
                        self.written = 0;
                    }
                }
                Some((id, reply)) = answers.next(), if self.outbox.is_empty() => {
                    if self.open.remove(&id).is_some() {
                        self.outbox = encode_bounded_reply(id, reply)?;
                    }
                }
                room = asked.reserve(), if question.is_some() => {
                    if let Some((id, question)) = question.take().map(|asks| *asks) {
                        let (reply, on_reply) = oneshot::channel();
                        // How far the program is needs no answer.
                        if !matches!(question, ProgramQuestion::Progress { .. }) {
                            answers.push(wait_for_reply(id, on_reply, self.open_question(id)));
                        }
                        if let Ok(room) = room {
                            room.send(PendingProgramQuestion { question, reply });
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

    /// Takes the process over, if it was started, so that it can be ended.
    async fn adopt_process(&mut self, started: &mut oneshot::Receiver<Result<OwnedFd, String>>) {
        if self.process.0.is_none()
            && let Ok(Ok(Ok(handle))) = tokio::time::timeout(PATIENCE, started).await
        {
            self.process = Process(Some(handle));
        }
    }

    /// The next thing that was said, if it has arrived whole.
    fn next_step(&mut self, inbox: &mut BytesMut) -> Result<Option<Step>, SandboxUnavailable> {
        let broke = |why: String| Ok(Some(Step::Done(ExitReason::ProtocolViolation { why })));
        match frame::decode_frame(inbox) {
            Err(why) => broke(why),
            Ok(None) => Ok(None),
            Ok(Some(ProgramFrame::Output(text))) => {
                self.append_output(&text);
                if self.left_out > MOST_BEYOND {
                    return broke("it prints on and on".into());
                }
                Ok(Some(Step::Continue))
            }
            Ok(Some(ProgramFrame::Cancel { id })) => {
                self.open.remove(&id);
                Ok(Some(Step::Continue))
            }
            Ok(Some(ProgramFrame::Question { id, question })) => {
                if id <= self.last {
                    return broke(format!("question {id} after question {}", self.last));
                }
                self.last = id;
                if self.open.len() >= MOST_OPEN {
                    return broke(format!("more than {MOST_OPEN} questions at once"));
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
            Ok(Some(ProgramFrame::Ending(ended))) => Ok(Some(Step::Done(self.record_end(ended)))),
        }
    }

    /// The program's own last words.
    fn record_end(&mut self, ended: ProgramEndFrame) -> ExitReason {
        match ended {
            ProgramEndFrame::Finished { left_out, unawaited, unfinished, value } => {
                self.reported_left_out = left_out;
                self.unawaited = unawaited;
                self.value = value;
                let stuck = unfinished.iter().any(|task| task.why == UnfinishedReason::Stuck);
                self.unfinished = unfinished;
                if stuck { ExitReason::Unfinished } else { ExitReason::Finished }
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
            ProgramEndFrame::Broken { why } => {
                ExitReason::Died { why: format!("it could not be run: {why}") }
            }
        }
    }

    fn append_output(&mut self, text: &[u8]) {
        let room = self.limits.output.saturating_sub(self.printed.borrow().len() as u64);
        let fits = usize::try_from(room).map_or(text.len(), |room| room.min(text.len()));
        self.printed.send_modify(|printed| printed.extend(&text[..fits]));
        self.left_out += (text.len() - fits) as u64;
    }

    fn open_question(&mut self, id: u64) -> oneshot::Receiver<()> {
        let (wanted, unwanted) = oneshot::channel();
        self.open.insert(id, wanted);
        unwanted
    }

    fn into_outcome(self, how: ExitReason) -> ProgramOutcome {
        let mut printed = self.printed.borrow().clone();
        let mut left_out = self.left_out.saturating_add(self.reported_left_out);
        if left_out > 0 {
            // A letter that was cut in two is left out whole.
            let whole = match std::str::from_utf8(&printed) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                _ => printed.len(),
            };
            left_out += (printed.len() - whole) as u64;
            printed.truncate(whole);
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
            exit_reason: how,
        }
    }
}

/// Waits for an answer as long as the program does. Both go when one goes.
async fn wait_for_reply(
    id: u64,
    reply: oneshot::Receiver<ProgramReply>,
    unwanted: oneshot::Receiver<()>,
) -> (u64, Option<ProgramReply>) {
    tokio::select! {
        reply = reply => (id, reply.ok()),
        // The sender is only ever dropped.
        _ = unwanted => (id, None),
    }
}

fn encode_bounded_reply(id: u64, reply: Option<ProgramReply>) -> Result<Vec<u8>, SandboxUnavailable> {
    let failed = |message: &str| {
        let (message, kind) = (message.to_owned(), "execution_error".to_owned());
        ProgramReply::Failed(ToolFailure { message, kind, tool: String::new(), details: None })
    };
    let reply = reply.unwrap_or_else(|| failed("nobody answers any more"));
    let encode =
        |reply: &ProgramReply| frame::encode_reply(id, reply).map_err(|error| unavailable(&error.into()));
    let frame = encode(&reply)?;
    if frame.len() > LONGEST_REPLY {
        return encode(&failed("the answer is too large for a program"));
    }
    Ok(frame)
}

/// The pipe is closed and nothing was said: what became of the process?
async fn exit_reason(zygote: &Zygote, ended: oneshot::Receiver<i32>) -> ExitReason {
    let died = |why: &str| ExitReason::Died { why: why.into() };
    let status = tokio::select! {
        status = tokio::time::timeout(PATIENCE, ended) => status,
        () = zygote.gone.cancelled() => return died(NO_PYTHON),
    };
    let status = match status {
        Ok(Ok(status)) => status,
        Ok(Err(_)) => return died(NO_PYTHON),
        Err(_) => return died("its process is gone"),
    };
    // As `wait` packs it: the signal in the low seven bits.
    match status & 0x7f {
        0 => died("its process ended without a word"),
        9 => died("its process was killed"),
        6 | 7 | 8 | 11 | 4 => died("Python crashed"),
        24 => ExitReason::TimedOut,
        25 => died("it wrote a file"),
        31 => died("it made a forbidden system call"),
        signal => ExitReason::Died { why: format!("its process was ended by signal {signal}") },
    }
}
