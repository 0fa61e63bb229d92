//! The servers of a running yard as its sources.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Context;
use futures_util::future::join_all;
use toolyard_config::{Config, ServerEntry};
use toolyard_hub::{Source, SourceName, SourceState, Yard};
use toolyard_openapi::{HttpClients, OpenApiSource};
use toolyard_serve::{PlaceableServer, PlacedServer, PlacedServers, StartedServer};
use toolyard_tester::TesterServer;
use toolyard_upstream::{
    DedicatedClient, MisconfiguredServer, ServerPlacement, ServerSettings, Upstream, UpstreamContext,
};

/// The servers that were started, in start order.
pub(crate) struct RunningServers {
    yard: Arc<Yard>,
    pub(crate) context: UpstreamContext,
    mode: StartMode,
    /// HTTP clients for OpenAPI documents, created for the first document.
    http: Option<HttpClients>,
    /// The servers that run on one of several replicas only.
    placed: Option<Arc<PlacedServers>>,
    running: Vec<RunningServer>,
}

/// A source that was started and must be stopped.
pub(crate) enum RunningServer {
    Upstream(Arc<Upstream>),
    Document(Arc<OpenApiSource>),
    /// A server that one of several replicas runs.
    Placed(Arc<PlacedServer>),
}

impl RunningServer {
    fn source(&self) -> &dyn Source {
        match self {
            Self::Upstream(upstream) => &**upstream,
            Self::Document(document) => &**document,
            Self::Placed(placed) => &**placed,
        }
    }

    async fn stop(&self) {
        match self {
            Self::Upstream(upstream) => upstream.stop().await,
            Self::Document(document) => document.stop().await,
            Self::Placed(placed) => placed.stop().await,
        }
    }
}

/// How servers are started.
#[derive(Debug, Clone)]
pub(crate) enum StartMode {
    /// As sources shared by the clients of the yard.
    Shared,
    /// For a single client.
    SingleClient(DedicatedClient),
    /// Not at all: they are only known by name.
    NameOnly,
}

impl RunningServers {
    pub(crate) fn new(yard: Arc<Yard>, context: UpstreamContext, mode: StartMode) -> Self {
        Self { yard, context, mode, http: None, placed: None, running: Vec::new() }
    }

    /// Makes this yard one of several replicas. Must be called before a server is started.
    pub(crate) fn join_replicas(&mut self, placed: Arc<PlacedServers>) {
        self.placed = Some(placed);
    }

    /// Starts a server in the background and adds it to the yard, replacing a server of the same
    /// name.
    pub(crate) fn start(&mut self, entry: ServerEntry) -> anyhow::Result<()> {
        let client = match &self.mode {
            StartMode::NameOnly => return Ok(()),
            StartMode::Shared => None,
            StartMode::SingleClient(client) => Some(client.clone()),
        };
        let source: Arc<dyn Source> = match entry {
            ServerEntry::Ready(settings) => match (self.placed_servers(&settings), client) {
                (Some(placed), _) => {
                    let server = placed.add(self.placeable(*settings));
                    self.running.push(RunningServer::Placed(Arc::clone(&server)));
                    server
                }
                (None, client) => {
                    let context = self.context.clone();
                    let upstream = match client {
                        Some(client) => Upstream::start_dedicated(*settings, context, client),
                        None => Upstream::start(*settings, context),
                    };
                    self.running.push(RunningServer::Upstream(Arc::clone(&upstream)));
                    upstream
                }
            },
            ServerEntry::Document(settings) => {
                let http = self.http()?;
                let document = OpenApiSource::start(*settings, http, self.context.definitions.clone());
                self.running.push(RunningServer::Document(Arc::clone(&document)));
                document
            }
            ServerEntry::Broken(broken) => {
                let state = if broken.enabled { SourceState::Failed } else { SourceState::Disabled };
                let reason = broken.reason();
                Arc::new(MisconfiguredServer::new(broken.name, state, reason, broken.permissions))
            }
        };
        self.yard.add(source);
        Ok(())
    }

    /// Returns where to add a server that only one replica runs.
    fn placed_servers(&self, settings: &ServerSettings) -> Option<&Arc<PlacedServers>> {
        self.placed.as_ref().filter(|_| settings.placement == ServerPlacement::OneReplica)
    }

    fn placeable(&self, settings: ServerSettings) -> PlaceableServer {
        let (name, permissions) = (settings.name.clone(), settings.permissions.clone());
        let (start_timeout, context) = (settings.start_timeout, self.context.clone());
        PlaceableServer {
            name,
            permissions,
            start_timeout,
            definitions: context.definitions.clone(),
            start: Box::new(move || {
                let upstream = Upstream::start(settings.clone(), context.clone());
                let source = Arc::clone(&upstream) as Arc<dyn Source>;
                StartedServer { source, stop: Box::pin(async move { upstream.stop().await }) }
            }),
        }
    }

    /// Most yards have no documents, so these clients are created on demand.
    fn http(&mut self) -> anyhow::Result<HttpClients> {
        if let Some(http) = &self.http {
            return Ok(http.clone());
        }
        let http = HttpClients::new(&self.context.tls).context("cannot create the HTTP client")?;
        Ok(self.http.insert(http).clone())
    }

    /// Hands over a server to the caller, who stops it.
    pub(crate) fn take(&mut self, name: &SourceName) -> Option<RunningServer> {
        let at = self.running.iter().position(|server| server.source().name() == name)?;
        Some(self.running.remove(at))
    }

    /// The sources that were started. Servers that could not be started are not included.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &dyn Source> {
        self.running.iter().map(RunningServer::source)
    }

    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.running.iter().filter_map(|server| match server {
            RunningServer::Upstream(upstream) => Some(upstream),
            RunningServer::Document(_) | RunningServer::Placed(_) => None,
        })
    }

    pub(crate) async fn stop(&self) {
        Self::stop_all(&self.running).await;
    }

    /// Stops servers in parallel.
    pub(crate) async fn stop_all(servers: &[RunningServer]) {
        join_all(servers.iter().map(RunningServer::stop)).await;
    }
}

/// The servers by name, for the tester.
pub(crate) fn tester_servers(config: &Config) -> BTreeMap<String, TesterServer> {
    let known = |entry: &ServerEntry| match entry {
        ServerEntry::Ready(settings) => TesterServer::Ready(settings.clone()),
        ServerEntry::Document(_) => {
            TesterServer::Invalid("this is an OpenAPI document, not an MCP server".to_owned())
        }
        ServerEntry::Broken(broken) => TesterServer::Invalid(broken.reason()),
    };
    config.servers().iter().map(|entry| (entry.name().to_string(), known(entry))).collect()
}

/// The caller's headers that some server is configured to receive.
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
