//! TLS configuration that trusts the certificates that the system trusts. Loading these takes
//! longer than the rest of the startup, and most yards never need them, so they are loaded when the
//! first server presents its certificate, once for all users of the configuration.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// Returns the TLS configuration for outbound connections. Selects the cryptography provider of the
/// process.
pub fn tls_config() -> ClientConfig {
    // Fails if a provider is already installed, which is fine.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ClientConfig::builder();
    let provider = Arc::clone(config.crypto_provider());
    let system = Arc::new(SystemVerifier { provider, read: OnceLock::new() });
    let mut config = config.dangerous().with_custom_certificate_verifier(system).with_no_client_auth();
    config.alpn_protocols = vec!["http/1.1".into()];
    config
}

/// A verifier that uses the certificates trusted by the system.
#[derive(Debug)]
struct SystemVerifier {
    provider: Arc<CryptoProvider>,
    read: OnceLock<Verifier>,
}

impl SystemVerifier {
    /// Returns the verifier, loading it on first use. A failure is not cached, because the system
    /// may get certificates later.
    fn verifier(&self) -> Result<&Verifier, Error> {
        if let Some(verifier) = self.read.get() {
            return Ok(verifier);
        }
        let verifier = Verifier::new(Arc::clone(&self.provider))?;
        Ok(self.read.get_or_init(|| verifier))
    }
}

impl ServerCertVerifier for SystemVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verifier()?.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
