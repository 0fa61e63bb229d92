//! Assembles a yard with its audit log, history, hooks, tester, programs and servers. Every command
//! that starts a yard assembles it here, and all of them stop it in the same order.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolyard_cluster::ClusterDatabase;
use toolyard_config::{Config, ConfigChange, ConfigWatcher, ServerEntry, diff};
use toolyard_hooks::HttpHooks;
use toolyard_hub::{Permissions, Principal, Source, Yard, YardLimits, YardSettings};
use toolyard_program::ProgramSource;
use toolyard_serve::Identity;
use toolyard_tester::{Tester, TesterServers, TesterSharing};

use crate::cluster::ClusterSharing;
use crate::configuration::ConfigInputs;
use crate::recording::{CallRecording, CallRecords};
use crate::servers::{RunningServers, StartMode, tester_servers};
use crate::signals::until_stopped;
use crate::terminal::{print_error, print_note};
use crate::upstream_setup::SharedUpstream;
use crate::{demo, programs, upstream_setup};

/// What a command needs in addition to the yard itself.
pub(crate) struct AssemblyOptions {
    pub(crate) servers: StartMode,
    pub(crate) records: CallRecords,
    pub(crate) tester: Option<TesterPlacement>,
    /// Whether the yard offers the tools that run programs.
    pub(crate) programs: bool,
    /// What the yard shares with other replicas.
    pub(crate) sharing: Option<ClusterSharing>,
    /// A minimum for the time limit of calls, regardless of the configuration.
    pub(crate) call_time: Option<Duration>,
}

impl AssemblyOptions {
    /// Only the servers.
    pub(crate) fn new(servers: StartMode) -> Self {
        let records = CallRecords::Audit;
        Self { servers, records, tester: None, programs: false, sharing: None, call_time: None }
    }
}

/// Where the tools of the tester are offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TesterPlacement {
    /// In a separate yard, so that they are not among the tools under test. Every session has its
    /// own connection.
    OwnYard,
    /// Among the tools of the yard.
    SharedYard,
    /// Instead of all other tools.
    Exclusive,
}

/// The tester and the yard that offers its tools.
pub(crate) struct RunningTester {
    pub(crate) source: Arc<Tester>,
    pub(crate) yard: Arc<Yard>,
}

/// A yard that runs until it is stopped.
pub(crate) struct RunningYard {
    pub(crate) yard: Arc<Yard>,
    pub(crate) servers: RunningServers,
    pub(crate) tester: Option<RunningTester>,
    pub(crate) programs: Option<Arc<ProgramSource>>,
    hooks: Arc<HttpHooks>,
    recording: CallRecording,
    sharing: Option<ClusterSharing>,
    /// The database of logins and tokens.
    pub(crate) database: Option<Arc<ClusterDatabase>>,
    /// The servers that the tester can connect to by name.
    tester_servers: TesterServers,
    followed: Option<FollowedConfig>,
}

/// The configuration whose changes the yard follows.
struct FollowedConfig {
    config: Config,
    inputs: ConfigInputs,
    watcher: ConfigWatcher,
    on_reload: Box<dyn Fn(&Config) + Send + Sync>,
}

impl RunningYard {
    /// Opens the audit log and the history and builds the yard. Starts no server.
    pub(crate) async fn assemble(config: &Config, options: AssemblyOptions) -> anyhow::Result<Self> {
        let shared = SharedUpstream::new(config)?;
        upstream_setup::apply_config(&shared.context, config);
        let recording = CallRecording::open(config, options.records, &shared.context).await?;
        Self::build(config, options, shared, recording)
    }

    fn build(
        config: &Config,
        options: AssemblyOptions,
        shared: SharedUpstream,
        recording: CallRecording,
    ) -> anyhow::Result<Self> {
        let SharedUpstream { context, database } = shared;
        let hooks = HttpHooks::new(context.tls.clone(), &config.hooks);
        let usual = config.limits();
        let call_time = options.call_time.unwrap_or_default().max(usual.call_time);
        let limits = YardLimits { call_time, ..usual };
        let sharing = options.sharing;
        let known = TesterServers::default();
        let tester = options.tester.map(|placement| {
            known.store(Arc::new(tester_servers(config)));
            let settings = config.tester.settings(match placement {
                TesterPlacement::OwnYard => TesterSharing::Session,
                TesterPlacement::SharedYard | TesterPlacement::Exclusive => TesterSharing::Process,
            });
            Tester::new(settings, context.clone(), Arc::clone(&known))
        });
        let new_yard = |settings: YardSettings| {
            Yard::new(recording.apply_to(YardSettings { limits: limits.clone(), ..settings }))
        };
        // A yard that only offers the tester has neither hooks nor the demo.
        let yard = match options.tester {
            Some(TesterPlacement::Exclusive) => new_yard(YardSettings::default()),
            _ => {
                let hooks: Arc<HttpHooks> = Arc::clone(&hooks);
                let settings = YardSettings { hooks: vec![hooks], ..YardSettings::default() };
                let yard = new_yard(match &sharing {
                    Some(sharing) => sharing.apply_to(settings),
                    None => settings,
                });
                if config.demo {
                    yard.add(demo::source());
                }
                yard
            }
        };
        let tester = tester.map(|source| {
            let yard = match options.tester {
                Some(TesterPlacement::OwnYard) => {
                    let settings =
                        YardSettings { quotas: Arc::clone(yard.quotas()), ..YardSettings::default() };
                    new_yard(match &sharing {
                        Some(sharing) => sharing.apply_to_annex(settings, Tester::NAME),
                        None => settings,
                    })
                }
                _ => Arc::clone(&yard),
            };
            yard.add(Arc::clone(&source) as Arc<dyn Source>);
            RunningTester { source, yard }
        });
        let programs = options.programs.then(|| programs::build(&config.programs, &yard)).transpose()?;
        if let Some(programs) = &programs {
            yard.add(Arc::clone(programs) as Arc<dyn Source>);
        }
        let servers = RunningServers::new(Arc::clone(&yard), context, options.servers);
        let tester_servers = known;
        Ok(Self {
            yard,
            servers,
            tester,
            programs,
            hooks,
            recording,
            sharing,
            database,
            tester_servers,
            followed: None,
        })
    }

    /// Starts the servers of the configuration in parallel in the background, and applies changes
    /// of its files from then on. Calls `on_reload` with every configuration that replaces this
    /// one.
    pub(crate) fn start_and_follow(
        &mut self,
        config: Config,
        given: ConfigInputs,
        on_reload: impl Fn(&Config) + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        // Install the SIGHUP handler first: without one, SIGHUP ends the process.
        let watcher = ConfigWatcher::new(&config)?;
        self.start_servers(config.servers().to_vec())?;
        self.followed =
            Some(FollowedConfig { config, inputs: given, watcher, on_reload: Box::new(on_reload) });
        Ok(())
    }

    /// Starts these servers in parallel in the background.
    pub(crate) fn start_servers(&mut self, entries: Vec<ServerEntry>) -> anyhow::Result<()> {
        entries.into_iter().try_for_each(|entry| self.servers.start(entry))
    }

    /// Runs `work`, then stops the yard. The first signal cancels `stop`, which `work` must
    /// observe. After a second signal the result is `None`, and only the audit log and the history
    /// are flushed.
    pub(crate) async fn run<T>(
        mut self,
        stop: CancellationToken,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<Option<T>> {
        let running = Box::pin(async {
            let done = tokio::select! {
                done = work => done,
                never = self.reload_on_change() => match never {},
            };
            self.stop_sources().await;
            done
        });
        let done = until_stopped(stop, running).await;
        self.recording.close().await;
        done?.transpose()
    }

    /// Stops everything in dependency order: the tester and programs, then the servers that they
    /// call, then the recording of calls.
    pub(crate) async fn stop(&self) {
        self.stop_sources().await;
        self.recording.close().await;
    }

    async fn stop_sources(&self) {
        if let Some(tester) = &self.tester {
            tester.source.stop().await;
        }
        if let Some(programs) = &self.programs {
            programs.stop().await;
        }
        self.servers.stop().await;
        if let Some(sharing) = &self.sharing {
            sharing.stop().await;
        }
        if let Some(database) = &self.database {
            database.close().await;
        }
    }

    /// Reloads the configuration whenever one of its files changes or SIGHUP arrives.
    async fn reload_on_change(&mut self) -> Infallible {
        let Some(mut followed) = self.followed.take() else { return std::future::pending().await };
        loop {
            match followed.watcher.changed().await {
                ConfigChange::File(path) => print_note(&format!("{} has changed", path.display())),
                ConfigChange::Sighup => print_note("received SIGHUP, reloading the configuration"),
            }
            // Problems have been printed. The yard keeps its current configuration.
            let Some(new) = followed.inputs.load() else { continue };
            followed.watcher.set_config(&new);
            let old = std::mem::replace(&mut followed.config, new);
            self.apply(&followed.config);
            (followed.on_reload)(&followed.config);
            self.replace_servers(&old, &followed.config).await;
        }
    }

    /// Applies everything except the servers.
    fn apply(&self, new: &Config) {
        upstream_setup::apply_config(&self.servers.context, new);
        self.tester_servers.store(Arc::new(tester_servers(new)));
        self.yard.set_limits(new.limits());
        self.hooks.replace(&new.hooks);
    }

    /// Replaces the servers that changed. Unchanged servers keep running, and replaced servers
    /// finish their calls first.
    async fn replace_servers(&mut self, old: &Config, new: &Config) {
        let diff = diff(old, new);
        let mut ending = Vec::new();
        for name in &diff.removed {
            self.yard.remove(name);
            ending.extend(self.servers.take(name));
        }
        for entry in diff.changed.iter().chain(&diff.added) {
            ending.extend(self.servers.take(entry.name()));
            if let Err(error) = self.servers.start((*entry).clone()) {
                print_error(&format!("cannot start server `{}`: {error:#}", entry.name()));
            }
        }
        print_note(&format!(
            "servers: {} added, {} changed, {} removed",
            diff.added.len(),
            diff.changed.len(),
            diff.removed.len()
        ));
        RunningServers::stop_all(&ending).await;
    }
}

/// The identity of the tester as an MCP server.
pub(crate) fn tester_identity() -> Identity {
    Identity {
        name: Tester::NAME.to_owned(),
        title: Some("MCP server tester".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(
            "Connect to one MCP server with connect_to_server, look at everything that it advertises, call its tools, \
             read its resources, get its prompts, and disconnect. Answers are verbatim and timed."
                .to_owned(),
        ),
    }
}

/// The principal of the user who started this process, and of the token that the process printed.
pub(crate) fn owner(config: &Config) -> Principal {
    match &config.permissions {
        None => Principal::owner(),
        Some(list) => {
            let held: BTreeSet<String> = list.iter().cloned().collect();
            Principal::new("owner", Permissions::Only(held))
        }
    }
}
