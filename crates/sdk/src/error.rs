//! The error type of tools, resources and prompts. Fronts convert it to the errors of their
//! protocol.

use std::error::Error as StdError;
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};
use toolyard_hub::{ErrorKind, HubError, Outcome};

use crate::content::{self, Content};

/// The error returned by a tool, a resource or a prompt.
///
/// Any error that implements [`std::error::Error`] converts to a `ToolError` with `?`. The client
/// sees the message with its chain of causes. `ToolError` itself does not implement that trait,
/// because the implementation would conflict with this conversion.
///
/// ```
/// use toolyard_sdk::{ToolError, tool};
///
/// /// Counts the lines of the log.
/// #[tool]
/// async fn count_lines() -> Result<String, ToolError> {
///     let text = std::fs::read_to_string("app.log")?;
///     if text.is_empty() {
///         return Err(ToolError::failed("the log is empty"));
///     }
///     Ok(text.lines().count().to_string())
/// }
/// ```
pub struct ToolError {
    reason: Box<ToolErrorReason>,
}

enum ToolErrorReason {
    /// The tool ran and failed with this content.
    Failed(Vec<Content>),
    /// The requested item does not exist.
    NotFound(String),
    /// The call is invalid or cannot continue.
    Refused(HubError),
}

impl ToolError {
    /// Reports that the tool ran and failed. The client gets a result with `isError` and this text.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::failed_with([Content::text(message.to_string())])
    }

    /// Reports that the tool ran and failed, with content of any kind. See [`ToolError::failed`].
    pub fn failed_with(content: impl IntoIterator<Item = Content>) -> Self {
        Self::from_reason(ToolErrorReason::Failed(content.into_iter().collect()))
    }

    /// Rejects an argument for a reason that the input schema cannot express.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>, provided: impl Serialize) -> Self {
        let (field, reason) = (field.into(), reason.into());
        let provided = serde_json::to_value(provided).unwrap_or(Value::Null);
        let error =
            HubError::new(ErrorKind::InvalidArguments, format!("input validation failed: {field}: {reason}"))
                .with_details(json!({"field": field, "reason": reason, "provided": provided}));
        Self::from_reason(ToolErrorReason::Refused(error))
    }

    /// Rejects the call because the caller is not allowed to make it.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::from_reason(ToolErrorReason::Refused(HubError::new(ErrorKind::Forbidden, message)))
    }

    /// Reports that the requested item does not exist. When a resource is read, the client gets the
    /// protocol's error for an unknown resource. A tool fails with this message.
    pub fn not_found(item: impl fmt::Display) -> Self {
        Self::from_reason(ToolErrorReason::NotFound(format!("{item} was not found")))
    }

    /// Converts the error to the answer to a tool call: a failed result, or an error.
    pub fn into_outcome(self) -> Result<Outcome, HubError> {
        let content = match *self.reason {
            ToolErrorReason::Refused(error) => return Err(error),
            ToolErrorReason::Failed(content) => content,
            ToolErrorReason::NotFound(message) => vec![Content::text(message)],
        };
        Ok(Outcome::failure(content::tool_result(&content, content::ResultStatus::Failed)))
    }

    /// Converts the error for requests that have no failed result, such as `prompts/get`.
    pub fn into_error(self) -> HubError {
        match *self.reason {
            ToolErrorReason::Refused(error) => error,
            ToolErrorReason::Failed(content) => HubError::new(ErrorKind::ToolFailed, joined_text(&content)),
            ToolErrorReason::NotFound(message) => HubError::new(ErrorKind::ToolFailed, message),
        }
    }

    /// Converts the error for `resources/read`, where a missing item means an unknown resource.
    pub(crate) fn into_resource_error(self, uri: &str) -> HubError {
        match *self.reason {
            ToolErrorReason::NotFound(_) => unknown_resource(uri),
            _ => self.into_error(),
        }
    }

    fn from_reason(reason: ToolErrorReason) -> Self {
        Self { reason: Box::new(reason) }
    }
}

/// The error for a URI without a resource.
pub(crate) fn unknown_resource(uri: &str) -> HubError {
    HubError::new(ErrorKind::UnknownResource, format!("unknown resource `{uri}`"))
        .with_details(json!({"uri": uri}))
}

impl<E: StdError + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error: Box<dyn StdError + Send + Sync> = Box::new(error);
        match error.downcast::<HubError>() {
            Ok(error) => Self::from_reason(ToolErrorReason::Refused(*error)),
            Err(error) => Self::failed(format_error_chain(&*error)),
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.reason {
            ToolErrorReason::Failed(content) => f.write_str(&joined_text(content)),
            ToolErrorReason::NotFound(message) => f.write_str(message),
            ToolErrorReason::Refused(error) => f.write_str(&error.message_with_suggestion()),
        }
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &*self.reason {
            ToolErrorReason::Failed(_) | ToolErrorReason::NotFound(_) => ErrorKind::ToolFailed,
            ToolErrorReason::Refused(error) => error.kind(),
        };
        write!(f, "ToolError({}: {self})", kind.as_str())
    }
}

/// Formats the error with its causes. A cause that the message already ends with is not repeated.
fn format_error_chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text = format!("{text}: {message}");
        }
        cause = error.source();
    }
    text
}

fn joined_text(content: &[Content]) -> String {
    content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
}
