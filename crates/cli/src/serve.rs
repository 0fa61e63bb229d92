//! `toolyard serve`

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolyard_config::{AuthMode, Config, TokenEntry};
use toolyard_hooks::HttpHooks;
use toolyard_hub::{Source, Yard, YardScope};
use toolyard_program::ProgramSource;
use toolyard_serve::{
    Auth, BearerCredentials, BearerToken, BearerTokenStore, BuiltinEndpoint, BuiltinEndpointName,
    ControlSettings, JwksClient, McpSettings, ServeAuthSettings, ServeError, ServeSettings, bind,
};
use toolyard_tester::{Tester, TesterServers, TesterSharing};

use crate::args::ServeArgs;
use crate::recording::{CallRecording, HistoryReaders};
use crate::servers::{self, ConfiguredServers, ServerStartOptions, StartMode};
use crate::signals::until_stopped;
use crate::{Exit, programs, terminal, token, upstream_setup, yard};

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let given = args.documents.config_inputs(args.config);
    let Some(config) = given.load() else {
        return Ok(Exit::Usage);
    };
    let common = upstream_setup::build_common()?;
    let owner = yard::owner(&config);
    let auth = args.auth.map(AuthMode::from).or(config.auth).unwrap_or(AuthMode::Token);
    let entrance = match args.token.filter(|token| !token.is_empty()) {
        _ if auth == AuthMode::None => StartupAuth::Open,
        Some(token) => StartupAuth::Own(token),
        // Whoever has names for the callers needs nobody without one.
        None if !config.access.is_empty() => StartupAuth::Configured,
        None => StartupAuth::Fresh(token::generate()?),
    };
    let own: Vec<BearerToken> =
        entrance.token().map(|token| BearerToken::new(token, owner.clone())).into_iter().collect();
    let jwks = JwksClient::new(common.tls.clone()).context("cannot set up HTTP")?;
    let hooks = HttpHooks::new(common.tls.clone(), &config.hooks).context("cannot set up HTTP")?;
    let keeping = CallRecording::open(&config, HistoryReaders::Some)?;
    let yard = yard::build(&config, Arc::clone(&hooks), &keeping);
    let keyring = BearerTokenStore::default();
    let hang = {
        let (keyring, yard) = (keyring.clone(), Arc::clone(&yard));
        move |config: &Config| {
            hooks.replace(&config.hooks);
            keyring.replace(keys(config, &own, &jwks));
            if config.access.restricts() {
                yard.mark_callers_restricted();
            }
        }
    };
    hang(&config);
    let auth = match auth {
        AuthMode::None => Auth::None(owner),
        AuthMode::Token => Auth::TokenStore(keyring),
    };
    let directory = TesterServers::default();
    let tester =
        Tester::new(config.tester.settings(TesterSharing::Session), common.clone(), Arc::clone(&directory));
    let programs =
        config.programs.is_enabled().then(|| programs::build(&config.programs, &yard)).transpose()?;
    let tested = BuiltinEndpoint {
        name: BuiltinEndpointName::Tester,
        yard: yard::build_tester(&config, &tester, &keeping, yard.quotas()),
        reach: YardScope::All,
        identity: yard::tester_identity(),
    };
    let mut annexes = vec![tested];
    if let Some(programs) = &programs {
        yard.add(Arc::clone(programs) as Arc<dyn Source>);
        annexes.push(BuiltinEndpoint {
            name: BuiltinEndpointName::Programs,
            yard: Arc::clone(&yard),
            reach: YardScope::Only([programs.name().clone()].into()),
            identity: programs::identity(),
        });
    }
    let settings = ServeSettings {
        listen: args.listen.or(config.listen).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
        door: ServeAuthSettings { auth, hosts: config.hosts.clone(), origins: config.origins.clone() },
        mcp: McpSettings { forward_headers: servers::forwarded_headers(&config), ..McpSettings::default() },
        endpoint: toolyard_serve::EndpointSettings { body: config.limits().payload, ..Default::default() },
        control: ControlSettings { log: Some(crate::log::line_sender()) },
        connections: config.connections.clone(),
        annexes,
        drain: config.limits.drain(),
    };
    let bound = match bind(Arc::clone(&yard), settings).await {
        Ok(bound) => bound,
        Err(error) => {
            eprintln!("toolyard: {error}");
            if let ServeError::Listen { .. } = error {
                eprintln!(
                    "  another address can be said with --listen; --listen 127.0.0.1:0 picks a free port"
                );
            }
            return Ok(Exit::Failed);
        }
    };
    let servers = config.servers().len();
    let crew = ServerStartOptions { common, manned: StartMode::Shared, directory };
    let mut fleet = ConfiguredServers::start(Arc::clone(&yard), config, given, crew, hang)?;
    greet(&yard, servers, bound.address(), &entrance, args.json);
    let stop = CancellationToken::new();
    let work = Box::pin(async {
        let served = tokio::select! {
            () = bound.serve(stop.clone()) => Ok(()),
            failed = fleet.reload_on_change() => failed,
        };
        tester.stop().await;
        if let Some(programs) = programs {
            programs.stop().await;
        }
        fleet.stop().await;
        served
    });
    let done = until_stopped(stop.clone(), work).await;
    keeping.close().await;
    let done = done?.transpose()?;
    Ok(if done.is_some() { Exit::Fine } else { Exit::Interrupted })
}

/// How clients authenticate, which decides what is printed at the start.
enum StartupAuth {
    Open,
    /// With the token that was made for this run and is printed.
    Fresh(String),
    /// With the operator's own token. It is never printed: logs of services and CI jobs are read by others.
    Own(String),
    /// With what the configuration names.
    Configured,
}

impl StartupAuth {
    /// The token of the owner, if there is one.
    fn token(&self) -> Option<&str> {
        match self {
            Self::Fresh(token) | Self::Own(token) => Some(token),
            Self::Open | Self::Configured => None,
        }
    }
}

/// Every key that opens the door: the owner's, and those of the configuration.
fn keys(config: &Config, own: &[BearerToken], jwks: &JwksClient) -> BearerCredentials {
    let configured = config.access.tokens.iter().map(TokenEntry::token);
    let jwt = config.access.jwt.as_ref();
    BearerCredentials {
        tokens: own.iter().cloned().chain(configured).collect(),
        jwt: jwt.map(|jwt| Arc::new(jwt.settings(|url| jwks.fetcher(url)))),
    }
}

fn greet(yard: &Yard, servers: usize, address: SocketAddr, entrance: &StartupAuth, as_json: bool) {
    let url = format!("http://{address}");
    if as_json {
        let token = if let StartupAuth::Fresh(token) = entrance { Some(token) } else { None };
        let known = json!({"url": url, "mcp": format!("{url}/mcp"), "token": token});
        if let Err(error) = terminal::print(&format!("{known}\n")) {
            eprintln!("toolyard: cannot print the address: {error}");
        }
        return;
    }
    eprintln!("Toolyard {} serves {}", env!("CARGO_PKG_VERSION"), contents(yard, servers));
    match entrance {
        StartupAuth::Fresh(token) => {
            eprintln!("  page  {url}/#token={token}");
            eprintln!("  MCP   {url}/mcp   with the header  Authorization: Bearer {token}");
        }
        StartupAuth::Own(_) => {
            eprintln!("  page  {url}/   asks for the token that you set with --token or TOOLYARD_TOKEN");
            eprintln!("  MCP   {url}/mcp   with the header  Authorization: Bearer  and the same token");
        }
        StartupAuth::Configured => {
            eprintln!("  page  {url}/   asks for a token of the configuration");
            eprintln!(
                "  MCP   {url}/mcp   with the header  Authorization: Bearer  and a token of the configuration"
            );
        }
        StartupAuth::Open => {
            eprintln!("  page  {url}/   open to everybody on this machine");
            eprintln!("  MCP   {url}/mcp   open to everybody on this machine");
        }
    }
    eprintln!("  REST  {url}/mcp/tools   the same tools for curl; all of it is in {url}/openapi.json");
    eprintln!("Ctrl-C stops it.");
}

/// What the yard holds, for the person who started it. Servers are only starting when this is said.
fn contents(yard: &Yard, servers: usize) -> String {
    let catalog = yard.catalog();
    let tools = catalog.tools().iter().filter(|tool| tool.source.as_str() != ProgramSource::NAME).count();
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let native = [
        count(tools, "tool"),
        count(catalog.resources().len(), "resource"),
        count(catalog.templates().len(), "template"),
        count(catalog.prompts().len(), "prompt"),
    ];
    match (servers, tools == 0) {
        (0, _) => native.join(", "),
        (_, true) => count(servers, "server"),
        (_, false) => format!("{}, and {}", count(servers, "server"), native.join(", ")),
    }
}
