//! Prompts: message templates with arguments.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolyard_hub::json::{self as raw, Object};
use toolyard_hub::{BoxFuture, ErrorKind, HubError, Outcome, PromptOffer, Raw};

use crate::completion::Completions;
use crate::content::Content;
use crate::context::Context;
use crate::definition::{DefinitionBuilder, Icon, Role};
use crate::error::ToolError;
use crate::values::Values;

/// One message of a prompt.
#[derive(Debug, Clone)]
pub struct Message {
    role: Role,
    content: Content,
}

impl Message {
    /// Creates a message with the role of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// Creates a message with the role of the model.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }

    fn to_raw(&self) -> Raw {
        let mut message = DefinitionBuilder::default();
        message.put("role", &self.role);
        message.put("content", &self.content.to_raw());
        message.into_raw()
    }
}

/// Types that a prompt handler can return.
pub trait IntoMessages {
    /// Converts the value into a list of messages.
    fn into_messages(self) -> Vec<Message>;
}

/// A single message with the role of the user.
impl<C: Into<Content>> IntoMessages for C {
    fn into_messages(self) -> Vec<Message> {
        vec![Message::user(self)]
    }
}

impl IntoMessages for Vec<Message> {
    fn into_messages(self) -> Vec<Message> {
        self
    }
}

/// A prompt for a [`NativeSource`](crate::NativeSource).
///
/// ```
/// use toolyard_sdk::{NativeSource, Prompt};
///
/// let review = Prompt::new("review", |arguments, _ctx| async move {
///     Ok(format!("Review the file {}.", arguments.text("path")))
/// })
/// .description("Asks for a code review.")
/// .argument("path", "The file to review.")
/// .complete_from("path", ["src/lib.rs", "src/main.rs"]);
/// let source = NativeSource::new("demo").prompt(review);
/// ```
#[derive(Clone)]
pub struct Prompt {
    name: String,
    title: Option<String>,
    description: Option<String>,
    arguments: Vec<PromptArgument>,
    icons: Vec<Icon>,
    permissions: Vec<String>,
    overrides: Object,
    pub(crate) completions: Completions,
    get: PromptHandler,
}

type PromptHandler =
    Arc<dyn Fn(Values, Context) -> BoxFuture<'static, Result<Vec<Message>, ToolError>> + Send + Sync>;

#[derive(Debug, Clone, Serialize)]
struct PromptArgument {
    name: String,
    description: String,
    required: bool,
}

impl Prompt {
    /// Creates a prompt with this name. The function builds its messages and can ask the client
    /// questions, like a tool.
    pub fn new<F, Fut, M>(name: impl Into<String>, get: F) -> Self
    where
        F: Fn(Values, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<M, ToolError>> + Send + 'static,
        M: IntoMessages,
    {
        let get = move |arguments, context| {
            let messages = get(arguments, context);
            let messages = async move { messages.await.map(IntoMessages::into_messages) };
            Box::pin(messages) as BoxFuture<'static, _>
        };
        Self {
            name: name.into(),
            title: None,
            description: None,
            arguments: Vec::new(),
            icons: Vec::new(),
            permissions: Vec::new(),
            overrides: Object::default(),
            completions: Completions::default(),
            get: Arc::new(get),
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds a required argument.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.arguments.push(PromptArgument {
            name: name.into(),
            description: description.into(),
            required: true,
        });
        self
    }

    /// Adds an optional argument.
    #[must_use]
    pub fn optional_argument(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.arguments.push(PromptArgument {
            name: name.into(),
            description: description.into(),
            required: false,
        });
        self
    }

    /// Completes an argument with a function. It receives the text typed so far and the arguments
    /// that are already filled in.
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(String, Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completions.add(argument.into(), suggest);
        self
    }

    /// Completes an argument from a fixed list, by prefix and ignoring case.
    #[must_use]
    pub fn complete_from<V: Into<String>>(
        mut self,
        argument: impl Into<String>,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        self.completions.add_list(argument.into(), values.into_iter().map(Into::into).collect());
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// Adds permissions. A caller needs all of them to see and to get the prompt.
    #[must_use]
    pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
        self.permissions.extend(permissions.into_iter().map(Into::into));
        self
    }

    /// Sets any member of the definition, byte for byte. An existing member is replaced in place, a
    /// new one is appended.
    #[must_use]
    pub fn definition_member<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        self.overrides.set(key, raw::to_raw(value));
        self
    }

    pub(crate) fn to_offer(&self) -> PromptOffer {
        let mut definition = DefinitionBuilder::default();
        definition.put("name", &self.name);
        definition.put_some("title", self.title.as_ref());
        definition.put_some("description", self.description.as_ref());
        definition.put_all("arguments", &self.arguments);
        definition.put_all("icons", &self.icons);
        definition.put_overrides(&self.overrides);
        PromptOffer { definition: definition.into_raw(), permissions: self.permissions.clone() }
    }

    pub(crate) async fn get(&self, arguments: &RawValue, context: Context) -> Result<Outcome, HubError> {
        let arguments = self.parse_arguments(arguments)?;
        let messages = (self.get)(arguments, context).await.map_err(ToolError::into_error)?;
        let mut result = DefinitionBuilder::default();
        result.put_some("description", self.description.as_ref());
        result.put("messages", &messages.iter().map(Message::to_raw).collect::<Vec<_>>());
        Ok(Outcome::success(result.into_raw()))
    }

    /// Checks that the arguments are strings and that the required ones are present.
    fn parse_arguments(&self, arguments: &RawValue) -> Result<Values, HubError> {
        let given: Map<String, Value> = serde_json::from_str(arguments.get())
            .map_err(|error| self.invalid("arguments", &format!("invalid JSON: {error}"), &Value::Null))?;
        if let Some(missing) =
            self.arguments.iter().find(|one| one.required && !given.contains_key(&one.name))
        {
            return Err(self.invalid(&missing.name, "is required", &Value::Null));
        }
        let text = |(name, value): (String, Value)| match value {
            Value::String(text) => Ok((name, text)),
            other => Err(self.invalid(&name, "must be a string", &other)),
        };
        given.into_iter().map(text).collect()
    }

    fn invalid(&self, field: &str, reason: &str, provided: &Value) -> HubError {
        let message = format!("invalid arguments for `{}`: `{field}` {reason}", self.name);
        let details = json!({"field": field, "reason": reason, "provided": provided});
        HubError::new(ErrorKind::InvalidArguments, message).with_details(details)
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.name).finish_non_exhaustive()
    }
}
