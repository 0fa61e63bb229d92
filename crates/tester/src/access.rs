//! What a caller needs to be connected to an address, and which resolved addresses the connection may use. An address
//! of a configured server needs what that server needs, however it is written.

use std::collections::{BTreeMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use toolyard_hub::address::{is_local_address, is_localhost, is_public};
use toolyard_hub::permission::missing_message;
use toolyard_hub::permission::{CONNECT, CONNECT_INSIDE, MANAGE, SPAWN};
use toolyard_hub::{ErrorKind, HubError, Principal};
use toolyard_upstream::{AddressFilter, ServerSettings, TransportSettings};
use url::{Host, Url};

use crate::target::TesterServer;

/// How long the hosts of configured servers may take to be resolved, to know which addresses are theirs.
const RESOLVING: Duration = Duration::from_secs(2);

/// How an address is connected to.
pub(crate) struct AddressAccess {
    /// Which resolved addresses may be used; all where there is none.
    pub(crate) filter: Option<AddressFilter>,
    /// What the caller needs for as long as the connection is used.
    pub(crate) required_permissions: Vec<String>,
    /// Whether it is a configured server, and not an address that only the caller has named.
    pub(crate) is_configured: bool,
}

/// Whether a principal may know what strangers answer, and whether anything answers at all.
pub(crate) fn can_see_failures(principal: &Principal) -> bool {
    principal.first_missing_permission(&[SPAWN.to_owned()]).is_none()
}

/// The one error about an address for callers that may not know more about it.
pub(crate) fn opaque_connect_error(url: &str) -> HubError {
    HubError::new(ErrorKind::CannotConnect, format!("cannot connect to {url}")).with_suggestion(
        "check the address; why it failed is only shown to callers with the permission spawn",
    )
}

/// The refusal of something that needs a permission.
pub(crate) fn forbidden(what: &str, missing: &str) -> HubError {
    HubError::new(ErrorKind::Forbidden, missing_message(what, missing))
        .with_suggestion("ask the operator of this yard for a token that has it")
}

/// Every permission that any part of a configured server needs: the tester shows and calls all of it. Where tools are
/// left out of the yard, or the principal is shown only a part of it, that includes `manage`.
pub(crate) fn required_permissions(settings: &ServerSettings, principal: &Principal) -> Vec<String> {
    let mut needed = settings.permissions.clone();
    needed.extend(settings.tool_permissions.values().flatten().cloned());
    let is_partial = settings.enabled_tools.is_some() || !settings.disabled_tools.is_empty();
    if is_partial || !settings.enabled || principal.is_restricted() {
        needed.push(MANAGE.to_owned());
    }
    needed
}

/// Decides whether `principal` may connect to `url`, and how.
pub(crate) async fn authorize_address(
    url: &str,
    servers: &BTreeMap<String, TesterServer>,
    principal: &Principal,
) -> Result<AddressAccess, HubError> {
    let endpoint = Endpoint::parse(url)
        .map_err(|error| HubError::new(ErrorKind::CannotConnect, format!("its address is wrong: {error}")))?;
    let configured: Vec<(&ServerSettings, Endpoint)> = endpoints(servers).collect();
    let is_configured = configured.iter().any(|(_, other)| *other == endpoint);
    // Other paths of a server may lead to the same tools, so they need its permissions as well.
    let concerned = configured.iter().filter(|(_, other)| match is_configured {
        true => *other == endpoint,
        false => other.is_same_listener(&endpoint),
    });
    let concerned: Vec<&ServerSettings> = concerned.map(|(settings, _)| *settings).collect();
    let by_address = endpoint.connect_permissions();
    let lacks_address = || principal.first_missing_permission(&by_address).map(missing_permission_error);
    if concerned.iter().any(|settings| !principal.can_access_source(&settings.name)) {
        // As at any other address: that it is configured is not told.
        return Err(lacks_address().unwrap_or_else(|| opaque_connect_error(url)));
    }
    let mut needed = Vec::new();
    for settings in concerned {
        let own = required_permissions(settings, principal);
        if let Some(missing) = principal.first_missing_permission(&own) {
            return Err(forbidden(&format!("testing {}", settings.name), missing));
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
    let what = if missing == CONNECT_INSIDE { "an inside address" } else { "an address" };
    forbidden(&format!("connecting to {what}"), missing)
}

/// The rule for resolved addresses: inside ones need a permission, and those of configured servers that this principal
/// may not use are closed, whatever name led there.
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

/// Inside addresses that must not be connected to on one port.
#[derive(Debug, Default, PartialEq, Eq)]
struct BlockedAddresses {
    this_machine: bool,
    addresses: HashSet<IpAddr>,
    /// Not all names could be resolved in time, so any address could be one of theirs.
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
                    // A server whose name leads nowhere cannot be reached by another name either.
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

/// Where a URL leads, in a form that is equal for all its spellings.
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
    /// Whether it is known to lead inside without being resolved.
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
            None => return Err("it has no host".to_owned()),
        };
        Ok(Self {
            scheme: url.scheme().to_owned(),
            host,
            port: url.port_or_known_default().ok_or("it has no port")?,
            path: url.path().to_owned(),
            query: url.query().map(str::to_owned),
        })
    }

    /// The permissions to connect to it as an address.
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
