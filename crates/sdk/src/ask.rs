//! The questions a tool can ask the client: forms and URLs for the user, sampling requests for the
//! model, and the list of roots.
//!
//! Every question has a key chosen by the tool. The key is unique within the call, because a client
//! of the modern era answers by repeating the call with the answer under that key.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toolyard_hub::{ErrorKind, HubError, Question};

use crate::context::Context;
use crate::error::ToolError;
use crate::question;

/// The user's reaction to a form or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ElicitResult<T> {
    /// The user submitted the form, or agreed to open the URL.
    Accepted(T),
    /// The user declined.
    Declined,
    /// The user dismissed the dialog without a decision.
    Cancelled,
}

/// A message written by the client's model.
#[derive(Debug, Clone, Deserialize)]
pub struct SamplingResult {
    /// One content block or a list of content blocks, exactly as received.
    pub content: Value,
    /// The name of the model.
    #[serde(default)]
    pub model: String,
    /// Why the model stopped, if the client reports it.
    #[serde(default, rename = "stopReason")]
    pub stop_reason: Option<String>,
}

impl SamplingResult {
    /// Returns the text blocks joined by newlines. Other content is ignored.
    pub fn text(&self) -> String {
        let text = |block: &Value| block.get("text").and_then(Value::as_str).map(ToOwned::to_owned);
        match &self.content {
            Value::Array(blocks) => blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n"),
            block => text(block).unwrap_or_default(),
        }
    }
}

/// A location that the client allows the tool to work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// The location, usually a `file:` URI.
    pub uri: String,
    /// The display name.
    #[serde(default)]
    pub name: Option<String>,
}

/// The answers to several questions, by key.
#[derive(Debug, Clone)]
pub struct Answers {
    answers: toolyard_hub::RawAnswers,
}

impl Context {
    /// Asks the user to fill in a form with one field per member of `T`.
    ///
    /// Fields are strings, numbers, booleans, choices and lists of choices. An answer that does not
    /// match `T` is requested once more.
    ///
    /// ```
    /// use toolyard_sdk::{Context, ElicitResult, ToolError, tool};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Confirmation {
    ///     /// Delete the files permanently.
    ///     confirm: bool,
    /// }
    ///
    /// /// Deletes temporary files.
    /// #[tool(destructive = true)]
    /// async fn clean_up(ctx: Context) -> Result<String, ToolError> {
    ///     match ctx.elicit::<Confirmation>("confirm", "Delete 3 files?").await? {
    ///         ElicitResult::Accepted(answer) if answer.confirm => Ok("deleted".to_owned()),
    ///         _ => Ok("nothing was deleted".to_owned()),
    ///     }
    /// }
    /// ```
    pub async fn elicit<T: DeserializeOwned + JsonSchema>(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Result<ElicitResult<T>, ToolError> {
        self.ask_with_retry(question::form::<T>(key, message)?, Answers::form).await
    }

    /// Asks the user to fill in a form with the given schema, which is sent unchanged.
    pub async fn elicit_with<S: Serialize + ?Sized>(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
        requested_schema: &S,
    ) -> Result<ElicitResult<Value>, ToolError> {
        self.ask_with_retry(question::form_with(key, message, requested_schema), Answers::form).await
    }

    /// Asks the user to open a URL. The result is only the consent; what the user enters on that
    /// page is not part of the answer.
    pub async fn elicit_url(
        &self,
        key: impl Into<String>,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Result<ElicitResult<()>, ToolError> {
        self.ask_with_retry(question::url(key, message, url), Answers::consent).await
    }

    /// Requests a completion from the client's model. The parameters are those of the protocol's
    /// `sampling/createMessage`.
    pub async fn sample<S: Serialize + ?Sized>(
        &self,
        key: impl Into<String>,
        params: &S,
    ) -> Result<SamplingResult, ToolError> {
        self.ask_with_retry(question::sample(key, params), Answers::sampling_result).await
    }

    /// Sends one text prompt to the client's model and returns the text of its answer.
    pub async fn sample_text(
        &self,
        key: impl Into<String>,
        text: impl Into<String>,
        max_tokens: u32,
    ) -> Result<String, ToolError> {
        let question = question::prompt(key, text, max_tokens);
        Ok(self.ask_with_retry(question, Answers::sampling_result).await?.text())
    }

    /// Lists the locations that the client allows the tool to work in.
    pub async fn roots(&self, key: impl Into<String>) -> Result<Vec<Root>, ToolError> {
        self.ask_with_retry(question::roots(key), Answers::roots).await
    }

    /// Asks several questions at the same time. The functions in [`crate::question`] create them.
    pub async fn ask(&self, questions: Vec<Question>) -> Result<Answers, ToolError> {
        Ok(Answers { answers: self.client.ask(questions).await? })
    }

    /// Asks again once if the answer cannot be read. The user may correct a mistake, and a client
    /// that sent the answer along with the call has not seen the question yet.
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
    /// Returns the answer with this key, exactly as received.
    pub fn get(&self, key: &str) -> Option<&RawValue> {
        self.answers.iter().find(|(name, _)| name == key).map(|(_, answer)| &**answer)
    }

    /// Reads the answer to a form.
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

    /// Reads the answer to a URL question.
    pub fn consent(&self, key: &str) -> Result<ElicitResult<()>, ToolError> {
        let answer: FormAnswer<'_> = self.parse(key)?;
        Ok(match answer.action {
            Action::Accept => ElicitResult::Accepted(()),
            Action::Decline => ElicitResult::Declined,
            Action::Cancel => ElicitResult::Cancelled,
        })
    }

    /// Reads the answer to a roots question.
    pub fn roots(&self, key: &str) -> Result<Vec<Root>, ToolError> {
        #[derive(Deserialize)]
        struct RootList {
            roots: Vec<Root>,
        }
        Ok(self.read::<RootList>(key)?.roots)
    }

    /// Reads the answer to a sampling question.
    pub fn sampling_result(&self, key: &str) -> Result<SamplingResult, ToolError> {
        self.read(key)
    }

    /// Reads any answer as a type of your own.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Result<T, ToolError> {
        self.parse(key)
    }

    fn parse<'a, T: Deserialize<'a>>(&'a self, key: &str) -> Result<T, ToolError> {
        let Some(answer) = self.get(key) else {
            return Err(HubError::new(
                ErrorKind::InvalidArguments,
                format!("the client did not answer `{key}`"),
            )
            .into());
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
    let message = format!("the answer to `{key}` does not match the question: {error}");
    let details = json!({"field": key, "reason": error.to_string(), "provided": null});
    HubError::new(ErrorKind::InvalidArguments, message).with_details(details).into()
}
