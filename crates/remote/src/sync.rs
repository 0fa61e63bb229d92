//! Keeps the mirror like the yard: hears its events, reads the lists that changed, and asks for messages where somebody
//! looks at them.

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
use super::control_socket::{ReconnectBackoff, RemoteConnection, RemoteError};
use super::decode::{ClockOffset, RemoteServerInfo, RemoteToolInfo, request_fields};
use super::link::{RemoteLink, RemotePermissions};
use super::notice::{RemoteLogSubject, RemoteNotice};
use super::server::RemoteServer;

const EVENTS: [&str; 6] = ["server", "changed", "resource", "call_started", "call_progress", "call_ended"];
/// Only for who may observe.
const OBSERVED: [&str; 2] = ["log", "stderr"];
/// How often messages are asked for.
const OFTEN: Duration = Duration::from_secs(1);

pub(super) struct RemoteSync {
    yard: Arc<Yard>,
    link: Arc<RemoteLink>,
    shared: Arc<SharedSyncState>,
    synced: watch::Sender<bool>,
    /// The number of the last event before the line broke.
    last_seq: Option<u64>,
}

/// What is known of the yard.
struct SharedSyncState {
    state: Mutex<SyncState>,
    stale: Notify,
}

#[derive(Default)]
struct SyncState {
    /// In the order in which the yard has them.
    servers: Vec<(String, Arc<RemoteServer>)>,
    stale: StaleLists,
    clock: ClockOffset,
    seq: Option<u64>,
    /// The ids of our calls that run.
    own_calls: HashSet<String>,
}

/// Which lists are to be read again.
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
        let mirrored = SharedSyncState { state: Mutex::default(), stale: Notify::new() };
        Self { yard, link, shared: Arc::new(mirrored), synced: watch::channel(false).0, last_seq: None }
    }

    /// Whether everything has been read once.
    pub(super) fn first_sync(&self) -> watch::Receiver<bool> {
        self.synced.subscribe()
    }

    /// Lives with one connection until it is over, and says why it is.
    pub(super) async fn run(&mut self, attached: RemoteConnection) -> RemoteError {
        let welcome = attached.welcome.clone();
        let (line, drive) = ControlClient::new();
        let may = RemotePermissions { manage: welcome.manage, observe: welcome.observe };
        self.link.set_connected(Arc::clone(&line), may);
        self.shared.lock().clock = ClockOffset::from_remote_time(welcome.now);
        self.link.notify(RemoteNotice::Connectivity(None)).await;
        self.log_connected(&welcome.principal, may);
        let hear = |event: &Value| self.handle_event(event);
        let lost = tokio::select! {
            lost = drive.run(attached, hear) => lost,
            error = self.keep_in_sync() => RemoteError::Unreachable(error.to_string()),
        };
        self.last_seq = self.shared.lock().seq;
        lost
    }

    /// Says what this token is good for, where that is not everything.
    fn log_connected(&self, principal: &str, may: RemotePermissions) {
        let cannot = match (may.observe, may.manage) {
            (true, true) => "",
            (true, false) => "; it may not manage servers",
            (false, true) => "; it may not observe: others' calls, standard error and messages are not shown",
            (false, false) => {
                "; it may neither observe (others' calls, standard error and messages are not shown) nor manage servers"
            }
        };
        let text = format!("connected to {} as {principal}{cannot}", self.link.address);
        self.link.log(RemoteLogSubject::Yard, None, SystemTime::now(), text);
    }

    /// The line is gone: every server says so, until it is tried again.
    pub(super) async fn wait_to_reconnect(&self, lost: &RemoteError, patience: &mut ReconnectBackoff) {
        let wait = match lost {
            RemoteError::Unreachable(_) => Some(patience.next_delay()),
            // Only somebody who knows better tries that again.
            RemoteError::Refused(_) | RemoteError::ProtocolMismatch(_) => None,
        };
        let why = lost.message();
        self.link.set_disconnected(why);
        let retry_at = wait.map(|wait| Instant::now() + wait);
        for (_, server) in self.shared.servers() {
            server.set_unreachable(why, retry_at);
        }
        let _ = self.synced.send_replace(true);
        let more = if wait.is_some() { "retrying" } else { "r tries again" };
        self.link.notify(RemoteNotice::Connectivity(Some(format!("{why}; {more}")))).await;
        let text = format!("not connected to {}: {why}; {more}", self.link.address);
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

    /// Subscribes, reads everything once, and then whatever is said to have changed. Ends with why it cannot.
    async fn keep_in_sync(&self) -> HubError {
        let ended = async {
            self.subscribe().await?;
            self.shared.mark_stale(|stale| *stale = StaleLists::ALL);
            let mut next = tokio::time::interval(OFTEN);
            next.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                tokio::select! {
                    () = self.shared.stale.notified() => self.refresh_stale().await?,
                    _ = next.tick() => self.read_messages().await?,
                }
            }
        };
        let never: Result<std::convert::Infallible, HubError> = ended.await;
        match never {
            Ok(never) => match never {},
            Err(error) => error,
        }
    }

    async fn subscribe(&self) -> Result<(), HubError> {
        let observes = self.link.permissions().observe;
        let events: Vec<&str> = EVENTS.iter().chain(OBSERVED.iter().filter(|_| observes)).copied().collect();
        let mut words = request_fields([("events", json!(events))]);
        if let Some(seq) = self.last_seq {
            words.set("after", toolyard_hub::json::to_raw(&seq));
        }
        let response: Value = self.request("subscribe", words).await?;
        if response["missed"] == true {
            let text = "some of what happened meanwhile is not known any more".to_owned();
            self.link.log(RemoteLogSubject::Yard, None, SystemTime::now(), text);
            for (_, server) in self.shared.servers() {
                server.reset_transcript_cursor();
            }
        }
        Ok(())
    }

    async fn request<T: DeserializeOwned>(&self, subtype: &str, words: Object) -> Result<T, HubError> {
        let response = self.link.request(subtype, words).await?;
        serde_json::from_str(response.get()).map_err(|error| {
            HubError::new(
                ErrorKind::Bug,
                format!("what the yard answers to {subtype} cannot be read: {error}"),
            )
        })
    }

    /// Reads every list that is not what it was.
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
            let of = |all: &Object, name: &str| {
                all.get(name)
                    .and_then(|raw| serde_json::from_str::<Vec<Raw>>(raw.get()).ok())
                    .unwrap_or_default()
            };
            for (name, server) in self.shared.servers() {
                server.set_resources(of(&resources, &name), of(&resource_templates, &name));
            }
        }
        if stale.prompts {
            let PromptsResponse { prompts } = self.request("mcp_prompts", Object::default()).await?;
            let mut by_server = group(prompts.into_iter().filter_map(prompt), |prompt| prompt.0.clone());
            for (name, server) in self.shared.servers() {
                let prompts = by_server.remove(&name).unwrap_or_default();
                server.set_prompts(prompts.into_iter().map(|(_, raw, full, own)| (raw, full, own)).collect());
            }
        }
        self.yard.refresh();
        let _ = self.synced.send_replace(true);
        Ok(())
    }

    async fn read_servers(&self) -> Result<(), HubError> {
        let ServersResponse { servers } = self.request("mcp_servers", Object::default()).await?;
        let named: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
        for server in servers {
            self.set_server(server);
        }
        for (name, _) in self.shared.servers() {
            if !named.contains(&name) {
                self.remove_server(&name);
            }
        }
        if self.link.permissions().observe {
            for (name, server) in self.shared.servers() {
                let words = request_fields([("server_name", name.as_str().into())]);
                // It may be gone again by now.
                if let Ok(StderrResponse { lines }) = self.request("mcp_stderr", words).await {
                    server.set_stderr(lines);
                }
            }
        }
        Ok(())
    }

    fn set_server(&self, shown: RemoteServerInfo) {
        let name = shown.name.clone();
        let status = shown.status(self.shared.lock().clock);
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

    /// What was said with the servers, where somebody wants to see it.
    async fn read_messages(&self) -> Result<(), HubError> {
        if !self.link.permissions().observe {
            return Ok(());
        }
        for (name, server) in self.shared.servers() {
            let Some(after) = server.transcript_cursor() else { continue };
            let mut words = request_fields([("server_name", name.as_str().into())]);
            if let Some(after) = after {
                words.set("after", toolyard_hub::json::to_raw(&after));
            }
            // A server that is gone by now has nothing more to tell.
            let Ok(TranscriptResponse { messages }) = self.request("mcp_transcript", words).await else {
                continue;
            };
            server.add_messages(messages.into_iter().filter_map(TranscriptLine::into_entry).collect());
        }
        Ok(())
    }
}

fn group<T>(things: impl IntoIterator<Item = T>, by: impl Fn(&T) -> String) -> HashMap<String, Vec<T>> {
    let mut groups = HashMap::<String, Vec<T>>::new();
    for thing in things {
        groups.entry(by(&thing)).or_default().push(thing);
    }
    groups
}

/// The server, the raw name and the full name of a prompt, and its definition without what the yard added.
fn prompt(mut shown: Object) -> Option<(String, String, String, Raw)> {
    let word = |raw: Raw| serde_json::from_str::<String>(raw.get()).ok();
    let server = shown.remove("serverName").and_then(word)?;
    let full = shown.remove("fullName").and_then(word)?;
    let raw = shown.get("name").and_then(|raw| serde_json::from_str(raw.get()).ok())?;
    Some((server, raw, full, shown.to_raw()))
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
