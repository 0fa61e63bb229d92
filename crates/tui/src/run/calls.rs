//! The calls that the UI makes: each in a task of its own, which tells the UI how it goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolyard_hub::{
    Abilities, Answers, Ask, CallContext, Client, ClientSession, Error, FrontName, Kind, Level, Principal,
    Request, Update, What, Yard,
};

use crate::message::{AskId, CallId, Message, News};

/// There is one terminal UI in a process.
const SESSION: &str = "terminal-ui";

/// What a server may ask of whoever sits before the UI. Folders are not among it: the UI has none to show.
pub fn abilities() -> Abilities {
    Abilities {
        elicit_form: true,
        elicit_url: true,
        sample: true,
        roots: false,
        log_level: Some(Level::Debug),
    }
}

type Reply = oneshot::Sender<Result<Answers, Error>>;

/// Every call under way, and every question that waits for an answer.
pub(super) struct Running {
    yard: Arc<Yard>,
    principal: Principal,
    ui: mpsc::Sender<Message>,
    tasks: TaskTracker,
    calls: HashMap<CallId, CancellationToken>,
    questions: Arc<Questions>,
    /// Over when the UI is: what was set up for it can go.
    session: CancellationToken,
}

#[derive(Default)]
struct Questions {
    open: Mutex<(u64, HashMap<AskId, Reply>)>,
}

impl Questions {
    fn put(&self, reply: Reply) -> AskId {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 += 1;
        let id = AskId(open.0);
        open.1.insert(id, reply);
        id
    }

    fn take(&self, id: AskId) -> Option<Reply> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).1.remove(&id)
    }
}

impl Running {
    pub(super) fn new(
        yard: Arc<Yard>,
        principal: Principal,
        ui: mpsc::Sender<Message>,
        tasks: TaskTracker,
    ) -> Self {
        let (calls, questions, session) = (HashMap::new(), Arc::default(), CancellationToken::new());
        Self { yard, principal, ui, tasks, calls, questions, session }
    }

    pub(super) fn start(&mut self, id: CallId, what: What) {
        self.calls.retain(|_, cancel| !cancel.is_cancelled());
        let cancel = self.session.child_token();
        self.calls.insert(id, cancel.clone());
        let (client, updates) = Client::new(abilities());
        let context = CallContext {
            session_id: Some(SESSION.into()),
            client_session: Some(ClientSession::new(SESSION, abilities(), self.session.clone())),
            front: Some(FrontName::Ui),
            ..CallContext::default()
        };
        let request = Request { client, context, cancel, ..Request::new(what, self.principal.clone()) };
        let (yard, ui, questions) = (Arc::clone(&self.yard), self.ui.clone(), Arc::clone(&self.questions));
        let told = Told { id, ui, questions, tasks: self.tasks.clone() };
        self.tasks.spawn(carry_out(yard, request, updates, told));
    }

    pub(super) fn cancel(&self, id: CallId) {
        if let Some(cancel) = self.calls.get(&id) {
            cancel.cancel();
        }
    }

    pub(super) fn answer(&self, id: AskId, answer: Result<Answers, Error>) {
        // Whoever asked may have given up meanwhile.
        if let Some(reply) = self.questions.take(id) {
            let _ = reply.send(answer);
        }
    }

    /// Cancels everything.
    pub(super) fn end(&self) {
        self.session.cancel();
    }
}

/// Where a call tells how it goes.
#[derive(Clone)]
struct Told {
    id: CallId,
    ui: mpsc::Sender<Message>,
    questions: Arc<Questions>,
    tasks: TaskTracker,
}

impl Told {
    async fn tell(&self, news: News) {
        // Without a UI there is nobody to tell, and the call is being cancelled.
        let _ = self.ui.send(Message::Call(self.id, news)).await;
    }

    async fn hear(&self, update: Update) {
        match update {
            Update::Progress(progress) => self.tell(News::Progress(progress)).await,
            Update::Log(line) => self.tell(News::Log(line)).await,
            Update::Chunk(chunk) => self.tell(News::Chunk(chunk)).await,
            Update::Ask(Ask { questions, reply }) => {
                let (answer, answered) = oneshot::channel();
                let ask = self.questions.put(answer);
                self.tell(News::Asked(ask, questions)).await;
                self.tasks.spawn(wait_for_answer(ask, reply, answered, self.clone()));
            }
            Update::Pause(_) => {}
        }
    }
}

/// Hands an answer on, or takes the question back when nobody waits for one any more.
async fn wait_for_answer(
    ask: AskId,
    mut reply: Reply,
    answered: oneshot::Receiver<Result<Answers, Error>>,
    told: Told,
) {
    tokio::select! {
        answer = answered => {
            if let Ok(answer) = answer {
                let _ = reply.send(answer);
            }
        }
        () = reply.closed() => {
            drop(told.questions.take(ask));
            told.tell(News::Unasked(ask)).await;
        }
    }
}

async fn carry_out(yard: Arc<Yard>, request: Request, mut updates: mpsc::Receiver<Update>, told: Told) {
    let began = Instant::now();
    let cancel = request.cancel.clone();
    // A task of its own, so that a call that panics ends as a call that failed.
    let mut call = tokio::spawn(async move { yard.call(request).await });
    let outcome = loop {
        tokio::select! {
            Some(update) = updates.recv() => told.hear(update).await,
            ended = &mut call => break ended,
            () = cancel.cancelled() => {
                // Dropping the call cancels it all the way down.
                call.abort();
                let _ = (&mut call).await;
                let error = Error::new(Kind::Cancelled, "you cancelled the call");
                told.tell(News::Ended(Err(error), began.elapsed())).await;
                return;
            }
        }
    };
    while let Ok(update) = updates.try_recv() {
        told.hear(update).await;
    }
    let outcome =
        outcome.unwrap_or_else(|_| Err(Error::new(Kind::Bug, "the call came to an unexpected end")));
    told.tell(News::Ended(outcome, began.elapsed())).await;
}
