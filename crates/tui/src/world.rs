//! What every screen can see: the yard as it is, the calls of this session, the log, and the time.

use std::collections::HashMap;

use toolyard_hub::{PastCall, SourceName, State, Status};

use crate::calls::Calls;
use crate::log::Log;
use crate::message::{Now, Settings, Snapshot};
use crate::theme::Theme;
use crate::thing::Thing;

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) settings: Settings,
    pub(crate) theme: Theme,
    pub(crate) now: Now,
    pub(crate) yard: Snapshot,
    /// Grows whenever the yard offers something else.
    pub(crate) edition: u64,
    pub(crate) calls: Calls,
    pub(crate) log: Log,
    /// Why the yard cannot be reached, if it runs elsewhere and cannot.
    pub(crate) away: Option<String>,
    /// What the yard remembers of calls, if it remembers any.
    pub(crate) past: Option<Vec<PastCall>>,
    counts: HashMap<SourceName, Counts>,
}

/// How much a source offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) tools: usize,
    pub(crate) resources: usize,
    pub(crate) templates: usize,
    pub(crate) prompts: usize,
}

impl World {
    pub(crate) fn new(settings: Settings, yard: Snapshot, now: Now) -> Self {
        let theme = Theme { colour: settings.colour };
        let (calls, log, counts) = (Calls::default(), Log::default(), HashMap::new());
        let (away, past) = (None, None);
        let mut world = Self { settings, theme, now, yard, edition: 0, calls, log, away, past, counts };
        world.count();
        world
    }

    pub(crate) fn set_yard(&mut self, yard: Snapshot) {
        let same = std::ptr::eq(yard.view.catalog(), self.yard.view.catalog());
        self.yard = yard;
        if !same {
            self.edition += 1;
            self.count();
        }
    }

    pub(crate) fn counts(&self, source: &SourceName) -> Counts {
        self.counts.get(source).copied().unwrap_or_default()
    }

    /// Of all sources together.
    pub(crate) fn total(&self) -> Counts {
        self.counts.values().fold(Counts::default(), |sum, one| Counts {
            tools: sum.tools + one.tools,
            resources: sum.resources + one.resources,
            templates: sum.templates + one.templates,
            prompts: sum.prompts + one.prompts,
        })
    }

    pub(crate) fn status(&self, source: &SourceName) -> Option<&Status> {
        self.yard.sources.iter().find(|(name, _)| name == source).map(|(_, status)| status)
    }

    /// Why a thing cannot be used just now, if it cannot.
    pub(crate) fn trouble(&self, thing: &Thing) -> Option<String> {
        let source = thing.source();
        if thing.now(&self.yard.view).is_none() {
            return Some(format!("{source} does not offer this any more"));
        }
        let status = self.status(source)?;
        (status.state != State::Ready).then(|| format!("{source} is {}", status.state.as_str()))
    }

    fn count(&mut self) {
        let mut counts: HashMap<SourceName, Counts> = HashMap::new();
        let view = &self.yard.view;
        view.tools().for_each(|tool| counts.entry(tool.source.clone()).or_default().tools += 1);
        view.resources().for_each(|one| counts.entry(one.source.clone()).or_default().resources += 1);
        view.templates().for_each(|one| counts.entry(one.source.clone()).or_default().templates += 1);
        view.prompts().for_each(|one| counts.entry(one.source.clone()).or_default().prompts += 1);
        self.counts = counts;
    }
}
