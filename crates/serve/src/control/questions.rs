//! The open questions of one call, and the answers that have come so far.

use std::collections::HashMap;

use serde_json::json;
use toolyard_hub::json::Object;
use toolyard_hub::{ErrorKind, Question, QuestionBatch, QuestionKind, Raw};

use super::errors::ControlError;
use crate::mcp::is_valid_answer;

#[derive(Debug, Default)]
pub(super) struct CallQuestions {
    open: Vec<QuestionBatch>,
    answers: HashMap<String, Raw>,
}

impl CallQuestions {
    pub(super) fn open(&mut self, ask: QuestionBatch) {
        self.open.push(ask);
    }

    /// Takes answers by key; questions whose answers are all there go on.
    pub(super) fn answer(&mut self, answers: &Object) -> Result<(), ControlError> {
        // Whoever asked may have given up meanwhile.
        self.open.retain(|ask| !ask.reply.is_closed());
        for (key, answer) in answers.members() {
            let asked = self.open.iter().flat_map(|ask| &ask.questions).find(|question| question.key == key);
            let Some(question) = asked else {
                return Err(ControlError::new(
                    ErrorKind::UnknownPrompt,
                    format!("nothing is asked under the key {key}"),
                ));
            };
            if !is_valid_answer(question.kind, answer) {
                return Err(ControlError::invalid(format!(
                    "the answer to {key} is no answer to what was asked"
                ))
                .suggest(answer_hint(question.kind)));
            }
        }
        self.answers.extend(answers.members().map(|(key, answer)| (key.to_owned(), answer.to_owned())));
        for ask in std::mem::take(&mut self.open) {
            if ask.questions.iter().all(|question| self.answers.contains_key(&question.key)) {
                let answer = |question: Question| {
                    let answer = self.answers.remove(&question.key)?;
                    Some((question.key, answer))
                };
                let answers = ask.questions.into_iter().filter_map(answer).collect();
                let _ = ask.reply.send(Ok(answers));
            } else {
                self.open.push(ask);
            }
        }
        Ok(())
    }
}

/// The kind of a question in a word.
pub(super) fn question_kind_name(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::ElicitForm => "elicit_form",
        QuestionKind::ElicitUrl => "elicit_url",
        QuestionKind::Sample => "sample",
        QuestionKind::Roots => "roots",
    }
}

/// How an answer looks.
fn answer_hint(kind: QuestionKind) -> String {
    let form = match kind {
        QuestionKind::ElicitForm => json!({"action": "accept", "content": {}}),
        QuestionKind::ElicitUrl => json!({"action": "accept"}),
        QuestionKind::Sample => {
            json!({"role": "assistant", "content": {"type": "text", "text": ""}, "model": ""})
        }
        QuestionKind::Roots => json!({"roots": []}),
    };
    format!("an answer looks like {form}")
}
