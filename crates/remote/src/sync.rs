//! Keeps the local yard in sync with the remote one: handles events, reads lists that changed, and
//! polls the messages of servers whose transcript was requested.

mod events;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use toolyard_hub::json::Object;
use toolyard_hub::{
    ErrorKind, HubError, Raw, SourceName, Timestamp, TranscriptDirection, TranscriptEntry, Yard,
};

use super::control_client::ControlClient;
use super::control_socket::{ReconnectBackoff, RemoteConnection, RemoteError, WelcomeMessage};
use super::decode::{ClockOffset, RemoteServerInfo, RemoteToolInfo, request_fields};
use super::link::{RemoteLink, RemotePermissions};
use super::notice::{RemoteLogSubject, RemoteNotice};
use super::server::RemoteServer;

const EVENTS: [&str; 6] = ["server", "changed", "resource", "call_started", "call_progress", "call_ended"];
/// Events that need the permission `observe`.
const OBSERVED: [&str; 2] = ["log", "stderr"];
/// Like these, and only for yards with several replicas. Other yards may not know the event.
const REPLICAS: &str = "replicas";
/// The interval between requests for messages.
const MESSAGE_INTERVAL: Duration = Duration::from_secs(1);

pub(super) struct RemoteSync {
    yard: Arc<Yard>,
    link: Arc<RemoteLink>,
    shared: Arc<SharedSyncState>,
    synced: watch::Sender<bool>,
    /// The sequence number of the last event before the connection was lost.
    last_seq: Option<u64>,
}

/// The known state of the yard.
struct SharedSyncState {
    state: Mutex<SyncState>,
    stale: Notify,
}

#[derive(Default)]
struct SyncState {
    /// In the order of the yard.
    servers: Vec<(String, Arc<RemoteServer>)>,
    stale: StaleLists,
    clock: ClockOffset,
    seq: Option<u64>,
    /// The replica that is connected, if the yard has several.
    replica: Option<String>,
    /// The IDs of running own calls.
    own_calls: HashSet<String>,
}

/// The lists that must be read again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct StaleLists {
    servers: bool,
    tools: bool,
    resources: bool,
    prompts: bool,
}

impl StaleLists {
    const ALL: Self = Self { servers: true, tools: true, resources: true, prompts: true };
}

impl SharedSyncState {
    fn lock(&self) -> MutexGuard<'_, SyncState> {
        self.state.lock()
    }

    fn server(&self, name: &str) -> Option<Arc<RemoteServer>> {
        self.lock().servers.iter().find(|(known, _)| known == name).map(|(_, server)| Arc::clone(server))
    }

    fn servers(&self) -> Vec<(String, Arc<RemoteServer>)> {
        self.lock().servers.clone()
    }

    fn mark_stale(&self, change: impl FnOnce(&mut StaleLists)) {
        change(&mut self.lock().stale);
        self.stale.notify_one();
    }
}

impl RemoteSync {
    pub(super) fn new(yard: Arc<Yard>, link: Arc<RemoteLink>) -> Self {
        let shared = SharedSyncState { state: Mutex::default(), stale: Notify::new() };
        Self { yard, link, shared: Arc::new(shared), synced: watch::channel(false).0, last_seq: None }
    }

    /// Returns a channel that becomes `true` when everything has been read once.
    pub(super) fn first_sync(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Syncs over one connection until it is closed, and returns the reason.
    pub(super) async fn run(&mut self, connection: RemoteConnection) -> RemoteError {
        let welcome = connection.welcome.clone();
        let (client, driver) = ControlClient::new();
        let permissions = RemotePermissions { manage: welcome.manage, observe: welcome.observe };
        self.link.set_connected(Arc::clone(&client), permissions);
        {
            let mut state = self.shared.lock();
            state.clock = ClockOffset::from_remote_time(welcome.now);
            state.replica.clone_from(&welcome.replica);
        }
        self.link.notify(RemoteNotice::Connectivity(None)).await;
        self.log_connected(&welcome, permissions);
        let on_event = |event: &Value| self.handle_event(event);
        let error = tokio::select! {
            error = driver.run(connection, on_event) => error,
            error = self.keep_in_sync() => RemoteError::Unreachable(error.to_string()),
        };
        self.last_seq = self.shared.lock().seq;
        error
    }

    /// Logs the connection and the permissions that the token lacks.
    fn log_connected(&self, welcome: &WelcomeMessage, permissions: RemotePermissions) {
        let restriction = match (permissions.observe, permissions.manage) {
            (true, true) => "",
            (true, false) => "; no permission to manage: servers cannot be managed",
            (false, true) => {
                "; no permission to observe: calls of others, standard error and messages are hidden"
            }
            (false, false) => {
                "; no permission to observe or manage: calls of others, standard error and messages are hidden, and \
                 servers cannot be managed"
            }
        };
        let replica = welcome.replica.as_ref().map(|name| format!(", replica {name},")).unwrap_or_default();
        let text =
            format!("connected to {}{replica} as {}{restriction}", self.link.address, welcome.principal);
        self.link.log(RemoteLogSubject::Yard, None, SystemTime::now(), text);
    }

    /// Marks all servers as unreachable and waits until the next attempt is due or requested.
    pub(super) async fn wait_to_reconnect(&self, error: &RemoteError, backoff: &mut ReconnectBackoff) {
        let wait = match error {
            RemoteError::Unreachable(_) => Some(backoff.next_delay()),
            // Retried only on request.
            RemoteError::Refused(_) | RemoteError::ProtocolMismatch(_) => None,
        };
        let why = error.message();
        self.link.set_disconnected(why);
        let retry_at = wait.map(|wait| Instant::now() + wait);
        for (_, server) in self.shared.servers() {
            server.set_unreachable(why, retry_at);
        }
        let _ = self.synced.send_replace(true);
        let next = if wait.is_some() { "retrying" } else { "press r to retry" };
        self.link.notify(RemoteNotice::Connectivity(Some(format!("{why}; {next}")))).await;
        let text = format!("not connected to {}: {why}; {next}", self.link.address);
        self.link.log(RemoteLogSubject::Yard, None, SystemTime::now(), text);
        let waiting = async {
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = waiting => {}
            () = self.link.retry_now.notified() => {}
        }
    }

    /// Subscribes, reads everything once, and then everything that changes. Returns only on an error.
    async fn keep_in_sync(&self) -> HubError {
        let syncing = async {
            self.subscribe().await?;
            self.shared.mark_stale(|stale| *stale = StaleLists::ALL);
            let mut interval = tokio::time::interval(MESSAGE_INTERVAL);
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = self.shared.stale.notified() => self.refresh_stale().await?,
                    _ = interval.tick() => self.read_messages().await?,
                }
            }
        };
        let never: Result<std::convert::Infallible, HubError> = syncing.await;
        match never {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn subscribe(&self) -> Result<(), HubError> {
        let observes = self.link.permissions().observe;
        let mut events: Vec<&str> =
            EVENTS.iter().chain(OBSERVED.iter().filter(|_| observes)).copied().collect();
        let shows_replicas = observes && self.shared.lock().replica.is_some();
        events.extend(shows_replicas.then_some(REPLICAS));
        let mut params = request_fields([("events", json!(events))]);
        if let Some(seq) = self.last_seq {
            params.set("after", toolyard_hub::json::to_raw(&seq));
        }
        let response: Value = self.request("subscribe", params).await?;
        if response["missed"] == true {
            let text = "some events were missed while disconnected".to_owned();
            self.link.log(RemoteLogSubject::Yard, None, SystemTime::now(), text);
            for (_, server) in self.shared.servers() {
                server.reset_transcript_cursor();
            }
        }
        match shows_replicas {
            true => self.show_replicas(&self.request("mcp_replicas", Object::default()).await?),
            false => self.link.try_notify(RemoteNotice::Replicas(None)),
        }
        Ok(())
    }

    async fn request<T: DeserializeOwned>(&self, subtype: &str, params: Object) -> Result<T, HubError> {
        let response = self.link.request(subtype, params).await?;
        serde_json::from_str(response.get()).map_err(|error| {
            HubError::new(ErrorKind::Bug, format!("failed to parse the response to {subtype}: {error}"))
        })
    }

    /// Reads all stale lists.
    async fn refresh_stale(&self) -> Result<(), HubError> {
        let stale = std::mem::take(&mut self.shared.lock().stale);
        if stale.servers {
            self.read_servers().await?;
        }
        if stale.tools {
            let ToolsResponse { tools } = self.request("mcp_tools", Object::default()).await?;
            let mut by_server = group(tools, |tool| tool.server_name.clone());
            for (name, server) in self.shared.servers() {
                server.set_tools(by_server.remove(&name).unwrap_or_default());
            }
        }
        if stale.resources {
            let ResourcesResponse { resources, resource_templates } =
                self.request("mcp_list", Object::default()).await?;
            let entries = |all: &Object, name: &str| {
                all.get(name)
                    .and_then(|raw| serde_json::from_str::<Vec<Raw>>(raw.get()).ok())
                    .unwrap_or_default()
            };
            for (name, server) in self.shared.servers() {
                server.set_resources(entries(&resources, &name), entries(&resource_templates, &name));
            }
        }
        if stale.prompts {
            let PromptsResponse { prompts } = self.request("mcp_prompts", Object::default()).await?;
            let mut by_server = group(prompts.into_iter().filter_map(prompt), |prompt| prompt.0.clone());
            for (name, server) in self.shared.servers() {
                let prompts = by_server.remove(&name).unwrap_or_default();
                server.set_prompts(
                    prompts.into_iter().map(|(_, raw, full, definition)| (raw, full, definition)).collect(),
                );
            }
        }
        self.yard.refresh();
        let _ = self.synced.send_replace(true);
        Ok(())
    }

    async fn read_servers(&self) -> Result<(), HubError> {
        let ServersResponse { servers } = self.request("mcp_servers", Object::default()).await?;
        let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        for server in servers {
            self.set_server(server);
        }
        for (name, _) in self.shared.servers() {
            if !names.contains(&name) {
                self.remove_server(&name);
            }
        }
        if self.link.permissions().observe {
            for (name, server) in self.shared.servers() {
                let params = request_fields([("server_name", name.as_str().into())]);
                // The server may have been removed meanwhile.
                if let Ok(StderrResponse { lines }) = self.request("mcp_stderr", params).await {
                    server.set_stderr(lines);
                }
            }
        }
        Ok(())
    }

    fn set_server(&self, info: RemoteServerInfo) {
        let name = info.name.clone();
        let status = info.status(self.shared.lock().clock);
        match self.shared.server(&name) {
            Some(server) => server.set_status(status),
            None => {
                let server = RemoteServer::new(&name, Arc::clone(&self.link), status);
                self.shared.lock().servers.push((name, Arc::clone(&server)));
                self.yard.add(server);
                self.shared
                    .mark_stale(|stale| *stale = StaleLists { servers: stale.servers, ..StaleLists::ALL });
            }
        }
    }

    fn remove_server(&self, name: &str) {
        self.shared.lock().servers.retain(|(known, _)| known != name);
        self.yard.remove(&SourceName::new(name));
    }

    /// Reads new messages of servers whose transcript was requested.
    async fn read_messages(&self) -> Result<(), HubError> {
        if !self.link.permissions().observe {
            return Ok(());
        }
        for (name, server) in self.shared.servers() {
            let Some(after) = server.transcript_cursor() else { continue };
            let mut params = request_fields([("server_name", name.as_str().into())]);
            if let Some(after) = after {
                params.set("after", toolyard_hub::json::to_raw(&after));
            }
            // The server may have been removed meanwhile.
            let Ok(TranscriptResponse { messages }) = self.request("mcp_transcript", params).await else {
                continue;
            };
            server.add_messages(messages.into_iter().filter_map(TranscriptLine::into_entry).collect());
        }
        Ok(())
    }
}

fn group<T>(items: impl IntoIterator<Item = T>, by: impl Fn(&T) -> String) -> HashMap<String, Vec<T>> {
    let mut groups = HashMap::<String, Vec<T>>::new();
    for item in items {
        groups.entry(by(&item)).or_default().push(item);
    }
    groups
}

/// Returns the server, raw name and full name of a prompt, and its definition without the members
/// that the yard added.
fn prompt(mut members: Object) -> Option<(String, String, String, Raw)> {
    let string = |raw: Raw| serde_json::from_str::<String>(raw.get()).ok();
    let server = members.remove("serverName").and_then(string)?;
    let full = members.remove("fullName").and_then(string)?;
    let raw = members.get("name").and_then(|raw| serde_json::from_str(raw.get()).ok())?;
    Some((server, raw, full, members.to_raw()))
}

#[derive(Deserialize)]
struct ServersResponse {
    servers: Vec<RemoteServerInfo>,
}

#[derive(Deserialize)]
struct ToolsResponse {
    tools: Vec<RemoteToolInfo>,
}

#[derive(Deserialize)]
struct ResourcesResponse {
    resources: Object,
    resource_templates: Object,
}

#[derive(Deserialize)]
struct PromptsResponse {
    prompts: Vec<Object>,
}

#[derive(Deserialize)]
struct StderrResponse {
    lines: Vec<String>,
}

#[derive(Deserialize)]
struct TranscriptResponse {
    messages: Vec<TranscriptLine>,
}

#[derive(Deserialize)]
struct TranscriptLine {
    seq: u64,
    at: String,
    direction: String,
    text: String,
}

impl TranscriptLine {
    fn into_entry(self) -> Option<TranscriptEntry> {
        let direction = match self.direction.as_str() {
            "to_server" => TranscriptDirection::ToSource,
            "from_server" => TranscriptDirection::FromSource,
            _ => return None,
        };
        let Timestamp(at) = self.at.parse().ok()?;
        Some(TranscriptEntry { number: self.seq, at, direction, text: self.text })
    }
}
