//! The two HTTP clients that all sources share: one for hosts that the operator has allowed, and
//! one that checks the resolved addresses before it connects. Neither follows redirects by itself.

use std::time::Duration;

use reqwest::Client;
use reqwest::dns::Resolve;
use reqwest::redirect::Policy;
use rustls::ClientConfig;

use crate::host_policy::{HostAccess, PrivateAddressError, PublicOnlyResolver, SystemResolver};

/// HTTP clients with their connection pools.
#[derive(Debug, Clone)]
pub struct HttpClients {
    named: Client,
    guarded: Client,
}

impl HttpClients {
    /// Creates clients with this TLS configuration and the system's resolver.
    pub fn new(tls: &ClientConfig) -> Result<Self, reqwest::Error> {
        Self::with_resolver(SystemResolver, tls)
    }

    /// Creates clients with this TLS configuration. `names` resolves the hosts that only documents
    /// name.
    pub(crate) fn with_resolver(
        names: impl Resolve + 'static,
        tls: &ClientConfig,
    ) -> Result<Self, reqwest::Error> {
        let client = || {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .redirect(Policy::none())
                .connect_timeout(Duration::from_secs(10))
                .pool_max_idle_per_host(64)
                .tcp_nodelay(true)
                .user_agent(concat!("toolyard/", env!("CARGO_PKG_VERSION")))
        };
        // A proxy would resolve the name itself, so the resolved address could not be checked.
        let guarded = client().no_proxy().dns_resolver(PublicOnlyResolver(names)).build()?;
        Ok(Self { named: client().build()?, guarded })
    }

    pub(crate) fn client(&self, reach: HostAccess) -> &Client {
        match reach {
            HostAccess::Allowed => &self.named,
            HostAccess::PublicOnly => &self.guarded,
        }
    }
}

/// Describes why a request failed, without its URL, which may contain a key.
pub(crate) fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    let mut deepest = None;
    while let Some(next) = cause {
        if next.downcast_ref::<PrivateAddressError>().is_some() {
            return PrivateAddressError.to_string();
        }
        deepest = Some(next.to_string());
        cause = next.source();
    }
    match deepest {
        Some(deepest) => deepest,
        None => "the request failed".to_owned(),
    }
}

/// Whether a request failed because the host name resolves only to non-public addresses.
pub(crate) fn is_private_address_error(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(next) = cause {
        if next.downcast_ref::<PrivateAddressError>().is_some() {
            return true;
        }
        cause = next.source();
    }
    false
}
