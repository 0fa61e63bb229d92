//! A server that wants to know who its callers are, and the authorization server that it trusts, in one.

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

/// What the server thinks, and what it has seen.
#[derive(Debug, Default)]
pub(crate) struct Mind {
    pub(crate) asks: bool,
    /// Tokens that are good, with their scopes.
    pub(crate) good: BTreeMap<String, Vec<String>>,
    /// How long tokens live, in seconds.
    pub(crate) lives: u64,
    /// A refresh token is good once; one that comes again revokes all that came of the same login.
    pub(crate) rotates: bool,
    /// How long a refresh takes.
    pub(crate) refresh_takes: Duration,
    refresh: Option<String>,
    pub(crate) seen: Vec<String>,
    issued: usize,
    scopes: Vec<String>,
}

impl Mind {
    pub(crate) fn count(&self, what: &str) -> usize {
        self.seen.iter().filter(|seen| seen.starts_with(what)).count()
    }
}

#[derive(Clone)]
pub(crate) struct Authority {
    pub(crate) url: String,
    pub(crate) mind: Arc<Mutex<Mind>>,
}

impl Authority {
    pub(crate) async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mind = Arc::new(Mutex::new(Mind { asks: true, lives: 3600, ..Mind::default() }));
        let authority = Self { url, mind };
        let app = Router::new().fallback(answer).with_state(authority.clone());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        authority
    }

    /// Every token that was given is good no more.
    pub(crate) fn revoke(&self) {
        self.mind.lock().good.clear();
    }

    fn challenge(&self, more: &str) -> String {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.url);
        format!("Bearer resource_metadata=\"{metadata}\"{more}")
    }
}

async fn answer(State(authority): State<Authority>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let body = std::str::from_utf8(&body).unwrap();
    let bearer = head
        .headers
        .get(header::AUTHORIZATION)
        .and_then(|value| value.to_str().unwrap().strip_prefix("Bearer "));
    let query = head.uri.query().unwrap_or_default();
    if head.uri.path() == "/token" && body.contains("grant_type=refresh_token") {
        let takes = authority.mind.lock().refresh_takes;
        tokio::time::sleep(takes).await;
    }
    let mut mind = authority.mind.lock();
    let url = &authority.url;
    match head.uri.path() {
        "/mcp" => {
            let message: Value = serde_json::from_str(body).unwrap();
            mcp(&authority, &mut mind, bearer, &message)
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            mind.seen.push("discovery".to_owned());
            said(200, &json!({"resource": format!("{url}/mcp"), "authorization_servers": [url]}))
        }
        "/.well-known/oauth-authorization-server" => said(
            200,
            &json!({
                "issuer": url, "authorization_endpoint": format!("{url}/authorize"),
                "token_endpoint": format!("{url}/token"), "registration_endpoint": format!("{url}/register"),
                "code_challenge_methods_supported": ["S256"], "response_types_supported": ["code"],
            }),
        ),
        "/register" => {
            mind.seen.push("register".to_owned());
            said(201, &json!({"client_id": "somebody", "redirect_uris": []}))
        }
        "/authorize" => {
            let asked = pairs(query);
            mind.scopes = asked
                .get("scope")
                .map(|scope| scope.split(' ').map(str::to_owned).collect())
                .unwrap_or_default();
            let scopes = mind.scopes.join(" ");
            mind.seen.push(format!("authorize {scopes}"));
            let answer = [("code", "c0de"), ("state", asked["state"].as_str()), ("iss", url.as_str())];
            let to = Url::parse_with_params(&asked["redirect_uri"], answer).unwrap();
            Response::builder().status(302).header(header::LOCATION, to.as_str()).body(Body::empty()).unwrap()
        }
        "/token" => {
            let asked = pairs(body);
            mind.seen.push(asked["grant_type"].clone());
            if mind.rotates
                && asked["grant_type"] == "refresh_token"
                && asked.get("refresh_token") != mind.refresh.as_ref()
            {
                mind.seen.push("reused".to_owned());
                mind.refresh = None;
                mind.good.clear();
                return said(400, &json!({"error": "invalid_grant"}));
            }
            mind.issued += 1;
            mind.refresh = Some(format!("refresh-{}", mind.issued));
            let token = format!("token-{}", mind.issued);
            let scopes = mind.scopes.clone();
            mind.good.insert(token.clone(), scopes);
            said(
                200,
                &json!({
                    "access_token": token, "token_type": "Bearer", "expires_in": mind.lives,
                    "refresh_token": format!("refresh-{}", mind.issued),
                }),
            )
        }
        _ => said(404, &json!({})),
    }
}

fn mcp(authority: &Authority, mind: &mut Mind, bearer: Option<&str>, message: &Value) -> Response<Body> {
    let method = message["method"].as_str().unwrap();
    let scopes = bearer.and_then(|token| mind.good.get(token).cloned());
    if mind.asks && scopes.is_none() {
        return refused(401, &authority.challenge(", scope=\"read\""));
    }
    let write = message["params"]["name"] == "write";
    if write && !scopes.unwrap_or_default().contains(&"write".to_owned()) {
        return refused(403, &authority.challenge(", error=\"insufficient_scope\", scope=\"write\""));
    }
    mind.seen.push(method.to_owned());
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
            return said(
                404,
                &json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}),
            );
        }
    };
    said(200, &json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    let url = Url::parse(&format!("http://x/?{text}")).unwrap();
    url.query_pairs().into_owned().collect()
}

fn refused(status: u16, challenge: &str) -> Response<Body> {
    let response = Response::builder().status(status).header(header::WWW_AUTHENTICATE, challenge);
    response.body(Body::empty()).unwrap()
}

fn said(status: u16, value: &Value) -> Response<Body> {
    let response = Response::builder().status(StatusCode::from_u16(status).unwrap());
    response.header(header::CONTENT_TYPE, "application/json").body(Body::from(value.to_string())).unwrap()
}
