//! `toolyard serve`

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolyard_cluster::{ClusterDatabase, IssuedTokens};
use toolyard_config::{AuthMode, Config};
use toolyard_hub::{Source, Yard, YardScope};
use toolyard_postgres::PostgresError;
use toolyard_program::ProgramSource;
use toolyard_serve::{
    Auth, BearerToken, BearerTokenStore, BuiltinEndpoint, BuiltinEndpointName, ControlSettings, JwksClient,
    McpSettings, ServeAuthSettings, ServeError, ServeSettings, bind,
};

use crate::accepted_tokens::AcceptedTokens;
use crate::args::ServeArgs;
use crate::assembly::{self, AssemblyOptions, RunningYard, TesterPlacement};
use crate::cluster::ClusterMember;
use crate::recording::CallRecords;
use crate::servers::{self, StartMode};
use crate::terminal::{format_count, print_error, print_hint};
use crate::{Exit, programs, terminal, token};

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let given = args.documents.config_inputs(args.config);
    let Some(config) = given.load() else {
        return Ok(Exit::Usage);
    };
    let owner = assembly::owner(&config);
    let auth = args.auth.map(AuthMode::from).or(config.auth).unwrap_or(AuthMode::Token);
    let cluster =
        config.cluster.as_ref().map(|settings| ClusterMember::open(settings, &config)).transpose()?;
    let options = AssemblyOptions {
        records: CallRecords::AuditAndHistory,
        tester: Some(TesterPlacement::OwnYard),
        programs: config.programs.is_enabled(),
        sharing: cluster.as_ref().map(ClusterMember::share),
        ..AssemblyOptions::new(StartMode::Shared)
    };
    let mut running = RunningYard::assemble(&config, options).await?;
    let yard = Arc::clone(&running.yard);
    // Without the revocations, nothing is served.
    let issued = match load_tokens(running.database.as_deref()).await {
        Ok(issued) => issued,
        Err(error) => {
            running.stop().await;
            return Err(error.into());
        }
    };
    let entrance = match args.token.filter(|token| !token.is_empty()) {
        _ if auth == AuthMode::None => StartupAuth::Open,
        Some(token) => StartupAuth::Provided(token),
        // A yard with tokens or JWTs needs no generated token.
        None if !config.access.is_empty() || !issued.saved.is_empty() => StartupAuth::Configured,
        None => StartupAuth::Generated(token::generate()?),
    };
    let own: Vec<BearerToken> =
        entrance.token().map(|token| BearerToken::new(token, owner.clone())).into_iter().collect();
    let tokens = BearerTokenStore::default();
    let jwks = JwksClient::new(running.servers.context.tls.clone());
    let accepted = Arc::new(AcceptedTokens::new(tokens.clone(), Arc::clone(&yard), jwks, own));
    accepted.set_issued(issued.clone());
    accepted.set_config(&config);
    let admit = {
        let accepted = Arc::clone(&accepted);
        let membership = cluster.as_ref().map(|cluster| Arc::clone(&cluster.membership));
        move |config: &Config| {
            if let Some(membership) = &membership {
                membership.set_config(config.digest.clone());
            }
            accepted.set_config(config);
        }
    };
    let database = running.database.clone();
    let auth = match auth {
        AuthMode::None => Auth::None(owner),
        AuthMode::Token => Auth::TokenStore(tokens),
    };
    let settings = ServeSettings {
        listen: args.listen.or(config.listen).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
        auth: ServeAuthSettings { auth, hosts: config.hosts.clone(), origins: config.origins.clone() },
        mcp: McpSettings { forward_headers: servers::forwarded_headers(&config), ..McpSettings::default() },
        endpoint: toolyard_serve::EndpointSettings {
            max_body_bytes: config.limits().payload,
            ..Default::default()
        },
        control: ControlSettings { log: Some(crate::log::line_sender()) },
        connections: config.connections.clone(),
        builtin_endpoints: builtin_endpoints(&running),
        drain: config.limits.drain_timeout(),
    };
    let bound = match bind(Arc::clone(&yard), settings).await {
        Ok(bound) => bound,
        Err(error) => {
            print_error(&error.to_string());
            match error {
                ServeError::Listen { .. } => {
                    print_hint(
                        "choose another address with --listen; `--listen 127.0.0.1:0` picks a free port",
                    );
                }
                ServeError::OpenToAll(_) => {
                    print_hint("listen on a loopback address such as 127.0.0.1, or use `--auth token`");
                }
                ServeError::Random(_) => {}
            }
            running.stop().await;
            return Ok(Exit::Failed);
        }
    };
    let bound = match &cluster {
        None => bound,
        Some(cluster) if cluster.advertise(bound.address()) => {
            bound.with_replicas(cluster.replica_settings(&running.servers.context))
        }
        Some(_) => {
            print_error(&format!("other replicas cannot reach this one at `{}`", bound.address()));
            print_hint(
                "set `cluster.advertise` to a URL that the other replicas can reach, or listen on one address",
            );
            running.stop().await;
            return Ok(Exit::Usage);
        }
    };
    let placed = bound.placed_servers().cloned();
    if let Some(placed) = &placed {
        running.servers.join_replicas(Arc::clone(placed));
    }
    let servers = config.servers().len();
    running.start_and_follow(config, given, admit)?;
    print_startup_banner(&yard, servers, bound.address(), &entrance, args.json);
    let stop = CancellationToken::new();
    let serving = async {
        let membership = cluster.map(ClusterMember::join);
        let watch =
            database.map(|database| database.watch_tokens(issued, move |issued| accepted.set_issued(issued)));
        bound.serve(stop.clone()).await;
        if let Some(placed) = placed {
            placed.stop().await;
        }
        if let Some(watch) = watch {
            watch.stop().await;
        }
        if let Some(membership) = membership {
            membership.leave().await;
        }
        Ok(())
    };
    let done = running.run(stop.clone(), serving).await?;
    Ok(if done.is_some() { Exit::Success } else { Exit::Interrupted })
}

/// The endpoints besides `/mcp`.
fn builtin_endpoints(running: &RunningYard) -> Vec<BuiltinEndpoint> {
    let tester = running.tester.as_ref().map(|tester| BuiltinEndpoint {
        name: BuiltinEndpointName::Tester,
        yard: Arc::clone(&tester.yard),
        reach: YardScope::All,
        identity: assembly::tester_identity(),
    });
    let programs = running.programs.as_ref().map(|programs| BuiltinEndpoint {
        name: BuiltinEndpointName::Programs,
        yard: Arc::clone(&running.yard),
        reach: YardScope::Only([programs.name().clone()].into()),
        identity: programs::identity(),
    });
    tester.into_iter().chain(programs).collect()
}

/// How clients authenticate, which determines the startup banner.
enum StartupAuth {
    Open,
    /// With the token generated for this run, which is printed.
    Generated(String),
    /// With the operator's own token. It is never printed, because others can read the logs of
    /// services and CI jobs.
    Provided(String),
    /// With the tokens or JWTs of the configuration, or tokens in the database.
    Configured,
}

impl StartupAuth {
    /// The token of the owner, if there is one.
    fn token(&self) -> Option<&str> {
        match self {
            Self::Generated(token) | Self::Provided(token) => Some(token),
            Self::Open | Self::Configured => None,
        }
    }
}

/// Returns the tokens in the database, if there is one.
async fn load_tokens(database: Option<&ClusterDatabase>) -> Result<IssuedTokens, PostgresError> {
    let Some(database) = database else { return Ok(IssuedTokens::default()) };
    database.ready().await?;
    database.load_tokens().await
}

fn print_startup_banner(
    yard: &Yard,
    servers: usize,
    address: SocketAddr,
    entrance: &StartupAuth,
    as_json: bool,
) {
    let url = format!("http://{address}");
    if as_json {
        let token = if let StartupAuth::Generated(token) = entrance { Some(token) } else { None };
        let known = json!({"url": url, "mcp": format!("{url}/mcp"), "token": token});
        if let Err(error) = terminal::print(&format!("{known}\n")) {
            print_error(&format!("cannot print the address: {error}"));
        }
        return;
    }
    eprintln!("Toolyard {} serves {}", env!("CARGO_PKG_VERSION"), describe_contents(yard, servers));
    match entrance {
        StartupAuth::Generated(token) => {
            eprintln!("  page  {url}/#token={token}");
            eprintln!("  MCP   {url}/mcp   with the header `Authorization: Bearer {token}`");
        }
        StartupAuth::Provided(_) => {
            eprintln!("  page  {url}/   sign in with the token from --token or TOOLYARD_TOKEN");
            eprintln!("  MCP   {url}/mcp   with the header `Authorization: Bearer TOKEN`");
        }
        StartupAuth::Configured => {
            eprintln!("  page  {url}/   sign in with a token from the configuration");
            eprintln!("  MCP   {url}/mcp   with the header `Authorization: Bearer TOKEN`");
        }
        StartupAuth::Open => {
            eprintln!("  page  {url}/   no authentication, this machine only");
            eprintln!("  MCP   {url}/mcp   no authentication, this machine only");
        }
    }
    eprintln!("  REST  {url}/mcp/tools   API description: {url}/openapi.json");
    eprintln!("Press Ctrl-C to stop.");
}

/// Summarizes the contents of the yard. The servers are still starting at this point, so only their
/// number is known.
fn describe_contents(yard: &Yard, servers: usize) -> String {
    let catalog = yard.catalog();
    let tools = catalog.tools().iter().filter(|tool| tool.source.as_str() != ProgramSource::NAME).count();
    let native = [
        format_count(tools, "tool"),
        format_count(catalog.resources().len(), "resource"),
        format_count(catalog.templates().len(), "template"),
        format_count(catalog.prompts().len(), "prompt"),
    ];
    match (servers, tools == 0) {
        (0, _) => native.join(", "),
        (_, true) => format_count(servers, "server"),
        (_, false) => format!("{}, and {}", format_count(servers, "server"), native.join(", ")),
    }
}
