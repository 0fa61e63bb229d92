//! Plays a tape to one client: finds the recorded exchange for each message of the client, and sends
//! what the server sent, with the IDs and progress tokens of this client.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use toolyard_wire::{RequestId, RpcMessage, RpcRequest};

use crate::answer_error::{http_error, lost_answer, unanswered, unmatched, write_error_response};
use crate::format::Cassette;
use crate::masked_match::is_equal_except_masked;
use crate::splice::{replace_value, value_at};
use crate::tape::{Exchange, LISTEN, SUBSCRIPTION_ID, Tape, TapeStep, TriggerKind, matched_params};

/// How long a client may take to answer a question. A user may have to type the answer.
const ANSWERING: Duration = Duration::from_secs(600);
/// How long a message that belongs to no request waits for a reader.
const STANDING: Duration = Duration::from_secs(1);
/// Longer pauses of a recording are shortened.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Whether a replay takes as long as the recorded session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplayTiming {
    Immediate,
    Recorded,
}

/// A recording that can be played to any number of clients.
#[derive(Debug)]
pub struct Replay {
    tape: Tape,
    timing: ReplayTiming,
}

/// A message to the client.
#[derive(Debug)]
pub(crate) struct ReplayFrame {
    pub(crate) text: String,
    pub(crate) kind: FrameKind,
}

#[derive(Debug)]
pub(crate) enum FrameKind {
    Message,
    /// The response to the request, with the HTTP status that it had.
    Response(Option<u16>),
    /// The body of an HTTP response that is not a message, and what stands for it on other
    /// transports.
    Body {
        status: u16,
        error: String,
    },
}

pub(crate) type Playing = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What one client has used of a recording. The same request gets the recorded answers in order,
/// and then the last one again.
#[derive(Debug)]
pub(crate) struct ReplaySession {
    replay: Arc<Replay>,
    state: Mutex<SessionState>,
    /// Where messages go that belong to no open request.
    standing: mpsc::Sender<ReplayFrame>,
    /// Canceled when the client sends nothing more.
    ending: CancellationToken,
}

#[derive(Debug, Default)]
struct SessionState {
    used: Vec<bool>,
    /// The open requests, by exchange. Clients without a session can have several.
    live: HashMap<usize, Vec<LiveRequest>>,
    in_flight: HashMap<RequestId, (u64, CancellationToken)>,
    requests: u64,
    /// The questions that the client has not answered.
    questions: HashMap<String, oneshot::Sender<()>>,
    renamed: u64,
}

/// A request of this client that an exchange answers.
#[derive(Debug, Clone)]
struct LiveRequest {
    /// Identifies the request in this session. Several clients can use the same ID.
    number: u64,
    id: RequestId,
    progress_token: Option<String>,
    out: mpsc::Sender<ReplayFrame>,
}

impl Replay {
    pub fn new(cassette: &Cassette, timing: ReplayTiming) -> Arc<Self> {
        Arc::new(Self { tape: Tape::new(cassette), timing })
    }

    pub fn tape(&self) -> &Tape {
        &self.tape
    }
}

impl ReplaySession {
    pub(crate) fn new(replay: Arc<Replay>, standing: mpsc::Sender<ReplayFrame>) -> Arc<Self> {
        let used = vec![false; replay.tape.exchanges.len()];
        let state = Mutex::new(SessionState { used, ..SessionState::default() });
        Arc::new(Self { replay, state, standing, ending: CancellationToken::new() })
    }

    /// Takes a message of the client. Returns what is left to do for it. Responses go to `out`.
    pub(crate) fn accept(
        self: &Arc<Self>,
        message: RpcMessage,
        out: mpsc::Sender<ReplayFrame>,
    ) -> Option<Playing> {
        match message {
            RpcMessage::Request(request) => Some(self.accept_request(request, out)),
            RpcMessage::Notification(notification) => {
                let params = notification.params.as_deref().map_or("{}", |params| params.get());
                if notification.method == "notifications/cancelled" {
                    self.cancel(value_at(params, &["requestId"]));
                }
                let params = matched_params(params);
                let exchange = self.claim(TriggerKind::Notification, &notification.method, &params)?;
                let session = Arc::clone(self);
                Some(Box::pin(async move { session.play(exchange, None).await }))
            }
            RpcMessage::Response(response) => {
                if let Some(question) = self.state.lock().questions.remove(response.id.as_json()) {
                    // The exchange that waited can have been canceled.
                    let _ = question.send(());
                }
                None
            }
        }
    }

    /// Ends what waits for the client: questions and subscriptions.
    pub(crate) fn end_waiting(&self) {
        self.ending.cancel();
        self.state.lock().questions.clear();
    }

    /// Ends everything.
    pub(crate) fn close(&self) {
        self.end_waiting();
        let state = self.state.lock();
        state.in_flight.values().for_each(|(_, cancel)| cancel.cancel());
    }

    fn accept_request(self: &Arc<Self>, request: RpcRequest, out: mpsc::Sender<ReplayFrame>) -> Playing {
        let text = request.params.as_deref().map_or("{}", |params| params.get());
        let params = matched_params(text);
        let session = Arc::clone(self);
        let Some(exchange) = self.claim(TriggerKind::Request, &request.method, &params) else {
            let answer = match request.method.as_str() {
                // A client sends these in its own rhythm.
                "ping" => ReplayFrame {
                    text: format!(r#"{{"jsonrpc":"2.0","id":{},"result":{{}}}}"#, request.id.as_json()),
                    kind: FrameKind::Response(None),
                },
                method => error_frame(&request.id, &unmatched(&self.replay.tape, method, &params)),
            };
            return Box::pin(async move { drop(out.send(answer).await) });
        };
        let cancel = CancellationToken::new();
        let live = {
            let mut state = self.state.lock();
            state.requests += 1;
            let live = LiveRequest {
                number: state.requests,
                id: request.id.clone(),
                progress_token: value_at(text, &["_meta", "progressToken"]).map(ToOwned::to_owned),
                out,
            };
            state.live.entry(exchange).or_default().push(live.clone());
            state.in_flight.insert(request.id.clone(), (live.number, cancel.clone()));
            live
        };
        let guard = LiveRequestGuard { session, exchange, number: live.number, id: request.id };
        Box::pin(async move {
            tokio::select! {
                () = guard.session.play(exchange, Some(live.clone())) => {}
                () = cancel.cancelled() => {}
                () = live.out.closed() => {}
            }
        })
    }

    fn cancel(&self, id: Option<&str>) {
        let state = self.state.lock();
        let canceled = state.in_flight.iter().find(|(request, _)| Some(request.as_json()) == id);
        if let Some((_, (_, cancel))) = canceled {
            cancel.cancel();
        }
    }

    /// Finds the exchange that the message starts: the first that was not used, or else the last.
    fn claim(&self, kind: TriggerKind, method: &str, params: &serde_json::Value) -> Option<usize> {
        let mut state = self.state.lock();
        let of_method: Vec<(usize, &Exchange)> = self
            .replay
            .tape
            .exchanges
            .iter()
            .enumerate()
            .filter(|(_, exchange)| exchange.trigger.kind == kind && exchange.trigger.method == method)
            .collect();
        let mut fitting: Vec<usize> = of_method
            .iter()
            .filter(|(_, exchange)| is_equal_except_masked(&exchange.trigger.params, params))
            .map(|(index, _)| *index)
            .collect();
        // Each client introduces itself in its own words.
        if fitting.is_empty() && matches!(method, "initialize" | "server/discover") {
            fitting = of_method.iter().map(|(index, _)| *index).collect();
        }
        let next = fitting.iter().find(|index| !state.used[**index]).or(fitting.last()).copied()?;
        state.used[next] = true;
        Some(next)
    }

    /// Sends everything that was recorded for an exchange. `live` is the request that started it.
    async fn play(&self, index: usize, live: Option<LiveRequest>) {
        let exchange = &self.replay.tape.exchanges[index];
        let mut responded = false;
        let mut last = exchange.at;
        // The questions of this exchange, by their recorded ID.
        let mut questions: HashMap<&str, (String, oneshot::Receiver<()>)> = HashMap::new();
        for step in &exchange.steps {
            self.pause(step.at().saturating_sub(last)).await;
            last = step.at();
            match step {
                TapeStep::Respond { message, status, .. } => {
                    let Some(live) = &live else { continue };
                    let is_result = value_at(message.get(), &["result"]).is_some();
                    if is_result && exchange.trigger.method == LISTEN {
                        // It was sent when the recorded session ended.
                        self.wait_for_end(live).await;
                    }
                    let text = replace_value(message.get(), &["id"], live.id.as_json());
                    let text = replace_subscription(text.unwrap_or_default(), &live.id);
                    responded = true;
                    self.send(Some(live), text, FrameKind::Response(*status)).await;
                }
                TapeStep::RespondText { text, status, .. } => {
                    let Some(live) = &live else { continue };
                    responded = true;
                    let error = write_error_response(Some(&live.id), &http_error(*status, text));
                    self.send(Some(live), text.clone(), FrameKind::Body { status: *status, error }).await;
                }
                TapeStep::Notify { message, exchange, .. } => {
                    for target in self.targets(*exchange, index, live.as_ref()) {
                        let text = readdress(message.get(), target.as_ref(), &questions);
                        let target = target.filter(|_| !responded || *exchange != index);
                        if let Some(text) = text {
                            self.send(target.as_ref(), text, FrameKind::Message).await;
                        }
                    }
                }
                TapeStep::Ask { message, id, exchange, .. } => {
                    let target = self.targets(*exchange, index, live.as_ref()).pop().flatten();
                    let (asked, answered) = self.register_question(id);
                    let text = replace_value(message.get(), &["id"], &asked).unwrap_or_default();
                    questions.insert(id, (asked, answered));
                    let target = target.filter(|_| !responded || *exchange != index);
                    self.send(target.as_ref(), text, FrameKind::Message).await;
                }
                TapeStep::Await { id, .. } => {
                    let Some((_, answered)) = questions.remove(id.as_str()) else { continue };
                    let is_answered = matches!(tokio::time::timeout(ANSWERING, answered).await, Ok(Ok(())));
                    if !is_answered {
                        if let Some(live) = live.as_ref().filter(|_| !responded) {
                            let error = error_frame(&live.id, &lost_answer());
                            let _ = live.out.send(error).await;
                        }
                        return;
                    }
                }
            }
        }
        let Some(live) = live.filter(|_| !exchange.has_response()) else { return };
        // A subscription stays open. A canceled request never had an answer.
        if exchange.trigger.method == LISTEN || exchange.is_canceled {
            return self.wait_for_end(&live).await;
        }
        let error = error_frame(&live.id, &unanswered(exchange));
        let _ = live.out.send(error).await;
    }

    async fn wait_for_end(&self, live: &LiveRequest) {
        tokio::select! {
            () = live.out.closed() => {}
            () = self.ending.cancelled() => {}
        }
    }

    async fn pause(&self, millis: u64) {
        if self.replay.timing == ReplayTiming::Recorded && millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis).min(LONGEST_PAUSE)).await;
        }
    }

    /// Returns the open requests that a message is for: `live` if it is for the current exchange, or
    /// those of another one. `None` stands for no request.
    fn targets(
        &self,
        exchange: usize,
        current: usize,
        live: Option<&LiveRequest>,
    ) -> Vec<Option<LiveRequest>> {
        let others = match exchange == current {
            true => Vec::new(),
            false => self.state.lock().live.get(&exchange).cloned().unwrap_or_default(),
        };
        if others.is_empty() {
            return vec![live.filter(|_| exchange == current).cloned()];
        }
        others.into_iter().map(Some).collect()
    }

    async fn send(&self, target: Option<&LiveRequest>, text: String, kind: FrameKind) {
        let frame = ReplayFrame { text, kind };
        // If the client is gone, so is the exchange.
        match target {
            Some(target) => drop(target.out.send(frame).await),
            // Perhaps nothing reads these messages.
            None => drop(self.standing.send_timeout(frame, STANDING).await),
        }
    }

    /// Chooses the ID of a question: the recorded one, unless another question has it.
    fn register_question(&self, recorded: &str) -> (String, oneshot::Receiver<()>) {
        let (sender, answered) = oneshot::channel();
        let mut state = self.state.lock();
        let mut id = recorded.to_owned();
        while state.questions.contains_key(&id) {
            state.renamed += 1;
            id = format!("\"replay-{}\"", state.renamed);
        }
        state.questions.insert(id.clone(), sender);
        (id, answered)
    }
}

impl TapeStep {
    fn at(&self) -> u64 {
        match self {
            Self::Respond { at, .. }
            | Self::RespondText { at, .. }
            | Self::Notify { at, .. }
            | Self::Ask { at, .. }
            | Self::Await { at, .. } => *at,
        }
    }
}

/// Forgets a request when it ends, also if its response is no longer read.
struct LiveRequestGuard {
    session: Arc<ReplaySession>,
    exchange: usize,
    number: u64,
    id: RequestId,
}

impl Drop for LiveRequestGuard {
    fn drop(&mut self) {
        let mut state = self.session.state.lock();
        if state.in_flight.get(&self.id).is_some_and(|(number, _)| *number == self.number) {
            state.in_flight.remove(&self.id);
        }
        if let Some(open) = state.live.get_mut(&self.exchange) {
            open.retain(|request| request.number != self.number);
        }
    }
}

fn error_frame(id: &RequestId, error: &toolyard_wire::RpcError) -> ReplayFrame {
    ReplayFrame { text: write_error_response(Some(id), error), kind: FrameKind::Response(None) }
}

fn replace_subscription(text: String, id: &RequestId) -> String {
    match value_at(&text, &["result", "_meta", SUBSCRIPTION_ID[2]]) {
        Some(_) => {
            replace_value(&text, &["result", "_meta", SUBSCRIPTION_ID[2]], id.as_json()).unwrap_or(text)
        }
        None => text,
    }
}

/// Puts the IDs of this client into a notification. Returns `None` for one that this client has not
/// asked for.
fn readdress(
    text: &str,
    target: Option<&LiveRequest>,
    questions: &HashMap<&str, (String, oneshot::Receiver<()>)>,
) -> Option<String> {
    const PROGRESS: [&str; 2] = ["params", "progressToken"];
    const CANCELED: [&str; 2] = ["params", "requestId"];
    if value_at(text, &PROGRESS).is_some() {
        return replace_value(text, &PROGRESS, target?.progress_token.as_deref()?);
    }
    if value_at(text, &SUBSCRIPTION_ID).is_some() {
        return replace_value(text, &SUBSCRIPTION_ID, target?.id.as_json());
    }
    if let Some((asked, _)) = value_at(text, &CANCELED).and_then(|id| questions.get(id)) {
        return replace_value(text, &CANCELED, asked);
    }
    Some(text.to_owned())
}

#[cfg(test)]
mod tests;
