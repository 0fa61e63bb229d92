//! A connection to the server under test, with everything that arrives on it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{ClientCapabilities, HubError, LogLevel, Raw, Schema};
use toolyard_upstream::{DirectConnection, Era, ServerListKind, UpstreamContext};
use toolyard_wire::MessageLog;

use super::inbox::NotificationInbox;
use super::server::ServerUnderTest;
use crate::generic::CanaryWatch;

/// How long a server may take to confirm a subscription.
const SUBSCRIBING: Duration = Duration::from_secs(10);

/// A connection to the server under test.
#[derive(Debug)]
pub(crate) struct TestSession {
    pub(crate) link: Arc<DirectConnection>,
    pub(crate) inbox: Arc<NotificationInbox>,
    pub(crate) capabilities: ClientCapabilities,
    subscribed: BTreeSet<String>,
    /// The open `subscriptions/listen` request of a modern server.
    listening: Option<JoinHandle<()>>,
    tools: Option<ToolIndex>,
}

/// The tools that the server lists.
#[derive(Debug, Default)]
pub(crate) struct ToolIndex {
    pub(crate) tools: BTreeMap<String, ListedTool>,
    list_changes: u64,
}

#[derive(Debug)]
pub(crate) struct ListedTool {
    pub(crate) input: Value,
    pub(crate) output: Option<Schema>,
}

#[cfg(test)]
impl ToolIndex {
    pub(crate) fn with_tools(tools: BTreeMap<String, ListedTool>) -> Self {
        Self { tools, list_changes: 0 }
    }
}

/// Who a server says it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    pub name: String,
    pub version: String,
    pub protocol: String,
    pub transport: String,
}

/// Opens connections of one server for tests with the same answers.
#[derive(Debug)]
pub(crate) struct SessionOpener<'a> {
    pub(crate) server: ServerUnderTest,
    pub(crate) common: &'a UpstreamContext,
    pub(crate) capabilities: ClientCapabilities,
    /// A value that must not be in any message of the server.
    pub(crate) canary: Option<Arc<CanaryWatch>>,
}

impl SessionOpener<'_> {
    pub(crate) async fn open(&self) -> Result<TestSession, HubError> {
        let inbox = Arc::new(NotificationInbox::watching(self.canary.clone()));
        TestSession::open(&self.server, self.common, self.capabilities.clone(), inbox).await
    }
}

impl TestSession {
    async fn open(
        server: &ServerUnderTest,
        common: &UpstreamContext,
        capabilities: ClientCapabilities,
        inbox: Arc<NotificationInbox>,
    ) -> Result<Self, HubError> {
        let log = Arc::new(MessageLog::with_tap(inbox.tap()));
        // The log level belongs to a request, not to the connection.
        let declared = ClientCapabilities { log_level: None, ..capabilities.clone() };
        let opening = DirectConnection::open_logged(
            server.settings.clone(),
            common,
            &declared,
            server.credentials,
            log,
        );
        let link = Arc::new(Box::pin(opening).await?);
        let session =
            Self { link, inbox, capabilities, subscribed: BTreeSet::new(), listening: None, tools: None };
        if let (Some(level), Era::Legacy, true) =
            (session.capabilities.log_level, session.era(), session.has_capability("logging"))
        {
            session.set_log_level(level).await?;
        }
        Ok(session)
    }

    pub(crate) fn era(&self) -> Era {
        self.link.version().era()
    }

    pub(crate) fn identity(&self) -> ServerIdentity {
        #[derive(Deserialize, Default)]
        struct Info {
            name: Option<String>,
            version: Option<String>,
        }
        let info = self.link.server_info();
        let info: Info = info.and_then(|info| serde_json::from_str(info.get()).ok()).unwrap_or_default();
        ServerIdentity {
            name: info.name.unwrap_or_else(|| "unnamed".to_owned()),
            version: info.version.unwrap_or_default(),
            protocol: self.link.version().as_str().to_owned(),
            transport: self.link.transport().to_owned(),
        }
    }

    /// Whether the server declares this capability.
    pub(crate) fn has_capability(&self, name: &str) -> bool {
        let declared: Value = serde_json::from_str(self.link.capabilities().get()).unwrap_or_default();
        declared.get(name).is_some()
    }

    async fn set_log_level(&self, level: LogLevel) -> Result<(), HubError> {
        let mut params = Object::default();
        params.set("level", to_raw(&level));
        self.request("logging/setLevel", params).await.map(drop)
    }

    /// Sends a request under the time limit for subscriptions.
    async fn request(&self, method: &'static str, params: Object) -> Result<Raw, HubError> {
        match tokio::time::timeout(SUBSCRIBING, self.link.request(method, params)).await {
            Ok(answer) => answer,
            Err(_) => Err(timed_out(method)),
        }
    }

    pub(crate) async fn subscribe(&mut self, uris: &[String]) -> Result<(), HubError> {
        match self.era() {
            Era::Legacy => {
                for uri in uris {
                    self.request("resources/subscribe", uri_params(uri)).await?;
                    self.subscribed.insert(uri.clone());
                }
                Ok(())
            }
            Era::Modern => {
                self.subscribed.extend(uris.iter().cloned());
                self.listen().await
            }
        }
    }

    pub(crate) async fn unsubscribe(&mut self, uris: &[String]) -> Result<(), HubError> {
        for uri in uris {
            self.subscribed.remove(uri);
        }
        match self.era() {
            Era::Legacy => {
                for uri in uris {
                    self.request("resources/unsubscribe", uri_params(uri)).await?;
                }
                Ok(())
            }
            Era::Modern => self.listen().await,
        }
    }

    /// Replaces the subscriptions of a modern server, and waits until it has confirmed them.
    async fn listen(&mut self) -> Result<(), HubError> {
        const METHOD: &str = "subscriptions/listen";
        self.stop_listening().await;
        let mut params = Object::default();
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": self.subscribed,
        });
        params.set("notifications", to_raw(&filter));
        let mark = self.inbox.mark();
        let link = Arc::clone(&self.link);
        let (ended, has_ended) = tokio::sync::oneshot::channel();
        self.listening = Some(tokio::spawn(async move {
            let _ = ended.send(link.request(METHOD, params).await.map(drop));
        }));
        let confirmed = self.inbox.wait_since(mark, "notifications/subscriptions/acknowledged");
        tokio::select! {
            () = confirmed => Ok(()),
            ended = has_ended => match ended {
                Ok(Err(error)) => Err(error),
                _ => Ok(()),
            },
            () = tokio::time::sleep(SUBSCRIBING) => Err(timed_out(METHOD)),
        }
    }

    async fn stop_listening(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            let _ = listening.await;
        }
    }

    /// Reads the tools of the server, again only after the server has announced a change. A server
    /// without a usable list has no tools.
    pub(crate) async fn read_tools(&mut self) {
        let changes = self.link.list_change_count();
        let is_current = self.tools.as_ref().is_some_and(|tools| tools.list_changes == changes);
        if !is_current {
            let mut index = ToolIndex { list_changes: changes, ..ToolIndex::default() };
            if let Ok(pages) = self.link.list(ServerListKind::Tools).await {
                index.tools = pages.items.iter().filter_map(read_tool).collect();
            }
            self.tools = Some(index);
        }
    }

    /// Returns the tools as they were last read.
    pub(crate) fn tools(&self) -> Option<&ToolIndex> {
        self.tools.as_ref()
    }

    /// Ends the connection and its process.
    pub(crate) async fn close(&mut self) {
        self.stop_listening().await;
        self.link.close().await;
    }
}

impl Drop for TestSession {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
    }
}

fn read_tool(definition: &Raw) -> Option<(String, ListedTool)> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Definition {
        name: String,
        #[serde(default)]
        input_schema: Value,
        output_schema: Option<Raw>,
    }
    let Definition { name, input_schema, output_schema } = serde_json::from_str(definition.get()).ok()?;
    Some((name, ListedTool { input: input_schema, output: output_schema.map(Schema::new) }))
}

fn uri_params(uri: &str) -> Object {
    let mut params = Object::default();
    params.set("uri", to_raw(uri));
    params
}

fn timed_out(method: &str) -> HubError {
    let seconds = SUBSCRIBING.as_secs();
    HubError::new(toolyard_hub::ErrorKind::TimedOut, format!("no answer to `{method}` within {seconds} s"))
}
