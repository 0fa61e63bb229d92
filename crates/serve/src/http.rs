//! Serving a yard over HTTP with default settings, for programs with tools of their own. All other
//! settings of `toolyard serve` are in [`ServeSettings`].

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

/// Options of [`http_with`].
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Address to listen on. Port 0 picks a free port. Default: `127.0.0.1:8080`.
    pub listen: SocketAddr,
    /// Accepted tokens. If empty, a token with all permissions is generated.
    pub tokens: Vec<BearerToken>,
    /// Accepted host names in addition to the loopback names.
    pub hosts: Vec<String>,
    /// Origins whose pages may use this server.
    pub origins: Vec<String>,
    pub mcp: McpSettings,
    /// Time limit for calls in flight at shutdown.
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

/// A server that is bound to its address: MCP at `/mcp`, REST at `/mcp/tools`, the page at `/`.
#[derive(Debug)]
pub struct HttpServer {
    bound: BoundServer,
    token: Option<String>,
}

/// Binds `127.0.0.1:8080` for a yard, with a newly generated token.
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

/// Like [`http()`], with options.
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
    /// Returns the base URL, such as `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.bound.address())
    }

    /// Returns the generated token, if there is one.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Returns the URL of the page, including the generated token.
    pub fn page_url(&self) -> String {
        match &self.token {
            Some(token) => format!("{}/#token={token}", self.url()),
            None => format!("{}/", self.url()),
        }
    }

    /// Serves until `stop` completes, then lets calls in flight finish.
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
