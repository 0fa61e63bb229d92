//! The yard for the time of one command: only the servers that it needs, each for this one client alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolyard_config::{Config, ServerEntry};
use toolyard_hub::{
    AuthStatus, ClientCapabilities, ErrorKind, HubError, LogLevel, Principal, Secret, Source, SourceName,
    SourceState, Yard, nearest,
};
use toolyard_upstream::{
    DedicatedClient, ServerListKind, ServerSettings, TransportSettings, Upstream, UrlKind, UrlSettings,
};

use crate::Exit;
use crate::args::{AdHocServerArgs, ServerSelectionArgs};
use crate::assembly::{self, AssemblyOptions, RunningYard};
use crate::clean::clean_line;
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::name_cache::{self, NameCache};
use crate::servers::StartMode;
use crate::terminal::{self, note, note_detail};

pub(crate) mod ad_hoc;
mod readiness;

/// How a token is said that belongs to nothing in a configuration.
const HEADER: &str = "--header \"Authorization: Bearer TOKEN\"";

/// What a command needs the servers for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerSelection<'a> {
    /// All of them, as far as they can be had.
    All,
    /// This one.
    Server(&'a str),
    /// Whichever offers a thing of this name: only the server that the name begins with, if it begins with one.
    Named(&'a str),
}

/// What a command wants of the servers.
#[derive(Debug, Clone)]
pub(crate) struct OneShotOptions<'a> {
    pub(crate) selection: ServerSelection<'a>,
    pub(crate) lists: &'a [ServerListKind],
    /// How long the call may take, if that was said.
    pub(crate) call_time: Option<Duration>,
}

impl<'a> OneShotOptions<'a> {
    pub(crate) fn new(selection: ServerSelection<'a>, lists: &'a [ServerListKind]) -> Self {
        Self { selection, lists, call_time: None }
    }
}

/// A yard that is up, until it is closed.
pub(crate) struct OneShotYard {
    pub(crate) yard: Arc<Yard>,
    pub(crate) principal: Principal,
    running: RunningYard,
    /// Servers that are not there, though they were wanted.
    pub(crate) unavailable: Vec<UnavailableServer>,
    /// Servers that are switched off.
    pub(crate) disabled: Vec<SourceName>,
}

/// Why a server is not there.
#[derive(Debug)]
pub(crate) struct UnavailableServer {
    pub(crate) server: SourceName,
    pub(crate) state: SourceState,
    pub(crate) reason: String,
    /// What to do about it; the reason may say that too.
    pub(crate) suggestion: Option<String>,
    /// What to do about it in this very command, which the reason does not say.
    pub(crate) advice: Option<String>,
    pub(crate) stderr: Vec<String>,
}

impl UnavailableServer {
    pub(crate) fn exit(&self) -> Exit {
        match self.state {
            SourceState::NeedsAuthorization => Exit::Unauthorized,
            _ => Exit::Unreachable,
        }
    }

    /// What is wrong, in words that follow the name of the server.
    pub(crate) fn describe(&self) -> String {
        let what = match self.state {
            SourceState::NeedsAuthorization => "wants to know who you are",
            SourceState::Disabled => "is disabled",
            SourceState::Failed => "cannot be used",
            SourceState::Starting | SourceState::Ready | SourceState::Retrying => "cannot be reached",
        };
        format!("{what}: {}", self.reason)
    }

    pub(crate) fn report(&self) {
        note(&format!("{} {}", self.server, self.describe()));
        self.advice.iter().for_each(|advice| note_detail(advice));
        self.stderr.iter().for_each(|line| note_detail(&clean_line(line)));
    }
}

/// What is brought up.
#[derive(Default)]
struct OneShotPlan {
    config: Config,
    servers: Vec<ServerEntry>,
    /// Servers of the configuration that cannot even be started.
    unavailable: Vec<UnavailableServer>,
    disabled: Vec<SourceName>,
    /// What is odd about the configuration.
    notes: Vec<String>,
}

impl OneShotYard {
    /// Brings up what is needed and waits until all of it is there or has failed. What is wrong with the
    /// configuration was told.
    pub(crate) async fn open(
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let plan = plan(which, &wish)?;
        plan.notes.iter().for_each(|text| note(text));
        Self::start_and_wait(plan, which, wish, stop).await
    }

    async fn start_and_wait(
        plan: OneShotPlan,
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let visit = Self::start(plan, &wish)?;
        let remembered = which.other.is_empty() && which.config.is_empty();
        let memory = if remembered { NameCache::load() } else { NameCache::default() };
        let waiting = async {
            tokio::select! {
                () = readiness::wait_until_ready(&visit, &wish, &memory) => Ok(()),
                () = stop.cancelled() => Err(CommandError::interrupted()),
            }
        };
        let settled = terminal::with_spinner(|| visit.waiting_message(), waiting).await;
        let mut visit = visit.collect_unavailable();
        visit.add_auth_advice(&which.other).await;
        if let Err(fault) = settled {
            visit.close().await;
            return Err(fault);
        }
        if remembered {
            name_cache::store_names(&visit.yard, wish.lists);
        }
        Ok(visit)
    }

    /// The same without a word about the configuration.
    pub(crate) async fn open_quietly(
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        Self::start_and_wait(plan(which, &wish)?, which, wish, stop).await
    }

    /// The same where there is no use in going on without a server that was named.
    pub(crate) async fn open_and_report(
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let visit = Self::open(which, wish, stop).await?;
        let lonely = visit.sources().count() + visit.unavailable.len() > 0 && visit.ready_count() == 0;
        visit.unavailable.iter().for_each(UnavailableServer::report);
        match visit.unavailable.first().map(UnavailableServer::exit) {
            Some(exit) if lonely => {
                visit.close().await;
                Err(CommandError::AlreadyReported(exit))
            }
            _ => Ok(visit),
        }
    }

    fn start(plan: OneShotPlan, wish: &OneShotOptions<'_>) -> Result<Self, CommandError> {
        let OneShotPlan { config, servers, unavailable: troubles, disabled, .. } = plan;
        let client = DedicatedClient { capabilities: client_capabilities(), lists: wish.lists.to_vec() };
        let options = AssemblyOptions {
            call_time: wish.call_time,
            ..AssemblyOptions::new(StartMode::SingleClient(client))
        };
        let mut running = RunningYard::assemble(&config, options)?;
        running.start_servers(servers)?;
        let (yard, principal) = (Arc::clone(&running.yard), assembly::owner(&config));
        Ok(Self { yard, principal, running, unavailable: troubles, disabled })
    }

    /// The servers that speak MCP.
    pub(crate) fn upstreams(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.running.servers.upstreams()
    }

    fn waiting_message(&self) -> String {
        let names: Vec<&str> = self.starting_sources().map(|source| source.name().as_str()).collect();
        format!("waiting for {}", names.join(", "))
    }

    /// What has not started yet, nor failed to.
    fn starting_sources(&self) -> impl Iterator<Item = &dyn Source> {
        self.sources().filter(|source| source.starting_since().is_some())
    }

    fn collect_unavailable(mut self) -> Self {
        let trouble = |source: &dyn Source| {
            let status = source.status();
            let reason = status.reason.unwrap_or_else(|| "it does not answer".to_owned());
            let (server, state, stderr) = (source.name().clone(), status.state, status.stderr);
            let suggestion = status.suggestion;
            (state != SourceState::Ready).then_some(UnavailableServer {
                server,
                state,
                reason,
                suggestion,
                advice: None,
                stderr,
            })
        };
        let more: Vec<UnavailableServer> = self.sources().filter_map(trouble).collect();
        self.unavailable.extend(more);
        self
    }

    /// What to do about servers that want to know who we are: not all of them have a login, and one that is in no
    /// configuration has no name to log in with.
    async fn add_auth_advice(&mut self, other: &AdHocServerArgs) {
        for trouble in self.unavailable.iter_mut().filter(|one| one.state == SourceState::NeedsAuthorization)
        {
            let mut upstreams = self.running.servers.upstreams();
            let Some(upstream) = upstreams.find(|one| *one.name() == trouble.server) else { continue };
            match upstream.auth_status().await {
                Ok(AuthStatus::NotLoggedIn) => {}
                Ok(AuthStatus::BearerToken) if other.url.is_some() => {
                    trouble.reason = "it does not accept what --header says".to_owned();
                    trouble.advice = Some("see whether the token is right, and has not expired".to_owned());
                    continue;
                }
                _ => continue,
            }
            let server = &trouble.server;
            let (reason, advice) = match (upstream.offers_login().await, &other.url) {
                (true, None) => continue,
                (true, Some(url)) => (
                    "it wants somebody to log in",
                    format!(
                        "`toolyard add NAME {url}`, then `toolyard login NAME`; or say a token with {HEADER}"
                    ),
                ),
                (false, Some(_)) => ("it wants a token", format!("say it with {HEADER}")),
                (false, None) => (
                    "it wants a token",
                    format!("name it with bearer_token_env_var or headers under [servers.{server}]"),
                ),
            };
            (trouble.reason, trouble.advice) = (reason.to_owned(), Some(advice));
        }
    }

    /// Whatever was started.
    fn sources(&self) -> impl Iterator<Item = &dyn Source> {
        self.running.servers.sources()
    }

    fn ready_count(&self) -> usize {
        self.yard.statuses().iter().filter(|(_, status)| status.state == SourceState::Ready).count()
    }

    /// What an error is to somebody who cannot know which servers were not there: a name that is unknown may be known
    /// to one of those.
    pub(crate) fn explain(&self, error: HubError) -> CommandError {
        let named = error.details().and_then(|details| details.get("server"));
        let of_it =
            |trouble: &&UnavailableServer| named.is_some_and(|server| *server == trouble.server.as_str());
        if let Some(trouble) = self.unavailable.iter().find(of_it) {
            trouble.report();
            return CommandError::AlreadyReported(trouble.exit());
        }
        let unknown = matches!(
            error.kind(),
            ErrorKind::UnknownTool | ErrorKind::UnknownResource | ErrorKind::UnknownPrompt
        );
        let nobody = || self.sources().all(|source| source.status().state != SourceState::Ready);
        match self.unavailable.first() {
            Some(first) if error.kind() == ErrorKind::CannotConnect && nobody() => {
                self.unavailable.iter().for_each(UnavailableServer::report);
                CommandError::AlreadyReported(first.exit())
            }
            Some(first) if unknown => {
                let exit = first.exit();
                self.unavailable.iter().for_each(UnavailableServer::report);
                // Where nobody could be asked, nothing is known about the name either.
                if nobody() {
                    return CommandError::AlreadyReported(exit);
                }
                match CommandError::from(error) {
                    CommandError::Failure { message, suggestion, .. } => {
                        CommandError::Failure { exit, message, suggestion }
                    }
                    other => other,
                }
            }
            _ => error.into(),
        }
    }

    /// Ends everything that was started.
    pub(crate) async fn close(self) {
        self.running.stop().await;
    }
}

/// What a server may ask of whoever sits at this terminal. Forms are declined where nobody does, so that the server
/// hears a no instead of nothing.
pub(crate) fn client_capabilities() -> ClientCapabilities {
    ClientCapabilities {
        elicit_form: true,
        elicit_url: terminal::is_interactive(),
        sample: false,
        roots: false,
        log_level: Some(LogLevel::Warning),
    }
}

fn plan(which: &ServerSelectionArgs, wish: &OneShotOptions<'_>) -> Result<OneShotPlan, CommandError> {
    let adjust = |mut settings: Box<ServerSettings>| {
        settings.start_timeout = which.start_timeout.unwrap_or(settings.start_timeout);
        settings.call_timeout = wish.call_time.unwrap_or_default().max(settings.call_timeout);
        ServerEntry::Ready(settings)
    };
    if let Some(settings) = ad_hoc::server_settings(&which.other)? {
        let servers = vec![adjust(Box::new(settings))];
        return Ok(OneShotPlan { servers, ..OneShotPlan::default() });
    }
    let around = process_environment();
    let mut config = Config::load(&which.config, &around).map_err(|problems| {
        problems.0.iter().for_each(|problem| note(&problem.to_string()));
        CommandError::AlreadyReported(Exit::Usage)
    })?;
    let mut notes = Vec::new();
    if config.is_demo_only() {
        notes
            .push("there is no configuration, so this is the demo yard; `toolyard add` makes one".to_owned());
    }
    let need = which.server.as_deref().map_or(wish.selection, ServerSelection::Server);
    let entries = config.servers();
    if let ServerSelection::Server(name) = need {
        check_server_exists(name, &config)?;
    }
    let wanted: Vec<ServerEntry> =
        entries.iter().filter(|entry| is_needed(entry, need, entries)).cloned().collect();
    for problem in config.problems() {
        let about = problem.server.as_deref();
        if about.is_none_or(|about| wanted.iter().any(|entry| entry.name().as_str() == about)) {
            notes.push(problem.to_string());
        }
    }
    let mut servers = Vec::new();
    let mut troubles = Vec::new();
    let mut disabled = Vec::new();
    for entry in wanted {
        match entry {
            ServerEntry::Ready(ready) if ready.enabled => servers.push(adjust(ready)),
            ServerEntry::Document(mut ready) if ready.enabled => {
                ready.start_time = which.start_timeout.unwrap_or(ready.start_time);
                servers.push(ServerEntry::Document(ready));
            }
            ServerEntry::Broken(broken) if broken.enabled => troubles.push(UnavailableServer {
                reason: broken.reason(),
                server: broken.name,
                state: SourceState::Failed,
                suggestion: None,
                advice: None,
                stderr: Vec::new(),
            }),
            // Of those that were not asked for by name nobody expects anything.
            off if !matches!(need, ServerSelection::All) => troubles.push(UnavailableServer {
                server: off.name().clone(),
                state: SourceState::Disabled,
                reason: format!("`toolyard enable {}` switches it on", off.name()),
                suggestion: None,
                advice: None,
                stderr: Vec::new(),
            }),
            off => disabled.push(off.name().clone()),
        }
    }
    config.demo &=
        matches!(need, ServerSelection::All | ServerSelection::Named(_) | ServerSelection::Server("demo"));
    Ok(OneShotPlan { config, servers, unavailable: troubles, disabled, notes })
}

/// Whether a server can have what is needed.
fn is_needed(entry: &ServerEntry, need: ServerSelection<'_>, all: &[ServerEntry]) -> bool {
    let begins = |entry: &ServerEntry, name: &str| name.starts_with(&entry.name().prefix());
    match need {
        ServerSelection::All => true,
        ServerSelection::Server(name) => entry.name().as_str() == name,
        ServerSelection::Named(name) if all.iter().any(|entry| begins(entry, name)) => begins(entry, name),
        // A disabled one is only in the way of a name that is not its own.
        ServerSelection::Named(_) => entry.is_enabled(),
    }
}

pub(crate) fn check_server_exists(name: &str, config: &Config) -> Result<(), CommandError> {
    let mut names: Vec<&str> = config.servers().iter().map(|entry| entry.name().as_str()).collect();
    if config.demo {
        names.push("demo");
    }
    if names.contains(&name) {
        return Ok(());
    }
    let fault = CommandError::usage(format!("there is no server {name}"));
    Err(match nearest(name, names.iter().copied()) {
        Some(close) => fault.suggest(format!("did you mean {close}?")),
        None if names.is_empty() => fault.suggest("there are none yet; `toolyard add` adds one"),
        None => fault.suggest(format!("there are: {}", names.join(", "))),
    })
}
