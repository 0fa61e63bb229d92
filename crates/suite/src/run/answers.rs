//! Answers the questions of a server from the script of the test, in both eras.

use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallerUpdate, ClientCapabilities, ErrorKind, HubError, LogLevel, Question, QuestionBatch, QuestionKind,
    RawAnswers,
};

use crate::file::{AnswerSequence, ScriptedAnswers};
use crate::values::Variables;

/// How many questions of one test are recorded.
const MOST_RECORDED: usize = 1_000;

/// The script of one test, and how far it has been followed.
#[derive(Debug, Default)]
pub(crate) struct AnswerScript {
    answers: ScriptedAnswers,
    variables: Variables,
    state: Mutex<AnswerState>,
}

#[derive(Debug, Default)]
struct AnswerState {
    elicitations: usize,
    samplings: usize,
    asked: Vec<Value>,
    /// Why a question could not be answered.
    problems: Vec<String>,
}

impl AnswerScript {
    /// `folder` is where relative roots start.
    pub(crate) fn new(answers: &ScriptedAnswers, variables: &Variables, folder: &Path) -> Arc<Self> {
        let roots = answers.roots.as_ref().map(|roots| resolve_roots(roots, variables, folder));
        let answers = ScriptedAnswers { roots, ..answers.clone() };
        Arc::new(Self { answers, variables: variables.clone(), state: Mutex::default() })
    }

    /// Removes and returns what the server has asked, and the questions that had no answer.
    pub(crate) fn take(&self) -> (Vec<Value>, Vec<String>) {
        let mut state = self.state.lock();
        (std::mem::take(&mut state.asked), std::mem::take(&mut state.problems))
    }

    /// Answers questions until the call ends. Other updates are observed by the tap.
    pub(crate) async fn answer(&self, mut updates: mpsc::Receiver<CallerUpdate>) {
        while let Some(update) = updates.recv().await {
            match update {
                CallerUpdate::Ask(QuestionBatch { questions, reply }) => {
                    let _ = reply.send(self.answer_all(&questions));
                }
                CallerUpdate::Pause(pause) => pause.returned.notify_one(),
                CallerUpdate::Progress(_) | CallerUpdate::Chunk(_) | CallerUpdate::Log(_) => {}
            }
        }
    }

    fn answer_all(&self, questions: &[Question]) -> Result<RawAnswers, HubError> {
        questions
            .iter()
            .map(|question| Ok((question.key.clone(), to_raw(&self.answer_one(question)?))))
            .collect()
    }

    fn answer_one(&self, question: &Question) -> Result<Value, HubError> {
        let method = match question.kind {
            QuestionKind::ElicitForm | QuestionKind::ElicitUrl => "elicitation/create",
            QuestionKind::Sample => "sampling/createMessage",
            QuestionKind::Roots => "roots/list",
        };
        let params: Value = serde_json::from_str(question.params.get()).unwrap_or_default();
        let mut state = self.state.lock();
        if state.asked.len() < MOST_RECORDED {
            state.asked.push(json!({"method": method, "params": params}));
        }
        let answer = match question.kind {
            QuestionKind::ElicitForm | QuestionKind::ElicitUrl => {
                next(&self.answers.elicitation, &mut state.elicitations)
            }
            QuestionKind::Sample => next(&self.answers.sampling, &mut state.samplings),
            QuestionKind::Roots => self.answers.roots.clone(),
        };
        let completed = match answer {
            Some(answer) => self.variables.complete(&answer).map_err(|error| error.to_string()),
            None => Err("the test has no answer left for it".to_owned()),
        };
        completed.map_err(|reason| {
            let message = format!("the server sent `{method}`, and {reason}");
            state.problems.push(message.clone());
            HubError::new(ErrorKind::ClientCannot, message)
        })
    }
}

fn next(answers: &AnswerSequence, used: &mut usize) -> Option<Value> {
    match answers {
        AnswerSequence::None => None,
        AnswerSequence::Always(answer) => Some(answer.clone()),
        AnswerSequence::InOrder(answers) => {
            let answer = answers.get(*used).cloned();
            *used += 1;
            answer
        }
    }
}

/// Turns paths into `file:` URIs.
fn resolve_roots(roots: &Value, variables: &Variables, folder: &Path) -> Value {
    let mut roots = variables.complete(roots).unwrap_or_else(|_| roots.clone());
    let entries = roots.get_mut("roots").and_then(Value::as_array_mut);
    for root in entries.into_iter().flatten() {
        if let Some(uri) = root.get("uri").and_then(Value::as_str)
            && !uri.contains("://")
        {
            let path = crate::expect::check::resolve(folder, uri);
            *root = json!({"uri": format!("file://{}", path.display())});
        }
    }
    roots
}

/// Returns the capabilities of a client that can give all of these answers.
pub(crate) fn capabilities<'a>(
    all: impl IntoIterator<Item = &'a ScriptedAnswers>,
    log_level: Option<LogLevel>,
) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities { log_level, ..ClientCapabilities::default() };
    for answers in all {
        capabilities.elicit_form |= !answers.elicitation.is_none();
        capabilities.elicit_url |= !answers.elicitation.is_none();
        capabilities.sample |= !answers.sampling.is_none();
        capabilities.roots |= answers.roots.is_some();
    }
    capabilities
}
