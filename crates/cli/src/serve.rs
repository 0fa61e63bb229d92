//! `toolyard serve`

use std::net::SocketAddr;

use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolyard_hub::Yard;
use toolyard_serve::{Auth, DoorSettings, McpSettings, ServeError, ServeSettings, Token, bind};

use crate::args::{AuthMode, ServeArgs};
use crate::config::Config;
use crate::signals::until_stopped;
use crate::{Exit, token, yard};

pub(crate) async fn run(args: ServeArgs) -> anyhow::Result<Exit> {
    let config = match Config::find(args.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("toolyard: {error:#}");
            return Ok(Exit::Usage);
        }
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
        mcp: McpSettings::default(),
        endpoint: toolyard_serve::EndpointSettings {
            body: config.limits.limits().payload,
            ..Default::default()
        },
        drain: config.limits.drain(),
    };
    let bound = match bind(std::sync::Arc::clone(&yard), settings).await {
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
    greet(&yard, bound.address(), token.as_deref(), args.json);
    let stop = CancellationToken::new();
    let done = until_stopped(stop.clone(), bound.serve(stop)).await?;
    Ok(if done.is_some() { Exit::Fine } else { Exit::Interrupted })
}

fn greet(yard: &Yard, address: SocketAddr, token: Option<&str>, as_json: bool) {
    let url = format!("http://{address}");
    if as_json {
        println!("{}", json!({"url": url, "mcp": format!("{url}/mcp"), "token": token}));
        return;
    }
    let catalog = yard.catalog();
    eprintln!(
        "Toolyard {} serves {} tools, {} resources, {} templates, {} prompts",
        env!("CARGO_PKG_VERSION"),
        catalog.tools().len(),
        catalog.resources().len(),
        catalog.templates().len(),
        catalog.prompts().len(),
    );
    match token {
        Some(token) => {
            eprintln!("  page  {url}/#token={token}");
            eprintln!("  MCP   {url}/mcp   with the header  Authorization: Bearer {token}");
        }
        None => eprintln!("  MCP   {url}/mcp   open to everybody on this machine"),
    }
    eprintln!("Ctrl-C stops it.");
}
