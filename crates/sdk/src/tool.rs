//! A tool: what it is called, what it says about itself, and the code behind it. How its definition is written
//! down is in `tool/definition.rs`.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use toolyard_hub::json::{self, Object};
use toolyard_hub::{BoxFuture, Hooks, HubError, Outcome, Raw};

use crate::context::Context;
use crate::definition::Icon;
use crate::error::ToolError;
use crate::handler::Handler;
use crate::output::{IntoOutput, OutputSchema};
use crate::schema;

mod definition;

/// A tool, ready to be registered with a [`crate::NativeSource`].
///
/// `#[tool]` makes one out of a function. A closure can be one too, and may hold on to state:
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use toolyard_sdk::Tool;
///
/// let counter = AtomicU64::new(0);
/// let next = Tool::new("next", move || {
///     let number = counter.fetch_add(1, Ordering::Relaxed);
///     async move { Ok(number.to_string()) }
/// })
/// .description("Counts up.");
/// ```
#[derive(Clone)]
pub struct Tool {
    name: String,
    title: Option<String>,
    description: Option<String>,
    input_schema: Raw,
    output_schema: Arc<OutputSchema>,
    annotations: Object,
    icons: Vec<Icon>,
    metadata: Map<String, Value>,
    permissions: Vec<String>,
    hooks: Vec<Arc<dyn Hooks>>,
    overrides: Object,
    custom_definition: Option<Raw>,
    run: ToolHandler,
}

type ToolHandler = Arc<
    dyn Fn(Raw, Context, Arc<OutputSchema>) -> BoxFuture<'static, Result<Outcome, ToolError>> + Send + Sync,
>;

impl Tool {
    /// A tool of this name. Its schemas come from the types of the function.
    pub fn new<Args, H: Handler<Args>>(name: impl Into<String>, handler: H) -> Self {
        let run = move |arguments, context, schema: Arc<OutputSchema>| {
            let output = handler.run(arguments, context);
            let outcome = async move { output.await?.into_outcome(&schema) };
            Box::pin(outcome) as BoxFuture<'static, _>
        };
        Self::with(name.into(), H::input_schema(), H::Output::output_schema(), Arc::new(run))
    }

    /// A tool that gets its arguments as the JSON text they arrived as, and whose result object goes back
    /// untouched. It accepts any object until [`Tool::input_schema`] says otherwise.
    pub fn raw<F, Fut>(name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Raw, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Raw, ToolError>> + Send + 'static,
    {
        let run = move |arguments, context, schema: Arc<OutputSchema>| {
            let output = handler(arguments, context);
            let outcome = async move { output.await?.into_outcome(&schema) };
            Box::pin(outcome) as BoxFuture<'static, _>
        };
        Self::with(name.into(), schema::any_input_schema(), OutputSchema::Absent, Arc::new(run))
    }

    fn with(name: String, input_schema: Raw, output_schema: OutputSchema, run: ToolHandler) -> Self {
        Self {
            name,
            title: None,
            description: None,
            input_schema,
            output_schema: Arc::new(output_schema),
            annotations: Object::default(),
            icons: Vec::new(),
            metadata: Map::new(),
            permissions: Vec::new(),
            hooks: Vec::new(),
            overrides: Object::default(),
            custom_definition: None,
            run,
        }
    }

    /// The name by which it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version that was set, if one was.
    pub(crate) fn declared_version(&self) -> Option<&str> {
        self.metadata.get("version")?.as_str()
    }

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// What it does, for people and for models.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Permissions that a caller needs, all of them, to see and to call it.
    #[must_use]
    pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
        self.permissions.extend(permissions.into_iter().map(Into::into));
        self
    }

    /// Code to run around each call, after what was added before it.
    #[must_use]
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks.push(hooks);
        self
    }

    /// Says that it changes nothing, or that it does.
    #[must_use]
    pub fn read_only(self, hint: bool) -> Self {
        self.annotation("readOnlyHint", &hint)
    }

    /// Says that it may destroy something, or that it only adds.
    #[must_use]
    pub fn destructive(self, hint: bool) -> Self {
        self.annotation("destructiveHint", &hint)
    }

    /// Says whether calling it again with the same arguments does nothing more.
    #[must_use]
    pub fn idempotent(self, hint: bool) -> Self {
        self.annotation("idempotentHint", &hint)
    }

    /// Says whether it deals with the world outside, as a web search does.
    #[must_use]
    pub fn open_world(self, hint: bool) -> Self {
        self.annotation("openWorldHint", &hint)
    }

    /// Sets any annotation, as the protocol spells it.
    #[must_use]
    pub fn annotation<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        self.annotations.set(key, json::to_raw(value));
        self
    }

    /// Adds an icon.
    #[must_use]
    pub fn icon(mut self, icon: Icon) -> Self {
        self.icons.push(icon);
        self
    }

    /// The version of the tool.
    #[must_use]
    pub fn version(self, version: &str) -> Self {
        self.metadata("version", version)
    }

    /// Who wrote it.
    #[must_use]
    pub fn author(self, author: &str) -> Self {
        self.metadata("author", author)
    }

    /// What kind of tool it is.
    #[must_use]
    pub fn category(self, category: &str) -> Self {
        self.metadata("category", category)
    }

    /// Words to find it by.
    #[must_use]
    pub fn tags<T: Into<String>>(self, tags: impl IntoIterator<Item = T>) -> Self {
        let tags: Vec<String> = tags.into_iter().map(Into::into).collect();
        self.metadata("tags", tags)
    }

    /// The version that this one takes the place of: whoever still asks for that one is told that it is deprecated.
    #[must_use]
    pub fn deprecates(self, version: &str) -> Self {
        self.metadata("deprecates", version)
    }

    /// Sets any metadata; `custom` is the place for what only your readers know.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Shows this input schema, byte for byte, instead of the generated one. Calls are checked against it.
    #[must_use]
    pub fn input_schema<T: Serialize + ?Sized>(mut self, schema: &T) -> Self {
        self.input_schema = json::to_raw(schema);
        self
    }

    /// Shows this output schema, byte for byte, instead of the generated one. Structured results then go out as
    /// they are, never under `result`.
    #[must_use]
    pub fn output_schema<T: Serialize + ?Sized>(mut self, schema: &T) -> Self {
        self.output_schema = Arc::new(OutputSchema::Object(json::to_raw(schema)));
        self
    }

    /// Sets any member of the definition, byte for byte: one that is there is replaced, a new one comes last.
    #[must_use]
    pub fn definition_member<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        self.overrides.set(key, json::to_raw(value));
        self
    }

    /// Shows this definition, byte for byte, instead of the one that would be written. The tool's name is then
    /// the one in there.
    #[must_use]
    pub fn definition<T: Serialize + ?Sized>(mut self, definition: &T) -> Self {
        let definition = json::to_raw(definition);
        if let Some(name) = definition::definition_name(&definition) {
            self.name = name;
        }
        self.custom_definition = Some(definition);
        self
    }

    pub(crate) async fn call(&self, arguments: Raw, context: Context) -> Result<Outcome, HubError> {
        match (self.run)(arguments, context, Arc::clone(&self.output_schema)).await {
            Ok(outcome) => Ok(outcome),
            Err(error) => error.into_outcome(),
        }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
