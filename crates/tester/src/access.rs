//! Access rules for connecting to an address: the permissions that the caller needs, and the
//! resolved addresses that the connection may use. The address of a configured server requires the
//! permissions of that server, however the address is written.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use toolyard_hub::address::{is_local_address, is_localhost, is_public};
use toolyard_hub::permission::{ASK_FOR_PERMISSION, missing_message};
use toolyard_hub::permission::{CONNECT, CONNECT_INSIDE, MANAGE, SPAWN};
use toolyard_hub::{ErrorKind, HubError, Principal};
use toolyard_upstream::{AddressFilter, ServerSettings, TransportSettings};
use url::{Host, Url};

use crate::target::TesterServer;

/// How long the resolution of the hosts of configured servers may take.
const RESOLVING: Duration = Duration::from_secs(2);

/// The terms for connecting to an address.
pub(crate) struct AddressAccess {
    /// Which resolved addresses may be used. `None` allows all.
    pub(crate) filter: Option<AddressFilter>,
    /// The permissions that the caller must hold while the connection is in use.
    pub(crate) required_permissions: Vec<String>,
    /// Whether the address belongs to a configured server rather than being known only to the
    /// caller.
    pub(crate) is_configured: bool,
}

/// Returns whether a principal may see the responses of arbitrary addresses, and whether they
/// respond at all.
pub(crate) fn can_see_failures(principal: &Principal) -> bool {
    principal.first_missing_permission(&[SPAWN.to_owned()]).is_none()
}

/// Returns the only error about an address for callers that may not see more.
pub(crate) fn opaque_connect_error(url: &str) -> HubError {
    HubError::new(ErrorKind::CannotConnect, format!("cannot connect to {url}"))
        .with_suggestion("check the address; only callers with the permission `spawn` see the cause")
}

/// Returns the error for an action that needs a permission.
pub(crate) fn forbidden(subject: &str, missing: &str) -> HubError {
    HubError::new(ErrorKind::Forbidden, missing_message(subject, missing)).with_suggestion(ASK_FOR_PERMISSION)
}

/// Returns every permission that any part of a configured server requires, because the tester shows
/// and calls all of it. Includes `manage` if tools are excluded from the yard or hidden from the
/// principal.
pub(crate) fn required_permissions(settings: &ServerSettings, principal: &Principal) -> Vec<String> {
    let mut needed = settings.permissions.clone();
    needed.extend(settings.tool_permissions.values().flatten().cloned());
    let is_partial = settings.enabled_tools.is_some() || !settings.disabled_tools.is_empty();
    if is_partial || !settings.enabled || principal.is_restricted() {
        needed.push(MANAGE.to_owned());
    }
    needed
}

/// Decides whether `principal` may connect to `url`, and on which terms.
pub(crate) async fn authorize_address(
    url: &str,
    servers: &BTreeMap<String, TesterServer>,
    principal: &Principal,
) -> Result<AddressAccess, HubError> {
    let endpoint = Endpoint::parse(url)
        .map_err(|error| HubError::new(ErrorKind::CannotConnect, format!("invalid address: {error}")))?;
    let configured: Vec<(&ServerSettings, Endpoint)> = endpoints(servers).collect();
    let is_configured = configured.iter().any(|(_, other)| *other == endpoint);
    // Other paths of a server may lead to the same tools, so they require its permissions as well.
    let concerned = configured.iter().filter(|(_, other)| match is_configured {
        true => *other == endpoint,
        false => other.is_same_listener(&endpoint),
    });
    let concerned: Vec<&ServerSettings> = concerned.map(|(settings, _)| *settings).collect();
    let by_address = endpoint.connect_permissions();
    let lacks_address = || principal.first_missing_permission(&by_address).map(missing_permission_error);
    if concerned.iter().any(|settings| !principal.can_access_source(&settings.name)) {
        // Same error as for any other address, to hide that it is configured.
        return Err(lacks_address().unwrap_or_else(|| opaque_connect_error(url)));
    }
    let mut needed = Vec::new();
    for settings in concerned {
        let own = required_permissions(settings, principal);
        if let Some(missing) = principal.first_missing_permission(&own) {
            return Err(forbidden(&format!("testing server `{}`", settings.name), missing));
        }
        needed.extend(own);
    }
    if is_configured {
        return Ok(AddressAccess { filter: None, required_permissions: needed, is_configured });
    }
    if let Some(refusal) = lacks_address() {
        return Err(refusal);
    }
    needed.extend(by_address);
    let filter = address_filter(&configured, &endpoint, principal).await;
    Ok(AddressAccess { filter, required_permissions: needed, is_configured })
}

fn missing_permission_error(missing: &str) -> HubError {
    let subject = if missing == CONNECT_INSIDE { "an internal address" } else { "an address" };
    forbidden(&format!("connecting to {subject}"), missing)
}

/// Returns the filter for resolved addresses. Internal addresses require a permission. Addresses of
/// configured servers that this principal may not use are blocked, whatever name resolved to them.
async fn address_filter(
    configured: &[(&ServerSettings, Endpoint)],
    endpoint: &Endpoint,
    principal: &Principal,
) -> Option<AddressFilter> {
    let may_inside = principal.first_missing_permission(&[CONNECT_INSIDE.to_owned()]).is_none();
    let mut closed = BlockedAddresses::default();
    if may_inside {
        let same_port = configured.iter().filter(|(_, other)| other.port == endpoint.port);
        let unusable = same_port.filter(|(settings, _)| {
            !principal.can_access_source(&settings.name)
                || principal.first_missing_permission(&required_permissions(settings, principal)).is_some()
        });
        closed = BlockedAddresses::resolve(unusable.map(|(_, other)| &other.host)).await;
        if closed == BlockedAddresses::default() {
            return None;
        }
    }
    Some(Arc::new(move |address| is_public(address) || (may_inside && !closed.has(address))))
}

/// Internal addresses that must not be connected to on one port.
#[derive(Debug, Default, PartialEq, Eq)]
struct BlockedAddresses {
    this_machine: bool,
    addresses: HashSet<IpAddr>,
    /// Whether every internal address is blocked because not all names could be resolved in time.
    all: bool,
}

impl BlockedAddresses {
    async fn resolve(hosts: impl Iterator<Item = &HostPart>) -> Self {
        let mut closed = Self::default();
        let mut lookups = JoinSet::new();
        for host in hosts.collect::<HashSet<_>>() {
            match host.clone() {
                HostPart::ThisMachine => closed.this_machine = true,
                HostPart::Address(address) => closed.add(address),
                HostPart::Name(name) => drop(lookups.spawn(async move {
                    let found = tokio::net::lookup_host((name, 0)).await;
                    // A server whose name does not resolve cannot be reached by another name
                    // either.
                    found.map(|found| found.map(|found| found.ip()).collect::<Vec<_>>()).unwrap_or_default()
                })),
            }
        }
        let resolving = async {
            while let Some(found) = lookups.join_next().await {
                found.unwrap_or_default().into_iter().for_each(|address| closed.add(address));
            }
        };
        let resolved = tokio::time::timeout(RESOLVING, resolving).await;
        closed.all = resolved.is_err();
        closed
    }

    fn add(&mut self, address: IpAddr) {
        self.this_machine |= is_local_address(address);
        self.addresses.insert(address.to_canonical());
    }

    fn has(&self, address: IpAddr) -> bool {
        self.all
            || (self.this_machine && is_local_address(address))
            || self.addresses.contains(&address.to_canonical())
    }
}

/// The endpoint of a URL, in a form that is equal for all spellings.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Endpoint {
    scheme: String,
    host: HostPart,
    port: u16,
    path: String,
    query: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum HostPart {
    ThisMachine,
    Address(IpAddr),
    Name(String),
}

impl HostPart {
    /// Returns whether the host is known to be internal without resolving it.
    fn is_inside(&self) -> bool {
        match self {
            Self::ThisMachine => true,
            Self::Address(address) => !is_public(*address),
            Self::Name(_) => false,
        }
    }
}

impl Endpoint {
    fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text.trim()).map_err(|error| error.to_string())?;
        let address = |address: IpAddr| match is_local_address(address) {
            true => HostPart::ThisMachine,
            false => HostPart::Address(address.to_canonical()),
        };
        let host = match url.host() {
            Some(Host::Ipv4(found)) => address(found.into()),
            Some(Host::Ipv6(found)) => address(found.into()),
            Some(Host::Domain(name)) if is_localhost(name) => HostPart::ThisMachine,
            Some(Host::Domain(name)) => HostPart::Name(name.trim_end_matches('.').to_ascii_lowercase()),
            None => return Err("no host".to_owned()),
        };
        Ok(Self {
            scheme: url.scheme().to_owned(),
            host,
            port: url.port_or_known_default().ok_or("no port")?,
            path: url.path().to_owned(),
            query: url.query().map(str::to_owned),
        })
    }

    /// Returns the permissions for connecting to this endpoint as an address.
    fn connect_permissions(&self) -> Vec<String> {
        let inside = self.host.is_inside().then_some(CONNECT_INSIDE);
        std::iter::once(CONNECT).chain(inside).map(str::to_owned).collect()
    }

    fn is_same_listener(&self, other: &Self) -> bool {
        self.host == other.host && self.port == other.port
    }
}

fn endpoints(servers: &BTreeMap<String, TesterServer>) -> impl Iterator<Item = (&ServerSettings, Endpoint)> {
    servers.values().filter_map(|known| match known {
        TesterServer::Ready(settings) => match &settings.transport {
            TransportSettings::Url(url) => Some((&**settings, Endpoint::parse(&url.url).ok()?)),
            TransportSettings::Command(_) => None,
        },
        TesterServer::Invalid(_) => None,
    })
}

#[cfg(test)]
mod tests;
