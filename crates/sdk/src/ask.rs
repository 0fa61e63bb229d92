//! Questions to the caller's side: forms and addresses for the person, prompts for the model, and the roots.
//!
//! Every question has a key of the asker's choice, which names it within the call: a client may answer by
//! repeating the call with the answer under that key.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_hub::{ErrorKind, HubError, Question};

use crate::context::Context;
use crate::error::ToolError;
use crate::question;

/// What a person did with a form or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitResult<T> {
    /// They filled it in, or agreed to open the address.
    Accepted(T),
    /// They said no.
    Declined,
    /// They closed it without saying anything.
    Cancelled,
}

/// What the caller's model wrote.
#[derive(Debug, Clone, Deserialize)]
pub struct SamplingResult {
    /// One block of content, or a list of them, as it came.
    pub content: Value,
    /// The model that wrote it.
    #[serde(default)]
    pub model: String,
    /// Why it stopped there, if it said so.
    #[serde(default, rename = "stopReason")]
    pub stop_reason: Option<String>,
}

impl SamplingResult {
    /// The text of it, without other kinds of content.
    pub fn text(&self) -> String {
        let text = |block: &Value| block.get("text").and_then(Value::as_str).map(ToOwned::to_owned);
        match &self.content {
            Value::Array(blocks) => blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n"),
            block => text(block).unwrap_or_default(),
        }
    }
}

/// A place that the caller's side says the tool may work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// Where it is, usually a `file:` URI.
    pub uri: String,
    /// What people call it.
    #[serde(default)]
    pub name: Option<String>,
}

/// The answers to several questions.
#[derive(Debug, Clone)]
pub struct Answers {
    answers: toolyard_hub::RawAnswers,
}

impl Context {
    /// Asks the person to fill in a form with a field per member of `T`: texts, numbers, booleans, choices.
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<ElicitResult<T>, ToolError> {
        self.ask_with_retry(question::form::<T>(key, message)?, Answers::form).await
    }

    /// Asks the person to fill in a form of this schema, which goes out as it is.
    pub async fn elicit_with<S: Serialize + ?Sized>(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
        requested_schema: &S,
    ) -> Result<ElicitResult<Value>, ToolError> {
        self.ask_with_retry(question::form_with(key, message, requested_schema), Answers::form).await
    }

    /// Asks the person to open an address; what they do there does not come back this way.
    pub async fn elicit_url(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<ElicitResult<()>, ToolError> {
        self.ask_with_retry(question::url(key, message, url), Answers::consent).await
    }

    /// Has the caller's model write something. The parameters are those of the protocol's
    /// `sampling/createMessage`.
    pub async fn sample<S: Serialize + ?Sized>(
        &self,
        key: impl Into<String>,
        params: &S,
    ) -> Result<SamplingResult, ToolError> {
        self.ask_with_retry(question::sample(key, params), Answers::sampling_result).await
    }

    /// Has the caller's model answer a text with at most so many tokens.
    pub async fn sample_text(
        &self,
        key: impl Into<String>,
        text: impl Into<String>,
        max_tokens: u32,
    ) -> Result<String, ToolError> {
        let question = question::prompt(key, text, max_tokens);
        Ok(self.ask_with_retry(question, Answers::sampling_result).await?.text())
    }

    /// Asks for the places that the tool may work in.
    pub async fn roots(&self, key: impl Into<String>) -> Result<Vec<Root>, ToolError> {
        self.ask_with_retry(question::roots(key), Answers::roots).await
    }

    /// Asks several questions at once. The functions of [`crate::question`] make them.
    pub async fn ask(&self, questions: Vec<Question>) -> Result<Answers, ToolError> {
        Ok(Answers { answers: self.client.ask(questions).await? })
    }

    /// An answer that makes no sense is asked for once more: a person may do better the second time, and a client
    /// that sent it along with the call has not yet seen the question.
    async fn ask_with_retry<T>(
        &self,
        question: Question,
        read: impl Fn(&Answers, &str) -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        let key = question.key.clone();
        let answers = self.ask(vec![question.clone()]).await?;
        match read(&answers, &key) {
            Ok(understood) => Ok(understood),
            Err(_) => read(&self.ask(vec![question]).await?, &key),
        }
    }
}

impl Answers {
    /// The answer under this key as it came.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.answers.iter().find(|(name, _)| name == key).map(|(_, answer)| &**answer)
    }

    /// The answer to a form.
    pub fn form<T: DeserializeOwned>(&self, key: &str) -> Result<ElicitResult<T>, ToolError> {
        let answer: FormAnswer<'_> = self.parse(key)?;
        Ok(match answer.action {
            Action::Accept => {
                let content = answer.content.map_or("{}", RawValue::get);
                ElicitResult::Accepted(
                    serde_json::from_str(content).map_err(|error| invalid_answer(key, &error))?,
                )
            }
            Action::Decline => ElicitResult::Declined,
            Action::Cancel => ElicitResult::Cancelled,
        })
    }

    /// The answer to an address.
    pub fn consent(&self, key: &str) -> Result<ElicitResult<()>, ToolError> {
        let answer: FormAnswer<'_> = self.parse(key)?;
        Ok(match answer.action {
            Action::Accept => ElicitResult::Accepted(()),
            Action::Decline => ElicitResult::Declined,
            Action::Cancel => ElicitResult::Cancelled,
        })
    }

    /// The roots.
    pub fn roots(&self, key: &str) -> Result<Vec<Root>, ToolError> {
        #[derive(Deserialize)]
        struct RootList {
            roots: Vec<Root>,
        }
        Ok(self.read::<RootList>(key)?.roots)
    }

    /// What the model wrote.
    pub fn sampling_result(&self, key: &str) -> Result<SamplingResult, ToolError> {
        self.read(key)
    }

    /// Any answer, read as a type of your own.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Result<T, ToolError> {
        self.parse(key)
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Result<T, ToolError> {
        let Some(answer) = self.get(key) else {
            return Err(
                HubError::new(ErrorKind::InvalidArguments, format!("nothing came back for {key}")).into()
            );
        };
        serde_json::from_str(answer.get()).map_err(|error| invalid_answer(key, &error))
    }
}

#[derive(Deserialize)]
struct FormAnswer<'a> {
    action: Action,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

fn invalid_answer(key: &str, error: &serde_json::Error) -> ToolError {
    let message = format!("the answer to {key} is not what was asked for: {error}");
    let details = json!({"field": key, "reason": error.to_string(), "provided": null});
    HubError::new(ErrorKind::InvalidArguments, message).with_details(details).into()
}
