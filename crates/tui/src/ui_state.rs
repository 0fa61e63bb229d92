//! The state that every screen reads: the yard, the calls of this session, the log, and the time.

use std::collections::HashMap;

use toolyard_hub::{PastCall, SourceName, SourceState, SourceStatus};

use crate::calls::SessionCalls;
use crate::catalog_item::CatalogItem;
use crate::log::UiLog;
use crate::message::{ClockTime, UiReplicas, UiSettings, YardSnapshot};
use crate::theme::Theme;

#[derive(Debug)]
pub(crate) struct UiState {
    pub(crate) settings: UiSettings,
    pub(crate) theme: Theme,
    pub(crate) now: ClockTime,
    pub(crate) yard: YardSnapshot,
    /// Increases whenever the catalog changes.
    pub(crate) edition: u64,
    pub(crate) calls: SessionCalls,
    pub(crate) log: UiLog,
    /// Why a remote yard cannot be reached; `None` while it is connected.
    pub(crate) disconnected: Option<String>,
    /// The replicas of a remote yard, if it has several.
    pub(crate) replicas: Option<UiReplicas>,
    /// The recorded calls of the yard, if it has a history.
    pub(crate) past: Option<Vec<PastCall>>,
    counts: HashMap<SourceName, ItemCounts>,
}

/// How many items a source offers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ItemCounts {
    pub(crate) tools: usize,
    pub(crate) resources: usize,
    pub(crate) templates: usize,
    pub(crate) prompts: usize,
}

impl UiState {
    pub(crate) fn new(settings: UiSettings, yard: YardSnapshot, now: ClockTime) -> Self {
        let theme = Theme { color: settings.color };
        let (calls, log, counts) = (SessionCalls::default(), UiLog::default(), HashMap::new());
        let mut world = Self {
            settings,
            theme,
            now,
            yard,
            edition: 0,
            calls,
            log,
            disconnected: None,
            replicas: None,
            past: None,
            counts,
        };
        world.recount();
        world
    }

    pub(crate) fn set_yard(&mut self, yard: YardSnapshot) {
        let same = std::ptr::eq(yard.view.catalog(), self.yard.view.catalog());
        self.yard = yard;
        if !same {
            self.edition += 1;
            self.recount();
        }
    }

    pub(crate) fn counts(&self, source: &SourceName) -> ItemCounts {
        self.counts.get(source).copied().unwrap_or_default()
    }

    /// Returns the totals of all sources.
    pub(crate) fn total(&self) -> ItemCounts {
        self.counts.values().fold(ItemCounts::default(), |sum, one| ItemCounts {
            tools: sum.tools + one.tools,
            resources: sum.resources + one.resources,
            templates: sum.templates + one.templates,
            prompts: sum.prompts + one.prompts,
        })
    }

    pub(crate) fn status(&self, source: &SourceName) -> Option<&SourceStatus> {
        self.yard.sources.iter().find(|(name, _)| name == source).map(|(_, status)| status)
    }

    /// Returns why an item cannot be used right now, if so.
    pub(crate) fn unavailable_reason(&self, thing: &CatalogItem) -> Option<String> {
        let source = thing.source();
        if thing.current(&self.yard.view).is_none() {
            return Some(format!("{source} no longer offers this item"));
        }
        let status = self.status(source)?;
        (status.state != SourceState::Ready).then(|| format!("{source} is {}", status.state.label()))
    }

    fn recount(&mut self) {
        let mut counts: HashMap<SourceName, ItemCounts> = HashMap::new();
        let view = &self.yard.view;
        view.tools().for_each(|tool| counts.entry(tool.source.clone()).or_default().tools += 1);
        view.resources().for_each(|one| counts.entry(one.source.clone()).or_default().resources += 1);
        view.templates().for_each(|one| counts.entry(one.source.clone()).or_default().templates += 1);
        view.prompts().for_each(|one| counts.entry(one.source.clone()).or_default().prompts += 1);
        self.counts = counts;
    }
}
