//! Warnings about risky settings.

use super::Place;

#[test]
fn risky_settings_are_warned_about_at_their_place() {
    let text = r#"[jwt]
issuer = "i"
audience = ["a"]
jwks_url = "http://id.example/keys"
[[hooks]]
url = "http://policy.example/ask?key=t0ken"
[servers.a]
url = "https://a.example/mcp"
forward_headers = ["X-Request-Id", "Authorization", "Cookie", "x-api-key", "proxy-authorization"]
[servers.b]
url = "http://b.example/mcp"
headers = { X-Api-Key = "t0ken" }
[servers.c]
url = "http://c.example/mcp"
bearer_token_env_var = "TOKEN"
[servers.d]
url = "http://ada:t0ken@d.example/mcp"
[servers.e]
openapi = "api.json"
base_url = "http://e.example"
auth = { key = { token = "t0ken" } }
"#;
    let message = Place::new(&[("toolyard.toml", text)]).with("TOKEN", "t0ken").problems_text(&[]);
    assert!(!message.contains("t0ken"), "{message}");
    insta::assert_snapshot!(message);
}

#[test]
fn the_same_settings_without_the_risk_pass_without_a_warning() {
    let text = r#"[jwt]
issuer = "i"
audience = ["a"]
jwks_url = "http://127.0.0.1:9/keys"
[[hooks]]
url = "http://localhost:9/ask"
[servers.a]
url = "https://a.example/mcp"
forward_headers = ["X-Request-Id", "Idempotency-Key"]
headers = { Authorization = "Bearer ${TOKEN}" }
[servers.b]
url = "http://[::1]:9/mcp"
bearer_token_env_var = "TOKEN"
[servers.c]
url = "http://c.example/mcp"
headers = { X-Tenant = "7" }
"#;
    assert_eq!(Place::new(&[("toolyard.toml", text)]).with("TOKEN", "t0ken").problems_text(&[]), "");
}
