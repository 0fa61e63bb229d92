//! A yard behind its real routes, without a socket, for testing tools through the REST API. To test
//! a tool alone, use `toolyard_sdk::testing`.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, header};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use toolyard_hub::{Principal, Yard};
use toolyard_random::RandomError;
use toolyard_seal::SealingKeys;
use toolyard_wire::EndpointSettings;
use tower::ServiceExt;

use crate::auth::{Auth, Authenticator, ServeAuthSettings};
use crate::control::ControlSettings;
use crate::fronts::{FrontSettings, Fronts};
use crate::mcp::McpSettings;
use crate::router::router;

/// The REST API of a yard, as a client sees it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use serde_json::json;
/// use toolyard_sdk::{NativeSource, Tool, Yard};
///
/// let tool = Tool::new("greet", || async { Ok("hello") });
/// let source = NativeSource::new("greetings").tool(tool).into_source();
/// let app = toolyard_serve::testing::RestApp::new(Yard::with_sources([source]));
/// let response = app.post("/mcp/tools/greet/execute", &json!({"params": {}})).await;
/// assert_eq!((response.status, &response.body["success"]), (200, &json!(true)));
/// # }
/// ```
#[derive(Clone)]
pub struct RestApp {
    router: Router,
}

/// A response of the REST API.
#[derive(Debug, Clone)]
pub struct RestResponse {
    pub status: u16,
    pub headers: HeaderMap,
    /// The body as JSON, or as a string if it is not JSON.
    pub body: Value,
}

impl RestApp {
    /// Creates an app whose caller has all permissions. Must be called inside a Tokio runtime.
    ///
    /// # Panics
    /// If the random number generator of the system fails.
    pub fn new(yard: Arc<Yard>) -> Self {
        Self::as_principal(yard, Principal::owner())
    }

    /// Creates an app whose caller is this principal. Must be called inside a Tokio runtime.
    ///
    /// # Panics
    /// If the random number generator of the system fails.
    #[expect(clippy::panic, reason = "a test cannot continue without random numbers")]
    pub fn as_principal(yard: Arc<Yard>, principal: Principal) -> Self {
        match Self::build(yard, principal) {
            Ok(app) => app,
            Err(error) => panic!("{error}"),
        }
    }

    fn build(yard: Arc<Yard>, principal: Principal) -> Result<Self, RandomError> {
        let settings =
            ServeAuthSettings { auth: Auth::None(principal), hosts: Vec::new(), origins: Vec::new() };
        let endpoint =
            EndpointSettings { max_body_bytes: yard.limits().payload, ..EndpointSettings::default() };
        let (mcp, control) = (McpSettings::default(), ControlSettings::default());
        let keys = SealingKeys::generate()?;
        let fronts = FrontSettings { mcp, endpoint, control, keys, replicas: None };
        let fronts = Fronts::new(yard, Vec::new(), fronts);
        Ok(Self { router: router(fronts, Authenticator::new(settings, true)) })
    }

    /// Executes a tool with these parameters.
    pub async fn execute(&self, tool: &str, params: Value) -> RestResponse {
        let name: String = form_urlencoded::byte_serialize(tool.as_bytes()).collect();
        // In a path, `+` is not a space.
        let path = format!("/mcp/tools/{}/execute", name.replace('+', "%20"));
        self.post(&path, &json!({"params": params})).await
    }

    pub async fn get(&self, path: &str) -> RestResponse {
        self.request("GET", path, Body::empty()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> RestResponse {
        self.request("POST", path, Body::from(body.to_string())).await
    }

    pub async fn delete(&self, path: &str) -> RestResponse {
        self.request("DELETE", path, Body::empty()).await
    }

    #[expect(clippy::panic, reason = "an invalid path is a mistake in the test")]
    async fn request(&self, method: &str, path: &str, body: Body) -> RestResponse {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, "127.0.0.1")
            .header(header::CONTENT_TYPE, "application/json")
            .body(body);
        let request = request.unwrap_or_else(|error| panic!("{path} is not a path: {error}"));
        let Ok(response) = self.router.clone().oneshot(request).await;
        let (parts, body) = response.into_parts();
        let bytes = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => panic!("the response of {path} was cut off: {error}"),
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        RestResponse { status: parts.status.as_u16(), headers: parts.headers, body }
    }
}

impl std::fmt::Debug for RestApp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RestApp")
    }
}
