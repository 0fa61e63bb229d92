//! Serving a yard over HTTP with everything as it usually is, for programs with tools of their own. What `toolyard serve` can
//! be told beyond that is in [`ServeSettings`].

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{Principal, Yard};
use toolyard_wire::EndpointSettings;

use crate::auth::{Auth, BearerToken, ServeAuthSettings};
use crate::connections::ConnectionLimits;
use crate::control::ControlSettings;
use crate::listen::{BoundServer, ServeError, ServeSettings, bind};
use crate::mcp::McpSettings;

/// What serving over HTTP obeys.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// `127.0.0.1:8080`; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Who may come in. Where there is none, a token is generated for the owner.
    pub tokens: Vec<BearerToken>,
    /// Host names beside the loopback ones under which this server is reached.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this server.
    pub origins: Vec<String>,
    pub mcp: McpSettings,
    /// How long calls in flight may still take once the server is told to stop.
    pub drain: Duration,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            tokens: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            mcp: McpSettings::default(),
            drain: Duration::from_secs(30),
        }
    }
}

/// A server that has its address: MCP at `/mcp`, REST at `/mcp/tools`, the page at `/`.
#[derive(Debug)]
pub struct HttpServer {
    bound: BoundServer,
    token: Option<String>,
}

/// Takes `127.0.0.1:8080` for a yard, with a newly generated token.
///
/// ```no_run
/// # use toolyard_hub::Yard;
/// # async fn serve(yard: std::sync::Arc<Yard>) -> Result<(), toolyard_serve::ServeError> {
/// let server = toolyard_serve::http(yard).await?;
/// println!("{}", server.page_url());
/// server.serve_until(async { drop(tokio::signal::ctrl_c().await) }).await;
/// # Ok(())
/// # }
/// ```
pub async fn http(yard: Arc<Yard>) -> Result<HttpServer, ServeError> {
    http_with(yard, HttpOptions::default()).await
}

/// The same with everything said.
pub async fn http_with(yard: Arc<Yard>, options: HttpOptions) -> Result<HttpServer, ServeError> {
    let HttpOptions { listen, mut tokens, hosts, origins, mcp, drain } = options;
    let mut generated = None;
    if tokens.is_empty() {
        let token = URL_SAFE_NO_PAD.encode(toolyard_random::bytes::<32>()?);
        tokens.push(BearerToken::new(&token, Principal::owner()));
        generated = Some(token);
    }
    let settings = ServeSettings {
        listen,
        auth: ServeAuthSettings { auth: Auth::Tokens(tokens), hosts, origins },
        mcp,
        endpoint: EndpointSettings { max_body_bytes: yard.limits().payload, ..EndpointSettings::default() },
        control: ControlSettings::default(),
        connections: ConnectionLimits::default(),
        builtin_endpoints: Vec::new(),
        drain,
    };
    Ok(HttpServer { bound: bind(yard, settings).await?, token: generated })
}

impl HttpServer {
    /// Where it listens, as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.bound.address())
    }

    /// The token that was generated, if one was.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// The address of the page, with the token that was generated.
    pub fn page_url(&self) -> String {
        match &self.token {
            Some(token) => format!("{}/#token={token}", self.url()),
            None => format!("{}/", self.url()),
        }
    }

    /// Serves until the future is done, then lets calls in flight finish.
    pub async fn serve_until(self, stop: impl Future<Output = ()>) {
        let stopping = CancellationToken::new();
        let serving = self.bound.serve(stopping.clone());
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => return,
            () = stop => stopping.cancel(),
        }
        serving.await;
    }
}
