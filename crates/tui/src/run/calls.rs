//! The calls that the UI makes. Each runs in its own task, which reports its progress to the UI.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, CallerChannel, CallerUpdate, ClientCapabilities, ClientSession,
    ErrorKind, FrontName, HubError, LogLevel, Principal, QuestionBatch, RawAnswers, Yard,
};

use crate::message::{CallId, QuestionId, UiCallUpdate, UiMessage};

/// The session ID; a process has only one terminal UI.
const SESSION: &str = "terminal-ui";

/// What a server may request from the user of the UI. Roots are not supported: the UI has none to
/// offer.
pub fn client_capabilities() -> ClientCapabilities {
    ClientCapabilities {
        elicit_form: true,
        elicit_url: true,
        sample: true,
        roots: false,
        log_level: Some(LogLevel::Debug),
    }
}

type AnswerSender = oneshot::Sender<Result<RawAnswers, HubError>>;

/// All running calls, and all questions that wait for an answer.
pub(super) struct CallRunner {
    yard: Arc<Yard>,
    principal: Principal,
    ui: mpsc::Sender<UiMessage>,
    tasks: TaskTracker,
    calls: HashMap<CallId, CancellationToken>,
    questions: Arc<OpenQuestions>,
    /// Cancelled when the UI ends, so that resources of its session are released.
    session: CancellationToken,
}

#[derive(Default)]
struct OpenQuestions {
    open: Mutex<(u64, HashMap<QuestionId, AnswerSender>)>,
}

impl OpenQuestions {
    fn insert(&self, reply: AnswerSender) -> QuestionId {
        let mut open = self.open.lock();
        open.0 += 1;
        let id = QuestionId(open.0);
        open.1.insert(id, reply);
        id
    }

    fn take(&self, id: QuestionId) -> Option<AnswerSender> {
        self.open.lock().1.remove(&id)
    }
}

impl CallRunner {
    pub(super) fn new(
        yard: Arc<Yard>,
        principal: Principal,
        ui: mpsc::Sender<UiMessage>,
        tasks: TaskTracker,
    ) -> Self {
        let (calls, questions, session) = (HashMap::new(), Arc::default(), CancellationToken::new());
        Self { yard, principal, ui, tasks, calls, questions, session }
    }

    pub(super) fn start(&mut self, id: CallId, what: CallTarget) {
        self.calls.retain(|_, cancel| !cancel.is_cancelled());
        let cancel = self.session.child_token();
        self.calls.insert(id, cancel.clone());
        let (client, updates) = CallerChannel::new(client_capabilities());
        let context = CallContext {
            session_id: Some(SESSION.into()),
            client_session: Some(ClientSession::new(SESSION, client_capabilities(), self.session.clone())),
            front: Some(FrontName::Ui),
            ..CallContext::default()
        };
        let request =
            CallRequest { client, context, cancel, ..CallRequest::new(what, self.principal.clone()) };
        let (yard, ui, questions) = (Arc::clone(&self.yard), self.ui.clone(), Arc::clone(&self.questions));
        let reporter = CallReporter { id, ui, questions, tasks: self.tasks.clone() };
        self.tasks.spawn(run_call(yard, request, updates, reporter));
    }

    pub(super) fn cancel(&self, id: CallId) {
        if let Some(cancel) = self.calls.get(&id) {
            cancel.cancel();
        }
    }

    pub(super) fn answer(&self, id: QuestionId, answer: Result<RawAnswers, HubError>) {
        // The caller may have stopped waiting.
        if let Some(reply) = self.questions.take(id) {
            let _ = reply.send(answer);
        }
    }

    /// Cancels all calls.
    pub(super) fn cancel_all(&self) {
        self.session.cancel();
    }
}

/// Reports the progress of a call to the UI.
#[derive(Clone)]
struct CallReporter {
    id: CallId,
    ui: mpsc::Sender<UiMessage>,
    questions: Arc<OpenQuestions>,
    tasks: TaskTracker,
}

impl CallReporter {
    async fn report(&self, news: UiCallUpdate) {
        // If the UI is closed, the call is being canceled anyway.
        let _ = self.ui.send(UiMessage::Call(self.id, news)).await;
    }

    async fn handle_update(&self, update: CallerUpdate) {
        match update {
            CallerUpdate::Progress(progress) => self.report(UiCallUpdate::Progress(progress)).await,
            CallerUpdate::Log(line) => self.report(UiCallUpdate::Log(line)).await,
            CallerUpdate::Chunk(chunk) => self.report(UiCallUpdate::Chunk(chunk)).await,
            CallerUpdate::Ask(QuestionBatch { questions, reply }) => {
                let (answer, answered) = oneshot::channel();
                let ask = self.questions.insert(answer);
                self.report(UiCallUpdate::Questions(ask, questions)).await;
                self.tasks.spawn(wait_for_answer(ask, reply, answered, self.clone()));
            }
            CallerUpdate::Pause(_) => {}
        }
    }
}

/// Forwards an answer, or withdraws the question when the call no longer waits for it.
async fn wait_for_answer(
    ask: QuestionId,
    mut reply: AnswerSender,
    answered: oneshot::Receiver<Result<RawAnswers, HubError>>,
    reporter: CallReporter,
) {
    tokio::select! {
        answer = answered => {
            if let Ok(answer) = answer {
                let _ = reply.send(answer);
            }
        }
        () = reply.closed() => {
            drop(reporter.questions.take(ask));
            reporter.report(UiCallUpdate::QuestionsWithdrawn(ask)).await;
        }
    }
}

async fn run_call(
    yard: Arc<Yard>,
    request: CallRequest,
    mut updates: mpsc::Receiver<CallerUpdate>,
    reporter: CallReporter,
) {
    let began = Instant::now();
    let cancel = request.cancel.clone();
    // A separate task, so that a panic in the call is reported as a failed call.
    let mut call = tokio::spawn(async move { yard.call(request).await });
    let outcome = loop {
        tokio::select! {
            Some(update) = updates.recv() => reporter.handle_update(update).await,
            ended = &mut call => break ended,
            () = cancel.cancelled() => {
                // Dropping the call cancels it upstream.
                call.abort();
                let _ = (&mut call).await;
                let error = HubError::new(ErrorKind::Cancelled, "you canceled the call");
                reporter.report(UiCallUpdate::Ended(Err(error), began.elapsed())).await;
                return;
            }
        }
    };
    while let Ok(update) = updates.try_recv() {
        reporter.handle_update(update).await;
    }
    let outcome =
        outcome.unwrap_or_else(|_| Err(HubError::new(ErrorKind::Bug, "the call ended unexpectedly")));
    reporter.report(UiCallUpdate::Ended(outcome, began.elapsed())).await;
}
