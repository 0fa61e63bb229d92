//! `toolyard serve`

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolyard_hub::Yard;
use toolyard_serve::{Auth, DoorSettings, McpSettings, ServeError, ServeSettings, Token, bind};

use crate::args::{AuthMode, ServeArgs};
use crate::fleet::{self, Fleet};
use crate::signals::until_stopped;
use crate::{Exit, config, token, yard};

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let Some(config) = config::load_or_tell(&args.config) else {
        return Ok(Exit::Usage);
    };
    let owner = yard::owner(&config);
    let (auth, token) = match args.auth.or(config.auth).unwrap_or(AuthMode::Token) {
        AuthMode::None => (Auth::None(owner), None),
        AuthMode::Token => {
            let token = args.token.filter(|token| !token.is_empty()).map_or_else(token::fresh, Ok)?;
            (Auth::Tokens(vec![Token::new(&token, owner)]), Some(token))
        }
    };
    let yard = yard::build(&config);
    let settings = ServeSettings {
        listen: args.listen.or(config.listen).unwrap_or(SocketAddr::from(([127, 0, 0, 1], 8080))),
        door: DoorSettings { auth, hosts: config.hosts.clone(), origins: config.origins.clone() },
        mcp: McpSettings { forward_headers: fleet::forwarded(&config), ..McpSettings::default() },
        endpoint: toolyard_serve::EndpointSettings { body: config.limits().payload, ..Default::default() },
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
    let mut fleet = Fleet::start(Arc::clone(&yard), config, args.config)?;
    greet(&yard, servers, bound.address(), token.as_deref(), args.json);
    let stop = CancellationToken::new();
    let work = async {
        let served = tokio::select! {
            () = bound.serve(stop.clone()) => Ok(()),
            failed = fleet.follow() => failed,
        };
        fleet.stop().await;
        served
    };
    let done = until_stopped(stop.clone(), work).await?.transpose()?;
    Ok(if done.is_some() { Exit::Fine } else { Exit::Interrupted })
}

fn greet(yard: &Yard, servers: usize, address: SocketAddr, token: Option<&str>, as_json: bool) {
    let url = format!("http://{address}");
    if as_json {
        println!("{}", json!({"url": url, "mcp": format!("{url}/mcp"), "token": token}));
        return;
    }
    eprintln!("Toolyard {} serves {}", env!("CARGO_PKG_VERSION"), contents(yard, servers));
    match token {
        Some(token) => {
            eprintln!("  page  {url}/#token={token}");
            eprintln!("  MCP   {url}/mcp   with the header  Authorization: Bearer {token}");
        }
        None => eprintln!("  MCP   {url}/mcp   open to everybody on this machine"),
    }
    eprintln!("Ctrl-C stops it.");
}

/// What the yard holds, for the person who started it. Servers are only starting when this is said.
fn contents(yard: &Yard, servers: usize) -> String {
    let catalog = yard.catalog();
    let count = |number: usize, word: &str| format!("{number} {word}{}", if number == 1 { "" } else { "s" });
    let native = [
        count(catalog.tools().len(), "tool"),
        count(catalog.resources().len(), "resource"),
        count(catalog.templates().len(), "template"),
        count(catalog.prompts().len(), "prompt"),
    ];
    match (servers, catalog.tools().is_empty()) {
        (0, _) => native.join(", "),
        (_, true) => count(servers, "server"),
        (_, false) => format!("{}, and {}", count(servers, "server"), native.join(", ")),
    }
}
