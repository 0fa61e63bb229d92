//! A scripted source for tests. It offers a given set of entries and answers calls with a given
//! function. Not part of the product.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use crate::deadline::Deadline;
use crate::error::HubError;
use crate::hooks::Hooks;
use crate::json::{Raw, from_text, to_raw};
use crate::name::{Prefix, SourceName};
use crate::outcome::Outcome;
use crate::principal::{Permissions, Principal};
use crate::request::{CallContext, CallRequest, CallTarget};
use crate::scope::YardScope;
use crate::source::{
    PromptOffer, ResourceOffer, Source, SourceCall, SourceNotifier, SourceOffer, SourceTarget, TemplateOffer,
    ToolListing, ToolOffer,
};
use crate::status::SourceStatus;
use crate::yard::{Yard, YardSettings};
use crate::{BoxFuture, YardLimits};

type ScriptedHandler = Box<dyn Fn(SourceCall) -> BoxFuture<'static, Result<Outcome, HubError>> + Send + Sync>;

pub(crate) struct ScriptedSource {
    name: SourceName,
    prefix: Prefix,
    offer: Mutex<Arc<SourceOffer>>,
    notifier: OnceLock<SourceNotifier>,
    status: Mutex<SourceStatus>,
    permissions: Vec<String>,
    /// The watch (`+`) and unwatch (`-`) requests received.
    watch_log: Mutex<Vec<String>>,
    handler: ScriptedHandler,
}

impl ScriptedSource {
    /// A source that answers every call with its target.
    pub(crate) fn echo(name: &str, offer: SourceOffer) -> Arc<Self> {
        Self::with_handler(name, offer, |call| async move {
            Ok(Outcome::success(to_raw(&format!("{:?}", call.target))))
        })
    }

    pub(crate) fn with_handler<F>(
        name: &str,
        offer: SourceOffer,
        work: impl Fn(SourceCall) -> F + Send + Sync + 'static,
    ) -> Arc<Self>
    where
        F: Future<Output = Result<Outcome, HubError>> + Send + 'static,
    {
        Self::with_boxed_handler(name, offer, move |call| Box::pin(work(call)))
    }

    /// Like [`Self::with_handler`], but the function itself may panic before it returns a future.
    pub(crate) fn with_boxed_handler(
        name: &str,
        offer: SourceOffer,
        work: impl Fn(SourceCall) -> BoxFuture<'static, Result<Outcome, HubError>> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            name: SourceName::new(name),
            prefix: Prefix::Source,
            offer: Mutex::new(Arc::new(offer)),
            notifier: OnceLock::new(),
            status: Mutex::new(SourceStatus::ready()),
            permissions: Vec::new(),
            watch_log: Mutex::default(),
            handler: Box::new(work),
        })
    }

    pub(crate) fn unprefixed(name: &str, offer: SourceOffer) -> Arc<Self> {
        let work: ScriptedHandler = Box::new(|_| Box::pin(async { Ok(done()) }));
        Arc::new(Self {
            name: SourceName::new(name),
            prefix: Prefix::Plain,
            offer: Mutex::new(Arc::new(offer)),
            notifier: OnceLock::new(),
            status: Mutex::new(SourceStatus::ready()),
            permissions: Vec::new(),
            watch_log: Mutex::default(),
            handler: work,
        })
    }

    /// A source in this state that offers nothing and whose future entries all require these
    /// permissions.
    pub(crate) fn with_status(name: &str, status: SourceStatus, permissions: &[&str]) -> Arc<Self> {
        let work: ScriptedHandler = Box::new(|_| Box::pin(async { Ok(done()) }));
        Arc::new(Self {
            name: SourceName::new(name),
            prefix: Prefix::Source,
            offer: Mutex::default(),
            notifier: OnceLock::new(),
            status: Mutex::new(status),
            permissions: permissions.iter().map(|permission| (*permission).to_owned()).collect(),
            watch_log: Mutex::default(),
            handler: work,
        })
    }

    /// Takes the watch requests received since the last call.
    pub(crate) fn take_watch_log(&self) -> Vec<String> {
        std::mem::take(&mut *self.watch_log.lock())
    }

    /// Changes the state.
    pub(crate) fn set_status(&self, status: SourceStatus) {
        *self.status.lock() = status;
    }

    /// Changes the offer and notifies the yard.
    pub(crate) fn set_offer(&self, offer: SourceOffer) {
        *self.offer.lock() = Arc::new(offer);
        self.notifier().offer_changed();
    }

    pub(crate) fn notifier(&self) -> &SourceNotifier {
        self.notifier.get().unwrap()
    }
}

impl Source for ScriptedSource {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn prefix(&self) -> Prefix {
        self.prefix
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer.lock())
    }

    fn status(&self) -> SourceStatus {
        self.status.lock().clone()
    }

    fn permissions(&self) -> &[String] {
        &self.permissions
    }

    fn watch(&self, uri: &str) {
        self.watch_log.lock().push(format!("+{uri}"));
    }

    fn unwatch(&self, uri: &str) {
        self.watch_log.lock().push(format!("-{uri}"));
    }

    fn attach(&self, feed: SourceNotifier) {
        let _ = self.notifier.set(feed);
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        (self.handler)(call)
    }
}

impl SourceTarget {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Tool { name, .. } => name,
            other => panic!("not a tool: {other:?}"),
        }
    }

    pub(crate) fn arguments(&self) -> String {
        match self {
            Self::Tool { arguments, .. } => arguments.get().to_owned(),
            other => panic!("not a tool: {other:?}"),
        }
    }
}

pub(crate) fn raw(value: &Value) -> Raw {
    to_raw(value)
}

pub(crate) fn text(text: &str) -> Raw {
    from_text(text.to_owned())
}

pub(crate) fn done() -> Outcome {
    Outcome::success(raw(&json!("done")))
}

pub(crate) fn tool(definition: &Value) -> ToolOffer {
    ToolOffer {
        definition: raw(definition),
        permissions: Vec::new(),
        metadata: Map::new(),
        hooks: Vec::new(),
        listing: ToolListing::Listed,
    }
}

/// Tools with these names that accept any arguments.
pub(crate) fn tools(names: &[&str]) -> SourceOffer {
    let tools = names.iter().map(|name| tool(&json!({"name": name, "inputSchema": {"type": "object"}})));
    SourceOffer { tools: tools.collect(), ..SourceOffer::default() }
}

pub(crate) fn resource(definition: &Value) -> ResourceOffer {
    ResourceOffer { definition: raw(definition), permissions: Vec::new() }
}

pub(crate) fn resources(uris: &[&str]) -> SourceOffer {
    let resources = uris.iter().map(|uri| resource(&json!({"uri": uri, "name": uri})));
    SourceOffer { resources: resources.collect(), ..SourceOffer::default() }
}

pub(crate) fn templates(uris: &[&str]) -> SourceOffer {
    let template = |uri: &&str| TemplateOffer {
        definition: raw(&json!({"uriTemplate": uri, "name": uri})),
        permissions: Vec::new(),
    };
    SourceOffer { templates: uris.iter().map(template).collect(), ..SourceOffer::default() }
}

pub(crate) fn prompts(names: &[&str]) -> SourceOffer {
    let prompt =
        |name: &&str| PromptOffer { definition: raw(&json!({"name": name})), permissions: Vec::new() };
    SourceOffer { prompts: names.iter().map(prompt).collect(), ..SourceOffer::default() }
}

pub(crate) fn yard(sources: &[&Arc<ScriptedSource>]) -> Arc<Yard> {
    yard_with(YardLimits::default(), Vec::new(), sources)
}

pub(crate) fn yard_with(
    limits: YardLimits,
    hooks: Vec<Arc<dyn Hooks>>,
    sources: &[&Arc<ScriptedSource>],
) -> Arc<Yard> {
    yard_with_settings(YardSettings { limits, hooks, ..YardSettings::default() }, sources)
}

pub(crate) fn yard_with_settings(settings: YardSettings, sources: &[&Arc<ScriptedSource>]) -> Arc<Yard> {
    let yard = Yard::new(settings);
    for source in sources {
        yard.add(Arc::clone(*source) as Arc<dyn Source>);
    }
    yard
}

/// A call by the owner with a deadline of one minute and no listener.
pub(crate) fn request(what: CallTarget) -> CallRequest {
    let deadline = Deadline::after(Duration::from_secs(60));
    CallRequest { deadline, ..CallRequest::new(what, Principal::owner()) }
}

pub(crate) fn tool_request(name: &str) -> CallRequest {
    request(CallTarget::Tool { name: name.to_owned(), arguments: None })
}

pub(crate) fn tool_request_with(name: &str, arguments: &str) -> CallRequest {
    request(CallTarget::Tool { name: name.to_owned(), arguments: Some(text(arguments)) })
}

pub(crate) fn resource_request(uri: &str) -> CallRequest {
    request(CallTarget::Resource { uri: uri.to_owned() })
}

pub(crate) fn source_context(source: &str) -> CallContext {
    CallContext { scope: YardScope::Source(SourceName::new(source)), ..CallContext::default() }
}

pub(crate) fn principal_with(permissions: &[&str]) -> Principal {
    let held = permissions.iter().map(|permission| (*permission).to_owned()).collect();
    Principal::new("ada", Permissions::Only(held))
}
