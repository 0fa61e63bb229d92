//! Prompts: messages that people put into a conversation, filled in with their arguments.

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
    /// A message that the person says.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// A message that the model says.
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

/// What a prompt can give.
pub trait IntoMessages {
    /// The messages, in order.
    fn into_messages(self) -> Vec<Message>;
}

/// One message of the person.
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

/// A prompt, ready to be registered with a [`crate::NativeSource`].
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
    /// A prompt of this name, and the code that makes its messages. Like a tool, it can ask the caller.
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

    /// The name by which it is asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it is for.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// An argument that must be given.
    #[must_use]
    pub fn argument(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.arguments.push(PromptArgument {
            name: name.into(),
            description: description.into(),
            required: true,
        });
        self
    }

    /// An argument that may be left out.
    #[must_use]
    pub fn optional_argument(mut self, name: impl Into<String>, description: impl Into<String>) -> Self {
        self.arguments.push(PromptArgument {
            name: name.into(),
            description: description.into(),
            required: false,
        });
        self
    }

    /// Suggests values for an argument. The code gets what was typed so far and the arguments that are already
    /// filled in.
    #[must_use]
    pub fn complete<F, Fut>(mut self, argument: impl Into<String>, suggest: F) -> Self
    where
        F: Fn(String, Values) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<String>> + Send + 'static,
    {
        self.completions.add(argument.into(), suggest);
        self
    }

    /// Suggests those of a fixed list of values that begin with what was typed.
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

    /// Permissions that a caller needs, all of them, to see and to get it.
    #[must_use]
    pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
        self.permissions.extend(permissions.into_iter().map(Into::into));
        self
    }

    /// Sets any member of the definition, byte for byte: one that is there is replaced, a new one comes last.
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

    /// The arguments, once it is known that they are texts and that the required ones are there.
    fn parse_arguments(&self, arguments: &RawValue) -> Result<Values, HubError> {
        let given: Map<String, Value> = serde_json::from_str(arguments.get())
            .map_err(|error| self.invalid("arguments", &format!("cannot be read: {error}"), &Value::Null))?;
        if let Some(missing) =
            self.arguments.iter().find(|one| one.required && !given.contains_key(&one.name))
        {
            return Err(self.invalid(&missing.name, "is required", &Value::Null));
        }
        let text = |(name, value): (String, Value)| match value {
            Value::String(text) => Ok((name, text)),
            other => Err(self.invalid(&name, "must be a text", &other)),
        };
        given.into_iter().map(text).collect()
    }

    fn invalid(&self, field: &str, reason: &str, provided: &Value) -> HubError {
        let message = format!("invalid arguments for {}: {field}: {reason}", self.name);
        let details = json!({"field": field, "reason": reason, "provided": provided});
        HubError::new(ErrorKind::InvalidArguments, message).with_details(details)
    }
}

impl fmt::Debug for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prompt").field("name", &self.name).finish_non_exhaustive()
    }
}
