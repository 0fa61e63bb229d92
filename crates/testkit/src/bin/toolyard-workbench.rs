//! Serves the workbench and the probe over HTTP for tests of the REST front, together with any
//! misbehaving servers given, and prints its MCP address on standard output. Without a token, it
//! accepts every local client.
#![allow(clippy::print_stdout, reason = "the caller waits for the address")]
#![allow(clippy::disallowed_methods, reason = "a separate process, configured by its environment")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{Permissions, Principal, RateLimit, SourceName, Yard, YardLimits, YardSettings};
use toolyard_serve::{
    Auth, BearerToken, ConnectionLimits, EndpointSettings, McpSettings, ServeAuthSettings, ServeSettings,
    bind,
};
use toolyard_testkit::{probe, workbench};
use toolyard_upstream::{
    CommandSettings, EnvInheritance, ProcessEnvironment, ServerSettings, SupervisorCommand,
    TransportSettings, Upstream, UpstreamContext,
};

const USAGE: &str = "toolyard-workbench [--token NAME=SECRET[=PERMISSION,...]]... [--odd KIND]... [--rate BURST] \
    [--call-time MS] [--payload BYTES] [--limit BYTES] [--body-time MS] [--per-source N] [--drain MS]";

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let mut limits = YardLimits { rate: None, ..YardLimits::default() };
    let mut endpoint = EndpointSettings::default();
    let (mut tokens, mut odd, mut drain) = (Vec::new(), Vec::new(), Duration::from_secs(1));
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        match argument.as_str() {
            "--token" => tokens.push(token(&value)?),
            "--odd" => odd.push(value),
            // Practically no refill after the burst, so that a test knows how many calls pass.
            "--rate" => limits.rate = Some(RateLimit { per_second: 0.1, burst: value.parse()? }),
            "--call-time" => limits.call_time = Duration::from_millis(value.parse()?),
            "--payload" => limits.payload = value.parse()?,
            "--per-source" => limits.per_source = Some(value.parse()?),
            "--limit" => endpoint.max_body_bytes = value.parse()?,
            "--body-time" => endpoint.body_timeout = Duration::from_millis(value.parse()?),
            "--drain" => drain = Duration::from_millis(value.parse()?),
            _ => return Err(USAGE.into()),
        }
    }
    let yard = Yard::new(YardSettings { limits, ..YardSettings::default() });
    yard.add(workbench::source());
    yard.add(probe::source());
    let upstreams = start(&yard, &odd)?;
    let auth = if tokens.is_empty() { Auth::None(Principal::owner()) } else { Auth::Tokens(tokens) };
    let door = ServeAuthSettings { auth, hosts: Vec::new(), origins: Vec::new() };
    let listen = ([127, 0, 0, 1], 0).into();
    let settings = ServeSettings {
        listen,
        auth: door,
        mcp: McpSettings::default(),
        endpoint,
        connections: ConnectionLimits::default(),
        builtin_endpoints: Vec::new(),
        drain,
        control: toolyard_serve::ControlSettings::default(),
    };
    let bound = bind(yard, settings).await?;
    println!("http://{}/mcp", bound.address());
    let stop = CancellationToken::new();
    let on_terminate = stop.clone();
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        terminate.recv().await;
        on_terminate.cancel();
    });
    bound.serve(stop).await;
    for upstream in upstreams {
        upstream.stop().await;
    }
    Ok(())
}

/// Returns misbehaving servers over stdio, each named for its misbehavior. Their programs are in
/// the folder of this one.
fn start(yard: &Arc<Yard>, kinds: &[String]) -> Result<Vec<Arc<Upstream>>, Failure> {
    let beside = |name: &str| std::env::current_exe().map(|me| me.with_file_name(name));
    let me = to_raw(&json!({"name": "workbench", "version": "1"}));
    let keeper = SupervisorCommand {
        program: beside("toolyard-kept")?,
        args: vec!["keeper".into()],
        environment: ProcessEnvironment::new(std::env::vars_os()),
    };
    let common = UpstreamContext::new(keeper, me)?;
    let mut started = Vec::new();
    for kind in kinds {
        let command = CommandSettings {
            program: beside("toolyard-odd")?.display().to_string(),
            args: vec![kind.clone(), "stdio".to_owned()],
            env: BTreeMap::new(),
            cwd: None,
            inherit: EnvInheritance::AllowList,
        };
        let settings =
            ServerSettings::new(SourceName::new(kind.as_str()), TransportSettings::Command(command));
        let upstream = Upstream::start(settings, common.clone());
        yard.add(Arc::clone(&upstream) as _);
        started.push(upstream);
    }
    Ok(started)
}

/// Parses a token, with all permissions or only the named ones.
fn token(text: &str) -> Result<BearerToken, Failure> {
    let mut parts = text.splitn(3, '=');
    let (name, secret) = (parts.next().ok_or(USAGE)?, parts.next().ok_or(USAGE)?);
    let permissions = match parts.next() {
        None => Permissions::All,
        Some(list) => {
            let named = list.split(',').filter(|name| !name.is_empty());
            Permissions::Only(named.map(ToOwned::to_owned).collect())
        }
    };
    Ok(BearerToken::new(secret, Principal::new(name, permissions)))
}
