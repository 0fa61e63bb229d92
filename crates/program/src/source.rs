//! The source that offers the three program tools in a yard.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    BoxFuture, ErrorKind, HubError, Outcome, Prefix, Raw, Source, SourceCall, SourceName, SourceOffer,
    SourceStatus, SourceTarget, Yard,
};

use crate::broker::{Broker, ProgramCaller};
use crate::concurrency::ProgramLimiter;
use crate::definitions::{InspectArguments, ProgramTool, offer};
use crate::engine::Engine;
use crate::inspect;
use crate::progress::ProgressMeter;
use crate::search::{SearchArguments, SearchIndexCache, similar_names};
use crate::settings::ProgramSettings;
use crate::visible_tools::VisibleTools;

/// The source of `inspect_tool`, `search_tools` and `execute_program`.
#[derive(Debug)]
pub struct ProgramSource {
    name: SourceName,
    since: Instant,
    offer: Arc<SourceOffer>,
    /// The yard whose tools programs call. It owns this source, so this reference is weak.
    yard: Weak<Yard>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: ProgramSettings,
    pub(crate) slots: ProgramLimiter,
    indexes: Arc<SearchIndexCache>,
    /// Receives the output of the next program, if `watch_next_output` was called.
    pub(crate) followed: Mutex<Option<watch::Sender<Vec<u8>>>>,
}

impl ProgramSource {
    /// The name of this source.
    pub const NAME: &'static str = "programs";

    pub fn new(yard: &Arc<Yard>, engine: Arc<Engine>, settings: ProgramSettings) -> Arc<Self> {
        Arc::new(Self {
            name: SourceName::new(Self::NAME),
            since: Instant::now(),
            offer: offer(&settings),
            yard: Arc::downgrade(yard),
            engine,
            slots: ProgramLimiter::new(settings.programs),
            settings,
            indexes: Arc::default(),
            followed: Mutex::default(),
        })
    }

    /// Returns a channel with the output of the next program. Its value is all output so far.
    pub fn watch_next_output(&self) -> watch::Receiver<Vec<u8>> {
        let (sender, receiver) = watch::channel(Vec::new());
        *self.followed.lock() = Some(sender);
        receiver
    }

    /// Stops all running programs.
    pub async fn stop(&self) {
        self.slots.close();
        self.engine.stop().await;
    }

    async fn perform(&self, call: SourceCall) -> Result<Outcome, HubError> {
        let shut_down = || HubError::new(ErrorKind::NotConnected, "the yard was shut down");
        let yard = self.yard.upgrade().ok_or_else(shut_down)?;
        let SourceTarget::Tool { name, arguments } = call.target else {
            return Err(HubError::new(ErrorKind::Bug, "the programs source offers only tools"));
        };
        let unknown = || HubError::new(ErrorKind::UnknownTool, format!("unknown tool `{name}`"));
        let caller = ProgramCaller {
            record: call.record,
            deadline: call.deadline,
            cancel: call.cancel,
            headers: call.headers,
            meta: call.meta,
            client: call.client,
        };
        yard.wait_for_startup(self.settings.start_wait).await;
        match ProgramTool::from_name(&name).ok_or_else(unknown)? {
            ProgramTool::InspectTool => Ok(self
                .inspect(&yard, &caller, &parse_arguments::<InspectArguments>(&arguments)?.tool_name)
                .await),
            ProgramTool::SearchTools => self.search(&yard, &caller, &parse_arguments(&arguments)?).await,
            ProgramTool::ExecuteProgram => {
                let arguments = parse_arguments(&arguments)?;
                let broker = Broker {
                    yard,
                    indexes: Arc::clone(&self.indexes),
                    own: self.name.clone(),
                    caller,
                    calls: self.settings.calls,
                    parallel: self.settings.parallel,
                    meter: ProgressMeter::default(),
                    ended: CancellationToken::new(),
                };
                Box::pin(self.execute(arguments, broker)).await
            }
        }
    }

    async fn inspect(&self, yard: &Yard, caller: &ProgramCaller, name: &str) -> Outcome {
        let catalog = yard.catalog();
        let visible =
            VisibleTools { catalog: &catalog, principal: &caller.record.principal, own: &self.name };
        if let Some(tool) = visible.tool(name) {
            return text_outcome(&[inspect::describe_tool(&tool), inspect::describe_usage(&visible, &tool)]);
        }
        let index = self.indexes.get(&catalog).await;
        let similar = similar_names(&visible, &index, name);
        match similar.as_slice() {
            [] => text_outcome(&[inspect::not_found(name)]),
            names => {
                text_outcome(&[inspect::not_found(name), format!("Similar names: {}", names.join(", "))])
            }
        }
    }

    async fn search(
        &self,
        yard: &Yard,
        caller: &ProgramCaller,
        arguments: &SearchArguments,
    ) -> Result<Outcome, HubError> {
        let catalog = yard.catalog();
        let index = self.indexes.get(&catalog).await;
        let visible =
            VisibleTools { catalog: &catalog, principal: &caller.record.principal, own: &self.name };
        let page = arguments.find(&visible, &index)?;
        Ok(text_outcome(&[arguments.render_text(&visible, &page)]))
    }
}

/// Returns a successful result with one text block for each text.
fn text_outcome(texts: &[String]) -> Outcome {
    let blocks: Vec<_> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    Outcome::success(to_raw(&json!({"content": blocks})))
}

/// Parses arguments. The hub has already validated them against the schema, but a number may still
/// be out of range.
fn parse_arguments<T: DeserializeOwned>(arguments: &Raw) -> Result<T, HubError> {
    serde_json::from_str(arguments.get())
        .map_err(|error| HubError::new(ErrorKind::InvalidArguments, error.to_string()))
}

impl Source for ProgramSource {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn prefix(&self) -> Prefix {
        Prefix::Plain
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer)
    }

    fn status(&self) -> SourceStatus {
        SourceStatus { since: self.since, ..SourceStatus::ready() }
    }

    fn call<'a>(&'a self, call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(self.perform(call))
    }
}
