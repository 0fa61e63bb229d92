//! A connection of a caller: the server, the time of the connection, and statistics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use toolyard_hub::Raw;
use toolyard_hub::json::{Object, to_raw};
use toolyard_upstream::DirectConnection;

use crate::answer::format_time;
use crate::saved_calls::SavedCallLog;
use crate::tool_schemas::ToolSchemaCache;

#[derive(Debug)]
pub(crate) struct TesterConnection {
    /// The target as the caller wrote it.
    pub(crate) url: String,
    pub(crate) terms: ConnectionTerms,
    pub(crate) link: DirectConnection,
    /// Canceled on disconnect, to end operations in progress.
    pub(crate) closed: CancellationToken,
    pub(crate) tool_schemas: ToolSchemaCache,
    pub(crate) counts: ConnectionCounts,
    pub(crate) saved_calls: SavedCallLog,
    connected_since: SystemTime,
    last_used: Mutex<Instant>,
}

/// The terms on which a connection was granted.
#[derive(Debug, Default)]
pub(crate) struct ConnectionTerms {
    /// The permissions that the caller must hold while the connection is in use.
    pub(crate) required_permissions: Vec<String>,
    /// Whether transport errors are hidden from the caller.
    pub(crate) hides_failures: bool,
}

/// The operations on a connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    pub(crate) tools_called: AtomicU64,
    pub(crate) resources_read: AtomicU64,
    pub(crate) prompts_retrieved: AtomicU64,
}

impl ConnectionCounts {
    pub(crate) fn increment(count: &AtomicU64) {
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the statistics as JSON, including the number of protocol violations.
    pub(crate) fn to_json(&self, violations: u64) -> Raw {
        to_raw(&json!({
            "tools_called": self.tools_called.load(Ordering::Relaxed),
            "resources_read": self.resources_read.load(Ordering::Relaxed),
            "prompts_retrieved": self.prompts_retrieved.load(Ordering::Relaxed),
            "protocol_violations": violations,
        }))
    }
}

/// The name and version that a server declares, as far as they are valid.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TesterServerInfo {
    pub(crate) name: Option<String>,
    pub(crate) version: Option<String>,
}

impl TesterConnection {
    pub(crate) fn new(
        url: String,
        link: DirectConnection,
        terms: ConnectionTerms,
        saved_calls: SavedCallLog,
    ) -> Self {
        Self {
            url,
            terms,
            link,
            closed: CancellationToken::new(),
            tool_schemas: ToolSchemaCache::default(),
            counts: ConnectionCounts::default(),
            saved_calls,
            connected_since: SystemTime::now(),
            last_used: Mutex::new(Instant::now()),
        }
    }

    pub(crate) fn connected_at(&self) -> String {
        format_time(self.connected_since)
    }

    /// Returns the transport in the terms of the contract, which has only two.
    pub(crate) fn transport(&self) -> &'static str {
        if self.link.transport() == "stdio" { "stdio" } else { "streaming-http" }
    }

    pub(crate) fn is_legacy_sse(&self) -> bool {
        self.link.transport() == "sse"
    }

    pub(crate) fn server_info(&self) -> TesterServerInfo {
        let info = self.link.server_info();
        info.and_then(|info| serde_json::from_str(info.get()).ok()).unwrap_or_default()
    }

    /// Returns the connection data that every answer contains.
    pub(crate) fn summary_json(&self) -> Raw {
        self.base_json().to_raw()
    }

    /// Returns everything that is known about the connection and its server.
    pub(crate) fn details_json(&self) -> Raw {
        let mut all = self.base_json();
        let info = self.link.server_info().filter(|info| info.get().starts_with('{'));
        all.set("server_info", info.map_or_else(|| to_raw(&json!({})), ToOwned::to_owned));
        let version = self.link.version();
        all.set("protocol_version", to_raw(version.as_str()));
        let era = version.era().as_str();
        all.set("protocol_era", to_raw(era));
        all.set("wire_transport", to_raw(self.link.transport()));
        all.set("capabilities", self.link.capabilities().to_owned());
        if let Some(instructions) = self.link.instructions() {
            all.set("instructions", to_raw(instructions));
        }
        all.to_raw()
    }

    fn base_json(&self) -> Object {
        let mut brief = Object::default();
        brief.set("server_url", to_raw(&self.url));
        brief.set("transport", to_raw(self.transport()));
        brief.set("connected_at", to_raw(&self.connected_at()));
        brief
    }

    /// Records protocol violations of a result or a list.
    pub(crate) fn record_violations(&self, rules: &[String]) {
        for rule in rules {
            self.link.violations().add(rule);
        }
    }

    /// Returns descriptions of the protocol violations since the last call.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        let (mut violations, more) = self.link.violations().take();
        if self.terms.hides_failures && !violations.is_empty() {
            // The descriptions quote the server, whose responses this caller may not see.
            let many = violations.len() as u64 + more;
            let who = "only callers with the permission `spawn` see the details";
            return vec![format!("the server violated the protocol {many} times; {who}")];
        }
        if more > 0 {
            violations.push(format!("the server violated the protocol {more} more times"));
        }
        violations
    }

    /// Returns why the server is gone, if it is, as far as the caller may know.
    pub(crate) fn lost_reason(&self) -> Option<String> {
        let gone = self.link.disconnect_reason()?;
        Some(if self.terms.hides_failures { "the connection failed".to_owned() } else { gone })
    }

    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    pub(crate) fn idle_for(&self) -> Duration {
        self.last_used.lock().elapsed()
    }

    /// Closes the connection and cancels operations in progress. Returns how its process ended, if
    /// it has one.
    pub(crate) async fn close(&self) -> Option<String> {
        self.closed.cancel();
        self.link.close().await
    }
}
