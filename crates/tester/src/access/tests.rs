//! The access rules as functions. Nothing here connects, and only `localhost` is resolved.

use std::collections::BTreeMap;
use std::net::IpAddr;

use toolyard_hub::{Permissions, Principal, SourceName};
use toolyard_upstream::{ServerSettings, TransportSettings, UrlKind, UrlSettings};

use super::{AddressAccess, authorize_address};
use crate::target::TesterServer;

fn servers(all: &[(&str, &str, &str)]) -> BTreeMap<String, TesterServer> {
    let server = |(name, url, permission): &(&str, &str, &str)| {
        let url = UrlSettings { url: (*url).to_owned(), headers: BTreeMap::new(), kind: UrlKind::Any };
        let settings = ServerSettings {
            permissions: vec![(*permission).to_owned()],
            ..ServerSettings::new(SourceName::new(*name), TransportSettings::Url(url))
        };
        ((*name).to_owned(), TesterServer::Ready(Box::new(settings)))
    };
    all.iter().map(server).collect()
}

fn who(held: &[&str]) -> Principal {
    Principal::new("ann", Permissions::Only(held.iter().map(|&name| name.to_owned()).collect()))
}

async fn tried(url: &str, all: &[(&str, &str, &str)], held: &[&str]) -> Result<AddressAccess, String> {
    let tried = authorize_address(url, &servers(all), &who(held)).await;
    tried.map_err(|error| error.message().to_owned())
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[tokio::test]
async fn public_addresses_need_connect_and_inside_ones_need_both() {
    for public in ["https://mcp.example/mcp", "http://8.8.8.8/mcp", "http://[2606:4700::1]/"] {
        let refused = tried(public, &[], &["connect-inside"]).await.err();
        assert_eq!(refused.as_deref(), Some("connecting to an address needs the permission `connect`"));
        assert!(tried(public, &[], &["connect"]).await.is_ok(), "{public}");
    }
    for inside in [
        "http://10.0.0.1/mcp",
        "http://169.254.169.254/latest/meta-data",
        "http://[fd00:ec2::254]/",
        "http://[::ffff:a9fe:a9fe]/",
        "http://0xa9.0xfe.43518/",
        "http://100.100.100.200/",
        "http://192.168.1.1:8080/",
        "https://localhost/",
    ] {
        let refused = tried(inside, &[], &["connect"]).await.err();
        let expected = "connecting to an internal address needs the permission `connect-inside`";
        assert_eq!(refused.as_deref(), Some(expected), "{inside}");
        assert!(tried(inside, &[], &["connect", "connect-inside"]).await.is_ok(), "{inside}");
    }
}

#[tokio::test]
async fn resolved_addresses_are_filtered_however_public_the_name_looks() {
    let filter = tried("https://mcp.example/mcp", &[], &["connect"]).await.unwrap().filter.unwrap();
    for inside in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1", "::ffff:10.0.0.1"] {
        assert!(!filter(address(inside)), "{inside}");
    }
    assert!(filter(address("8.8.8.8")));
    let free = tried("https://mcp.example/mcp", &[], &["connect", "connect-inside"]).await.unwrap();
    assert!(free.filter.is_none());
}

#[tokio::test]
async fn a_name_that_resolves_to_a_configured_server_is_closed_without_its_permissions() {
    let all = [
        ("vault", "http://127.0.0.1:9000/mcp", "admin"),
        ("inner", "http://10.0.0.5:9000/mcp", "admin"),
        ("named", "http://localhost:9100/mcp", "admin"),
    ];
    let held = ["connect", "connect-inside"];
    let filter = tried("http://rebound.example:9000/x", &all, &held).await.unwrap().filter.unwrap();
    for closed in
        ["127.0.0.1", "127.1.2.3", "::1", "0.0.0.0", "::ffff:127.0.0.1", "10.0.0.5", "::ffff:10.0.0.5"]
    {
        assert!(!filter(address(closed)), "{closed}");
    }
    for open in ["10.0.0.6", "8.8.8.8", "192.168.0.1"] {
        assert!(filter(address(open)), "{open}");
    }
    let other = tried("http://rebound.example:9100/x", &all, &held).await.unwrap().filter.unwrap();
    assert_eq!((other(address("127.0.0.1")), other(address("10.0.0.5"))), (false, true));
    // On another port there is nothing to protect, and a principal with the permissions is not
    // restricted.
    assert!(tried("http://rebound.example:9001/x", &all, &held).await.unwrap().filter.is_none());
    let admin = ["connect", "connect-inside", "admin"];
    assert!(tried("http://rebound.example:9000/x", &all, &admin).await.unwrap().filter.is_none());
}

#[tokio::test]
async fn a_configured_server_is_recognized_in_every_spelling_of_its_address() {
    let all =
        [("api", "https://API.example.:443/v1/../mcp", "admin"), ("ten", "http://10.0.0.5/mcp", "admin")];
    for same in ["https://api.example/mcp", "HTTPS://api.EXAMPLE./mcp", "https://api.example:443/x/../mcp"] {
        let refused = tried(same, &all, &["connect", "connect-inside"]).await.err();
        assert_eq!(refused.as_deref(), Some("testing server `api` needs the permission `admin`"), "{same}");
        let allowed = tried(same, &all, &["admin"]).await.unwrap();
        assert_eq!((allowed.is_configured, allowed.filter.is_none()), (true, true), "{same}");
    }
    for other_path in ["https://api.example/", "https://api.example/mcp?x", "http://api.example:443/mcp"] {
        let refused = tried(other_path, &all, &["connect"]).await.err();
        assert_eq!(
            refused.as_deref(),
            Some("testing server `api` needs the permission `admin`"),
            "{other_path}"
        );
        let refused = tried(other_path, &all, &["admin"]).await.err();
        assert_eq!(refused.as_deref(), Some("connecting to an address needs the permission `connect`"));
        assert!(!tried(other_path, &all, &["admin", "connect"]).await.unwrap().is_configured);
    }
    let refused = tried("http://[::ffff:10.0.0.5]:80/mcp", &all, &["connect", "connect-inside"]).await.err();
    assert_eq!(refused.as_deref(), Some("testing server `ten` needs the permission `admin`"));
}
