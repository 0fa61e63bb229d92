//! The kinds of callers. Each is a column of the matrix.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Which of the two yards a caller uses. They differ in how they map the scopes of a JWT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum YardKind {
    /// `[jwt.claims.scope]` maps `yard:observe` to `observe`.
    Mapped,
    /// No `[jwt.claims]`.
    Unmapped,
}

/// One kind of caller.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) column: &'static str,
    pub(super) token: Option<String>,
    pub(super) yard: YardKind,
    /// The servers visible to this caller, if its token restricts servers or tools.
    pub(super) servers: Option<&'static [&'static str]>,
}

/// Configured tokens: the column, and the lines besides `name` and `sha256`.
const TOKENS: [(&str, &str); 16] = [
    ("other", "permissions = [\"*\"]"),
    ("expired", "permissions = [\"*\"]\nexpires = \"2020-01-01T00:00:00Z\""),
    ("low", ""),
    ("observe", "permissions = [\"observe\"]"),
    ("manage", "permissions = [\"manage\"]"),
    ("spawn", "permissions = [\"spawn\"]"),
    ("connect", "permissions = [\"connect\"]"),
    ("inside", "permissions = [\"connect-inside\"]"),
    ("con+in", "permissions = [\"connect\", \"connect-inside\"]"),
    ("admin", "permissions = [\"admin\"]"),
    ("all", "permissions = [\"*\"]"),
    ("srv", "servers = [\"a\"]"),
    ("srv+anx", "servers = [\"a\", \"mcp-test-mcp\", \"programs\"]"),
    ("tool", "tools = [\"mcp__a__echo\"]"),
    ("srv+obs", "servers = [\"a\"]\npermissions = [\"observe\"]"),
    ("srv+all", "servers = [\"a\"]\npermissions = [\"*\"]"),
];

/// Scopes named like every permission of the yard, and one that only a server requires.
const EVERY_SCOPE: &str = "* observe manage spawn connect connect-inside admin";

/// A caller whose calls others may or may not see. It has all permissions.
pub(super) const OTHER: &str = "other";

pub(super) fn secret(name: &str) -> String {
    format!("secret of {name}").replace(' ', "-")
}

/// Returns the `[[tokens]]` of the configuration.
pub(super) fn configured() -> String {
    let entry = |(name, lines): (&str, &str)| {
        let digest = HEXLOWER.encode(&Sha256::digest(secret(name).as_bytes()));
        format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n{lines}\n")
    };
    TOKENS.map(entry).concat()
}

/// Returns every column, with JWTs of this issuer.
pub(super) fn all(issuer: &Issuer) -> Vec<Caller> {
    let caller = |column, token, yard| Caller { column, token, yard, servers: None };
    let mut callers = vec![
        caller("none", None, YardKind::Mapped),
        caller("wrong", Some(secret("unknown")), YardKind::Mapped),
    ];
    callers.extend(TOKENS.iter().filter(|(name, _)| *name != OTHER).map(|(name, lines)| Caller {
        servers: (lines.contains("servers =") || lines.contains("tools =")).then_some(&["a"][..]),
        ..caller(name, Some(secret(name)), YardKind::Mapped)
    }));
    callers.extend([
        caller("jwtexp", Some(issuer.token("expired", "yard:observe", -300)), YardKind::Mapped),
        caller("jwtlow", Some(issuer.token("low", "", 300)), YardKind::Mapped),
        caller("jwtmap", Some(issuer.token("mapped", "yard:observe", 300)), YardKind::Mapped),
        caller("jwtraw", Some(issuer.token("raw", EVERY_SCOPE, 300)), YardKind::Unmapped),
    ]);
    callers
}

/// A JWT issuer with one key.
pub(super) struct Issuer {
    key: Ed25519KeyPair,
}

impl Issuer {
    pub(super) fn new() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { key: Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap() }
    }

    pub(super) fn keys(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.key.public_key().as_ref());
        json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "k", "x": x}]}).to_string()
    }

    fn token(&self, subject: &str, scope: &str, expires_in: i64) -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({
            "iss": "https://id.example",
            "aud": "yard",
            "sub": subject,
            "scope": scope,
            "exp": i64::try_from(now).unwrap() + expires_in,
        });
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(&json!({"alg": "EdDSA", "kid": "k"})), part(&claims));
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(self.key.sign(signed.as_bytes())))
    }
}
