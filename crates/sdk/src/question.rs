//! Questions as data, for [`Context::ask`](crate::Context::ask), which asks several at once.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use toolyard_hub::json::{self, Object};
use toolyard_hub::{Question, QuestionKind};

use crate::error::ToolError;
use crate::schema;

/// A form with a field per member of `T`. It fails if a client could not draw it: fields are texts, numbers,
/// booleans, choices and lists of choices.
pub fn form<T: JsonSchema>(
    key: impl Into<String>,
    message: impl Into<String>,
) -> Result<Question, ToolError> {
    Ok(form_with(key, message, &schema::form_schema::<T>()?))
}

/// A form of this schema, which goes out as it is.
pub fn form_with<S: Serialize + ?Sized>(
    key: impl Into<String>,
    message: impl Into<String>,
    requested_schema: &S,
) -> Question {
    // No `mode`: older clients do not know the word, and without it every version means a form.
    let mut params = Object::default();
    params.set("message", json::to_raw(&message.into()));
    params.set("requestedSchema", json::to_raw(requested_schema));
    Question { key: key.into(), kind: QuestionKind::ElicitForm, params: params.to_raw() }
}

/// An address for the person to open.
pub fn url(key: impl Into<String>, message: impl Into<String>, url: impl Into<String>) -> Question {
    let params = json!({"mode": "url", "message": message.into(), "url": url.into()});
    Question { key: key.into(), kind: QuestionKind::ElicitUrl, params: json::to_raw(&params) }
}

/// Something for the model to write. The parameters are those of the protocol's `sampling/createMessage`.
pub fn sample<S: Serialize + ?Sized>(key: impl Into<String>, params: &S) -> Question {
    Question { key: key.into(), kind: QuestionKind::Sample, params: json::to_raw(params) }
}

/// A single text for the model to answer with at most so many tokens.
pub fn prompt(key: impl Into<String>, text: impl Into<String>, max_tokens: u32) -> Question {
    let message = json!({"role": "user", "content": {"type": "text", "text": text.into()}});
    sample(key, &json!({"messages": [message], "maxTokens": max_tokens}))
}

/// The places that the caller's side lets tools work in.
pub fn roots(key: impl Into<String>) -> Question {
    Question { key: key.into(), kind: QuestionKind::Roots, params: json::empty_object() }
}
