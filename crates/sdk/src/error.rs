//! Why a tool, a resource or a prompt of this house has nothing to give. What the fronts say about it is theirs.

use std::error::Error as StdError;
use std::fmt;

use serde::Serialize;
use serde_json::{Value, json};
use toolyard_hub::{ErrorKind, HubError, Outcome};

use crate::content::{self, Content};

/// Why a tool did not do what was asked.
///
/// Any error becomes one with `?`, and is then told to the caller with its whole chain of causes. This type is
/// not itself a `std::error::Error`, because then that conversion could not exist.
pub struct ToolError {
    reason: Box<ToolErrorReason>,
}

enum ToolErrorReason {
    /// The tool ran and failed; this is what it says about it.
    Failed(Vec<Content>),
    /// The thing that was asked for is not there.
    NotFound(String),
    /// The call itself is wrong, or cannot go on.
    Refused(HubError),
}

impl ToolError {
    /// The tool ran and failed. The caller gets an ordinary result that says so, with this text.
    pub fn failed(message: impl fmt::Display) -> Self {
        Self::failed_with([Content::text(message.to_string())])
    }

    /// Like [`ToolError::failed`], with content of any kind.
    pub fn failed_with(content: impl IntoIterator<Item = Content>) -> Self {
        Self::from_reason(ToolErrorReason::Failed(content.into_iter().collect()))
    }

    /// An argument is wrong in a way that the schema cannot express.
    pub fn invalid(field: impl Into<String>, reason: impl Into<String>, provided: impl Serialize) -> Self {
        let (field, reason) = (field.into(), reason.into());
        let provided = serde_json::to_value(provided).unwrap_or(Value::Null);
        let error =
            HubError::new(ErrorKind::InvalidArguments, format!("input validation failed: {field}: {reason}"))
                .with_details(json!({"field": field, "reason": reason, "provided": provided}));
        Self::from_reason(ToolErrorReason::Refused(error))
    }

    /// This caller may not do that.
    pub fn forbidden(message: impl Into<String>) -> Self {
        Self::from_reason(ToolErrorReason::Refused(HubError::new(ErrorKind::Forbidden, message)))
    }

    /// What was asked for does not exist. Where a resource was read, the caller learns that there is none at
    /// that address; a tool fails with the text.
    pub fn not_found(what: impl fmt::Display) -> Self {
        Self::from_reason(ToolErrorReason::NotFound(format!("{what} was not found")))
    }

    /// What the caller of a tool gets: a result that says that it failed, or an error.
    pub fn into_outcome(self) -> Result<Outcome, HubError> {
        let content = match *self.reason {
            ToolErrorReason::Refused(error) => return Err(error),
            ToolErrorReason::Failed(content) => content,
            ToolErrorReason::NotFound(message) => vec![Content::text(message)],
        };
        Ok(Outcome::failure(content::tool_result(&content, content::ResultStatus::Failed)))
    }

    /// What a caller gets where there is no such thing as a result that says that it failed.
    pub fn into_error(self) -> HubError {
        match *self.reason {
            ToolErrorReason::Refused(error) => error,
            ToolErrorReason::Failed(content) => HubError::new(ErrorKind::ToolFailed, joined_text(&content)),
            ToolErrorReason::NotFound(message) => HubError::new(ErrorKind::ToolFailed, message),
        }
    }

    /// The same where a resource was read: what is not found is then the resource.
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

/// The error for an address at which there is nothing.
pub(crate) fn unknown_resource(uri: &str) -> HubError {
    HubError::new(ErrorKind::UnknownResource, format!("unknown resource {uri}"))
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

/// The error and everything that caused it. A cause that its effect already tells about is not told twice.
fn format_error_chain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let told = error.to_string();
        if !text.ends_with(&told) {
            text = format!("{text}: {told}");
        }
        cause = error.source();
    }
    text
}

fn joined_text(content: &[Content]) -> String {
    content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
}
