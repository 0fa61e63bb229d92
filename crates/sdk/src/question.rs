//! Questions to the client as values, for [`Context::ask`](crate::Context::ask), which asks several
//! at the same time.
//!
//! ```
//! use toolyard_sdk::{Context, ElicitResult, ToolError, question, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Person {
//!     name: String,
//! }
//!
//! /// Greets the user and counts the open folders.
//! #[tool]
//! async fn greet(ctx: Context) -> Result<String, ToolError> {
//!     let form = question::form::<Person>("person", "What is your name?")?;
//!     let answers = ctx.ask(vec![form, question::roots("folders")]).await?;
//!     let folders = answers.roots("folders")?.len();
//!     match answers.form::<Person>("person")? {
//!         ElicitResult::Accepted(person) => Ok(format!("{}: {folders} folders", person.name)),
//!         _ => Ok(format!("{folders} folders")),
//!     }
//! }
//! ```

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use toolyard_hub::json::{self, Object};
pub use toolyard_hub::{Question, QuestionKind};

pub use crate::ask::{Answers, Root, SamplingResult};
use crate::error::ToolError;
use crate::schema;

/// Creates a form with one field per member of `T`.
///
/// Returns an error if clients cannot display the type: fields are strings, numbers, booleans,
/// choices and lists of choices.
pub fn form<T: JsonSchema>(
    key: impl Into<String>,
    message: impl Into<String>,
) -> Result<Question, ToolError> {
    Ok(form_with(key, message, &schema::form_schema::<T>()?))
}

/// Creates a form with the given schema, which is sent unchanged.
pub fn form_with<S: Serialize + ?Sized>(
    key: impl Into<String>,
    message: impl Into<String>,
    requested_schema: &S,
) -> Question {
    // `mode` is omitted: older clients do not know it, and every version treats a question without
    // it as a form.
    let mut params = Object::default();
    params.set("message", json::to_raw(&message.into()));
    params.set("requestedSchema", json::to_raw(requested_schema));
    Question { key: key.into(), kind: QuestionKind::ElicitForm, params: params.to_raw() }
}

/// Creates a question that asks the user to open a URL.
pub fn url(key: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Question {
    let params = json!({"mode": "url", "message": message.into(), "url": url.into()});
    Question { key: key.into(), kind: QuestionKind::ElicitUrl, params: json::to_raw(&params) }
}

/// Creates a sampling request for the client's model. The parameters are those of the protocol's
/// `sampling/createMessage`.
pub fn sample<S: Serialize + ?Sized>(key: impl Into<String>, params: &S) -> Question {
    Question { key: key.into(), kind: QuestionKind::Sample, params: json::to_raw(params) }
}

/// Creates a sampling request with a single text prompt.
pub fn prompt(key: impl Into<String>, text: impl Into<String>, max_tokens: u32) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": text.into()}});
    sample(key, &json!({"messages": [message], "maxTokens": max_tokens}))
}

/// Creates a question for the roots: the locations that the client allows tools to work in.
pub fn roots(key: impl Into<String>) -> Question {
    Question { key: key.into(), kind: QuestionKind::Roots, params: json::empty_object() }
}
