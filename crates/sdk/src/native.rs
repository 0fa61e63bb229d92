//! The source for everything that is written in Rust. Its tools, resources and prompts can change
//! at run time.

use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_hub::{
    BoxFuture, ErrorKind, HubError, Outcome, Prefix, Source, SourceCall, SourceName, SourceNotifier,
    SourceOffer, SourceStatus, SourceTarget,
};

use crate::context::{CallInfo, Context};
use crate::error::unknown_resource;
use crate::prompt::Prompt;
use crate::resource::Resource;
use crate::template::ResourceTemplate;
use crate::tool::Tool;

mod registry;

use registry::NativeRegistry;

/// A source with tools, resources and prompts written in Rust.
///
/// ```
/// use toolyard_sdk::{NativeSource, Resource, Tool, Yard};
///
/// let source = NativeSource::new("demo")
///     .tool(Tool::new("ping", || async { Ok("pong") }))
///     .resource(Resource::text("demo://about", "about", "A demo server"));
/// let yard = Yard::with_sources([source.into_source()]);
/// assert_eq!(yard.catalog().tools().len(), 1);
/// ```
#[derive(Debug)]
pub struct NativeSource {
    inner: Arc<NativeInner>,
}

/// A handle that changes what a [`NativeSource`] offers at run time. It does not keep the source
/// alive: when the source is gone, its methods have no effect.
#[derive(Debug, Clone)]
pub struct NativeHandle {
    inner: Weak<NativeInner>,
}

struct NativeInner {
    name: SourceName,
    /// The creation time. The source is ready from then on.
    since: Instant,
    state: Mutex<NativeState>,
}

struct NativeState {
    registry: Arc<NativeRegistry>,
    offer: Arc<SourceOffer>,
    notifiers: Vec<SourceNotifier>,
}

impl NativeSource {
    /// Creates an empty source with this name.
    pub fn new(name: &str) -> Self {
        let state = NativeState { registry: Arc::default(), offer: Arc::default(), notifiers: Vec::new() };
        let (name, since) = (SourceName::new(name), Instant::now());
        Self { inner: Arc::new(NativeInner { name, since, state: Mutex::new(state) }) }
    }

    /// Adds a tool. A tool with the same name is replaced in place, unless both declare a version
    /// and the versions differ. In that case the newest version is listed, and calls reach the
    /// others by their version.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.with(|registry| registry.put_tool(tool))
    }

    /// Adds several tools. See [`NativeSource::tool`].
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.with(|registry| tools.into_iter().for_each(|tool| registry.put_tool(tool)))
    }

    /// Adds a resource. A resource with the same URI is replaced in place.
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.with(|registry| registry.put_resource(resource))
    }

    /// Adds a resource template. An equal template is replaced in place.
    #[must_use]
    pub fn template(self, template: ResourceTemplate) -> Self {
        self.with(|registry| registry.put_template(template))
    }

    /// Adds a prompt. A prompt with the same name is replaced in place.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.with(|registry| registry.put_prompt(prompt))
    }

    /// Returns a handle that changes the source at run time. You can take it before you add the
    /// tools, so that a tool can own one.
    pub fn handle(&self) -> NativeHandle {
        NativeHandle { inner: Arc::downgrade(&self.inner) }
    }

    /// Converts the source to the type that [`Yard`](crate::Yard) takes.
    pub fn into_source(self) -> Arc<dyn Source> {
        Arc::new(self)
    }

    fn with(self, change: impl FnOnce(&mut NativeRegistry)) -> Self {
        self.inner.change(change);
        self
    }
}

impl NativeHandle {
    /// Adds a tool, by the rules of [`NativeSource::tool`].
    pub fn add_tool(&self, tool: Tool) {
        self.change(|registry| registry.put_tool(tool));
    }

    /// Removes all versions of the tool with this name. Calls in progress finish.
    pub fn remove_tool(&self, name: &str) {
        self.change(|registry| registry.tools.retain(|tool| tool.name() != name));
    }

    /// Lists the current tools in order. Each version of a tool is a separate entry.
    pub fn tools(&self) -> Vec<Arc<Tool>> {
        self.registry().tools.clone()
    }

    /// Adds a prompt. A prompt with the same name is replaced in place.
    pub fn add_prompt(&self, prompt: Prompt) {
        self.change(|registry| registry.put_prompt(prompt));
    }

    /// Removes the prompt with this name.
    pub fn remove_prompt(&self, name: &str) {
        self.change(|registry| registry.prompts.retain(|prompt| prompt.name() != name));
    }

    /// Lists the current prompts in order.
    pub fn prompts(&self) -> Vec<Arc<Prompt>> {
        self.registry().prompts.clone()
    }

    /// Adds a resource. A resource with the same URI is replaced in place.
    pub fn add_resource(&self, resource: Resource) {
        self.change(|registry| registry.put_resource(resource));
    }

    /// Removes the resource with this URI.
    pub fn remove_resource(&self, uri: &str) {
        self.change(|registry| registry.resources.retain(|resource| resource.uri() != uri));
    }

    /// Lists the current resources in order.
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.registry().resources.clone()
    }

    /// Notifies subscribers that the contents of a resource have changed.
    pub fn resource_updated(&self, uri: &str) {
        let Some(inner) = self.inner.upgrade() else { return };
        let notifiers = inner.lock().notifiers.clone();
        for notifier in notifiers {
            notifier.resource_updated(uri);
        }
    }

    fn registry(&self) -> Arc<NativeRegistry> {
        self.inner.upgrade().map(|inner| inner.registry()).unwrap_or_default()
    }

    fn change(&self, change: impl FnOnce(&mut NativeRegistry)) {
        if let Some(inner) = self.inner.upgrade() {
            inner.change(change);
        }
    }
}

impl NativeInner {
    /// Replaces the registry with a changed copy and notifies the yard.
    fn change(&self, change: impl FnOnce(&mut NativeRegistry)) {
        let notifiers = {
            let mut state = self.lock();
            let mut registry = NativeRegistry::clone(&state.registry);
            change(&mut registry);
            state.offer = Arc::new(registry.to_offer());
            state.registry = Arc::new(registry);
            state.notifiers.clone()
        };
        // The yard reads the offer again, so the lock must be released first.
        for notifier in notifiers {
            notifier.offer_changed();
        }
    }

    fn registry(&self) -> Arc<NativeRegistry> {
        Arc::clone(&self.lock().registry)
    }

    fn lock(&self) -> MutexGuard<'_, NativeState> {
        self.state.lock()
    }
}

impl Source for NativeSource {
    fn name(&self) -> &SourceName {
        &self.inner.name
    }

    fn prefix(&self) -> Prefix {
        Prefix::Plain
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.inner.lock().offer)
    }

    fn status(&self) -> SourceStatus {
        SourceStatus { since: self.inner.since, ..SourceStatus::ready() }
    }

    fn attach(&self, notifier: SourceNotifier) {
        self.inner.lock().notifiers.push(notifier);
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        let SourceCall { record, target, deadline, cancel, headers, meta, client } = call;
        let info = CallInfo { record, deadline, cancel, headers, meta };
        let context = Context::new(info, client, self.handle());
        let registry = self.inner.registry();
        Box::pin(async move { dispatch(&registry, target, context).await })
    }
}

async fn dispatch(
    registry: &NativeRegistry,
    target: SourceTarget,
    context: Context,
) -> Result<Outcome, HubError> {
    match target {
        SourceTarget::Tool { name, arguments } => {
            let gone = || HubError::new(ErrorKind::UnknownTool, format!("unknown tool `{name}`"));
            let version = context.call_context().version.as_deref();
            registry.tool(&name, version).ok_or_else(gone)?.call(arguments, context).await
        }
        SourceTarget::Resource { uri } => {
            if let Some(resource) = registry.resource(&uri) {
                return resource.read(context).await;
            }
            let (template, values) = registry.template_for(&uri).ok_or_else(|| unknown_resource(&uri))?;
            template.read(&uri, values, context).await
        }
        SourceTarget::Prompt { name, arguments } => {
            registry.prompt(&name).ok_or_else(|| unknown_prompt(&name))?.get(&arguments, context).await
        }
        SourceTarget::PromptCompletion { name, argument, value, context } => {
            let prompt = registry.prompt(&name).ok_or_else(|| unknown_prompt(&name))?;
            Ok(prompt.completions.complete(&argument, value, context.as_deref()).await)
        }
        SourceTarget::TemplateCompletion { uri, argument, value, context } => {
            let template = registry.template(&uri).ok_or_else(|| unknown_resource(&uri))?;
            Ok(template.completions.complete(&argument, value, context.as_deref()).await)
        }
    }
}

fn unknown_prompt(name: &str) -> HubError {
    HubError::new(ErrorKind::UnknownPrompt, format!("unknown prompt `{name}`"))
}

impl fmt::Debug for NativeInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeSource").field("name", &self.name).field("offer", &self.lock().offer).finish()
    }
}
