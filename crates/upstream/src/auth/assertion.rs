//! Client authentication with JWT assertions (RFC 7523). rmcp supports these too, but only with a
//! second cryptography provider.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    RSA_PKCS1_SHA256, RsaKeyPair,
};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;

use super::AuthError;
use super::record::now;

/// Lifetime of an assertion, in seconds.
const LIFE: u64 = 120;

/// A signing key with the name of its algorithm.
enum Signer {
    Ecdsa(EcdsaKeyPair, &'static str),
    Ed25519(Ed25519KeyPair),
    Rsa(RsaKeyPair),
}

/// Returns whether a client secret is a private key in PEM form.
pub(crate) fn is_private_key(secret: &str) -> bool {
    secret.trim_start().starts_with("-----BEGIN")
}

/// Signs an assertion of the client's identity for one authorization server.
pub(crate) fn sign_client_assertion(key: &str, client: &str, audience: &str) -> Result<String, AuthError> {
    let signer = Signer::read(key)?;
    let id = toolyard_random::bytes::<16>().map_err(|error| AuthError::Key(error.to_string()))?;
    let header = json!({"alg": signer.algorithm(), "typ": "JWT"});
    let claims = json!({
        "iss": client, "sub": client, "aud": audience,
        "iat": now(), "exp": now() + LIFE, "jti": URL_SAFE_NO_PAD.encode(id),
    });
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let signature = signer.sign(signed.as_bytes())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn encode(part: &serde_json::Value) -> String {
    URL_SAFE_NO_PAD.encode(part.to_string())
}

impl Signer {
    fn read(pem: &str) -> Result<Self, AuthError> {
        let invalid = || AuthError::Key("not a private key in PKCS#8 form".to_owned());
        let key = PrivatePkcs8KeyDer::from_pem_slice(pem.trim().as_bytes()).map_err(|_| invalid())?;
        let der = key.secret_pkcs8_der();
        let random = SystemRandom::new();
        let p256 = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, &random);
        let p384 = || EcdsaKeyPair::from_pkcs8(&ECDSA_P384_SHA384_FIXED_SIGNING, der, &random);
        p256.map(|key| Self::Ecdsa(key, "ES256"))
            .or_else(|_| p384().map(|key| Self::Ecdsa(key, "ES384")))
            .or_else(|_| Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map(Self::Ed25519))
            .or_else(|_| RsaKeyPair::from_pkcs8(der).map(Self::Rsa))
            .map_err(|_| AuthError::Key("unsupported key type".to_owned()))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ecdsa(_, name) => name,
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, text: &[u8]) -> Result<Vec<u8>, AuthError> {
        let failed = |_| AuthError::Key("signing failed".to_owned());
        match self {
            Self::Ecdsa(key, _) => {
                Ok(key.sign(&SystemRandom::new(), text).map_err(failed)?.as_ref().to_vec())
            }
            Self::Ed25519(key) => Ok(key.sign(text).as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text, &mut signature).map_err(failed)?;
                Ok(signature)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
    };
    use serde_json::Value;

    use super::{is_private_key, sign_client_assertion};

    #[test]
    fn signs_the_identity_of_the_client_for_one_server() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let body = STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        assert!(is_private_key(&pem));
        let text = sign_client_assertion(&pem, "me", "https://auth.example").unwrap();
        let (signed, signature) = text.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let read = |part| serde_json::from_slice::<Value>(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        let claims = read(claims);
        assert_eq!(read(header)["alg"], "ES256");
        assert_eq!((&claims["iss"], &claims["sub"]), (&"me".into(), &"me".into()));
        assert_eq!(claims["aud"], "https://auth.example");
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.as_ref(), &random).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref());
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap()).unwrap();
    }

    #[test]
    fn without_random_numbers_nothing_is_asserted() {
        let der =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let body = STANDARD.encode(der.as_ref());
        let pem = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n");
        let outage = toolyard_random::SimulatedOutage::begin();
        let error = sign_client_assertion(&pem, "me", "https://auth.example").unwrap_err().to_string();
        assert!(error.contains("the system's random number generator failed"), "{error}");
        drop(outage);
        sign_client_assertion(&pem, "me", "https://auth.example").unwrap();
    }

    #[test]
    fn rejects_an_invalid_key_without_revealing_it() {
        let error = sign_client_assertion("-----BEGIN PRIVATE KEY-----\ns3cret\n", "me", "x").unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"));
        assert!(!is_private_key("s3cret"));
    }
}
