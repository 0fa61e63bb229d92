//! Questions of servers, forwarded to the client of the call: requests of the server in the legacy
//! era, and parts of its results in the modern era.

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

/// How long a question about roots waits for a call during which the client can be asked.
const NEXT_CALL: Duration = Duration::from_secs(60);

/// How many questions of one connection are handled concurrently. Others wait.
const MOST_OPEN: usize = 64;

/// How questions on a connection are routed to clients.
#[derive(Debug, Clone)]
pub(crate) enum QuestionRouting {
    /// Several clients share the connection. A question goes to the client of the only call that it
    /// can be about.
    Shared(Arc<SharingState>),
    /// The connection serves one client only, which gets all questions.
    Caller,
}

/// Answers the questions of a legacy server until the connection ends.
pub(crate) async fn answer_questions(
    client: Arc<McpClient>,
    calls: Arc<InFlightCalls>,
    routing: QuestionRouting,
    mut questions: mpsc::Receiver<ServerQuestion>,
) {
    let mut open = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            question = questions.recv(), if open.len() < MOST_OPEN => match question {
                Some(question) => {
                    let (client, calls) = (Arc::clone(&client), Arc::clone(&calls));
                    let routing = routing.clone();
                    open.spawn(async move {
                        let answer = answer_question(&calls, &routing, &question).await;
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
    routing: &QuestionRouting,
    question: &ServerQuestion,
) -> Result<Raw, RpcError> {
    let request = &question.request;
    if request.method == "ping" {
        return Ok(to_raw(&json!({})));
    }
    let params = request.params.clone().unwrap_or_else(|| to_raw(&json!({})));
    let kind = kind(&request.method, &params).ok_or_else(|| RpcError::method_not_found(&request.method))?;
    let (respondent, sharing) = match routing {
        QuestionRouting::Shared(sharing) => (question.calls.respondent(kind), Some(sharing)),
        QuestionRouting::Caller => (question.calls.private_respondent(kind), None),
    };
    if let (QuestionKind::Roots, Some(sharing)) = (kind, sharing) {
        // A server may keep the roots it receives, and each client has its own.
        sharing.require_private_sessions(kind);
    }
    let mut adopted = None;
    let flight = match (respondent, kind, sharing) {
        (Respondent::Call(flight), ..) => flight,
        // Some servers request the roots right after the handshake. The client is asked during its
        // next call, which is the first opportunity.
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
            return Err(unanswerable_error(&request.method, "the client of the call does not support it"));
        }
        (Respondent::NoCall, ..) => {
            return Err(unanswerable_error(&request.method, "no call is in flight"));
        }
        (Respondent::Ambiguous(able), ..) => {
            if let Some(sharing) = sharing {
                sharing.abort_ambiguous_calls(kind, &request.method, &able);
            }
            return Err(unanswerable_error(
                &request.method,
                "calls of several clients are in flight, and the request does not say which call it is for",
            ));
        }
    };
    let _open_question = flight.begin_question();
    // The legacy era has no keys for questions. A modern client needs them to distinguish several.
    let question = Question { key: flight.next_key(), kind, params };
    let answers = flight.client.ask(vec![question]).await.map_err(|error| refusal_error(&error))?;
    let answer = answers.into_iter().next().map(|(_, answer)| answer);
    drop(adopted);
    answer.ok_or_else(|| RpcError::new(code::INTERNAL, "the client returned no answer"))
}

/// Returns an empty list of roots.
fn no_roots() -> Raw {
    to_raw(&json!({"roots": []}))
}

fn unanswerable_error(method: &str, reason: &str) -> RpcError {
    RpcError::new(code::INVALID_REQUEST, format!("cannot answer {method}: {reason}"))
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

/// The input that a modern server requires, and the state to return with it.
#[derive(Debug)]
pub(crate) struct InputRequiredResult {
    pub(crate) questions: Vec<Question>,
    pub(crate) state: Option<Raw>,
}

/// Parses an `input_required` result. Returns `None` for a complete result.
pub(crate) fn parse_input_required(result: &RawValue) -> Result<Option<InputRequiredResult>, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CallResult {
        result_type: Option<String>,
        input_requests: Option<Object>,
        request_state: Option<Raw>,
    }
    #[derive(Deserialize)]
    struct InputRequest {
        method: String,
        params: Option<Raw>,
    }
    // Checked first because it is cheap: most results are complete, and they may be large.
    if !contains_text(result, "input_required") {
        return Ok(None);
    }
    let Ok(result) = serde_json::from_str::<CallResult>(result.get()) else { return Ok(None) };
    if result.result_type.as_deref() != Some("input_required") {
        return Ok(None);
    }
    let mut questions = Vec::new();
    for (key, request) in result.input_requests.unwrap_or_default().members() {
        let request: InputRequest = serde_json::from_str(request.get()).map_err(|error| error.to_string())?;
        let params = request.params.unwrap_or_else(|| to_raw(&json!({})));
        let unsupported = || format!("unsupported input request `{}`", request.method);
        let kind = kind(&request.method, &params).ok_or_else(unsupported)?;
        questions.push(Question { key: key.to_owned(), kind, params });
    }
    Ok(Some(InputRequiredResult { questions, state: result.request_state }))
}

/// Serializes capabilities for the handshake.
pub(crate) fn to_capabilities(capabilities: &ClientCapabilities) -> Raw {
    let mut all = serde_json::Map::new();
    match (capabilities.elicit_form, capabilities.elicit_url) {
        (false, false) => {}
        // Older servers, which know only forms, expect an empty object.
        (true, false) => drop(all.insert("elicitation".to_owned(), json!({}))),
        (false, true) => drop(all.insert("elicitation".to_owned(), json!({"url": {}}))),
        (true, true) => drop(all.insert("elicitation".to_owned(), json!({"form": {}, "url": {}}))),
    }
    if capabilities.sample {
        all.insert("sampling".to_owned(), json!({}));
    }
    if capabilities.roots {
        all.insert("roots".to_owned(), json!({}));
    }
    to_raw(&all)
}
