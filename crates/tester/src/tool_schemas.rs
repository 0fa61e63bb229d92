//! The advertised tools of the server under test, for checking calls. They are cached, and read
//! again when the server announces a change or before a call is rejected, because a tester must not
//! reject what the server would accept.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use toolyard_hub::{DefinitionReservation, ErrorKind, HubError, Raw, Schema};
use toolyard_upstream::{DirectConnection, PagedList, ServerListKind};

#[derive(Debug, Default)]
pub(crate) struct ToolSchemaCache {
    tools: Mutex<Option<Arc<ToolSchemaIndex>>>,
}

/// The tools that calls are checked against.
#[derive(Debug, Default)]
pub(crate) struct ToolSchemaIndex {
    by_name: HashMap<String, Arc<TesterToolSchemas>>,
    names: Vec<String>,
    /// The number of changes that the server had announced when the tools were read.
    list_changes: u64,
    /// The memory reservation for the schemas.
    _reserved: Option<Arc<DefinitionReservation>>,
}

#[derive(Debug)]
pub(crate) struct TesterToolSchemas {
    pub(crate) input: Option<Schema>,
    pub(crate) output: Option<Schema>,
}

/// Whether cached tools are sufficient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// The cached tools, unless the server has announced a change.
    Cached,
    Fresh,
}

impl ToolSchemaIndex {
    fn read(pages: &PagedList, at: u64) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Definition {
            name: String,
            input_schema: Option<Raw>,
            output_schema: Option<Raw>,
        }
        let mut tools = Self { list_changes: at, _reserved: pages.reserved.clone(), ..Self::default() };
        for item in &pages.items {
            // A definition that cannot be parsed is not used for checks. It is still listed
            // unmodified.
            let Ok(definition) = serde_json::from_str::<Definition>(item.get()) else { continue };
            let tool = TesterToolSchemas {
                input: definition.input_schema.map(Schema::new),
                output: definition.output_schema.map(Schema::new),
            };
            tools.names.push(definition.name.clone());
            tools.by_name.insert(definition.name, Arc::new(tool));
        }
        tools
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<TesterToolSchemas>> {
        self.by_name.get(name).cloned()
    }

    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }
}

impl ToolSchemaCache {
    /// Stores the tools of a list.
    pub(crate) fn store_tools(&self, pages: &PagedList, at: u64) {
        self.store(Arc::new(ToolSchemaIndex::read(pages, at)));
    }

    pub(crate) async fn tools(
        &self,
        link: &DirectConnection,
        reading: Freshness,
    ) -> Result<Arc<ToolSchemaIndex>, HubError> {
        let now = link.list_change_count();
        let cached = self.tools.lock().clone();
        match cached.filter(|cached| reading == Freshness::Cached && cached.list_changes == now) {
            Some(cached) => Ok(cached),
            None => {
                let tools =
                    Arc::new(ToolSchemaIndex::read(&read_list(link, ServerListKind::Tools).await?.0, now));
                self.store(Arc::clone(&tools));
                Ok(tools)
            }
        }
    }

    fn store(&self, tools: Arc<ToolSchemaIndex>) {
        *self.tools.lock() = Some(tools);
    }
}

/// Whether the server supports the method of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListSupport {
    Supported,
    Unsupported,
}

/// Reads a list. It is empty if the server does not support the method.
pub(crate) async fn read_list(
    link: &DirectConnection,
    list: ServerListKind,
) -> Result<(PagedList, ListSupport), HubError> {
    const METHOD_NOT_FOUND: i64 = -32601;
    match link.list(list).await {
        Ok(pages) => Ok((pages, ListSupport::Supported)),
        Err(error) if error.source_error().is_some_and(|origin| origin.code == METHOD_NOT_FOUND) => {
            Ok((PagedList::default(), ListSupport::Unsupported))
        }
        // A server's error about a list is not about the caller's arguments.
        Err(error) if error.source_error().is_some() => Err(error.with_kind(ErrorKind::ToolFailed)),
        Err(error) => Err(error),
    }
}
