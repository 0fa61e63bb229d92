//! Valid tokens of an issuer, and forgeries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PSS_SHA512, RsaEncoding, RsaKeyPair,
};
use serde_json::{Value, json};
use toolyard_hub::{AllowList, Permissions, ScopedLimits, SourceName};

use super::super::jwks::{Jwks, JwksFetcher, KeySource};
use super::{Algorithm, JwtIssuer, RejectionReason};

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "https://yard.example/mcp";

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// An issuer with one EC key.
struct Issuer {
    key: EcdsaKeyPair,
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random);
        Self { key: key.unwrap() }
    }

    fn jwk(&self, kid: &str) -> Value {
        let point = self.key.public_key().as_ref();
        json!({"kty": "EC", "crv": "P-256", "kid": kid, "x": encode(&point[1..33]), "y": encode(&point[33..])})
    }

    fn sign(&self, head: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encode(head.to_string()), encode(claims.to_string()));
        let signature = self.key.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", encode(signature))
    }
}

fn head() -> Value {
    json!({"alg": "ES256", "kid": "ec", "typ": "JWT"})
}

fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now() + 300, "scope": "read write"})
}

fn trusting(keys: KeySource) -> JwtIssuer {
    JwtIssuer {
        issuer: ISSUER.to_owned(),
        audience: vec![AUDIENCE.to_owned()],
        algorithms: Algorithm::ALL.to_vec(),
        keys,
        claims: BTreeMap::new(),
        allowed: AllowList::default(),
        bounds: ScopedLimits::default(),
        resource: None,
    }
}

fn fixed(keys: &[Value]) -> JwtIssuer {
    trusting(KeySource::fixed(Jwks::parse(&json!({"keys": keys}).to_string()).unwrap()))
}

fn only(list: &[&str]) -> Permissions {
    Permissions::Only(list.iter().map(|name| (*name).to_owned()).collect())
}

/// Returns the claims with one of them replaced. Null stands for a missing claim.
fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

#[tokio::test]
async fn scopes_of_a_valid_token_become_permissions() {
    let issuer = Issuer::new();
    let jwt = fixed(&[issuer.jwk("ec")]);
    let principal = jwt.verify(&issuer.sign(&head(), &claims())).await.unwrap();
    assert_eq!((principal.id(), principal.permissions()), ("jwt:ada", &only(&["read", "write"])));
    let several = with("aud", json!(["https://other.example", AUDIENCE]));
    assert_eq!(jwt.verify(&issuer.sign(&head(), &several)).await, Ok(principal));
}

#[tokio::test]
async fn privileged_scopes_grant_nothing_unless_the_configuration_maps_them() {
    let issuer = Issuer::new();
    let mut jwt = fixed(&[issuer.jwk("ec")]);
    let scope = format!("* read {}", toolyard_hub::permission::PRIVILEGED.join(" "));
    let token = issuer.sign(&head(), &with("scope", json!(scope)));
    assert_eq!(*jwt.verify(&token).await.unwrap().permissions(), only(&["read"]));
    let granted = |name: &str| (name.to_owned(), vec![name.to_owned()]);
    jwt.claims =
        BTreeMap::from([("scope".to_owned(), BTreeMap::from([granted("spawn"), granted("manage")]))]);
    assert_eq!(*jwt.verify(&token).await.unwrap().permissions(), only(&["manage", "spawn"]));
    jwt.claims = BTreeMap::from([("scope".to_owned(), BTreeMap::from([granted("*")]))]);
    assert_eq!(*jwt.verify(&token).await.unwrap().permissions(), Permissions::All);
}

#[tokio::test]
async fn every_invalid_header_or_claim_is_rejected_with_its_reason() {
    let issuer = Issuer::new();
    let jwt = fixed(&[issuer.jwk("ec")]);
    let (hour, day) = (3600, 86_400);
    for (head, claims, reason) in [
        (json!({"alg": "none"}), claims(), RejectionReason::JwtUnsigned),
        (json!({"alg": "NoNe", "kid": "ec"}), claims(), RejectionReason::JwtUnsigned),
        (json!({"alg": "HS256", "kid": "ec"}), claims(), RejectionReason::JwtAlgorithm),
        (json!({"alg": "ES512", "kid": "ec"}), claims(), RejectionReason::JwtAlgorithm),
        (json!({"alg": "RS256", "kid": "ec"}), claims(), RejectionReason::JwtKeyUnknown),
        (json!({"alg": "ES256", "kid": "other"}), claims(), RejectionReason::JwtKeyUnknown),
        (json!({"kid": "ec"}), claims(), RejectionReason::JwtMalformed),
        (
            json!({"alg": "ES256", "kid": "ec", "crit": ["b64"], "b64": false}),
            claims(),
            RejectionReason::JwtMalformed,
        ),
        (head(), with("iss", json!("https://id.example/")), RejectionReason::JwtIssuer),
        (head(), with("iss", Value::Null), RejectionReason::JwtIssuer),
        (head(), with("aud", json!("https://yard.example")), RejectionReason::JwtAudience),
        (head(), with("aud", json!([])), RejectionReason::JwtAudience),
        (head(), with("aud", Value::Null), RejectionReason::JwtAudience),
        (head(), with("exp", json!(now() - hour)), RejectionReason::JwtExpired),
        (head(), with("exp", Value::Null), RejectionReason::JwtExpired),
        (head(), with("exp", json!("tomorrow")), RejectionReason::JwtMalformed),
        (head(), with("nbf", json!(now() + day)), RejectionReason::JwtNotYetValid),
        (head(), with("nbf", json!([])), RejectionReason::JwtMalformed),
        (head(), with("sub", Value::Null), RejectionReason::JwtSubject),
        (head(), with("sub", json!("")), RejectionReason::JwtSubject),
        (head(), with("sub", json!("x".repeat(300))), RejectionReason::JwtSubject),
        (head(), with("sub", json!("a\nb")), RejectionReason::JwtSubject),
        // Characters that would reorder or hide a part of the name in the audit log and on screens.
        (head(), with("sub", json!("a\u{202e}b")), RejectionReason::JwtSubject),
        (head(), with("sub", json!("ad\u{200b}a")), RejectionReason::JwtSubject),
        (head(), with("sub", json!("ada\u{2066}")), RejectionReason::JwtSubject),
        (head(), with("sub", json!("\u{61c}ada")), RejectionReason::JwtSubject),
        (head(), with("sub", json!("ada\u{e0041}")), RejectionReason::JwtSubject),
    ] {
        let refused = jwt.verify(&issuer.sign(&head, &claims)).await;
        assert_eq!(refused, Err(reason), "{head} {claims}");
    }
}

#[tokio::test]
async fn a_token_without_a_valid_signature_is_rejected() {
    let (issuer, stranger) = (Issuer::new(), Issuer::new());
    let jwt = fixed(&[issuer.jwk("ec")]);
    assert_eq!(jwt.verify(&stranger.sign(&head(), &claims())).await, Err(RejectionReason::JwtSignature));
    let token = issuer.sign(&head(), &claims());
    let (signed, signature) = token.rsplit_once('.').unwrap();
    assert_eq!(jwt.verify(&format!("{signed}.")).await, Err(RejectionReason::JwtUnsigned));
    let other = encode(with("sub", json!("root")).to_string());
    let forged = format!("{}.{other}.{signature}", encode(head().to_string()));
    assert_eq!(jwt.verify(&forged).await, Err(RejectionReason::JwtSignature));
    // The public key used as a shared secret.
    let public = issuer.key.public_key().as_ref();
    let unsigned = format!("{}.{}", encode(r#"{"alg":"HS256","kid":"ec"}"#), encode(claims().to_string()));
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public);
    let confused = format!("{unsigned}.{}", encode(ring::hmac::sign(&secret, unsigned.as_bytes())));
    assert_eq!(jwt.verify(&confused).await, Err(RejectionReason::JwtAlgorithm));
    for garbage in
        ["..", "a.b", "a.b.c", "e30.e30.e30.e30", &"x.".repeat(20_000), "é.é.é", &format!("{token}=")]
    {
        assert_eq!(jwt.verify(garbage).await, Err(RejectionReason::JwtMalformed), "{garbage:.20}");
    }
}

#[tokio::test]
async fn only_the_algorithms_that_were_allowed_are_taken() {
    let issuer = Issuer::new();
    let jwt = JwtIssuer { algorithms: vec![Algorithm::Rs256], ..fixed(&[issuer.jwk("ec")]) };
    assert_eq!(jwt.verify(&issuer.sign(&head(), &claims())).await, Err(RejectionReason::JwtAlgorithm));
    let mut for_another = issuer.jwk("ec");
    for_another["alg"] = json!("ES384");
    let refused = fixed(&[for_another]).verify(&issuer.sign(&head(), &claims())).await;
    assert_eq!(refused, Err(RejectionReason::JwtKeyUnknown));
}

#[tokio::test]
async fn a_token_without_a_key_id_needs_exactly_one_matching_key() {
    let (issuer, other) = (Issuer::new(), Issuer::new());
    let token = issuer.sign(&json!({"alg": "ES256"}), &claims());
    assert!(fixed(&[issuer.jwk("a")]).verify(&token).await.is_ok());
    let two = fixed(&[issuer.jwk("a"), other.jwk("b")]);
    assert_eq!(two.verify(&token).await, Err(RejectionReason::JwtKeyUnknown));
}

#[tokio::test]
async fn every_kind_of_key_is_understood() {
    let random = SystemRandom::new();
    let sign_rsa = |key: &RsaKeyPair, encoding: &'static dyn RsaEncoding, text: &str| {
        let mut signature = vec![0; key.public().modulus_len()];
        key.sign(encoding, &random, text.as_bytes(), &mut signature).unwrap();
        signature
    };
    let rsa = RsaKeyPair::from_pkcs8(&rsa_key()).unwrap();
    let public: ring::rsa::PublicKeyComponents<Vec<u8>> = rsa.public().into();
    let rsa_jwk = json!({"kty": "RSA", "kid": "rsa", "n": encode(&public.n), "e": encode(&public.e)});
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, &random).unwrap();
    let p384 =
        EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, document.as_ref(), &random).unwrap();
    let point = p384.public_key().as_ref();
    let p384_jwk = json!({"kty": "EC", "crv": "P-384", "kid": "p384", "x": encode(&point[1..49]), "y": encode(&point[49..])});
    let ed = Ed25519KeyPair::from_pkcs8(Ed25519KeyPair::generate_pkcs8(&random).unwrap().as_ref()).unwrap();
    let ed_jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": encode(ed.public_key().as_ref())});
    let symmetric_jwk = json!({"kty": "oct", "kid": "shared", "k": "c2VjcmV0"});
    let jwt = fixed(&[symmetric_jwk, json!(7), rsa_jwk, p384_jwk, ed_jwk]);
    type Sign<'a> = &'a dyn Fn(&str) -> Vec<u8>;
    let signers: [(&str, &str, Sign<'_>); 5] = [
        ("rsa", "RS256", &|text| sign_rsa(&rsa, &RSA_PKCS1_SHA256, text)),
        ("rsa", "RS384", &|text| sign_rsa(&rsa, &RSA_PKCS1_SHA384, text)),
        ("rsa", "PS512", &|text| sign_rsa(&rsa, &RSA_PSS_SHA512, text)),
        ("p384", "ES384", &|text| p384.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec()),
        ("ed", "EdDSA", &|text| ed.sign(text.as_bytes()).as_ref().to_vec()),
    ];
    for (kid, algorithm, sign) in signers {
        let head = json!({"alg": algorithm, "kid": kid}).to_string();
        let signed = format!("{}.{}", encode(head), encode(claims().to_string()));
        let token = format!("{signed}.{}", encode(sign(&signed)));
        assert_eq!(jwt.verify(&token).await.unwrap().id(), "jwt:ada", "{algorithm}");
        let other = format!("{signed}.{}", encode(sign("something else")));
        assert_eq!(jwt.verify(&other).await, Err(RejectionReason::JwtSignature), "{algorithm}");
    }
}

#[test]
fn reports_why_a_key_set_is_invalid() {
    for (text, problem) in [
        ("", "invalid JSON: EOF while parsing a value at line 1 column 0"),
        ("{}", "missing array `keys`"),
        (r#"{"keys":[]}"#, "contains no supported public key"),
        (
            r#"{"keys":[{"kty":"oct","k":"x"},{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}]}"#,
            "contains no supported public key",
        ),
    ] {
        assert_eq!(Jwks::parse(text).unwrap_err(), problem);
    }
}

#[tokio::test]
async fn claims_lead_to_permissions_as_the_settings_say() {
    let issuer = Issuer::new();
    let map = |entries: &[(&str, &str)]| -> BTreeMap<String, Vec<String>> {
        entries.iter().map(|(value, to)| ((*value).to_owned(), vec![(*to).to_owned()])).collect()
    };
    let mut jwt = fixed(&[issuer.jwk("ec")]);
    jwt.claims = BTreeMap::from([
        ("scope".to_owned(), map(&[("yard:read", "read")])),
        ("realm.roles".to_owned(), map(&[("chief", "*"), ("clerk", "write")])),
        ("https://x.example/team".to_owned(), map(&[("blue", "paint")])),
    ]);
    jwt.allowed = AllowList { sources: None, tools: Some(vec!["mcp__git__*".into()]) };
    jwt.bounds = ScopedLimits { calls: Some(3), ..ScopedLimits::default() };
    for (extra, expect) in [
        (json!({"scope": "read yard:read"}), only(&["read"])),
        (json!({"scope": ["yard:read"], "realm": {"roles": ["clerk", 7]}}), only(&["read", "write"])),
        (json!({"realm": {"roles": ["chief"]}}), Permissions::All),
        (json!({"https://x.example/team": "blue"}), only(&["paint"])),
        (json!({"realm": "chief", "scope": {"yard:read": true}}), only(&[])),
    ] {
        let mut claims = with("scope", Value::Null);
        extra.as_object().unwrap().iter().for_each(|(name, value)| claims[name] = value.clone());
        let principal = jwt.verify(&issuer.sign(&head(), &claims)).await.unwrap();
        assert_eq!(principal.permissions(), &expect, "{extra}");
        assert_eq!(principal.limits().calls, Some(3));
        assert!(principal.is_restricted() && principal.can_access_source(&SourceName::new("git")));
    }
}

/// Returns a key source that fetches the current value of `answers`, and the number of its fetches.
fn fetched(answers: Arc<parking_lot::Mutex<Result<String, String>>>) -> (KeySource, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let fetch: JwksFetcher = Arc::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        let answer = answers.lock().clone();
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            answer
        })
    });
    (KeySource::fetched(fetch), count)
}

#[tokio::test(start_paused = true)]
async fn keys_are_fetched_once_cached_and_fetched_again_when_a_new_one_appears() {
    let (first, second) = (Issuer::new(), Issuer::new());
    let answers = Arc::new(parking_lot::Mutex::new(Ok(json!({"keys": [first.jwk("ec")]}).to_string())));
    let (source, count) = fetched(Arc::clone(&answers));
    let jwt = Arc::new(trusting(source));
    let token = first.sign(&head(), &claims());
    let together: Vec<_> = (0..20)
        .map(|_| {
            let (jwt, token) = (Arc::clone(&jwt), token.clone());
            tokio::spawn(async move { jwt.verify(&token).await.is_ok() })
        })
        .collect();
    for one in together {
        assert!(one.await.unwrap());
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // Many tokens with unknown keys do not cause a fetch each.
    let rotated = second.sign(&json!({"alg": "ES256", "kid": "new"}), &claims());
    for _ in 0..50 {
        assert_eq!(jwt.verify(&rotated).await, Err(RejectionReason::JwtKeyUnknown));
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    *answers.lock() = Ok(json!({"keys": [second.jwk("new")]}).to_string());
    tokio::time::advance(Duration::from_secs(31)).await;
    assert!(jwt.verify(&rotated).await.is_ok());
    assert_eq!(jwt.verify(&token).await, Err(RejectionReason::JwtKeyUnknown));
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_cannot_be_reached_is_not_the_callers_fault() {
    let issuer = Issuer::new();
    let answers = Arc::new(parking_lot::Mutex::new(Err("no route".to_owned())));
    let (source, count) = fetched(Arc::clone(&answers));
    let jwt = trusting(source);
    let token = issuer.sign(&head(), &claims());
    for _ in 0..10 {
        assert_eq!(jwt.verify(&token).await, Err(RejectionReason::JwtKeysUnavailable));
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    *answers.lock() = Ok(json!({"keys": [issuer.jwk("ec")]}).to_string());
    tokio::time::advance(Duration::from_secs(6)).await;
    assert!(jwt.verify(&token).await.is_ok());
    // Cached keys stay valid for a day if new ones cannot be fetched.
    *answers.lock() = Ok("<html>".to_owned());
    for hours in [1, 12] {
        tokio::time::advance(Duration::from_secs(hours * 3600)).await;
        assert!(jwt.verify(&token).await.is_ok(), "{hours}");
    }
    tokio::time::advance(Duration::from_secs(12 * 3600)).await;
    assert_eq!(jwt.verify(&token).await, Err(RejectionReason::JwtKeysUnavailable));
}

#[tokio::test(start_paused = true)]
async fn other_callers_use_the_cached_keys_during_a_refresh() {
    let issuer = Issuer::new();
    let text = json!({"keys": [issuer.jwk("ec")]}).to_string();
    let count = Arc::new(AtomicUsize::new(0));
    let fetch: JwksFetcher = {
        let count = Arc::clone(&count);
        Arc::new(move || {
            let (text, slow) = (text.clone(), count.fetch_add(1, Ordering::SeqCst) > 0);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_secs(if slow { 3600 } else { 0 })).await;
                Ok(text)
            })
        })
    };
    let jwt = Arc::new(trusting(KeySource::fetched(fetch)));
    let token = issuer.sign(&head(), &claims());
    assert!(jwt.verify(&token).await.is_ok());
    tokio::time::advance(Duration::from_secs(700)).await;
    let refreshing = tokio::spawn({
        let (jwt, token) = (Arc::clone(&jwt), token.clone());
        async move { jwt.verify(&token).await.is_ok() }
    });
    tokio::task::yield_now().await;
    let started = tokio::time::Instant::now();
    assert!(jwt.verify(&token).await.is_ok());
    assert_eq!((started.elapsed(), count.load(Ordering::SeqCst)), (Duration::ZERO, 2));
    assert!(refreshing.await.unwrap());
}

/// Returns a private key that was generated for this test and is used nowhere else.
fn rsa_key() -> Vec<u8> {
    use base64::engine::general_purpose::STANDARD;
    STANDARD.decode(include_str!("tests/rsa.pkcs8.base64").replace('\n', "")).unwrap()
}
