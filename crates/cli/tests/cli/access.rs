//! Configured tokens and JWTs, against the real binary.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Scratch, Server, Version, new_token};

use super::TOOLYARD;

/// Creates a token with the real command. Returns the secret and the lines for the configuration.
pub(super) async fn make(arguments: &[&str]) -> (String, String) {
    new_token(TOOLYARD, arguments).await
}

pub(super) async fn serve(scratch: &Scratch, config: &str) -> Arc<Server> {
    Server::configured(TOOLYARD, scratch, config).await
}

/// Returns the names of the tools that this token can see, or the status and reason of the refusal.
async fn tools(server: &Arc<Server>, token: &str) -> Result<Vec<String>, (u16, String)> {
    let mut client = Client::join_as(server, Version::V2026_07_28, Some(token.to_owned())).await;
    let list = client.text("tools/list", &json!({}));
    let reply = client.post(&list).await;
    let status = reply.status;
    let body: Value = serde_json::from_str(&reply.text().await).unwrap();
    if status != 200 {
        return Err((status, body["error"]["data"]["reason"].as_str().unwrap_or_default().to_owned()));
    }
    let tools = body["result"]["tools"].as_array().unwrap();
    Ok(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
}

fn refused(reason: &str) -> Result<Vec<String>, (u16, String)> {
    Err((401, reason.to_owned()))
}

#[tokio::test]
async fn tokens_of_the_configuration_open_the_door_to_what_they_are_for() {
    let (limited, lines) =
        make(&["--name", "ci", "--tool", "add", "--tool", "say*", "--expires", "1h"]).await;
    let (chief, more) = make(&["--name", "chief", "--permission", "*"]).await;
    let scratch = Scratch::new();
    let server = serve(&scratch, &format!("demo = true\n{lines}\n{more}\n")).await;
    // With tokens in the configuration, no owner token is generated.
    assert_eq!(server.token, None);
    assert_eq!(tools(&server, &limited).await, Ok(vec!["add".to_owned()]));
    assert!(tools(&server, &chief).await.unwrap().len() > 3);
    for wrong in ["x", &format!("{limited}x"), &limited[1..]] {
        assert_eq!(tools(&server, wrong).await, refused("token_unknown"), "{wrong}");
    }
    let mut client = Client::join_as(&server, Version::V2026_07_28, Some(limited)).await;
    let answer = client.call("add", json!({"a": 1, "b": 2})).await.answer;
    assert_eq!(answer.result()["structuredContent"], json!({"sum": 3.0}));
    assert_eq!(client.call("swatch", json!({})).await.answer.code(), -32602);
}

#[tokio::test]
async fn a_token_that_is_taken_out_of_the_file_opens_nothing_any_more() {
    let (first, lines) = make(&["--name", "first"]).await;
    let (second, more) = make(&["--name", "second"]).await;
    let scratch = Scratch::new();
    let server = serve(&scratch, &format!("demo = true\n{lines}\n")).await;
    assert!(tools(&server, &first).await.is_ok());
    assert_eq!(tools(&server, &second).await, refused("token_unknown"));
    std::fs::write(scratch.path("toolyard.toml"), format!("demo = true\n{more}\n")).unwrap();
    for _ in 0..100 {
        if tools(&server, &second).await.is_ok() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(tools(&server, &second).await.is_ok());
    assert_eq!(tools(&server, &first).await, refused("token_unknown"));
}

/// An issuer with one key.
struct Issuer {
    key: Ed25519KeyPair,
}

impl Issuer {
    fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { key: Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap() }
    }

    fn keys(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x}]}).to_string()
    }

    fn token(&self, claims: &Value) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "EdDSA", "kid": "k"})), part(claims));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes())))
    }
}

fn claims(expires_in: i64) -> Value {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    json!({"iss": "https://id.example", "aud": "yard", "sub": "ada", "exp": i64::try_from(now).unwrap() + expires_in})
}

const JWT: &str = "demo = true\n[jwt]\nissuer = \"https://id.example\"\naudience = [\"yard\"]\n";

#[tokio::test]
async fn a_jwt_of_the_issuer_opens_the_door_and_clients_are_told_where_to_get_one() {
    let (issuer, stranger) = (Issuer::new(), Issuer::new());
    let scratch = Scratch::new();
    std::fs::write(scratch.path("keys.json"), issuer.keys()).unwrap();
    let server = serve(&scratch, &format!("{JWT}jwks_file = \"keys.json\"\n")).await;
    assert!(tools(&server, &issuer.token(&claims(300))).await.is_ok());
    assert_eq!(tools(&server, &issuer.token(&claims(-300))).await, refused("jwt_expired"));
    assert_eq!(tools(&server, &stranger.token(&claims(300))).await, refused("jwt_signature"));
    assert_eq!(tools(&server, "a.b.c").await, refused("jwt_malformed"));
    let mut unauthenticated = Client::join_as(&server, Version::V2026_07_28, None).await;
    let list = unauthenticated.text("tools/list", &json!({}));
    let reply = unauthenticated.post(&list).await;
    let address = &server.address;
    assert_eq!(
        (reply.status, reply.header("www-authenticate").unwrap().to_owned()),
        (
            401,
            format!("Bearer resource_metadata=\"http://{address}/.well-known/oauth-protected-resource/mcp\"")
        )
    );
    for (path, resource) in [("", ""), ("/mcp", "/mcp"), ("/servers/x/mcp", "/servers/x/mcp")] {
        let (status, body) = get(&server, &format!("/.well-known/oauth-protected-resource{path}")).await;
        assert_eq!(
            (status, serde_json::from_str::<Value>(&body).unwrap()),
            (
                200,
                json!({
                    "resource": format!("http://{address}{resource}"),
                    "authorization_servers": ["https://id.example"],
                    "bearer_methods_supported": ["header"],
                    "resource_name": "Toolyard",
                })
            )
        );
    }
    assert_eq!(get(&server, "/.well-known/oauth-protected-resource/other").await.0, 404);
}

#[tokio::test]
async fn the_keys_of_an_issuer_are_read_from_its_address() {
    let issuer = Issuer::new();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", listener.local_addr().unwrap());
    let keys = issuer.keys();
    let serving = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut head).await.unwrap();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{keys}",
                keys.len()
            );
            tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await.unwrap();
        }
    });
    let scratch = Scratch::new();
    let server = serve(&scratch, &format!("{JWT}jwks_url = \"{url}\"\n")).await;
    assert!(tools(&server, &issuer.token(&claims(300))).await.is_ok());
    serving.abort();
    // The keys are cached.
    assert!(tools(&server, &issuer.token(&claims(300))).await.is_ok());
    let nowhere = serve(&Scratch::new(), &format!("{JWT}jwks_url = \"{url}\"\n")).await;
    let unavailable = Err((503, "jwt_keys_unavailable".to_owned()));
    assert_eq!(tools(&nowhere, &issuer.token(&claims(300))).await, unavailable);
}

/// Sends a plain GET to any path.
async fn get(server: &Arc<Server>, path: &str) -> (u16, String) {
    let mut stream = server.connect().await;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
