//! A fake server that requires authentication, combined with its authorization server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use reqwest::Url;
use serde_json::{Value, json};

/// The behavior of the server, and a record of its requests.
#[derive(Debug, Default)]
pub(crate) struct AuthorityState {
    pub(crate) requires_token: bool,
    /// Valid tokens with their scopes.
    pub(crate) valid_tokens: BTreeMap<String, Vec<String>>,
    /// Lifetime of tokens, in seconds.
    pub(crate) token_lifetime: u64,
    /// Whether a refresh token is valid for one use only. Reuse revokes all tokens of the login.
    pub(crate) rotates: bool,
    pub(crate) refresh_delay: Duration,
    refresh: Option<String>,
    pub(crate) requests: Vec<String>,
    issued: usize,
    scopes: Vec<String>,
}

impl AuthorityState {
    pub(crate) fn count(&self, prefix: &str) -> usize {
        self.requests.iter().filter(|request| request.starts_with(prefix)).count()
    }
}

#[derive(Clone)]
pub(crate) struct Authority {
    pub(crate) url: String,
    pub(crate) state: Arc<Mutex<AuthorityState>>,
}

impl Authority {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state =
            AuthorityState { requires_token: true, token_lifetime: 3600, ..AuthorityState::default() };
        let authority = Self { url, state: Arc::new(Mutex::new(state)) };
        let app = Router::new().fallback(handle_request).with_state(authority.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        authority
    }

    /// Revokes every token.
    pub(crate) fn revoke(&self) {
        self.state.lock().valid_tokens.clear();
    }

    fn challenge(&self, more: &str) -> String {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.url);
        format!("Bearer resource_metadata=\"{metadata}\"{more}")
    }
}

async fn handle_request(State(authority): State<Authority>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = std::str::from_utf8(&body).unwrap();
    let bearer = head
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().unwrap().strip_prefix("Bearer "));
    let query = head.uri.query().unwrap_or_default();
    if head.uri.path() == "/token" && body.contains("grant_type=refresh_token") {
        let delay = authority.state.lock().refresh_delay;
        tokio::time::sleep(delay).await;
    }
    let mut state = authority.state.lock();
    let url = &authority.url;
    match head.uri.path() {
        "/mcp" => {
            let message: Value = serde_json::from_str(body).unwrap();
            mcp(&authority, &mut state, bearer, &message)
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            state.requests.push("discovery".to_owned());
            json_response(200, &json!({"resource": format!("{url}/mcp"), "authorization_servers": [url]}))
        }
        "/.well-known/oauth-authorization-server" => json_response(
            200,
            &json!({
                "issuer": url, "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"), "registration_endpoint": format!("{url}/register"),
                "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
            }),
        ),
        "/register" => {
            state.requests.push("register".to_owned());
            json_response(201, &json!({"client_id": "client-1", "redirect_uris": []}))
        }
        "/authorize" => {
            let params = pairs(query);
            state.scopes = params
                .get("scope")
                .map(|scope| scope.split(' ').map(str::to_owned).collect())
                .unwrap_or_default();
            let scopes = state.scopes.join(" ");
            state.requests.push(format!("authorize {scopes}"));
            let answer = [("code", "c0de"), ("state", params["state"].as_str()), ("iss", url.as_str())];
            let to = Url::parse_with_params(&params["redirect_uri"], answer).unwrap();
            Response::builder().status(302).header(header::LOCATION, to.as_str()).body(Body::empty()).unwrap()
        }
        "/token" => {
            let params = pairs(body);
            state.requests.push(params["grant_type"].clone());
            if state.rotates
                && params["grant_type"] == "refresh_token"
                && params.get("refresh_token") != state.refresh.as_ref()
            {
                state.requests.push("reused".to_owned());
                state.refresh = None;
                state.valid_tokens.clear();
                return json_response(400, &json!({"error": "invalid_grant"}));
            }
            state.issued += 1;
            state.refresh = Some(format!("refresh-{}", state.issued));
            let token = format!("token-{}", state.issued);
            let scopes = state.scopes.clone();
            state.valid_tokens.insert(token.clone(), scopes);
            json_response(
                200,
                &json!({
                    "access_token": token, "token_type": "Bearer", "expires_in": state.token_lifetime,
                    "refresh_token": format!("refresh-{}", state.issued),
                }),
            )
        }
        _ => json_response(404, &json!({})),
    }
}

fn mcp(
    authority: &Authority,
    state: &mut AuthorityState,
    bearer: Option<&str>,
    message: &Value,
) -> Response<Body> {
    let method = message["method"].as_str().unwrap();
    let scopes = bearer.and_then(|token| state.valid_tokens.get(token).cloned());
    if state.requires_token && scopes.is_none() {
        return challenge_response(401, &authority.challenge(", scope=\"read\""));
    }
    let write = message["params"]["name"] == "write";
    if write && !scopes.unwrap_or_default().contains(&"write".to_owned()) {
        return challenge_response(
            403,
            &authority.challenge(", error=\"insufficient_scope\", scope=\"write\""),
        );
    }
    state.requests.push(method.to_owned());
    let result = match method {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        }),
        "tools/list" => json!({"resultType": "complete", "tools": [
            {"name": "read", "inputSchema": {"type": "object"}},
            {"name": "write", "inputSchema": {"type": "object"}},
        ]}),
        "tools/call" => json!({"resultType": "complete", "content": []}),
        _ => {
            return json_response(
                404,
                &json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}),
            );
        }
    };
    json_response(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://x/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn challenge_response(status: u16, challenge: &str) -> Response<Body> {
    let response = Response::builder().status(status).header(header::WWW_AUTHENTICATE, challenge);
    response.body(Body::empty()).unwrap()
}

fn json_response(status: u16, value: &Value) -> Response<Body> {
    let response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    response.header(header::CONTENT_TYPE, "application/json").body(Body::from(value.to_string())).unwrap()
}
