//! Every key of `toolyard.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use toolyard_hub::{
    DefinitionLimits, QuotaLimits, QuotaOverrides, RateLimit, ResultCheck, ResultChecks, ScopedLimits,
    Secret, SourceName, YardLimits,
};
use toolyard_upstream::{
    CommandSettings, EnvInheritance, OAuthSettings, ServerAuthSettings, ServerSettings, TransportSettings,
    UrlKind, UrlSettings,
};

use super::super::AuthMode;
use super::{Place, broken, only, settings};

#[test]
fn every_key_of_the_yard_is_read() {
    let text = r#"
        listen = "127.0.0.1:9000"
        auth = "none"
        demo = true
        hosts = ["yard.example.com"]
        origins = ["https://app.example.com"]
        permissions = ["admin"]
        check_results = "warn"
        [limits]
        call_seconds = 1.5
        payload_bytes = 1_000
        calls_per_source = 0
        subscriptions = 7
        message_bytes = 100_000
        definition_bytes_per_source = 200_000
        definition_bytes = 300_000
        drain_seconds = 7
        rate = { per_second = 5, burst = 10.0 }
        [limits.tools."*delete*"]
        call_seconds = 2
        payload_bytes = 100
        calls = 1
        rate = { per_second = 0.1, burst = 1 }
        [servers.git]
        command = "x"
        alias = "repository"
        limits = { calls = 0 }
        check_results = "enforce"
        [servers.web.limits]
        call_seconds = 9
        [servers.web]
        url = "http://h/"
    "#;
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    assert_eq!(config.problems(), []);
    assert_eq!(config.listen, Some("127.0.0.1:9000".parse().unwrap()));
    assert_eq!(config.auth, Some(AuthMode::None));
    assert!(config.demo);
    assert_eq!(config.hosts, ["yard.example.com"]);
    assert_eq!(config.origins, ["https://app.example.com"]);
    assert_eq!(config.permissions, Some(vec!["admin".to_owned()]));
    let limits = YardLimits {
        call_time: Duration::from_millis(1_500),
        payload: 1_000,
        per_source: None,
        subscriptions: 7,
        rate: Some(RateLimit { per_second: 5.0, burst: 10.0 }),
        tools: vec![(
            "*delete*".into(),
            ScopedLimits {
                call_time: Some(Duration::from_secs(2)),
                payload: Some(100),
                calls: Some(1),
                rate: Some(RateLimit { per_second: 0.1, burst: 1.0 }),
                ..ScopedLimits::default()
            },
        )],
        results: ResultChecks {
            default: ResultCheck::Warn,
            sources: BTreeMap::from([(SourceName::new("repository"), ResultCheck::Enforce)]),
        },
        quotas: QuotaLimits::default(),
        memory_mark: None,
        sources: BTreeMap::from([
            (
                SourceName::new("programs"),
                ScopedLimits { calls: Some(usize::MAX), ..ScopedLimits::default() },
            ),
            (
                SourceName::new("repository"),
                ScopedLimits { calls: Some(usize::MAX), ..ScopedLimits::default() },
            ),
            (
                SourceName::new("web"),
                ScopedLimits { call_time: Some(Duration::from_secs(9)), ..ScopedLimits::default() },
            ),
        ]),
    };
    assert_eq!(config.limits(), limits);
    let definitions = DefinitionLimits { per_source: 200_000, total: 300_000 };
    assert_eq!((config.limits.message_bytes(), config.limits.definition_limits()), (100_000, definitions));
    assert_eq!(config.limits.drain_timeout(), Duration::from_secs(7));
}

#[test]
fn every_key_of_a_command_is_read() {
    let place = Place::new(&[
        (
            "toolyard.toml",
            r#"
            [servers.git]
            command = "uvx"
            args = ["mcp-server-git", 7, "--token=${TOKEN}"]
            env = { LEVEL = "debug", PORT = 3000, QUIET = true }
            env_file = "git.env"
            inherit_env = true
            cwd = "~/work"
            type = "stdio"
            enabled = false
            enabled_tools = ["git_*"]
            disabled_tools = ["git_push"]
            alias = "repository"
            permissions = { "git_*" = ["read"], git_commit = ["write", "sign"] }
            start_timeout = "2m"
            call_timeout = 7
            "#,
        ),
        ("git.env", "LEVEL=info\nEDITOR=ed\n"),
    ]);
    let place = place.with("TOKEN", "t0ken");
    let config = place.load(&[]);
    assert_eq!(config.problems(), []);
    let text = |text: &str| text.to_owned();
    let secret = |name: &str, value: &str| (name.to_owned(), Secret::new(value));
    let transport = TransportSettings::Command(CommandSettings {
        program: text("uvx"),
        args: vec![text("mcp-server-git"), text("7"), text("--token=t0ken")],
        env: BTreeMap::from([
            secret("EDITOR", "ed"),
            secret("LEVEL", "debug"),
            secret("PORT", "3000"),
            secret("QUIET", "true"),
        ]),
        cwd: Some(place.folder().join("work")),
        inherit: EnvInheritance::Everything,
    });
    let expected = ServerSettings {
        enabled: false,
        enabled_tools: Some(vec![text("git_*")]),
        disabled_tools: vec![text("git_push")],
        tool_permissions: BTreeMap::from([
            (text("git_*"), vec![text("read")]),
            (text("git_commit"), vec![text("write"), text("sign")]),
        ]),
        start_timeout: Duration::from_secs(120),
        call_timeout: Duration::from_secs(7),
        ..ServerSettings::new(SourceName::new("repository"), transport)
    };
    assert_eq!(*settings(&config, "repository"), expected);
}

#[test]
fn every_key_of_an_address_is_read() {
    let server = only(
        r#"
        [servers.cloud]
        url = "https://${HOST:-cloud.example.com}/mcp"
        headers = { Authorization = "Bearer ${env:TOKEN}", X-Version = 2 }
        type = "sse"
        permissions = ["cloud"]
        forward_headers = ["X-Request-Id"]
        start_timeout = "500ms"
        [servers.cloud.oauth]
        client_id = "yard"
        client_secret = "${TOKEN}"
        scopes = "read write"
        callback_port = 8123
        client_credentials = true
        "#,
    );
    let text = |text: &str| text.to_owned();
    let transport = TransportSettings::Url(UrlSettings {
        url: text("https://cloud.example.com/mcp"),
        headers: BTreeMap::from([
            (text("Authorization"), Secret::new("Bearer t0ken")),
            (text("X-Version"), Secret::new("2")),
        ]),
        kind: UrlKind::LegacySse,
    });
    let oauth = OAuthSettings {
        client_id: Some(text("yard")),
        client_secret: Some(Secret::new("t0ken")),
        scopes: vec![text("read"), text("write")],
        callback_port: Some(8123),
        client_credentials: true,
    };
    let expected = ServerSettings {
        permissions: vec![text("cloud")],
        forward_headers: vec![text("X-Request-Id")],
        start_timeout: Duration::from_millis(500),
        auth: ServerAuthSettings::OAuth(oauth),
        ..ServerSettings::new(SourceName::new("cloud"), transport)
    };
    assert_eq!(server, expected);
}

#[test]
fn a_bearer_token_comes_from_the_variable_that_is_named() {
    let server = only("[servers.a]\nurl = \"http://localhost:1\"\nbearer_token_env_var = \"TOKEN\"\n");
    assert_eq!(server.auth, ServerAuthSettings::Bearer(Secret::new("t0ken")));
}

#[test]
fn times_are_written_in_several_ways() {
    let times =
        [("7", 7_000), ("1.5", 1_500), ("\"30s\"", 30_000), ("\"2 m\"", 120_000), ("\"1h\"", 3_600_000)];
    for (written, milliseconds) in times {
        let server = only(&format!("[servers.a]\ncommand = \"x\"\ncall_timeout = {written}\n"));
        assert_eq!(server.call_timeout, Duration::from_millis(milliseconds), "{written}");
    }
}

#[test]
fn servers_come_in_the_order_in_which_they_are_written() {
    let text =
        "[servers.zebra]\ncommand = \"x\"\n[servers.ant]\ncommand = \"x\"\n[servers.mole]\ncommand = \"x\"\n";
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    let names: Vec<&str> = config.servers().iter().map(|entry| entry.name().as_str()).collect();
    assert_eq!(names, ["zebra", "ant", "mole"]);
}

#[test]
fn secrets_are_not_in_debug() {
    let text = "[servers.a]\nurl = \"http://h/?key=${TOKEN}\"\nheaders = { A = \"${TOKEN}\" }\n\
                [servers.b]\ncommand = \"x\"\nargs = [\"${TOKEN}\"]\n";
    let config = Place::new(&[("toolyard.toml", text)]).with("TOKEN", "t0ken").load(&[]);
    let shown = format!("{config:?}");
    assert!(shown.contains("Ready(a)") && !shown.contains("t0ken"), "{shown}");
}

#[test]
fn a_server_with_a_mistake_keeps_the_permissions_that_its_offers_would_need() {
    let text = r#"
        [servers.plain]
        command = 7
        [servers.guarded]
        command = 7
        permissions = ["read"]
        [servers.by_tool]
        command = 7
        permissions = { "drop_*" = ["admin"] }
        [servers.unreadable]
        command = "x"
        permissions = 7
    "#;
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    let needed = |name: &str| broken(&config, name).permissions.clone();
    assert_eq!(needed("plain"), [""; 0]);
    assert_eq!(needed("guarded"), ["read"]);
    assert_eq!(needed("by_tool"), [""; 0]);
    // The intended permissions are unknown, so only principals that manage servers see it.
    assert_eq!(needed("unreadable"), ["manage"]);
}

#[test]
fn what_servers_may_send_has_the_documented_limits_and_cannot_be_nothing() {
    let config = Place::new(&[("toolyard.toml", "demo = true\n")]).load(&[]);
    let definitions = DefinitionLimits { per_source: 67_108_864, total: 268_435_456 };
    assert_eq!((config.limits.message_bytes(), config.limits.definition_limits()), (33_554_432, definitions));
    let message = Place::new(&[("toolyard.toml", "[limits]\nmessage_bytes = 10\n")]).problems_text(&[]);
    assert!(message.contains("`limits.message_bytes` must be at least 65536"), "{message}");
}

#[test]
fn connections_are_bounded_and_proxies_are_networks() {
    let text = r#"
        trusted_proxies = ["10.0.0.0/8", "::1"]
        [connections]
        total = 100
        unauthenticated = 50
        unauthenticated_per_address = 5
        health_reserve = 3
        head_timeout = "10s"
        pressed_head_timeout = "500ms"
    "#;
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    let expected = toolyard_serve::ConnectionLimits {
        total: 100,
        unauthenticated: 50,
        unauthenticated_per_address: 5,
        health_reserve: 3,
        head_time: Duration::from_secs(10),
        pressed_head_time: Duration::from_millis(500),
        trusted_proxies: ["10.0.0.0/8", "::1"].iter().map(|text| text.parse().unwrap()).collect(),
    };
    assert_eq!(config.connections, expected);
    let wrong = "trusted_proxies = [\"10.0.0.0/8\", \"proxy.example\"]\n[connections]\ntotal = 0\n";
    let problems = Place::new(&[("toolyard.toml", wrong)]).problems_text(&[]);
    for message in [
        "`trusted_proxies.1` is invalid: expected an IP address or a network such as \"10.0.0.0/8\"",
        "`connections.total` must be at least 1",
    ] {
        assert!(problems.contains(message), "{problems}");
    }
}

#[test]
fn quotas_are_those_of_everybody_or_of_one_token() {
    let text = r#"
        [limits]
        memory_mark_bytes = 1000000
        [limits.quotas]
        bytes_in_flight = 1000
        sessions = 0
        parked_calls = 3
        [[tokens]]
        name = "ci"
        sha256 = "abababababababababababababababababababababababababababababababab"
        limits.quotas.streams = 1
        limits.quotas.programs = 0
    "#;
    let config = Place::new(&[("toolyard.toml", text)]).load(&[]);
    assert_eq!(config.problems(), []);
    let expected = QuotaLimits { bytes: 1_000, sessions: usize::MAX, parked: 3, ..QuotaLimits::default() };
    assert_eq!((config.limits().quotas, config.limits().memory_mark), (expected, Some(1_000_000)));
    let own = QuotaOverrides { streams: Some(1), programs: Some(usize::MAX), ..QuotaOverrides::default() };
    assert_eq!(config.access.tokens[0].bounds.quotas, own);
}

#[test]
fn the_rate_of_principals_is_limited_unless_it_is_switched_off() {
    let rate = |text: &str| Place::new(&[("toolyard.toml", text)]).load(&[]).limits().rate;
    let usual = Some(RateLimit { per_second: 50.0, burst: 2_000.0 });
    assert_eq!(rate(""), usual);
    assert_eq!(rate("[limits]\nrate = true"), usual);
    assert_eq!(rate("[limits]\nrate = false"), None);
    assert_eq!(
        rate("[limits]\nrate = { per_second = 5, burst = 7 }"),
        Some(RateLimit { per_second: 5.0, burst: 7.0 })
    );
}
