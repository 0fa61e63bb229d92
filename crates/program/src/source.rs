//! Programs as a source of a yard: three tools about all the others.

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

/// The three tools, and what they work with.
#[derive(Debug)]
pub struct ProgramSource {
    name: SourceName,
    since: Instant,
    offer: Arc<SourceOffer>,
    /// The yard whose tools programs call. It owns this source, so that this must not own it.
    yard: Weak<Yard>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: ProgramSettings,
    pub(crate) slots: ProgramLimiter,
    indexes: Arc<SearchIndexCache>,
    /// Where the next program prints to, if somebody wants to follow it.
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

    /// What the next program prints, all of it so far, as it prints it.
    pub fn watch_next_output(&self) -> watch::Receiver<Vec<u8>> {
        let (printing, printed) = watch::channel(Vec::new());
        *self.followed.lock() = Some(printing);
        printed
    }

    /// Ends every program that is running.
    pub async fn stop(&self) {
        self.slots.close();
        self.engine.stop().await;
    }

    async fn perform(&self, call: SourceCall) -> Result<Outcome, HubError> {
        let gone = || HubError::new(ErrorKind::NotConnected, "the yard is gone");
        let yard = self.yard.upgrade().ok_or_else(gone)?;
        let SourceTarget::Tool { name, arguments } = call.target else {
            return Err(HubError::new(ErrorKind::Bug, "programs offer tools only"));
        };
        let unknown = || HubError::new(ErrorKind::UnknownTool, format!("unknown tool {name}"));
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
                let order = parse_arguments(&arguments)?;
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
                Box::pin(self.execute(order, broker)).await
            }
        }
    }

    async fn inspect(&self, yard: &Yard, caller: &ProgramCaller, name: &str) -> Outcome {
        let catalog = yard.catalog();
        let seen = VisibleTools { catalog: &catalog, principal: &caller.record.principal, own: &self.name };
        if let Some(tool) = seen.tool(name) {
            return text_outcome(&[inspect::describe_tool(&tool), inspect::describe_usage(&seen, &tool)]);
        }
        let index = self.indexes.get(&catalog).await;
        let close = similar_names(&seen, &index, name);
        match close.as_slice() {
            [] => text_outcome(&[inspect::not_found(name)]),
            some => text_outcome(&[inspect::not_found(name), format!("Close to it: {}", some.join(", "))]),
        }
    }

    async fn search(
        &self,
        yard: &Yard,
        caller: &ProgramCaller,
        wanted: &SearchArguments,
    ) -> Result<Outcome, HubError> {
        let catalog = yard.catalog();
        let index = self.indexes.get(&catalog).await;
        let seen = VisibleTools { catalog: &catalog, principal: &caller.record.principal, own: &self.name };
        let found = wanted.find(&seen, &index)?;
        Ok(text_outcome(&[wanted.render_text(&seen, &found)]))
    }
}

/// A result of texts.
fn text_outcome(texts: &[String]) -> Outcome {
    let blocks: Vec<_> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    Outcome::success(to_raw(&json!({"content": blocks})))
}

/// The corridor has checked them against the schema; numbers may still be larger than any that is meant.
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
