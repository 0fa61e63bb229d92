//! A yard with the probe and, on request, misbehaving servers, served on a free port.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use toolyard_hub::json::to_raw;
use toolyard_hub::{Permissions, Principal, SourceName, SourceState, Timestamp, Yard};
use toolyard_serve::{
    Auth, BearerCredentials, BearerToken, BearerTokenStore, ConnectionLimits, ControlSettings,
    EndpointSettings, LogEntry, McpSettings, ServeAuthSettings, ServeSettings, bind,
};
use toolyard_testkit::harness::{Socket, within_timeout};
use toolyard_testkit::probe;
use toolyard_upstream::{
    CommandSettings, EnvInheritance, ProcessEnvironment, ServerSettings, SupervisorCommand,
    TransportSettings, Upstream, UpstreamContext,
};

use super::{KEPT, ODD};

pub(super) const OWNER: &str = "owner's token";
pub(super) const ADA: &str = "ada's token";
pub(super) const WATCHER: &str = "watcher's token";

pub(super) struct House {
    pub(super) address: String,
    pub(super) yard: Arc<Yard>,
    pub(super) keyring: BearerTokenStore,
    pub(super) log: tokio::sync::broadcast::Sender<Arc<LogEntry>>,
    pub(super) stop: CancellationToken,
    pub(super) serving: AbortOnDropHandle<()>,
    upstreams: Vec<Arc<Upstream>>,
}

impl House {
    pub(super) async fn new() -> Self {
        // These tests make thousands of concurrent calls. Other tests cover the rate limits.
        let limits = toolyard_hub::YardLimits { rate: None, ..toolyard_hub::YardLimits::default() };
        let yard = Yard::new(toolyard_hub::YardSettings { limits, ..toolyard_hub::YardSettings::default() });
        yard.add(probe::source());
        yard.add(extra());
        let keyring =
            BearerTokenStore::new(BearerCredentials { tokens: tokens(), ..BearerCredentials::default() });
        let log = tokio::sync::broadcast::channel(64).0;
        let settings = ServeSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            auth: ServeAuthSettings {
                auth: Auth::TokenStore(keyring.clone()),
                hosts: Vec::new(),
                origins: vec!["https://page.example".to_owned()],
            },
            mcp: McpSettings::default(),
            endpoint: EndpointSettings { max_body_bytes: 1024 * 1024, ..EndpointSettings::default() },
            control: ControlSettings { log: Some(log.clone()) },
            connections: ConnectionLimits::default(),
            builtin_endpoints: Vec::new(),
            drain: Duration::from_secs(5),
        };
        let bound = bind(Arc::clone(&yard), settings).await.unwrap();
        let (address, stop) = (bound.address().to_string(), CancellationToken::new());
        let serving = AbortOnDropHandle::new(tokio::spawn(bound.serve(stop.clone())));
        Self { address, yard, keyring, log, stop, serving, upstreams: Vec::new() }
    }

    /// Starts a misbehaving server and waits until it is ready.
    pub(super) async fn add(&mut self, name: &str, kind: &str) {
        let script = r#"echo "$2 starts" >&2; exec "$1" "$2" stdio"#;
        let args = ["-c", script, "sh", ODD, kind].map(str::to_owned).to_vec();
        let command = CommandSettings {
            program: "sh".to_owned(),
            args,
            env: BTreeMap::new(),
            cwd: None,
            inherit: EnvInheritance::AllowList,
        };
        let settings = ServerSettings::new(SourceName::new(name), TransportSettings::Command(command));
        let keeper = SupervisorCommand {
            program: KEPT.into(),
            args: vec!["keeper".into()],
            environment: ProcessEnvironment::new(std::env::vars_os()),
        };
        let me = to_raw(&json!({"name": "test", "version": "1"}));
        let upstream = Upstream::start(settings, UpstreamContext::new(keeper, me).unwrap());
        self.yard.add(Arc::clone(&upstream) as _);
        self.upstreams.push(upstream);
        self.until(name, SourceState::Ready).await;
    }

    pub(super) async fn until(&self, name: &str, state: SourceState) {
        within_timeout(&format!("{name} to be {state:?}"), async {
            while self.yard.status(&SourceName::new(name)).unwrap().state != state {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
    }

    /// Opens a socket with all permissions.
    pub(super) async fn owner(&self) -> Socket {
        Socket::connect(&self.address, OWNER).await
    }

    pub(super) async fn ada(&self) -> Socket {
        Socket::connect(&self.address, ADA).await
    }

    pub(super) async fn end(self) {
        for upstream in &self.upstreams {
            upstream.stop().await;
        }
        self.stop.cancel();
        within_timeout("the end", self.serving).await.unwrap();
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pieces {
    /// How many chunks to send.
    n: u32,
}

/// A tool that sends its result in chunks.
fn extra() -> Arc<dyn toolyard_hub::Source> {
    let pieces = |params: Pieces, ctx: toolyard_sdk::Context| async move {
        let stream = ctx.stream();
        for at in 1..=params.n {
            stream.write(format!("piece {at}")).await;
        }
        stream.end();
        Ok(format!("{} pieces", params.n))
    };
    toolyard_sdk::NativeSource::new("extra").tools([toolyard_sdk::Tool::new("pieces", pieces)]).into_source()
}

/// Returns a token with all permissions, one without any, and one that may only observe.
pub(super) fn tokens() -> Vec<BearerToken> {
    let ada = Principal::new("ada", Permissions::Only(Default::default()));
    let watcher = Principal::new("watcher", Permissions::Only(["observe".to_owned()].into()));
    vec![
        BearerToken::new(OWNER, Principal::owner()),
        BearerToken::new(ADA, ada),
        BearerToken::new(WATCHER, watcher),
    ]
}

/// Returns the same tokens, with ada's expiring after this duration.
pub(super) fn tokens_expiring(after: Duration) -> Vec<BearerToken> {
    let mut tokens = tokens();
    tokens[1] = tokens[1].clone().with_expiry(Timestamp(SystemTime::now() + after));
    tokens
}
