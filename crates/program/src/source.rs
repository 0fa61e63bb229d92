//! Programs as a source of a yard: three tools about all the others.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    BoxFuture, Call, Error, Kind, Offer, Outcome, Prefix, Raw, Source, SourceName, Status, Target, Yard,
};

use crate::broker::{Broker, Caller};
use crate::definitions::{Inspected, Verb, offer};
use crate::engine::Engine;
use crate::find::Seen;
use crate::inspect;
use crate::meter::Meter;
use crate::search::{Indexes, Wanted, close};
use crate::settings::ProgramSettings;
use crate::slots::ProgramSlots;

/// The three tools, and what they work with.
#[derive(Debug)]
pub struct Programs {
    name: SourceName,
    since: Instant,
    offer: Arc<Offer>,
    /// The yard whose tools programs call. It owns this source, so that this must not own it.
    yard: Weak<Yard>,
    pub(crate) engine: Arc<Engine>,
    pub(crate) settings: ProgramSettings,
    pub(crate) slots: ProgramSlots,
    indexes: Arc<Indexes>,
    /// Where the next program prints to, if somebody wants to follow it.
    pub(crate) followed: Mutex<Option<watch::Sender<Vec<u8>>>>,
}

impl Programs {
    /// The name of this source.
    pub const NAME: &'static str = "programs";

    pub fn new(yard: &Arc<Yard>, engine: Arc<Engine>, settings: ProgramSettings) -> Arc<Self> {
        Arc::new(Self {
            name: SourceName::new(Self::NAME),
            since: Instant::now(),
            offer: offer(&settings),
            yard: Arc::downgrade(yard),
            engine,
            slots: ProgramSlots::new(settings.programs),
            settings,
            indexes: Arc::default(),
            followed: Mutex::default(),
        })
    }

    /// What the next program prints, all of it so far, as it prints it.
    pub fn follow_next(&self) -> watch::Receiver<Vec<u8>> {
        let (printing, printed) = watch::channel(Vec::new());
        *self.followed.lock().unwrap_or_else(PoisonError::into_inner) = Some(printing);
        printed
    }

    /// Ends every program that is running.
    pub async fn stop(&self) {
        self.slots.close();
        self.engine.stop().await;
    }

    async fn perform(&self, call: Call) -> Result<Outcome, Error> {
        let gone = || Error::new(Kind::NotConnected, "the yard is gone");
        let yard = self.yard.upgrade().ok_or_else(gone)?;
        let Target::Tool { name, arguments } = call.target else {
            return Err(Error::new(Kind::Bug, "programs offer tools only"));
        };
        let unknown = || Error::new(Kind::UnknownTool, format!("unknown tool {name}"));
        let caller = Caller {
            principal: call.principal,
            context: call.context,
            deadline: call.deadline,
            priority: call.priority,
            cancel: call.cancel,
            meta: call.meta,
            client: call.client,
        };
        yard.settle(self.settings.start_wait).await;
        match Verb::named(&name).ok_or_else(unknown)? {
            Verb::InspectTool => {
                Ok(self.inspect(&yard, &caller, &read::<Inspected>(&arguments)?.tool_name).await)
            }
            Verb::SearchTools => self.search(&yard, &caller, &read(&arguments)?).await,
            Verb::ExecuteProgram => {
                let order = read(&arguments)?;
                let broker = Broker {
                    yard,
                    indexes: Arc::clone(&self.indexes),
                    own: self.name.clone(),
                    caller,
                    calls: self.settings.calls,
                    parallel: self.settings.parallel,
                    meter: Meter::default(),
                    ended: CancellationToken::new(),
                };
                Box::pin(self.execute(order, broker)).await
            }
        }
    }

    async fn inspect(&self, yard: &Yard, caller: &Caller, name: &str) -> Outcome {
        let catalog = yard.catalog();
        let seen = Seen { catalog: &catalog, principal: &caller.principal, own: &self.name };
        if let Some(tool) = seen.tool(name) {
            return said(&[inspect::described(&tool), inspect::beside(&seen, &tool)]);
        }
        let index = self.indexes.of(&catalog).await;
        let close = close(&seen, &index, name);
        match close.as_slice() {
            [] => said(&[inspect::not_found(name)]),
            some => said(&[inspect::not_found(name), format!("Close to it: {}", some.join(", "))]),
        }
    }

    async fn search(&self, yard: &Yard, caller: &Caller, wanted: &Wanted) -> Result<Outcome, Error> {
        let catalog = yard.catalog();
        let index = self.indexes.of(&catalog).await;
        let seen = Seen { catalog: &catalog, principal: &caller.principal, own: &self.name };
        let found = wanted.find(&seen, &index)?;
        Ok(said(&[wanted.told(&seen, &found)]))
    }
}

/// A result of texts.
fn said(texts: &[String]) -> Outcome {
    let blocks: Vec<_> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
    Outcome::success(to_raw(&json!({"content": blocks})))
}

/// The corridor has checked them against the schema; numbers may still be larger than any that is meant.
fn read<T: DeserializeOwned>(arguments: &Raw) -> Result<T, Error> {
    serde_json::from_str(arguments.get())
        .map_err(|error| Error::new(Kind::InvalidArguments, error.to_string()))
}

impl Source for Programs {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn prefix(&self) -> Prefix {
        Prefix::Plain
    }

    fn offer(&self) -> Arc<Offer> {
        Arc::clone(&self.offer)
    }

    fn status(&self) -> Status {
        Status { since: self.since, ..Status::ready() }
    }

    fn call<'a>(&'a self, call: Call) -> BoxFuture<'a, Result<Outcome, Error>> {
        Box::pin(self.perform(call))
    }
}
