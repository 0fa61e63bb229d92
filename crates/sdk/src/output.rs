//! Conversion of return values to tool results.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toolyard_hub::json::Object;
use toolyard_hub::{Outcome, Raw};

use crate::content::{self, Content, ResultStatus};
use crate::error::ToolError;
use crate::schema;

/// Types that a tool can return.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    note = "return `Result<O, ToolError>` where `O` is `Json<T>`, `String`, `&'static str`, `()`, `Image`, `Audio`, `Content`, `Vec<Content>` or `Raw`"
)]
pub trait IntoOutput: Send + 'static {
    /// Returns the output schema for the definition of the tool.
    fn output_schema() -> OutputSchema {
        OutputSchema::Absent
    }

    /// Converts the value to a tool result that matches the schema.
    fn into_outcome(self, schema: &OutputSchema) -> Result<Outcome, ToolError>;
}

/// The output schema of a tool.
#[derive(Debug, Clone)]
pub enum OutputSchema {
    /// No schema: results have content blocks only.
    Absent,
    /// Structured results match this schema.
    Object(Raw),
    /// The values are not objects. Results have them under the key `result`, and this schema
    /// describes that object.
    Wrapped(Raw),
}

impl OutputSchema {
    /// Returns the schema as the definition shows it.
    pub fn schema(&self) -> Option<&Raw> {
        match self {
            Self::Absent => None,
            Self::Object(schema) | Self::Wrapped(schema) => Some(schema),
        }
    }
}

/// A structured result. The same JSON is added as text for clients that read only text.
///
/// The output schema is derived from `T`. A `T` that is not an object is placed under the key
/// `result`.
///
/// ```
/// use toolyard_sdk::{Json, Tool, testing};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let tool = Tool::new("sizes", || async { Ok(Json(vec![1, 2, 3])) });
/// let report = testing::call(tool, serde_json::json!({})).await;
/// assert_eq!(report.structured(), serde_json::json!({"result": [1, 2, 3]}));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json<T>(pub T);

/// An encoded image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The encoded bytes.
    pub data: Vec<u8>,
    /// The MIME type, for example `image/png`.
    pub mime_type: String,
}

/// An encoded audio clip.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Audio {
    /// The encoded bytes.
    pub data: Vec<u8>,
    /// The MIME type, for example `audio/wav`.
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

/// The complete result object, sent unchanged.
impl IntoOutput for Raw {
    fn into_outcome(self, _: &OutputSchema) -> Result<Outcome, ToolError> {
        #[derive(Deserialize)]
        struct ErrorFlag {
            #[serde(default, rename = "isError")]
            is_error: bool,
        }
        let failed = serde_json::from_str::<ErrorFlag>(self.get()).is_ok_and(|flag| flag.is_error);
        Ok(Outcome { body: self, failed, modern: false })
    }
}

impl IntoOutput for Outcome {
    fn into_outcome(self, _: &OutputSchema) -> Result<Outcome, ToolError> {
        Ok(self)
    }
}
