//! Sources and yards for tests.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    BoxFuture, Catalog, HubError, Outcome, Permissions, Principal, Source, SourceCall, SourceName,
    SourceOffer, ToolEntry, ToolListing, ToolOffer, Yard, YardSettings,
};

type CallHandler = Box<dyn Fn(SourceCall) -> BoxFuture<'static, Result<Outcome, HubError>> + Send + Sync>;

/// A source with the given tools and call handler.
pub(crate) struct FakeSource {
    name: SourceName,
    offer: Arc<SourceOffer>,
    work: CallHandler,
}

impl FakeSource {
    pub(crate) fn with_handler<F>(
        name: &str,
        tools: &[Value],
        work: impl Fn(SourceCall) -> F + Send + Sync + 'static,
    ) -> Arc<dyn Source>
    where
        F: Future<Output = Result<Outcome, HubError>> + Send + 'static,
    {
        let tools = tools.iter().map(|definition| ToolOffer {
            definition: to_raw(definition),
            permissions: permissions(definition),
            metadata: Map::new(),
            hooks: Vec::new(),
            listing: ToolListing::Listed,
        });
        let offer = Arc::new(SourceOffer { tools: tools.collect(), ..SourceOffer::default() });
        Arc::new(Self {
            name: SourceName::new(name),
            offer,
            work: Box::new(move |call| Box::pin(work(call))),
        })
    }

    /// Creates a source whose tools return an empty result.
    pub(crate) fn with_tools(name: &str, tools: &[Value]) -> Arc<dyn Source> {
        Self::with_handler(name, tools, |_| async {
            Ok(Outcome::success(to_raw(&serde_json::json!({"content": []}))))
        })
    }
}

/// Returns the permissions that a definition declares in `_meta.permissions`.
fn permissions(definition: &Value) -> Vec<String> {
    let list = definition["_meta"]["permissions"].as_array();
    list.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

impl Source for FakeSource {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        (self.work)(call)
    }
}

/// Returns the catalog entry of a tool.
pub(crate) fn tool(definition: &Value) -> Arc<ToolEntry> {
    let catalog = Catalog::build(&[FakeSource::with_tools("s", std::slice::from_ref(definition))]);
    Arc::clone(&catalog.tools()[0])
}

pub(crate) fn yard(sources: &[Arc<dyn Source>]) -> Arc<Yard> {
    // Rate limits have separate tests.
    let limits = toolyard_hub::YardLimits { rate: None, ..Default::default() };
    let yard = Yard::new(YardSettings { limits, ..YardSettings::default() });
    for source in sources {
        yard.add(Arc::clone(source));
    }
    yard
}

/// Returns a principal without permissions.
pub(crate) fn ada() -> Principal {
    Principal::new("ada", Permissions::Only(std::collections::BTreeSet::new()))
}
