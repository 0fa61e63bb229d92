//! The open questions of one call and the answers received so far.

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
    pub(super) fn open(&mut self, batch: QuestionBatch) {
        self.open.push(batch);
    }

    /// Accepts answers by key. A batch continues when all of its questions are answered.
    pub(super) fn answer(&mut self, answers: &Object) -> Result<(), ControlError> {
        // The call may have ended meanwhile.
        self.open.retain(|batch| !batch.reply.is_closed());
        for (key, answer) in answers.members() {
            let mut questions = self.open.iter().flat_map(|batch| &batch.questions);
            let Some(question) = questions.find(|question| question.key == key) else {
                return Err(ControlError::new(
                    ErrorKind::UnknownPrompt,
                    format!("no open question with the key {key}"),
                ));
            };
            if !is_valid_answer(question.kind, answer) {
                let message = format!("the answer to {key} does not match the question");
                return Err(ControlError::invalid(message).suggest(answer_hint(question.kind)));
            }
        }
        self.answers.extend(answers.members().map(|(key, answer)| (key.to_owned(), answer.to_owned())));
        for batch in std::mem::take(&mut self.open) {
            if batch.questions.iter().all(|question| self.answers.contains_key(&question.key)) {
                let answer = |question: Question| {
                    let answer = self.answers.remove(&question.key)?;
                    Some((question.key, answer))
                };
                let answers = batch.questions.into_iter().filter_map(answer).collect();
                let _ = batch.reply.send(Ok(answers));
            } else {
                self.open.push(batch);
            }
        }
        Ok(())
    }
}

/// Returns the name of a question kind.
pub(super) fn question_kind_name(kind: QuestionKind) -> &'static str {
    match kind {
        QuestionKind::ElicitForm => "elicit_form",
        QuestionKind::ElicitUrl => "elicit_url",
        QuestionKind::Sample => "sample",
        QuestionKind::Roots => "roots",
    }
}

/// Returns a suggestion with an example answer.
fn answer_hint(kind: QuestionKind) -> String {
    let example = match kind {
        QuestionKind::ElicitForm => json!({"action": "accept", "content": {}}),
        QuestionKind::ElicitUrl => json!({"action": "accept"}),
        QuestionKind::Sample => {
            json!({"role": "assistant", "content": {"type": "text", "text": ""}, "model": ""})
        }
        QuestionKind::Roots => json!({"roots": []}),
    };
    format!("send an answer such as {example}")
}
