//! A tool: its name, its metadata and its handler. Its definition is written in
//! `tool/definition.rs`.

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

/// A tool for a [`NativeSource`](crate::NativeSource).
///
/// The attribute [`tool`](macro@crate::tool) creates one from a function. Use [`Tool::new`] for a
/// closure that owns state:
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
/// .description("Returns the next number.");
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
    /// Creates a tool with this name. The schemas are derived from the types of the function.
    pub fn new<Args, H: Handler<Args>>(name: impl Into<String>, handler: H) -> Self {
        let run = move |arguments, context, schema: Arc<OutputSchema>| {
            let output = handler.run(arguments, context);
            let outcome = async move { output.await?.into_outcome(&schema) };
            Box::pin(outcome) as BoxFuture<'static, _>
        };
        Self::with(name.into(), H::input_schema(), H::Output::output_schema(), Arc::new(run))
    }

    /// Creates a tool that receives its arguments as unparsed JSON and whose result object is sent
    /// unchanged. It accepts any object unless you set [`Tool::input_schema`].
    ///
    /// ```
    /// use serde_json::value::RawValue;
    /// use toolyard_sdk::{Context, Raw, Tool};
    ///
    /// let echo = Tool::raw("echo", |arguments: Raw, _ctx: Context| async move {
    ///     Ok(RawValue::from_string(format!(r#"{{"content":[],"structuredContent":{arguments}}}"#))?)
    /// });
    /// ```
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

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the version, if one is set.
    pub(crate) fn declared_version(&self) -> Option<&str> {
        self.metadata.get("version")?.as_str()
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets the description, which users and models read.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Adds permissions. A caller needs all of them to see and to call the tool.
    #[must_use]
    pub fn permissions<P: Into<String>>(mut self, permissions: impl IntoIterator<Item = P>) -> Self {
        self.permissions.extend(permissions.into_iter().map(Into::into));
        self
    }

    /// Adds hooks that run around each call, after those added before.
    #[must_use]
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks.push(hooks);
        self
    }

    /// Sets the annotation `readOnlyHint`: whether the tool leaves its environment unchanged.
    #[must_use]
    pub fn read_only(self, hint: bool) -> Self {
        self.annotation("readOnlyHint", &hint)
    }

    /// Sets the annotation `destructiveHint`: whether the tool may delete or overwrite data.
    #[must_use]
    pub fn destructive(self, hint: bool) -> Self {
        self.annotation("destructiveHint", &hint)
    }

    /// Sets the annotation `idempotentHint`: whether repeating a call with the same arguments has
    /// no further effect.
    #[must_use]
    pub fn idempotent(self, hint: bool) -> Self {
        self.annotation("idempotentHint", &hint)
    }

    /// Sets the annotation `openWorldHint`: whether the tool interacts with external systems, such
    /// as a web search.
    #[must_use]
    pub fn open_world(self, hint: bool) -> Self {
        self.annotation("openWorldHint", &hint)
    }

    /// Sets any annotation by its protocol name.
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

    /// Sets the version, a semantic version such as `1.2.0`.
    #[must_use]
    pub fn version(self, version: &str) -> Self {
        self.metadata("version", version)
    }

    /// Sets the author.
    #[must_use]
    pub fn author(self, author: &str) -> Self {
        self.metadata("author", author)
    }

    /// Sets the category.
    #[must_use]
    pub fn category(self, category: &str) -> Self {
        self.metadata("category", category)
    }

    /// Sets the tags, which search uses.
    #[must_use]
    pub fn tags<T: Into<String>>(self, tags: impl IntoIterator<Item = T>) -> Self {
        let tags: Vec<String> = tags.into_iter().map(Into::into).collect();
        self.metadata("tags", tags)
    }

    /// Marks an older version of this tool as deprecated. Calls to that version still work.
    #[must_use]
    pub fn deprecates(self, version: &str) -> Self {
        self.metadata("deprecates", version)
    }

    /// Sets any metadata. Use the key `custom` for metadata of your own.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// Replaces the derived input schema with this one, byte for byte. Calls are validated against
    /// it.
    #[must_use]
    pub fn input_schema<T: Serialize + ?Sized>(mut self, schema: &T) -> Self {
        self.input_schema = json::to_raw(schema);
        self
    }

    /// Replaces the derived output schema with this one, byte for byte. Structured results are then
    /// sent unchanged and never placed under `result`.
    #[must_use]
    pub fn output_schema<T: Serialize + ?Sized>(mut self, schema: &T) -> Self {
        self.output_schema = Arc::new(OutputSchema::Object(json::to_raw(schema)));
        self
    }

    /// Sets any member of the definition, byte for byte. An existing member is replaced in place, a
    /// new one is appended.
    #[must_use]
    pub fn definition_member<T: Serialize + ?Sized>(mut self, key: &str, value: &T) -> Self {
        self.overrides.set(key, json::to_raw(value));
        self
    }

    /// Replaces the complete definition, byte for byte. The tool takes its name from it.
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
