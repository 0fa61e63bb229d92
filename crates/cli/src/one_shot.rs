//! The yard of a single command: only the servers that it needs, each used by this client alone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use toolyard_config::{Config, ConfigProblem, ServerEntry};
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
use crate::configuration::{process_environment, report_problem};
use crate::error::CommandError;
use crate::name_cache::{self, NameCache};
use crate::servers::StartMode;
use crate::terminal::{self, print_detail, print_error, print_hint, print_note, print_warning};

pub(crate) mod ad_hoc;
mod offers;
mod readiness;

pub(crate) use offers::collect_offers;

/// How to pass a token for a server that is not in a configuration.
const HEADER: &str = "--header \"Authorization: Bearer TOKEN\"";

/// Which servers a command needs.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ServerSelection<'a> {
    /// All servers that are available.
    All,
    /// This server.
    Server(&'a str),
    /// The servers that may offer an item of this name. If the name starts with the prefix of a
    /// server, only that server.
    Named(&'a str),
}

/// What a command needs from the servers.
#[derive(Debug, Clone)]
pub(crate) struct OneShotOptions<'a> {
    pub(crate) selection: ServerSelection<'a>,
    pub(crate) lists: &'a [ServerListKind],
    /// Time limit of the call, if one was given.
    pub(crate) call_time: Option<Duration>,
}

impl<'a> OneShotOptions<'a> {
    pub(crate) fn new(selection: ServerSelection<'a>, lists: &'a [ServerListKind]) -> Self {
        Self { selection, lists, call_time: None }
    }
}

/// A yard that runs until it is closed.
pub(crate) struct OneShotYard {
    pub(crate) yard: Arc<Yard>,
    pub(crate) principal: Principal,
    running: RunningYard,
    /// Servers that the command needs but that are unavailable.
    pub(crate) unavailable: Vec<UnavailableServer>,
    /// Disabled servers.
    pub(crate) disabled: Vec<SourceName>,
}

/// Why a server is unavailable.
#[derive(Debug)]
pub(crate) struct UnavailableServer {
    pub(crate) server: SourceName,
    pub(crate) state: SourceState,
    pub(crate) reason: String,
    /// What the user can do about it.
    pub(crate) suggestion: Option<String>,
    pub(crate) stderr: Vec<String>,
}

impl UnavailableServer {
    pub(crate) fn exit(&self) -> Exit {
        match self.state {
            SourceState::NeedsAuthorization => Exit::Unauthorized,
            _ => Exit::Unreachable,
        }
    }

    /// Describes the problem in words that follow the name of the server.
    pub(crate) fn describe(&self) -> String {
        let problem = match self.state {
            SourceState::NeedsAuthorization => "requires authentication",
            SourceState::Disabled => "is disabled",
            SourceState::Failed => "cannot be used",
            SourceState::Starting | SourceState::Ready | SourceState::Retrying => "cannot be reached",
        };
        format!("{problem}: {}", self.reason)
    }

    /// Prints an error, because the command cannot continue without this server.
    pub(crate) fn report_error(&self) {
        self.report(print_error);
    }

    /// Prints a warning, because the command continues without this server.
    pub(crate) fn report_warning(&self) {
        self.report(print_warning);
    }

    fn report(&self, print: fn(&str)) {
        print(&format!("server `{}` {}", self.server, self.describe()));
        self.suggestion.iter().for_each(|suggestion| print_hint(suggestion));
        self.stderr.iter().for_each(|line| print_detail(&format!("stderr: {}", clean_line(line))));
    }
}

/// What to start.
#[derive(Default)]
struct OneShotPlan {
    config: Config,
    /// Whether there is no configuration, so that the command uses the demo yard.
    demo_only: bool,
    servers: Vec<ServerEntry>,
    /// Servers of the configuration that cannot be started at all.
    unavailable: Vec<UnavailableServer>,
    disabled: Vec<SourceName>,
    /// Problems of the configuration that concern this command.
    problems: Vec<ConfigProblem>,
}

impl OneShotYard {
    /// Starts the servers and waits until each is ready or has failed. Prints the problems of the
    /// configuration.
    pub(crate) async fn open(
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let plan = plan(which, &wish)?;
        if plan.demo_only {
            print_note("no configuration found, using the demo yard");
            print_hint("run `toolyard add` to create a configuration");
        }
        plan.problems.iter().for_each(report_problem);
        Self::start_and_wait(plan, which, wish, stop).await
    }

    async fn start_and_wait(
        plan: OneShotPlan,
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        // Boxed to keep the futures of all commands small.
        let visit = Box::pin(Self::start(plan, &wish)).await?;
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

    /// Like [`Self::open`], but does not print problems of the configuration.
    pub(crate) async fn open_quietly(
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        Self::start_and_wait(plan(which, &wish)?, which, wish, stop).await
    }

    /// Like [`Self::open`], but reports unavailable servers and fails if none is ready.
    pub(crate) async fn open_and_report(
        which: &ServerSelectionArgs,
        wish: OneShotOptions<'_>,
        stop: &CancellationToken,
    ) -> Result<Self, CommandError> {
        let visit = Self::open(which, wish, stop).await?;
        let lonely = visit.sources().count() + visit.unavailable.len() > 0 && visit.ready_count() == 0;
        visit.unavailable.iter().for_each(|server| match lonely {
            true => server.report_error(),
            false => server.report_warning(),
        });
        match visit.unavailable.first().map(UnavailableServer::exit) {
            Some(exit) if lonely => {
                visit.close().await;
                Err(CommandError::AlreadyReported(exit))
            }
            _ => Ok(visit),
        }
    }

    async fn start(plan: OneShotPlan, wish: &OneShotOptions<'_>) -> Result<Self, CommandError> {
        let OneShotPlan { config, servers, unavailable: troubles, disabled, .. } = plan;
        let client = DedicatedClient { capabilities: client_capabilities(), lists: wish.lists.to_vec() };
        let options = AssemblyOptions {
            call_time: wish.call_time,
            ..AssemblyOptions::new(StartMode::SingleClient(client))
        };
        let mut running = RunningYard::assemble(&config, options).await?;
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

    /// The sources that have neither started nor failed yet.
    fn starting_sources(&self) -> impl Iterator<Item = &dyn Source> {
        self.sources().filter(|source| source.starting_since().is_some())
    }

    fn collect_unavailable(mut self) -> Self {
        let trouble = |source: &dyn Source| {
            let status = source.status();
            let suggestion = status.suggestion;
            let reason = status.reason.unwrap_or_else(|| "no response".to_owned());
            let reason = strip_suggestion(reason, suggestion.as_deref());
            let (server, state, stderr) = (source.name().clone(), status.state, status.stderr);
            (state != SourceState::Ready).then_some(UnavailableServer {
                server,
                state,
                reason,
                suggestion,
                stderr,
            })
        };
        let more: Vec<UnavailableServer> = self.sources().filter_map(trouble).collect();
        self.unavailable.extend(more);
        self
    }

    /// Adds suggestions for servers that require authentication. Some servers have no login, and a
    /// server that is not in a configuration has no name to log in with.
    async fn add_auth_advice(&mut self, other: &AdHocServerArgs) {
        for trouble in self.unavailable.iter_mut().filter(|one| one.state == SourceState::NeedsAuthorization)
        {
            let mut upstreams = self.running.servers.upstreams();
            let Some(upstream) = upstreams.find(|one| *one.name() == trouble.server) else { continue };
            match upstream.auth_status().await {
                Ok(AuthStatus::NotLoggedIn) => {}
                Ok(AuthStatus::BearerToken) if other.url.is_some() => {
                    trouble.reason = "the server rejected the credentials from --header".to_owned();
                    trouble.suggestion = Some("check that the token is valid and has not expired".to_owned());
                    continue;
                }
                _ => continue,
            }
            let server = &trouble.server;
            let (reason, advice) = match (upstream.offers_login().await, &other.url) {
                (true, None) => continue,
                (true, Some(url)) => (
                    "the server requires a login",
                    format!(
                        "run `toolyard add NAME {url}` and `toolyard login NAME`, or pass a token with {HEADER}"
                    ),
                ),
                (false, Some(_)) => ("the server requires a token", format!("pass it with {HEADER}")),
                (false, None) => (
                    "the server requires a token",
                    format!("set bearer_token_env_var or headers under [servers.{server}]"),
                ),
            };
            (trouble.reason, trouble.suggestion) = (reason.to_owned(), Some(advice));
        }
    }

    /// All sources that were started.
    fn sources(&self) -> impl Iterator<Item = &dyn Source> {
        self.running.servers.sources()
    }

    fn ready_count(&self) -> usize {
        self.yard.statuses().iter().filter(|(_, status)| status.state == SourceState::Ready).count()
    }

    /// Explains an error in view of the unavailable servers: an unknown name may belong to one of
    /// them.
    pub(crate) fn explain(&self, error: HubError) -> CommandError {
        let named = error.details().and_then(|details| details.get("server"));
        let of_it =
            |trouble: &&UnavailableServer| named.is_some_and(|server| *server == trouble.server.as_str());
        if let Some(trouble) = self.unavailable.iter().find(of_it) {
            trouble.report_error();
            return CommandError::AlreadyReported(trouble.exit());
        }
        let unknown = matches!(
            error.kind(),
            ErrorKind::UnknownTool | ErrorKind::UnknownResource | ErrorKind::UnknownPrompt
        );
        let none_ready = || self.sources().all(|source| source.status().state != SourceState::Ready);
        match self.unavailable.first() {
            Some(first) if error.kind() == ErrorKind::CannotConnect && none_ready() => {
                self.unavailable.iter().for_each(UnavailableServer::report_error);
                CommandError::AlreadyReported(first.exit())
            }
            Some(first) if unknown => {
                let exit = first.exit();
                // Without a server that could have the name, nothing is known about the name
                // either.
                if none_ready() {
                    self.unavailable.iter().for_each(UnavailableServer::report_error);
                    return CommandError::AlreadyReported(exit);
                }
                self.unavailable.iter().for_each(UnavailableServer::report_warning);
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

    /// Stops everything that was started.
    pub(crate) async fn close(self) {
        self.running.stop().await;
    }
}

/// Removes the suggestion from the end of a reason, for output that prints it as a hint.
pub(crate) fn strip_suggestion(mut reason: String, suggestion: Option<&str>) -> String {
    if let Some(suggestion) = suggestion
        && let Some(start) = reason.strip_suffix(&format!("; {suggestion}")).map(str::len)
    {
        reason.truncate(start);
    }
    reason
}

/// What a server may ask the user at this terminal. Forms are always supported: without a terminal
/// they are declined, so that the server gets a response.
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
        problems.0.iter().for_each(report_problem);
        CommandError::AlreadyReported(Exit::Usage)
    })?;
    let demo_only = config.is_demo_only();
    let need = which.server.as_deref().map_or(wish.selection, ServerSelection::Server);
    let entries = config.servers();
    if let ServerSelection::Server(name) = need {
        check_server_exists(name, &config)?;
    }
    let selected: Vec<ServerEntry> =
        entries.iter().filter(|entry| is_needed(entry, need, entries)).cloned().collect();
    let is_relevant = |problem: &&ConfigProblem| {
        let about = problem.server.as_deref();
        about.is_none_or(|about| selected.iter().any(|entry| entry.name().as_str() == about))
    };
    let problems = config.problems().iter().filter(is_relevant).cloned().collect();
    let mut servers = Vec::new();
    let mut troubles = Vec::new();
    let mut disabled = Vec::new();
    for entry in selected {
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
                stderr: Vec::new(),
            }),
            // A disabled server matters only if the user asked for a specific server or name.
            off if !matches!(need, ServerSelection::All) => troubles.push(UnavailableServer {
                server: off.name().clone(),
                state: SourceState::Disabled,
                reason: "`enabled = false` in the configuration".to_owned(),
                suggestion: Some(format!("run `toolyard enable {}` to enable it", off.name())),
                stderr: Vec::new(),
            }),
            off => disabled.push(off.name().clone()),
        }
    }
    config.demo &=
        matches!(need, ServerSelection::All | ServerSelection::Named(_) | ServerSelection::Server("demo"));
    Ok(OneShotPlan { config, demo_only, servers, unavailable: troubles, disabled, problems })
}

/// Whether a server may offer what is needed.
fn is_needed(entry: &ServerEntry, need: ServerSelection<'_>, all: &[ServerEntry]) -> bool {
    let begins = |entry: &ServerEntry, name: &str| name.starts_with(&entry.name().prefix());
    match need {
        ServerSelection::All => true,
        ServerSelection::Server(name) => entry.name().as_str() == name,
        ServerSelection::Named(name) if all.iter().any(|entry| begins(entry, name)) => begins(entry, name),
        // A disabled server is skipped, unless the name starts with its prefix.
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
    let fault = CommandError::usage(format!("unknown server `{name}`"));
    Err(match nearest(name, names.iter().copied()) {
        Some(close) => fault.suggest(format!("did you mean `{close}`?")),
        None if names.is_empty() => fault.suggest("no servers are configured; run `toolyard add` to add one"),
        None => fault.suggest(format!("configured servers: {}", names.join(", "))),
    })
}
