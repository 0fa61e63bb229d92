//! Everything that this process offers itself, as one source of the yard. It can change while it runs.

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

/// Tools, resources and prompts written in Rust, as one source.
#[derive(Debug)]
pub struct NativeSource {
    inner: Arc<NativeInner>,
}

/// A way to change what a [`NativeSource`] offers while it runs. It does not keep the source alive.
#[derive(Debug, Clone)]
pub struct NativeHandle {
    inner: Weak<NativeInner>,
}

struct NativeInner {
    name: SourceName,
    /// When it was made: it is ready from then on.
    since: Instant,
    state: Mutex<NativeState>,
}

struct NativeState {
    registry: Arc<NativeRegistry>,
    offer: Arc<SourceOffer>,
    notifiers: Vec<SourceNotifier>,
}

impl NativeSource {
    /// A source of this name that offers nothing yet.
    pub fn new(name: &str) -> Self {
        let state = NativeState { registry: Arc::default(), offer: Arc::default(), notifiers: Vec::new() };
        let (name, since) = (SourceName::new(name), Instant::now());
        Self { inner: Arc::new(NativeInner { name, since, state: Mutex::new(state) }) }
    }

    /// Offers a tool. One of the same name is replaced in its place, unless both say a version and these differ:
    /// then the newer one has the name, and the older one is reached by its version.
    #[must_use]
    pub fn tool(self, tool: Tool) -> Self {
        self.with(|registry| registry.put_tool(tool))
    }

    /// Offers several tools.
    #[must_use]
    pub fn tools(self, tools: impl IntoIterator<Item = Tool>) -> Self {
        self.with(|registry| tools.into_iter().for_each(|tool| registry.put_tool(tool)))
    }

    /// Offers a resource. One at the same address is replaced in its place.
    #[must_use]
    pub fn resource(self, resource: Resource) -> Self {
        self.with(|registry| registry.put_resource(resource))
    }

    /// Offers a family of resources. One with the same template is replaced in its place.
    #[must_use]
    pub fn template(self, template: ResourceTemplate) -> Self {
        self.with(|registry| registry.put_template(template))
    }

    /// Offers a prompt. One of the same name is replaced in its place.
    #[must_use]
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.with(|registry| registry.put_prompt(prompt))
    }

    /// A way to change the offer later. It can be had before everything is registered, so that a tool can hold it.
    pub fn handle(&self) -> NativeHandle {
        NativeHandle { inner: Arc::downgrade(&self.inner) }
    }

    /// The source, as a yard takes it.
    pub fn into_source(self) -> Arc<dyn Source> {
        Arc::new(self)
    }

    fn with(self, change: impl FnOnce(&mut NativeRegistry)) -> Self {
        self.inner.change(change);
        self
    }
}

impl NativeHandle {
    /// Offers a tool from now on. One of the same name is replaced in its place.
    pub fn add_tool(&self, tool: Tool) {
        self.change(|registry| registry.put_tool(tool));
    }

    /// Offers the tool of this name no more, in none of its versions. Calls that are under way finish.
    pub fn remove_tool(&self, name: &str) {
        self.change(|registry| registry.tools.retain(|tool| tool.name() != name));
    }

    /// The tools that are offered now, in order, each version of a tool by itself.
    pub fn tools(&self) -> Vec<Arc<Tool>> {
        self.registry().tools.clone()
    }

    /// Offers a prompt from now on. One of the same name is replaced in its place.
    pub fn add_prompt(&self, prompt: Prompt) {
        self.change(|registry| registry.put_prompt(prompt));
    }

    /// Offers the prompt of this name no more.
    pub fn remove_prompt(&self, name: &str) {
        self.change(|registry| registry.prompts.retain(|prompt| prompt.name() != name));
    }

    /// The prompts that are offered now, in order.
    pub fn prompts(&self) -> Vec<Arc<Prompt>> {
        self.registry().prompts.clone()
    }

    /// Offers a resource from now on. One at the same address is replaced in its place.
    pub fn add_resource(&self, resource: Resource) {
        self.change(|registry| registry.put_resource(resource));
    }

    /// Offers the resource at this address no more.
    pub fn remove_resource(&self, uri: &str) {
        self.change(|registry| registry.resources.retain(|resource| resource.uri() != uri));
    }

    /// The resources that are offered now, in order.
    pub fn resources(&self) -> Vec<Arc<Resource>> {
        self.registry().resources.clone()
    }

    /// Tells whoever watches the resource that its contents are not what they were.
    pub fn resource_updated(&self, uri: &str) {
        let Some(inner) = self.inner.upgrade() else { return };
        let feeds = inner.lock().notifiers.clone();
        for feed in feeds {
            feed.resource_updated(uri);
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
    /// Puts a changed copy in place of what is offered, and tells the yard.
    fn change(&self, change: impl FnOnce(&mut NativeRegistry)) {
        let feeds = {
            let mut state = self.lock();
            let mut registry = NativeRegistry::clone(&state.registry);
            change(&mut registry);
            state.offer = Arc::new(registry.to_offer());
            state.registry = Arc::new(registry);
            state.notifiers.clone()
        };
        // The yard reads the offer again, so the lock must be free by now.
        for feed in feeds {
            feed.offer_changed();
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

    fn attach(&self, feed: SourceNotifier) {
        self.inner.lock().notifiers.push(feed);
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        let SourceCall { record, target, deadline, cancel, headers, meta, client } = call;
        let occasion = CallInfo { record, deadline, cancel, headers, meta };
        let context = Context::new(occasion, client, self.handle());
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
            let gone = || HubError::new(ErrorKind::UnknownTool, format!("unknown tool {name}"));
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
    HubError::new(ErrorKind::UnknownPrompt, format!("unknown prompt {name}"))
}

impl fmt::Debug for NativeInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeSource").field("name", &self.name).field("offer", &self.lock().offer).finish()
    }
}
