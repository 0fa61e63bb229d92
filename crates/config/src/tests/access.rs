//! `[[tokens]]` and `[jwt]`.

use std::time::Duration;

use toolyard_hub::{AllowList, Glob, Permissions, RateLimit, ScopedLimits};
use toolyard_serve::{Algorithm, KeySource};

use super::super::access::TokenEntry;
use super::Place;

const KEY: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#;

#[test]
fn every_key_of_a_token_is_read() {
    let text = format!(
        r#"
        [[tokens]]
        name = "ci"
        sha256 = "{}"
        permissions = ["read"]
        servers = ["git*"]
        tools = ["mcp__git__*", "add"]
        expires = 2027-01-31T12:00:00+02:00
        limits = {{ call_seconds = 5, payload_bytes = 100, calls = 2, rate = {{ per_second = 1, burst = 3 }} }}

        [[tokens]]
        name = "chief"
        sha256 = "{}"
        permissions = ["*", "read"]
        "#,
        "AB".repeat(32),
        "0".repeat(64)
    );
    let config = Place::new(&[("toolyard.toml", &text)]).load(&[]);
    assert_eq!(config.problems(), []);
    let list = |items: &[&str]| Some(items.iter().copied().map(Glob::from).collect());
    let ci = TokenEntry {
        name: "ci".to_owned(),
        digest: [0xab; 32],
        permissions: Permissions::Only(["read".to_owned()].into()),
        allowed: AllowList { sources: list(&["git*"]), tools: list(&["mcp__git__*", "add"]) },
        bounds: ScopedLimits {
            call_time: Some(Duration::from_secs(5)),
            payload: Some(100),
            calls: Some(2),
            rate: Some(RateLimit { per_second: 1.0, burst: 3.0 }),
            ..ScopedLimits::default()
        },
        expires: Some("2027-01-31T10:00:00Z".parse().unwrap()),
    };
    let chief = TokenEntry {
        name: "chief".to_owned(),
        digest: [0; 32],
        permissions: Permissions::All,
        allowed: AllowList::default(),
        bounds: ScopedLimits::default(),
        expires: None,
    };
    assert_eq!(config.access.tokens, [ci, chief]);
    assert!(config.access.has_allow_lists() && !config.access.is_empty());
}

#[test]
fn every_key_about_jwts_is_read() {
    let text = r#"
        [jwt]
        issuer = "https://id.example"
        audience = "https://yard.example/mcp other"
        jwks_file = "keys/issuer.json"
        algorithms = ["EdDSA", "RS256"]
        servers = ["git"]
        tools = ["*"]
        limits = { calls = 4 }
        resource = "https://yard.example"
        [jwt.claims.scope]
        "yard:read" = ["read"]
        [jwt.claims."realm.roles"]
        chief = ["*"]
    "#;
    let place = Place::new(&[("toolyard.toml", text), ("keys/issuer.json", KEY)]);
    let config = place.load(&[]);
    assert_eq!(config.problems(), []);
    let jwt =
        config.access.jwt.unwrap().to_issuer(|url| panic!("no URL is configured, but {url} is fetched"));
    assert!(matches!(jwt.keys, KeySource::Fixed(_)));
    assert_eq!(jwt.issuer, "https://id.example");
    assert_eq!(jwt.audience, ["https://yard.example/mcp", "other"]);
    assert_eq!(jwt.algorithms, [Algorithm::EdDsa, Algorithm::Rs256]);
    assert_eq!(jwt.claims["scope"]["yard:read"], ["read"]);
    assert_eq!(jwt.claims["realm.roles"]["chief"], ["*"]);
    assert_eq!(jwt.allowed.sources, Some(vec!["git".into()]));
    assert_eq!(jwt.allowed.tools, Some(vec!["*".into()]));
    assert_eq!(jwt.bounds, ScopedLimits { calls: Some(4), ..ScopedLimits::default() });
    assert_eq!(jwt.resource.as_deref(), Some("https://yard.example"));
}

#[test]
fn keys_at_an_address_are_asked_for_there_and_all_algorithms_are_allowed() {
    let text = "[jwt]\nissuer = \"i\"\naudience = [\"a\"]\njwks_url = \"https://id.example/keys\"\n";
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    let mut asked = String::new();
    let jwt = config.access.jwt.unwrap().to_issuer(|url| {
        url.clone_into(&mut asked);
        std::sync::Arc::new(|| Box::pin(async { Err("no".to_owned()) }))
    });
    assert_eq!((asked.as_str(), jwt.algorithms.len()), ("https://id.example/keys", Algorithm::ALL.len()));
}

#[test]
fn what_is_wrong_with_tokens_and_jwts_is_told_at_its_place() {
    let good = "a".repeat(64);
    let text = format!(
        r#"[[tokens]]
name = "ci"
sha256 = "{good}"
[[tokens]]
name = "ci"
sha256 = "{good}"
expires = "tomorrow"
[[tokens]]
name = "owner"
sha256 = "{}"
limits = {{ rate = {{ per_second = 0, burst = 1 }} }}
[[tokens]]
name = "a:b"
sha256 = "abc"
[[tokens]]
name = "nodigest"
[jwt]
issuer = ""
audience = []
jwks_file = "none.json"
algorithms = ["RS256", "HS256"]
resource = "yard"
"#,
        "é".repeat(32)
    );
    insta::assert_snapshot!(Place::new(&[("toolyard.toml", &text)]).problems_text(&[]));
    let two = "[jwt]\nissuer = \"i\"\naudience = [\"a\"]\njwks_url = \"x\"\n[[tokens]]\nname = 7\n";
    insta::assert_snapshot!(
        "an_address_that_is_none",
        Place::new(&[("toolyard.toml", two)]).problems_text(&[])
    );
    let both = format!(
        "[jwt]\nissuer = \"i\"\naudience = [\"a\"]\njwks_url = \"http://h/\"\njwks_file = \"{}\"\n",
        "k"
    );
    insta::assert_snapshot!(
        "keys_from_two_places",
        Place::new(&[("toolyard.toml", &both)]).problems_text(&[])
    );
}

#[test]
fn of_two_files_the_later_one_says_who_may_come_in() {
    let token = |name: &str| format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{}\"\n", "a".repeat(64));
    let place =
        Place::new(&[("a.toml", &token("ada")), ("b.toml", &token("bob")), ("c.toml", "demo = true\n")]);
    let names = |files: &[&str]| {
        place.load(files).access.tokens.iter().map(|token| token.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["a.toml", "b.toml"]), ["bob"]);
    assert_eq!(names(&["a.toml", "c.toml"]), ["ada"]);
}
