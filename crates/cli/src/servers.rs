//! The servers of the configuration as sources of the yard, kept in step with the files while it runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::join_all;
use toolyard_config::{Config, ConfigChange, ConfigWatcher, ServerEntry, diff};
use toolyard_hub::{Source, SourceName, SourceState, Yard};
use toolyard_openapi::{HttpClients, OpenApiSource};
use toolyard_tester::{TesterServer, TesterServers};
use toolyard_upstream::{DedicatedClient, MisconfiguredServer, Upstream, UpstreamContext};

use crate::configuration::ConfigInputs;
use crate::upstream_setup;

/// Every server that was started, by name.
pub(crate) struct ConfiguredServers {
    yard: Arc<Yard>,
    common: UpstreamContext,
    config: Config,
    given: ConfigInputs,
    /// For documents.
    http: HttpClients,
    running: HashMap<SourceName, RunningServer>,
    manned: StartMode,
    /// Every server by name, for whoever connects to one by itself.
    directory: TesterServers,
    watch: ConfigWatcher,
    reloaded: Box<dyn Fn(&Config) + Send + Sync>,
}

/// A source that was started, and must be stopped.
enum RunningServer {
    Upstream(Arc<Upstream>),
    Document(Arc<OpenApiSource>),
}

impl RunningServer {
    async fn stop(&self) {
        match self {
            Self::Upstream(upstream) => upstream.stop().await,
            Self::Document(document) => document.stop().await,
        }
    }
}

/// What a fleet works with.
pub(crate) struct ServerStartOptions {
    pub(crate) common: UpstreamContext,
    pub(crate) manned: StartMode,
    /// Where every server is put by name, and kept in step with the configuration.
    pub(crate) directory: TesterServers,
}

/// Whether the servers of the configuration are started.
#[derive(Debug, Clone)]
pub(crate) enum StartMode {
    /// All of them, as sources of the yard that clients share.
    Shared,
    /// All of them, for one client alone.
    SingleClient(DedicatedClient),
    /// None: they are only known by name.
    NameOnly,
}

impl ConfiguredServers {
    /// Starts the servers of the configuration, in parallel and in the background.
    /// `reloaded` is told of every configuration that takes the place of this one.
    pub(crate) fn start(
        yard: Arc<Yard>,
        config: Config,
        given: ConfigInputs,
        crew: ServerStartOptions,
        reloaded: impl Fn(&Config) + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let ServerStartOptions { common, manned, directory } = crew;
        upstream_setup::apply_config(&common, &config);
        // From the very start: a SIGHUP that comes before anybody listens would end the process.
        let watch = ConfigWatcher::new(&config)?;
        let running = HashMap::new();
        directory.store(Arc::new(directory_of(&config)));
        let reloaded = Box::new(reloaded);
        let http = HttpClients::new(&common.tls).context("cannot set up HTTP")?;
        let mut fleet =
            Self { yard, common, config, given, http, running, manned, directory, watch, reloaded };
        let entries: Vec<ServerEntry> = fleet.config.servers().to_vec();
        for entry in &entries {
            fleet.add(entry);
        }
        Ok(fleet)
    }

    /// Reads the configuration again whenever a file of it changes, or SIGHUP comes. Never ends by itself.
    pub(crate) async fn reload_on_change(&mut self) -> anyhow::Result<()> {
        loop {
            match self.watch.changed().await {
                ConfigChange::File(path) => eprintln!("toolyard: {} has changed", path.display()),
                ConfigChange::HangUp => eprintln!("toolyard: reading the configuration again"),
            }
            // What cannot be used was told; what runs goes on as it is.
            if let Some(new) = self.given.load() {
                self.watch.set_files_of(&new);
                self.become_like(new).await;
            }
        }
    }

    /// Servers that did not change are left alone; calls of those that did finish first.
    async fn become_like(&mut self, new: Config) {
        let old = std::mem::replace(&mut self.config, new);
        upstream_setup::apply_config(&self.common, &self.config);
        self.directory.store(Arc::new(directory_of(&self.config)));
        self.yard.set_limits(self.config.limits());
        (self.reloaded)(&self.config);
        let diff = diff(&old, &self.config);
        let gone: Vec<SourceName> = diff.removed.iter().map(|name| (*name).clone()).collect();
        let changed: Vec<ServerEntry> = diff.changed.into_iter().cloned().collect();
        let added: Vec<ServerEntry> = diff.added.into_iter().cloned().collect();
        let mut ending = Vec::new();
        for name in &gone {
            self.yard.remove(name);
            ending.extend(self.running.remove(name));
        }
        for entry in changed.iter().chain(&added) {
            ending.extend(self.running.remove(entry.name()));
            self.add(entry);
        }
        eprintln!(
            "toolyard: {} servers added, {} changed, {} removed",
            added.len(),
            changed.len(),
            gone.len()
        );
        join_all(ending.iter().map(RunningServer::stop)).await;
    }

    /// Ends everything that was started.
    pub(crate) async fn stop(&self) {
        join_all(self.running.values().map(RunningServer::stop)).await;
    }

    fn add(&mut self, entry: &ServerEntry) {
        let visitor = match &self.manned {
            StartMode::NameOnly => return,
            StartMode::Shared => None,
            StartMode::SingleClient(visitor) => Some(visitor.clone()),
        };
        let source: Arc<dyn Source> = match entry {
            ServerEntry::Ready(settings) => {
                let (settings, common) = ((**settings).clone(), self.common.clone());
                let name = settings.name.clone();
                let upstream = match visitor {
                    Some(visitor) => Upstream::start_for(settings, common, visitor),
                    None => Upstream::start(settings, common),
                };
                self.running.insert(name, RunningServer::Upstream(Arc::clone(&upstream)));
                upstream
            }
            ServerEntry::Document(settings) => {
                let document = OpenApiSource::start(
                    (**settings).clone(),
                    self.http.clone(),
                    self.common.definitions.clone(),
                );
                self.running.insert(settings.name.clone(), RunningServer::Document(Arc::clone(&document)));
                document
            }
            ServerEntry::Broken(broken) => {
                let state = if broken.enabled { SourceState::Failed } else { SourceState::Disabled };
                let permissions = broken.permissions.clone();
                Arc::new(MisconfiguredServer::new(broken.name.clone(), state, broken.reason(), permissions))
            }
        };
        self.yard.add(source);
    }
}

fn directory_of(config: &Config) -> BTreeMap<String, TesterServer> {
    let known = |entry: &ServerEntry| match entry {
        ServerEntry::Ready(settings) => TesterServer::Ready(settings.clone()),
        ServerEntry::Document(_) => {
            TesterServer::Invalid("it is an OpenAPI document, no MCP server".to_owned())
        }
        ServerEntry::Broken(broken) => TesterServer::Invalid(broken.reason()),
    };
    config.servers().iter().map(|entry| (entry.name().to_string(), known(entry))).collect()
}

/// The headers of callers that some server is to be handed.
pub(crate) fn forwarded_headers(config: &Config) -> Vec<String> {
    let mut names: Vec<String> = config
        .servers()
        .iter()
        .filter_map(|entry| match entry {
            ServerEntry::Ready(settings) => Some(&settings.forward_headers),
            ServerEntry::Document(settings) => Some(&settings.forward_headers),
            ServerEntry::Broken(_) => None,
        })
        .flat_map(|headers| headers.iter().map(|name| name.to_ascii_lowercase()))
        .collect();
    names.sort();
    names.dedup();
    names
}
