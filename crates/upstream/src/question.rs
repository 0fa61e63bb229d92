//! Questions of servers, put to the client that a call is for: a request of the server in the legacy era, a part
//! of its answer in the modern one.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use toolyard_hub::json::{Object, contains_text, to_raw};
use toolyard_hub::{ClientCapabilities, HubError, Question, QuestionKind, Raw};
use toolyard_wire::{McpClient, RpcError, code};

use crate::in_flight::{InFlightCalls, Respondent};
use crate::notifications::ServerQuestion;
use crate::sharing::SharingState;

/// How long a question about roots waits for a call on which the client of the connection can be asked.
const NEXT_CALL: Duration = Duration::from_secs(60);

/// How many questions of one connection are dealt with at once; the others wait.
const MOST_OPEN: usize = 64;

/// Who may be asked on a connection.
#[derive(Debug, Clone)]
pub(crate) enum QuestionRouting {
    /// Several clients share it: whoever made the only call that the question can be about.
    Shared(Arc<SharingState>),
    /// It is one client's own: whoever made the call that is under way.
    Caller,
}

/// Answers the questions of a legacy server for as long as it is polled.
pub(crate) async fn answer_questions(
    client: Arc<McpClient>,
    calls: Arc<InFlightCalls>,
    whom: QuestionRouting,
    mut questions: mpsc::Receiver<ServerQuestion>,
) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            question = questions.recv(), if open.len() < MOST_OPEN => match question {
                Some(question) => {
                    let (client, calls, whom) = (Arc::clone(&client), Arc::clone(&calls), whom.clone());
                    open.spawn(async move {
                        let answer = answer_question(&calls, &whom, &question).await;
                        let _ = client.respond(&question.request.id, &answer).await;
                    });
                }
                None => return,
            },
            Some(_) = open.join_next() => {}
        }
    }
}

async fn answer_question(
    calls: &InFlightCalls,
    whom: &QuestionRouting,
    question: &ServerQuestion,
) -> Result<Raw, RpcError> {
    let request = &question.request;
    if request.method == "ping" {
        return Ok(to_raw(&json!({})));
    }
    let params = request.params.clone().unwrap_or_else(|| to_raw(&json!({})));
    let kind = kind(&request.method, &params).ok_or_else(|| RpcError::method_not_found(&request.method))?;
    let (respondent, sharing) = match whom {
        QuestionRouting::Shared(sharing) => (question.calls.respondent(kind), Some(sharing)),
        QuestionRouting::Caller => (question.calls.private_respondent(kind), None),
    };
    if let (QuestionKind::Roots, Some(sharing)) = (kind, sharing) {
        // What a server is told about roots it may keep, and those of one client are not those of the others.
        sharing.require_private_sessions(kind);
    }
    let mut adopted = None;
    let flight = match (respondent, kind, sharing) {
        (Respondent::Call(flight), ..) => flight,
        // Some servers ask for the roots as soon as they are met. The client that the connection is for is asked on its
        // next call, which is the first chance to ask it.
        (Respondent::NoCall, QuestionKind::Roots, None) => {
            adopted = tokio::time::timeout(NEXT_CALL, calls.adopt_question()).await.ok();
            let flight = adopted.as_ref().and_then(|adopted| adopted.flight().cloned());
            match flight.filter(|flight| flight.client.capabilities().supports(kind)) {
                Some(flight) => flight,
                None => return Ok(no_roots()),
            }
        }
        (_, QuestionKind::Roots, _) => return Ok(no_roots()),
        (Respondent::Unable, ..) => {
            return Err(unanswerable_error(&request.method, "the client of the call cannot answer it"));
        }
        (Respondent::NoCall, ..) => {
            return Err(unanswerable_error(&request.method, "no call is in flight that it could be about"));
        }
        (Respondent::Ambiguous(able), ..) => {
            if let Some(sharing) = sharing {
                sharing.abort_ambiguous_calls(kind, &request.method, &able);
            }
            return Err(unanswerable_error(
                &request.method,
                "calls of several clients are in flight, and it is not clear whose it is about",
            ));
        }
    };
    let _asking = flight.begin_question();
    // The legacy era has no names for questions; a modern client needs them to tell several apart.
    let question = Question { key: flight.next_key(), kind, params };
    let answers = flight.client.ask(vec![question]).await.map_err(|error| refusal_error(&error))?;
    let answer = answers.into_iter().next().map(|(_, answer)| answer);
    drop(adopted);
    answer.ok_or_else(|| RpcError::new(code::INTERNAL, "the client gave no answer"))
}

/// A list of roots that needs neither a client nor a person.
fn no_roots() -> Raw {
    to_raw(&json!({"roots": []}))
}

fn unanswerable_error(method: &str, why: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, format!("{method} has no answer: {why}"))
}

fn refusal_error(error: &HubError) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, error.message_with_suggestion())
}

fn kind(method: &str, params: &RawValue) -> Option<QuestionKind> {
    #[derive(Deserialize)]
    struct Mode {
        mode: Option<String>,
    }
    match method {
        "elicitation/create" => {
            let mode = serde_json::from_str::<Mode>(params.get()).ok()?.mode;
            Some(if mode.as_deref() == Some("url") {
                QuestionKind::ElicitUrl
            } else {
                QuestionKind::ElicitForm
            })
        }
        "sampling/createMessage" => Some(QuestionKind::Sample),
        "roots/list" => Some(QuestionKind::Roots),
        _ => None,
    }
}

/// What a modern server asks for in its answer, and the state that it wants back.
#[derive(Debug)]
pub(crate) struct InputRequiredResult {
    pub(crate) questions: Vec<Question>,
    pub(crate) state: Option<Raw>,
}

/// Reads an `input_required` answer; `None` if it is a finished one.
pub(crate) fn parse_input_required(result: &RawValue) -> Result<Option<InputRequiredResult>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        result_type: Option<String>,
        input_requests: Option<Object>,
        request_state: Option<Raw>,
    }
    #[derive(Deserialize)]
    struct InputRequest {
        method: String,
        params: Option<Raw>,
    }
    // A cheap look first: finished answers are the rule, and may be large.
    if !contains_text(result, "input_required") {
        return Ok(None);
    }
    let Ok(answer) = serde_json::from_str::<Answer>(result.get()) else { return Ok(None) };
    if answer.result_type.as_deref() != Some("input_required") {
        return Ok(None);
    }
    let mut questions = Vec::new();
    for (key, asked) in answer.input_requests.unwrap_or_default().members() {
        let asked: InputRequest = serde_json::from_str(asked.get()).map_err(|error| error.to_string())?;
        let params = asked.params.unwrap_or_else(|| to_raw(&json!({})));
        let kind = kind(&asked.method, &params).ok_or_else(|| format!("it asks for {}", asked.method))?;
        questions.push(Question { key: key.to_owned(), kind, params });
    }
    Ok(Some(InputRequiredResult { questions, state: answer.request_state }))
}

/// What our client's abilities are called on the wire.
pub(crate) fn to_capabilities(abilities: &ClientCapabilities) -> Raw {
    let mut all = serde_json::Map::new();
    match (abilities.elicit_form, abilities.elicit_url) {
        (false, false) => {}
        // An empty object is what servers of before there was anything else to say understand.
        (true, false) => drop(all.insert("elicitation".to_owned(), json!({}))),
        (false, true) => drop(all.insert("elicitation".to_owned(), json!({"url": {}}))),
        (true, true) => drop(all.insert("elicitation".to_owned(), json!({"form": {}, "url": {}}))),
    }
    if abilities.sample {
        all.insert("sampling".to_owned(), json!({}));
    }
    if abilities.roots {
        all.insert("roots".to_owned(), json!({}));
    }
    to_raw(&all)
}
