//! `toolyard ui`: starts the yard and hands it to the terminal UI. While the UI is open, standard
//! error goes to its log.

mod stderr_capture;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use reqwest::Url;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_config::{Config, ServerEntry};
use toolyard_hub::{Principal, Yard};
use toolyard_remote::{RemoteLogLine, RemoteLogSubject, RemoteNotice, RemoteYard, strip_token};
use toolyard_tui::{ColorMode, UiLogEntry, UiLogKind, UiMessage, UiReplicas, UiSettings};
use toolyard_upstream::{DedicatedClient, ServerListKind, ServerSettings};

use crate::Exit;
use crate::args::{AdHocServerArgs, UiArgs};
use crate::assembly::{self, AssemblyOptions, RunningYard};
use crate::commands::test_writer;
use crate::error::CommandError;
use crate::one_shot::{ad_hoc, check_server_exists};
use crate::servers::StartMode;
use crate::signals::until_stopped;
use crate::ui::stderr_capture::StderrCapture;

/// How many messages are buffered for the UI.
const QUEUE: usize = 256;

pub(crate) async fn run(args: UiArgs) -> anyhow::Result<Exit> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        let error = CommandError::usage("`toolyard ui` requires a terminal");
        return Ok(error.suggest("use `toolyard list`, `inspect` and `call` in scripts").report());
    }
    let settings = UiSettings {
        call_args: selection_arguments(&args),
        color: if std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) {
            ColorMode::On
        } else {
            ColorMode::Off
        },
        folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
        yard: args.yard.as_ref().map(strip_token),
        test_writer: Some(test_writer(&args.which.other)),
    };
    if let Some(yard) = args.yard {
        return run_remote(yard, args.token, settings).await;
    }
    match ad_hoc_server(&args) {
        Ok(Some(server)) => run_ad_hoc(server, settings).await,
        Ok(None) => run_configured(args, settings).await,
        Err(fault) => Ok(fault.report()),
    }
}

async fn run_configured(args: UiArgs, settings: UiSettings) -> anyhow::Result<Exit> {
    let mut given = args.documents.config_inputs(args.which.config);
    let Some(mut config) = given.load() else { return Ok(Exit::Usage) };
    if let Some(server) = args.which.server {
        if let Err(fault) = check_server_exists(&server, &config) {
            return Ok(fault.report());
        }
        config.retain_server(&server);
        given.only = Some(server);
    }
    let mut running =
        RunningYard::assemble(&config, AssemblyOptions::new(StartMode::SingleClient(terminal_client())))
            .await?;
    let owner = assembly::owner(&config);
    let stop = CancellationToken::new();
    let (sender, messages) = mpsc::channel(QUEUE);
    let capture = StderrCapture::start(sender)?;
    running.start_and_follow(config, given, |_| {})?;
    let shown = show(Arc::clone(&running.yard), owner, settings, messages, stop.clone());
    let done = running.run(stop, shown).await;
    drop(capture);
    exit_status(done?)
}

/// Shows a remote yard.
async fn run_remote(url: Url, token: Option<String>, settings: UiSettings) -> anyhow::Result<Exit> {
    let (sender, messages) = mpsc::channel(QUEUE);
    let (notices, noticed) = mpsc::channel(QUEUE);
    let remote = match RemoteYard::connect(url.clone(), token, notices).await {
        Ok(remote) => remote,
        Err(error) => return Ok(CommandError::connect_failed("open", &url, &error).report()),
    };
    tokio::spawn(forward(noticed, sender.clone()));
    let stop = CancellationToken::new();
    let capture = StderrCapture::start(sender)?;
    let work = Box::pin(async {
        // The remote yard decides the principal and its permissions.
        let yard = Arc::clone(&remote.yard);
        let shown = show(yard, Principal::owner(), settings, messages, stop.clone()).await;
        remote.close().await;
        shown
    });
    let done = until_stopped(stop.clone(), work).await;
    drop(capture);
    exit_status(done?.transpose()?)
}

/// Forwards notices of the remote yard until either side is gone.
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
            RemoteNotice::Replicas(all) => UiMessage::Replicas(
                all.map(|all| UiReplicas { count: all.replicas.len(), problems: all.problems }),
            ),
        };
        if messages.send(message).await.is_err() {
            return;
        }
    }
}

async fn run_ad_hoc(server: ServerSettings, settings: UiSettings) -> anyhow::Result<Exit> {
    let options = AssemblyOptions::new(StartMode::SingleClient(terminal_client()));
    let mut running = RunningYard::assemble(&Config::default(), options).await?;
    let stop = CancellationToken::new();
    let (sender, messages) = mpsc::channel(QUEUE);
    let capture = StderrCapture::start(sender)?;
    running.start_servers(vec![ServerEntry::Ready(Box::new(server))])?;
    let shown = show(Arc::clone(&running.yard), Principal::owner(), settings, messages, stop.clone());
    let done = running.run(stop, shown).await;
    drop(capture);
    exit_status(done?)
}

/// The user at the terminal: the only client, who can be asked on the same connection that lists
/// the tools. Servers that offer more to a client with elicitation also do so here.
fn terminal_client() -> DedicatedClient {
    DedicatedClient { capabilities: toolyard_tui::client_capabilities(), lists: ServerListKind::ALL.to_vec() }
}

/// `None` means that a second signal arrived before everything was stopped.
fn exit_status(done: Option<()>) -> anyhow::Result<Exit> {
    Ok(if done.is_some() { Exit::Success } else { Exit::Interrupted })
}

async fn show(
    yard: Arc<Yard>,
    principal: Principal,
    settings: UiSettings,
    messages: mpsc::Receiver<UiMessage>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    toolyard_tui::run(yard, principal, settings, messages, stop).await?;
    Ok(())
}

/// A server given on the command line.
fn ad_hoc_server(args: &UiArgs) -> Result<Option<ServerSettings>, CommandError> {
    if !args.documents.openapi.is_empty() && !args.which.other.is_empty() {
        return Err(CommandError::usage("--openapi cannot be combined with --url or a server command"));
    }
    let server = ad_hoc::server_settings(&args.which.other)?;
    let time = args.which.start_timeout;
    Ok(server.map(|server| ServerSettings { start_timeout: time.unwrap_or(server.start_timeout), ..server }))
}

/// The arguments that make another command use the same servers. Header values may be secrets and
/// are left as placeholders.
fn selection_arguments(args: &UiArgs) -> Vec<String> {
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
