//! Whom we trust when a connection is encrypted: whoever the system trusts. Reading who that is takes longer than all the
//! rest of a start, and most yards never need it, so it is read when the first server shows its certificate, once for
//! everybody who shares the configuration.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_platform_verifier::Verifier;

/// TLS for connections that we open. The provider of cryptography is chosen here, once for the process.
pub fn tls_config() -> ClientConfig {
    // Somebody may have chosen it already, which is just as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let config = ClientConfig::builder();
    let provider = Arc::clone(config.crypto_provider());
    let system = Arc::new(SystemVerifier { provider, read: OnceLock::new() });
    let mut config = config.dangerous().with_custom_certificate_verifier(system).with_no_client_auth();
    config.alpn_protocols = vec!["http/1.1".into()];
    config
}

/// The system's word on certificates.
#[derive(Debug)]
struct SystemVerifier {
    provider: Arc<CryptoProvider>,
    read: OnceLock<Verifier>,
}

impl SystemVerifier {
    /// A system that trusts nobody may learn to: a failure is not kept.
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
