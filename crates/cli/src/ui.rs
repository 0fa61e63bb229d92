//! `toolyard ui`: brings up the yard and hands it to the terminal UI. While that is on the screen, standard error goes
//! into its log.

mod stderr_capture;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use reqwest::Url;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_config::Config;
use toolyard_hooks::HttpHooks;
use toolyard_hub::{Principal, Yard};
use toolyard_remote::{RemoteLogLine, RemoteLogSubject, RemoteNotice, RemoteYard, strip_token};
use toolyard_tester::TesterServers;
use toolyard_tui::{ColorMode, UiLogEntry, UiLogKind, UiMessage, UiSettings};
use toolyard_upstream::{DedicatedClient, ServerListKind, ServerSettings, Upstream};

use crate::args::{AdHocServerArgs, UiArgs};
use crate::error::CommandError;
use crate::one_shot::{ad_hoc, check_name};
use crate::recording::{CallRecording, HistoryReaders};
use crate::servers::{ConfiguredServers, ServerStartOptions, StartMode};
use crate::signals::until_stopped;
use crate::ui::stderr_capture::StderrCapture;
use crate::{Exit, upstream_setup, yard};

/// How many messages wait for the UI.
const QUEUE: usize = 256;

pub(crate) async fn run(args: UiArgs) -> anyhow::Result<Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        eprintln!("toolyard: the UI needs a terminal; for scripts there are list, inspect and call");
        return Ok(Exit::Usage);
    }
    let settings = UiSettings {
        call_words: words(&args),
        colour: if std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
            ColorMode::On
        } else {
            ColorMode::Off
        },
        folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        yard: args.yard.as_ref().map(strip_token),
    };
    if let Some(yard) = args.yard {
        return of_yard(yard, args.token, settings).await;
    }
    match ad_hoc(&args) {
        Ok(Some(server)) => of_one(server, settings).await,
        Ok(None) => of_configuration(args, settings).await,
        Err(fault) => Ok(fault.report()),
    }
}

async fn of_configuration(args: UiArgs, settings: UiSettings) -> anyhow::Result<Exit> {
    let mut given = args.documents.config_inputs(args.which.config);
    let Some(mut config) = given.load() else { return Ok(Exit::Usage) };
    if let Some(server) = args.which.server {
        if let Err(fault) = check_name(&server, &config) {
            return Ok(fault.report());
        }
        config.keep_only(&server);
        given.only = Some(server);
    }
    let common = upstream_setup::build_common()?;
    let hooks = HttpHooks::new(common.tls.clone(), &config.hooks).context("cannot set up HTTP")?;
    let keeping = CallRecording::open(&config, HistoryReaders::None)?;
    let yard = yard::build(&config, Arc::clone(&hooks), &keeping);
    let owner = yard::owner(&config);
    let reloaded = move |config: &Config| hooks.replace(&config.hooks);
    let crew = ServerStartOptions {
        common,
        manned: StartMode::SingleClient(person()),
        directory: TesterServers::default(),
    };
    let stop = CancellationToken::new();
    let (told, messages) = mpsc::channel(QUEUE);
    let aside = StderrCapture::start(told)?;
    let mut fleet = ConfiguredServers::start(Arc::clone(&yard), config, given, crew, reloaded)?;
    let work = Box::pin(async {
        let shown = tokio::select! {
            shown = show(yard, owner, settings, messages, stop.clone()) => shown,
            failed = fleet.reload_on_change() => failed,
        };
        fleet.stop().await;
        shown
    });
    let done = until_stopped(stop.clone(), work).await;
    keeping.close().await;
    drop(aside);
    ended(done)
}

/// A yard that runs elsewhere.
async fn of_yard(url: Url, token: Option<String>, settings: UiSettings) -> anyhow::Result<Exit> {
    let (told, messages) = mpsc::channel(QUEUE);
    let (notices, noticed) = mpsc::channel(QUEUE);
    let remote = match RemoteYard::connect(url.clone(), token, notices).await {
        Ok(remote) => remote,
        Err(error) => return Ok(CommandError::cannot_attach("look at", &url, &error).report()),
    };
    tokio::spawn(forward(noticed, told.clone()));
    let stop = CancellationToken::new();
    let aside = StderrCapture::start(told)?;
    let work = Box::pin(async {
        // Who we are there, and what we may do, is for the yard to say.
        let yard = Arc::clone(&remote.yard);
        let shown = show(yard, Principal::owner(), settings, messages, stop.clone()).await;
        remote.close().await;
        shown
    });
    let done = until_stopped(stop.clone(), work).await;
    drop(aside);
    ended(done)
}

/// Shows what the remote yard tells, until one of the two is gone.
async fn forward(mut notices: mpsc::Receiver<RemoteNotice>, messages: mpsc::Sender<UiMessage>) {
    while let Some(notice) = notices.recv().await {
        let message = match notice {
            RemoteNotice::Log(RemoteLogLine { at, subject, server, text }) => {
                let kind = match subject {
                    RemoteLogSubject::Call => UiLogKind::Event,
                    RemoteLogSubject::Yard => UiLogKind::Own,
                };
                UiMessage::LogEntries(vec![UiLogEntry { at, kind, source: server, text }])
            }
            RemoteNotice::Connectivity(problem) => UiMessage::Connectivity(problem),
            RemoteNotice::CommandFailed(text) => UiMessage::Failed(text),
        };
        if messages.send(message).await.is_err() {
            return;
        }
    }
}

async fn of_one(server: ServerSettings, settings: UiSettings) -> anyhow::Result<Exit> {
    let stop = CancellationToken::new();
    let (told, messages) = mpsc::channel(QUEUE);
    let aside = StderrCapture::start(told)?;
    let upstream = Upstream::start_for(server, upstream_setup::build_common()?, person());
    let yard = Yard::with_sources([Arc::clone(&upstream) as _]);
    let work = Box::pin(async {
        let shown = show(yard, Principal::owner(), settings, messages, stop.clone()).await;
        upstream.stop().await;
        shown
    });
    let done = until_stopped(stop.clone(), work).await;
    drop(aside);
    ended(done)
}

/// Who sits at the terminal: the only client there is, who can be asked on the very connection that offers the tools. Servers
/// that offer more to a client who can be asked then offer it here too.
fn person() -> DedicatedClient {
    DedicatedClient { abilities: toolyard_tui::abilities(), lists: ServerListKind::ALL.to_vec() }
}

/// Nothing is there to be done any more where a signal came first.
fn ended(done: anyhow::Result<Option<anyhow::Result<()>>>) -> anyhow::Result<Exit> {
    Ok(if done?.transpose()?.is_some() { Exit::Fine } else { Exit::Interrupted })
}

async fn show(
    yard: Arc<Yard>,
    principal: Principal,
    settings: UiSettings,
    told: mpsc::Receiver<UiMessage>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    toolyard_tui::run(yard, principal, settings, told, stop).await?;
    Ok(())
}

/// A server that is named on the command line.
fn ad_hoc(args: &UiArgs) -> Result<Option<ServerSettings>, CommandError> {
    if !args.documents.openapi.is_empty() && !args.which.other.is_absent() {
        return Err(CommandError::usage(
            "--openapi is for a yard of documents, not for one server beside them",
        ));
    }
    let server = ad_hoc::server_settings(&args.which.other)?;
    let time = args.which.start_timeout;
    Ok(server.map(|server| ServerSettings { start_time: time.unwrap_or(server.start_time), ..server }))
}

/// What makes another command reach the same servers. Values of headers may be secrets, and are left to be filled in.
fn words(args: &UiArgs) -> Vec<String> {
    let mut words = Vec::new();
    for file in &args.which.config {
        words.extend(["--config".to_owned(), file.display().to_string()]);
    }
    if let Some(server) = &args.which.server {
        words.extend(["--server".to_owned(), server.clone()]);
    }
    let AdHocServerArgs { url, header, command } = &args.which.other;
    if let Some(url) = url {
        words.extend(["--url".to_owned(), url.clone()]);
    }
    for header in header {
        let name = header.split(':').next().unwrap_or_default();
        words.extend(["--header".to_owned(), format!("{name}: …")]);
    }
    if !command.is_empty() {
        words.push("--".to_owned());
        words.extend_from_slice(command);
    }
    words
}
