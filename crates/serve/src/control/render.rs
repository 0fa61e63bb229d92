//! Servers and calls in the format of the control socket. `lists.rs` renders tools.

use std::time::SystemTime;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{
    CallStatus, CatalogView, ExecutionId, FrontName, PastCall, Progress, Raw, SourceName, SourceState,
    SourceStatus, Timestamp,
};

use super::journal::{JournalCall, ServerElsewhere};
use crate::rest::execution_name;

/// Renders a source with the number of its visible entries, and its status at other replicas.
pub(super) fn server(
    name: &SourceName,
    status: &SourceStatus,
    view: &CatalogView,
    elsewhere: &[ServerElsewhere],
) -> Raw {
    let mut server = Object::default();
    let mut put = |key: &str, value: Value| server.set(key, to_raw(&value));
    put("name", name.as_str().into());
    put("state", status.state.as_str().into());
    if let Some(reason) = &status.reason {
        put("reason", reason.as_str().into());
    }
    if status.state == SourceState::NeedsAuthorization {
        put("suggestion", format!("log in here, or run `toolyard login {name}`").into());
    }
    for (key, value) in
        [("transport", status.transport), ("era", status.era), ("protocolVersion", status.version)]
    {
        if let Some(value) = value {
            put(key, value.into());
        }
    }
    if let Some(info) = status.server_info.as_deref().and_then(info) {
        put("serverInfo", info);
    }
    if let Some(replica) = &status.replica {
        put("replica", replica.as_str().into());
    }
    put("auth", status.authorization.as_str().into());
    put("tools", view.tools().count().into());
    put("resources", view.resources().count().into());
    put("templates", view.templates().count().into());
    put("prompts", view.prompts().count().into());
    put("warnings", json!(status.warnings));
    put("since", Timestamp(to_system_time(status.since)).to_string().into());
    if let Some(retry_at) = status.retry_at {
        put("retryInMs", millis(retry_at.saturating_duration_since(Instant::now())).into());
    }
    if !elsewhere.is_empty() {
        let describe = |server: &ServerElsewhere| {
            let mut described = json!({"name": &*server.replica.name, "state": server.state.as_str()});
            if let Some(reason) = &server.reason {
                described["reason"] = reason.as_str().into();
            }
            described
        };
        put("replicas", elsewhere.iter().map(describe).collect());
    }
    server.to_raw()
}

/// Returns the name, version and title from the information that a server sends about itself.
fn info(raw: &RawValue) -> Option<Value> {
    let members: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
    let text = |key: &str| members.get(key).and_then(Value::as_str);
    let mut info = json!({"name": text("name")?, "version": text("version").unwrap_or_default()});
    if let Some(title) = text("title") {
        info["title"] = title.into();
    }
    Some(info)
}

/// Converts a monotonic time to wall-clock time.
fn to_system_time(at: Instant) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(at.elapsed()).unwrap_or(now)
}

pub(super) fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Renders a call of the journal.
pub(super) fn call(journal_call: &JournalCall) -> Value {
    let mut call = json!({
        "id": execution_name(journal_call.record.id),
        "thing": journal_call.record.kind.as_str(),
        "subject": &*journal_call.record.subject,
        "principal": journal_call.record.principal.id(),
        "startedAt": Timestamp(journal_call.record.accepted_at).to_string(),
        "status": journal_call.status().as_str(),
    });
    let source = journal_call.record.source.as_ref().map(SourceName::as_str);
    let optional_members = [
        ("serverName", source),
        ("replica", journal_call.replica.as_ref().map(|replica| &*replica.name)),
        ("sessionId", journal_call.record.context.session_id.as_deref()),
        ("userId", journal_call.record.context.user_id.as_deref()),
        ("front", journal_call.record.context.front.map(FrontName::as_str)),
        ("error", journal_call.end.as_ref().and_then(|end| end.error.as_deref())),
    ];
    for (key, value) in optional_members {
        if let Some(value) = value {
            call[key] = value.into();
        }
    }
    if let Some(end) = &journal_call.end {
        call["durationMs"] = millis(end.duration).into();
    }
    call
}

/// Renders a call of the history.
pub(super) fn past_call(past: &PastCall) -> Value {
    let mut call = json!({
        "id": execution_name(past.id),
        "thing": past.kind.as_str(),
        "subject": past.subject,
        "principal": past.principal,
        "startedAt": Timestamp(past.at).to_string(),
        "durationMs": millis(past.duration),
        "status": CallStatus::from(past.ended).as_str(),
    });
    let optional_members = [
        ("serverName", past.source.as_deref()),
        ("sessionId", past.session_id.as_deref()),
        ("userId", past.user_id.as_deref()),
        ("error", past.error.as_deref()),
    ];
    for (key, value) in optional_members {
        if let Some(value) = value {
            call[key] = value.into();
        }
    }
    call
}

/// Renders the progress of a call.
pub(super) fn progress(progress: &Progress) -> Map<String, Value> {
    let mut members = Map::new();
    members.insert("progress".to_owned(), number(progress.progress));
    if let Some(total) = progress.total {
        members.insert("total".to_owned(), number(total));
    }
    if let Some(message) = &progress.message {
        members.insert("message".to_owned(), message.as_str().into());
    }
    members
}

/// Renders integers without a fraction: 50, not 50.0.
fn number(value: f64) -> Value {
    crate::mcp::number(value)
}

pub(super) fn execution(id: ExecutionId) -> String {
    execution_name(id)
}
