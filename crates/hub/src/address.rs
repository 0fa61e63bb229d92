//! Classification of network addresses: publicly routable, or internal (this machine, a private
//! network, or another special range). Pure functions over parsed addresses; nothing here resolves
//! names or connects.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns whether this address is reachable from the public internet.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// Returns whether a connection to this address stays on this machine. This includes the
/// unspecified address.
pub fn is_local_address(address: IpAddr) -> bool {
    let address = match address {
        IpAddr::V6(address) => embedded_v4(address).map_or(IpAddr::V6(address), IpAddr::V4),
        IpAddr::V4(_) => address,
    };
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.octets()[0] == 0,
        IpAddr::V6(address) => address.is_loopback() || address.is_unspecified(),
    }
}

/// Returns whether a host name always refers to this machine, regardless of the resolver (RFC
/// 6761).
pub fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Shared address space (RFC 6598). Some cloud providers place their metadata service here.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b));
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(embedded) = embedded_v4(address) {
        return is_public_v4(embedded);
    }
    let parts = address.segments();
    // Only 2000::/3 is allocated for global unicast, and parts of it are reserved.
    (0x2000..0x4000).contains(&parts[0])
        && !(parts[0] == 0x2001 && parts[1] < 0x200)
        && !(parts[0] == 0x2001 && parts[1] == 0xdb8)
        && !(parts[0] == 0x3fff && parts[1] < 0x1000)
}

/// Returns the IPv4 address embedded in an IPv6 address: mapped, compatible, NAT64 or 6to4.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        // `::` and `::1` are not IPv4-compatible addresses.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return None,
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::{is_local_address, is_localhost, is_public};

    fn parse(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn special_addresses_are_not_public_in_either_version() {
        for inside in [
            "127.0.0.1",
            "127.255.255.255",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "100.100.100.200",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.0.192",
            "192.88.99.1",
            "203.0.113.1",
            "::1",
            "::",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "fe80::1",
            "fc00::1",
            "fd00:ec2::254",
            "ff02::1",
            "fec0::1",
            "2001:db8::1",
            "2001::1",
            "100::1",
            "3fff::1",
        ] {
            assert!(!is_public(parse(inside)), "{inside}");
        }
        for public in
            ["8.8.8.8", "172.32.0.1", "100.63.0.1", "2606:4700::1", "2002:808:808::", "::ffff:8.8.8.8"]
        {
            assert!(is_public(parse(public)), "{public}");
        }
    }

    #[test]
    fn every_spelling_of_this_machine_is_recognized() {
        for own in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1"] {
            assert!(is_local_address(parse(own)), "{own}");
        }
        for other in ["10.0.0.1", "169.254.169.254", "8.8.8.8", "fe80::1", "::ffff:10.0.0.1"] {
            assert!(!is_local_address(parse(other)), "{other}");
        }
        for name in ["localhost", "LOCALHOST", "localhost.", "a.localhost", "a.b.LocalHost."] {
            assert!(is_localhost(name), "{name}");
        }
        for name in ["localhost.example", "notlocalhost", "a-localhost", ""] {
            assert!(!is_localhost(name), "{name}");
        }
    }
}
