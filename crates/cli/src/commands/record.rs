//! `toolyard record`: records a session between a client and a server.

use std::collections::BTreeSet;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;
use toolyard_cassette::{
    BoundFront, CassetteHeader, CassetteTransport, CassetteWriter, ExistingFile, FrontError, ProxyTarget,
    RecordEnd, RecordStreams, SecretMask, record_http, record_stdio,
};
use toolyard_config::{Config, ServerEntry};
use toolyard_hub::{Redaction, Secret, Timestamp};
use toolyard_upstream::{
    CommandSettings, EnvInheritance, ServerAuthSettings, ServerSettings, TransportSettings, UrlSettings,
};

use super::replay::cassette_error;
use crate::Exit;
use crate::args::RecordArgs;
use crate::configuration::{process_environment, report_problem};
use crate::error::CommandError;
use crate::one_shot::{ad_hoc, check_server_exists};
use crate::terminal::{self, format_count, print_error, print_note};
use crate::upstream_setup;

/// How many lines of a server's standard error can wait to be printed. More are dropped.
const STDERR_LINES: usize = 1_024;

/// How long the last of these lines may take to be printed.
const LAST_LINES: Duration = Duration::from_millis(500);

/// What the server wrote to standard error.
enum StderrOutput {
    Line(String),
    End,
}

pub(crate) async fn run(args: RecordArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let (server, secret_variables) = select_server(&args)?;
    let header = |transport| CassetteHeader::new(server.name.as_str(), transport, Timestamp::now());
    let mask = || SecretMask::with_values(known_secrets(&server, &secret_variables));
    let existing = if args.force { ExistingFile::Replace } else { ExistingFile::Keep };
    let create = |transport| {
        CassetteWriter::create(&args.output, &header(transport), mask(), existing)
            .map_err(|error| cassette_error(&args.output, &error))
    };
    let (writer, end) = match &server.transport {
        TransportSettings::Command(command) => {
            if args.listen.is_some() {
                return Err(CommandError::usage(
                    "--listen is for servers with a URL; this one has a command",
                ));
            }
            let writer = create(CassetteTransport::Stdio)?;
            let ended = with_warning(&writer, record_command(command, &writer, &stop)).await;
            if ended.is_err() && writer.summary().messages == 0 {
                // The next attempt should not need --force.
                let _ = std::fs::remove_file(&args.output);
            }
            (writer, ended?)
        }
        TransportSettings::Url(url) => {
            let target = proxy_target(url, &server.auth)?;
            let address = args.listen.unwrap_or_else(|| ([127, 0, 0, 1], 0).into());
            let front = BoundFront::bind(address).await.map_err(|error| front_error(&error))?;
            let writer = create(CassetteTransport::Http)?;
            terminal::print(&format!("http://{}{}\n", front.address(), target.path()))?;
            let serving = async {
                record_http(target, writer.clone(), front, stop.clone()).await;
                Ok(RecordEnd::Stopped)
            };
            let end = with_warning(&writer, serving).await?;
            (writer, end)
        }
    };
    let summary = writer.summary();
    let masked = match summary.masked {
        0 => String::new(),
        count => format!("; {} masked", format_count(count, "value")),
    };
    let messages = format_count(summary.messages, "message");
    print_note(&format!("{messages} recorded in {}{masked}", args.output.display()));
    if let RecordEnd::ServerExited { code, description } = end
        && code != Some(0)
    {
        return Err(CommandError::new(Exit::Unreachable, format!("the server {description}")));
    }
    Ok(if summary.stopped.is_some() { Exit::Failed } else { Exit::Success })
}

/// Reports a recording that stops early as soon as that happens. The session goes on.
async fn with_warning<T>(
    writer: &CassetteWriter,
    work: impl Future<Output = Result<T, CommandError>>,
) -> Result<T, CommandError> {
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => return done,
        reason = writer.wait_until_stopped() => print_error(&reason),
    }
    work.await
}

async fn record_command(
    command: &CommandSettings,
    writer: &std::sync::Arc<CassetteWriter>,
    stop: &CancellationToken,
) -> Result<RecordEnd, CommandError> {
    let common = upstream_setup::build_context()?;
    // A client that does not read standard error must not stop the session.
    let (lines, printed) = sync_channel(STDERR_LINES);
    let (ended_sender, printing_ended) = sync_channel(1);
    std::thread::spawn(move || {
        while let Ok(StderrOutput::Line(line)) = printed.recv() {
            eprintln!("{line}");
        }
        // No one waits if the output was blocked for too long.
        let _ = ended_sender.try_send(());
    });
    let last = lines.clone();
    let streams = RecordStreams { from_client: tokio::io::stdin(), to_client: tokio::io::stdout() };
    let print = move |line: &str| drop(lines.try_send(StderrOutput::Line(line.to_owned())));
    let ended = record_stdio(command, &common.supervisor, writer, streams, print, stop).await;
    if last.try_send(StderrOutput::End).is_ok() {
        let _ = printing_ended.recv_timeout(LAST_LINES);
    }
    ended.map_err(|error| {
        let suggestion = error.suggestion();
        let failed = CommandError::new(Exit::Unreachable, error.to_string());
        suggestion.into_iter().fold(failed, CommandError::suggest)
    })
}

/// Returns the one server to record, and the environment variables that contain secrets.
fn select_server(args: &RecordArgs) -> Result<(ServerSettings, BTreeSet<String>), CommandError> {
    if let Some(server) = ad_hoc::server_settings(&args.other)? {
        return Ok((server, BTreeSet::new()));
    }
    let Some(name) = &args.server else {
        return Err(CommandError::usage("no server to record")
            .suggest("pass a command after `--`, --url, or the name of a configured server with --server"));
    };
    let config = Config::load(&args.config, &process_environment()).map_err(|problems| {
        problems.0.iter().for_each(report_problem);
        CommandError::AlreadyReported(Exit::Usage)
    })?;
    check_server_exists(name, &config)?;
    for entry in config.servers() {
        match entry {
            ServerEntry::Ready(settings) if settings.name.as_str() == name => {
                return Ok(((**settings).clone(), config.secret_variables.clone()));
            }
            ServerEntry::Broken(broken) if broken.name.as_str() == name => {
                let message = format!("server `{name}` cannot be used: {}", broken.reason());
                return Err(CommandError::usage(message));
            }
            ServerEntry::Ready(_) | ServerEntry::Broken(_) | ServerEntry::Document(_) => {}
        }
    }
    Err(CommandError::usage(format!("`{name}` is not an MCP server; only MCP servers can be recorded")))
}

/// Returns the values that must not appear in a recording: those of variables, headers and options
/// whose names say that they are secret.
fn known_secrets(server: &ServerSettings, secret_variables: &BTreeSet<String>) -> Vec<Secret> {
    let redaction = Redaction::default();
    let is_secret = |name: &str| secret_variables.contains(name) || redaction.is_secret_key(name);
    // Other variables of this process reach no server, unless it inherits all of them.
    let inherits_all = matches!(
        &server.transport,
        TransportSettings::Command(CommandSettings { inherit: EnvInheritance::Everything, .. })
    );
    let reaches_server = |name: &str| {
        secret_variables.contains(name) || (inherits_all && is_secret(name) && !is_setting_of_session(name))
    };
    let around = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut secrets: Vec<Secret> =
        around.filter(|(name, _)| reaches_server(name)).map(|(_, value)| Secret::new(value)).collect();
    let named = match &server.transport {
        TransportSettings::Command(command) => {
            let mut words = command.args.iter().peekable();
            while let Some(word) = words.next() {
                let Some(option) = word.strip_prefix('-') else { continue };
                match option.split_once('=') {
                    Some((name, value)) if is_secret(name) => secrets.push(Secret::new(value)),
                    None if is_secret(option) => {
                        secrets.extend(words.peek().map(|value| Secret::new(value.as_str())));
                    }
                    _ => {}
                }
            }
            &command.env
        }
        TransportSettings::Url(url) => &url.headers,
    };
    if let ServerAuthSettings::Bearer(token) = &server.auth {
        secrets.push(token.clone());
    }
    for (_, value) in named.iter().filter(|(name, _)| is_secret(name)) {
        secrets.push(value.clone());
        // The credentials without their scheme.
        secrets.extend(value.reveal().split_once(' ').map(|(_, credentials)| Secret::new(credentials)));
    }
    secrets
}

/// Whether a variable describes the login session of the user, such as `PWD` and `DESKTOP_SESSION`.
fn is_setting_of_session(name: &str) -> bool {
    matches!(name, "PWD" | "OLDPWD") || name.contains("SESSION") || name.ends_with("_SOCK")
}

fn proxy_target(settings: &UrlSettings, auth: &ServerAuthSettings) -> Result<ProxyTarget, CommandError> {
    let url = Url::parse(&settings.url)
        .map_err(|error| CommandError::usage(format!("the URL of the server is invalid: {error}")))?;
    let mut headers = HeaderMap::new();
    let mut configured = settings.headers.clone();
    if let ServerAuthSettings::Bearer(token) = auth {
        configured.insert("authorization".to_owned(), Secret::new(format!("Bearer {}", token.reveal())));
    }
    for (name, value) in &configured {
        let pair = HeaderName::try_from(name.as_str()).ok().zip(HeaderValue::try_from(value.reveal()).ok());
        let Some((name, mut value)) = pair else {
            return Err(CommandError::usage(format!("header `{name}` has an invalid name or value")));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    ProxyTarget::new(url, headers)
        .map_err(|error| anyhow::Error::new(error).context("cannot create the HTTP client").into())
}

/// Returns the error for an address that cannot be used.
pub(super) fn front_error(error: &FrontError) -> CommandError {
    let failed = CommandError::usage(error.to_string());
    match error {
        FrontError::Listen { .. } => failed.suggest("pass another port, or port 0 for a free one"),
        FrontError::NotLoopback(_) => {
            failed.suggest("pass a port alone, or an address such as 127.0.0.1:8090")
        }
    }
}
