//! Serves a test yard over HTTP or stdio, for suites that drive a server from outside. Over HTTP it
//! prints the MCP address on standard output. Without `--token`, it accepts every local client.
#![allow(clippy::print_stdout, reason = "the caller waits for the address")]

use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolyard_hub::{Permissions, Principal, Yard};
use toolyard_serve::{
    Auth, BearerToken, ConnectionLimits, EndpointSettings, McpSettings, ServeAuthSettings, ServeSettings,
    StdioOptions, StdioSettings, bind, stdio_with,
};
use toolyard_testkit::{conformance, probe};

const USAGE: &str = "toolyard-fixture [stdio] [--yard conformance|probe] [--token NAME=SECRET]... \
    [--come-back MS] [--patience MS] [--drain MS] [--page N] [--sessions N] [--limit BYTES]";

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Runtime::new()?;
    let served = runtime.block_on(serve());
    // A pending read of standard input must not keep the process alive.
    runtime.shutdown_background();
    served
}

async fn serve() -> Result<(), Failure> {
    let Options { over, yard, mcp, endpoint, tokens, drain } = Options::read(std::env::args().skip(1))?;
    let stop = CancellationToken::new();
    let mut terminate = signal(SignalKind::terminate())?;
    let on_terminate = stop.clone();
    let waiting = tokio::spawn(async move {
        terminate.recv().await;
        on_terminate.cancel();
    });
    match over {
        Over::Stdio => {
            let wire = StdioSettings {
                max_line_bytes: endpoint.max_body_bytes,
                drain_timeout: drain,
                ..StdioSettings::default()
            };
            stdio_with(yard, StdioOptions { mcp, wire, stop, ..StdioOptions::default() }).await?;
        }
        Over::Http => {
            let auth = if tokens.is_empty() { Auth::None(Principal::owner()) } else { Auth::Tokens(tokens) };
            let door = ServeAuthSettings { auth, hosts: Vec::new(), origins: Vec::new() };
            let listen = ([127, 0, 0, 1], 0).into();
            let bound = bind(
                yard,
                ServeSettings {
                    listen,
                    auth: door,
                    mcp,
                    endpoint,
                    connections: ConnectionLimits::default(),
                    builtin_endpoints: Vec::new(),
                    drain,
                    control: toolyard_serve::ControlSettings::default(),
                },
            )
            .await?;
            println!("http://{}/mcp", bound.address());
            bound.serve(stop).await;
        }
    }
    waiting.abort();
    Ok(())
}

enum Over {
    Stdio,
    Http,
}

struct Options {
    over: Over,
    yard: Arc<Yard>,
    mcp: McpSettings,
    endpoint: EndpointSettings,
    tokens: Vec<BearerToken>,
    drain: Duration,
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut options = Self {
            over: Over::Http,
            yard: conformance::yard(),
            mcp: McpSettings::default(),
            endpoint: EndpointSettings::default(),
            tokens: Vec::new(),
            drain: Duration::from_secs(1),
        };
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or(USAGE);
            match argument.as_str() {
                "stdio" => options.over = Over::Stdio,
                "--yard" => options.yard = yard(&value()?)?,
                "--token" => options.tokens.push(token(&value()?)?),
                "--come-back" => options.endpoint.resume_timeout = milliseconds(&value()?)?,
                "--patience" => options.endpoint.stream_after = milliseconds(&value()?)?,
                "--drain" => options.drain = milliseconds(&value()?)?,
                "--page" => options.mcp.page = value()?.parse()?,
                "--sessions" => options.endpoint.max_sessions = value()?.parse()?,
                "--limit" => options.endpoint.max_body_bytes = value()?.parse()?,
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

fn yard(name: &str) -> Result<Arc<Yard>, Failure> {
    match name {
        "conformance" => Ok(conformance::yard()),
        "probe" => Ok(probe::yard()),
        _ => Err(USAGE.into()),
    }
}

fn token(pair: &str) -> Result<BearerToken, Failure> {
    let (name, secret) = pair.split_once('=').ok_or(USAGE)?;
    Ok(BearerToken::new(secret, Principal::new(name, Permissions::All)))
}

fn milliseconds(text: &str) -> Result<Duration, Failure> {
    Ok(Duration::from_millis(text.parse()?))
}
