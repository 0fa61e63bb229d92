//! From what a tool returns to the result that its caller gets.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_hub::json::Object;
use toolyard_hub::{Outcome, Raw};

use crate::content::{self, Content, ResultStatus};
use crate::error::ToolError;
use crate::schema;

/// What a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return `Result<O, ToolError>` where `O` is `Json<T>`, `String`, `&'static str`, `()`, `Image`, `Audio`, `Content`, `Vec<Content>` or `Raw`"
)]
pub trait IntoOutput: Send + 'static {
    /// What the definition says about structured results.
    fn output_schema() -> OutputSchema {
        OutputSchema::Absent
    }

    /// The result that the caller gets, in the shape that the schema promised.
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError>;
}

/// What a definition says about structured results.
#[derive(Debug, Clone)]
pub enum OutputSchema {
    /// Nothing: the results are blocks of content.
    Absent,
    /// Results are objects of this schema.
    Object(Raw),
    /// Results are no objects by themselves, so they are put under `result`, and so is their schema.
    Wrapped(Raw),
}

impl OutputSchema {
    /// The schema as the definition shows it.
    pub fn schema(&self) -> Option<&Raw> {
        match self {
            Self::Absent => None,
            Self::Object(schema) | Self::Wrapped(schema) => Some(schema),
        }
    }
}

/// A structured result, with the same JSON as text for callers that read only text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// A picture, in its encoded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The encoded bytes.
    pub data: Vec<u8>,
    /// What they are, `image/png` for example.
    pub mime_type: String,
}

/// A sound, in its encoded form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// The encoded bytes.
    pub data: Vec<u8>,
    /// What they are, `audio/wav` for example.
    pub mime_type: String,
}

impl<T: Serialize + JsonSchema + Send + 'static> IntoOutput for Json<T> {
    fn output_schema() -> OutputSchema {
        schema::output_schema::<T>()
    }

    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError> {
        let mut value = serde_json::value::to_raw_value(&self.0)?;
        if let OutputSchema::Wrapped(_) = schema {
            let mut wrapped = Object::default();
            wrapped.set("result", value);
            value = wrapped.to_raw();
        }
        let mut result = Object::default();
        result.set("content", content::blocks(&[Content::text(value.get())]));
        result.set("structuredContent", value);
        Ok(Outcome::success(result.to_raw()))
    }
}

impl IntoOutput for Vec<Content> {
    fn into_outcome(self, _: &OutputSchema) -> Result<Outcome, ToolError> {
        Ok(Outcome::success(content::tool_result(&self, ResultStatus::Success)))
    }
}

impl IntoOutput for Content {
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError> {
        vec![self].into_outcome(schema)
    }
}

impl IntoOutput for String {
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError> {
        Content::text(self).into_outcome(schema)
    }
}

impl IntoOutput for &'static str {
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError> {
        Content::text(self).into_outcome(schema)
    }
}

impl IntoOutput for () {
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError> {
        Vec::new().into_outcome(schema)
    }
}

impl IntoOutput for Image {
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError> {
        Content::image(&self.data, self.mime_type).into_outcome(schema)
    }
}

impl IntoOutput for Audio {
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError> {
        Content::audio(&self.data, self.mime_type).into_outcome(schema)
    }
}

/// The whole result object, untouched.
impl IntoOutput for Raw {
    fn into_outcome(self, _: &OutputSchema) -> Result<Outcome, ToolError> {
        #[derive(Deserialize)]
        struct ErrorFlag {
            #[serde(default, rename = "isError")]
            is_error: bool,
        }
        let failed = serde_json::from_str::<ErrorFlag>(self.get()).is_ok_and(|said| said.is_error);
        Ok(Outcome { body: self, failed, modern: false })
    }
}

impl IntoOutput for Outcome {
    fn into_outcome(self, _: &OutputSchema) -> Result<Outcome, ToolError> {
        Ok(self)
    }
}
