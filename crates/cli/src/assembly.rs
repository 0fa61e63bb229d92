//! A yard with everything around it: records, hooks, the tester, programs and servers. Every verb that
//! brings up a yard assembles it here, and all of them stop it in the same order.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolyard_config::{Config, ConfigChange, ConfigWatcher, ServerEntry, diff};
use toolyard_hooks::HttpHooks;
use toolyard_hub::{Permissions, Principal, Source, Yard, YardLimits, YardSettings};
use toolyard_program::ProgramSource;
use toolyard_serve::Identity;
use toolyard_tester::{Tester, TesterServers, TesterSharing};

use crate::configuration::ConfigInputs;
use crate::recording::{CallRecording, CallRecords};
use crate::servers::{RunningServers, StartMode, tester_servers};
use crate::signals::until_stopped;
use crate::{demo, programs, upstream_setup};

/// What a verb wants beside the yard itself.
pub(crate) struct AssemblyOptions {
    pub(crate) servers: StartMode,
    pub(crate) records: CallRecords,
    pub(crate) tester: Option<TesterPlacement>,
    /// Whether there are the tools that run programs.
    pub(crate) programs: bool,
    /// Calls may take at least this long, whatever the configuration says.
    pub(crate) call_time: Option<Duration>,
}

impl AssemblyOptions {
    /// Just the servers.
    pub(crate) fn new(servers: StartMode) -> Self {
        Self { servers, records: CallRecords::Audit, tester: None, programs: false, call_time: None }
    }
}

/// Where the tools of the tester are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TesterPlacement {
    /// In a yard of their own, so that they are not among the tools that they test. Every session has
    /// its own connection.
    OwnYard,
    /// Among the tools of the yard.
    SharedYard,
    /// In place of all other tools.
    Exclusive,
}

/// The tester, and the yard that offers its tools.
pub(crate) struct RunningTester {
    pub(crate) source: Arc<Tester>,
    pub(crate) yard: Arc<Yard>,
}

/// A yard that is up, until it is stopped.
pub(crate) struct RunningYard {
    pub(crate) yard: Arc<Yard>,
    pub(crate) servers: RunningServers,
    pub(crate) tester: Option<RunningTester>,
    pub(crate) programs: Option<Arc<ProgramSource>>,
    hooks: Arc<HttpHooks>,
    recording: CallRecording,
    /// The servers that the tester knows by name.
    tester_servers: TesterServers,
    followed: Option<FollowedConfig>,
}

/// The configuration that the yard is kept in step with.
struct FollowedConfig {
    config: Config,
    inputs: ConfigInputs,
    watcher: ConfigWatcher,
    on_reload: Box<dyn Fn(&Config) + Send + Sync>,
}

impl RunningYard {
    /// Opens the records and builds the yard. No server is started yet.
    pub(crate) fn assemble(config: &Config, options: AssemblyOptions) -> anyhow::Result<Self> {
        let context = upstream_setup::build_context()?;
        upstream_setup::apply_config(&context, config);
        let recording = CallRecording::open(config, options.records)?;
        let hooks = HttpHooks::new(context.tls.clone(), &config.hooks);
        let usual = config.limits();
        let call_time = options.call_time.unwrap_or_default().max(usual.call_time);
        let limits = YardLimits { call_time, ..usual };
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
        // A yard of the tester alone has neither hooks nor the demo.
        let yard = match options.tester {
            Some(TesterPlacement::Exclusive) => new_yard(YardSettings::default()),
            _ => {
                let hooks: Arc<HttpHooks> = Arc::clone(&hooks);
                let yard = new_yard(YardSettings { hooks: vec![hooks], ..YardSettings::default() });
                if config.demo {
                    yard.add(demo::source());
                }
                yard
            }
        };
        let tester = tester.map(|source| {
            let yard = match options.tester {
                Some(TesterPlacement::OwnYard) => {
                    new_yard(YardSettings { quotas: Arc::clone(yard.quotas()), ..YardSettings::default() })
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
        Ok(Self { yard, servers, tester, programs, hooks, recording, tester_servers: known, followed: None })
    }

    /// Starts the servers of the configuration, in parallel and in the background, and keeps the yard in
    /// step with its files from then on. `on_reload` is called with every configuration that takes the
    /// place of this one.
    pub(crate) fn start_and_follow(
        &mut self,
        config: Config,
        given: ConfigInputs,
        on_reload: impl Fn(&Config) + Send + Sync + 'static,
    ) -> anyhow::Result<()> {
        // Before anything else: a SIGHUP that nothing listens for ends the process.
        let watcher = ConfigWatcher::new(&config)?;
        self.start_servers(config.servers().to_vec())?;
        self.followed =
            Some(FollowedConfig { config, inputs: given, watcher, on_reload: Box::new(on_reload) });
        Ok(())
    }

    /// Starts these servers, in parallel and in the background.
    pub(crate) fn start_servers(&mut self, entries: Vec<ServerEntry>) -> anyhow::Result<()> {
        entries.into_iter().try_for_each(|entry| self.servers.start(entry))
    }

    /// Does `work` and stops. A first signal cancels `stop`, which `work` is to obey; after a second one
    /// the result is `None`, and nothing is waited for but the records.
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

    /// Stops everything, users before what they use: the tester and programs, then the servers that they
    /// call, then the records of all calls.
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
    }

    /// Reads the configuration again whenever one of its files changes, or SIGHUP comes.
    async fn reload_on_change(&mut self) -> Infallible {
        let Some(mut followed) = self.followed.take() else { return std::future::pending().await };
        loop {
            match followed.watcher.changed().await {
                ConfigChange::File(path) => eprintln!("toolyard: {} has changed", path.display()),
                ConfigChange::Sighup => eprintln!("toolyard: reading the configuration again"),
            }
            // What cannot be used has been reported; the yard goes on as it is.
            let Some(new) = followed.inputs.load() else { continue };
            followed.watcher.set_config(&new);
            let old = std::mem::replace(&mut followed.config, new);
            self.apply(&followed.config);
            (followed.on_reload)(&followed.config);
            self.replace_servers(&old, &followed.config).await;
        }
    }

    /// Everything but the servers themselves.
    fn apply(&self, new: &Config) {
        upstream_setup::apply_config(&self.servers.context, new);
        self.tester_servers.store(Arc::new(tester_servers(new)));
        self.yard.set_limits(new.limits());
        self.hooks.replace(&new.hooks);
    }

    /// Servers that did not change are left alone; calls of those that did finish first.
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
                eprintln!("toolyard: cannot start {}: {error:#}", entry.name());
            }
        }
        eprintln!(
            "toolyard: {} servers added, {} changed, {} removed",
            diff.added.len(),
            diff.changed.len(),
            diff.removed.len()
        );
        RunningServers::stop_all(&ending).await;
    }
}

/// Who the tester says it is.
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

/// The principal of the person who started this process, and of the token that it printed.
pub(crate) fn owner(config: &Config) -> Principal {
    match &config.permissions {
        None => Principal::owner(),
        Some(list) => {
            let held: BTreeSet<String> = list.iter().cloned().collect();
            Principal::new("owner", Permissions::Only(held))
        }
    }
}
