//! Handles the events of the remote yard: updates the servers, and logs everything else. Own calls
//! are not logged, because the hub already reports them.

use std::time::SystemTime;

use serde_json::Value;
use toolyard_hub::{CallStatus, Timestamp};

use super::super::replicas::ReplicaSummary;
use super::{RemoteLogSubject, RemoteNotice, RemoteServerInfo, RemoteSync, StaleLists};

/// The maximum number of own calls that are tracked.
const MOST_CALLS: usize = 10_000;

impl RemoteSync {
    /// Handles an event without waiting.
    pub(super) fn handle_event(&self, event: &Value) {
        if let Some(seq) = event["seq"].as_u64() {
            self.shared.lock().seq = Some(seq);
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let server = event["serverName"].as_str();
        match event["event"].as_str() {
            Some("server") if event["gone"] == true => {
                self.remove_server(server.unwrap_or_default());
            }
            Some("server") => match serde_json::from_value::<RemoteServerInfo>(event["server"].clone()) {
                Ok(info) => self.set_server(info),
                Err(_) => self.shared.mark_stale(|stale| stale.servers = true),
            },
            Some("changed") => self.shared.mark_stale(|stale| {
                stale.tools |= event["tools"] == true;
                stale.resources |= event["resources"] == true;
                stale.prompts |= event["prompts"] == true;
            }),
            Some("resource") => {
                if let Some(server) = server.and_then(|name| self.shared.server(name)) {
                    server.notify(|notifier| notifier.resource_updated(&text(&event["uri"])));
                }
            }
            Some("stderr") => {
                if let Some(server) = server.and_then(|name| self.shared.server(name)) {
                    let line = text(&event["line"]);
                    let line =
                        event["replica"].as_str().map(|name| format!("{name}: {line}")).unwrap_or(line);
                    server.add_stderr(&line);
                }
            }
            Some("call_started") => self.handle_call_started(&event["call"]),
            Some("call_ended") => self.handle_call_ended(&event["call"]),
            Some("log") => {
                let line = [&event["level"], &event["target"], &event["message"]].map(text).join(" ");
                let replica = event["replica"].as_str().map(|name| format!(" at {name}"));
                let line = line + &replica.unwrap_or_default();
                self.log_event(RemoteLogSubject::Yard, event, None, line);
            }
            Some("replicas") => {
                self.show_replicas(event);
                if let Some(replicas) = ReplicaSummary::read(event) {
                    let line = format!("replicas: {}", replicas.line());
                    self.log_event(RemoteLogSubject::Yard, event, None, line);
                }
            }
            Some("lagged") => {
                let missed = event["missed"].as_u64().unwrap_or_default();
                self.log_event(
                    RemoteLogSubject::Yard,
                    event,
                    None,
                    format!("{missed} events were missed because the yard sends them too fast"),
                );
                self.shared.mark_stale(|stale| *stale = StaleLists::ALL);
            }
            _ => {}
        }
    }

    pub(super) fn show_replicas(&self, list: &Value) {
        self.link.try_notify(RemoteNotice::Replicas(ReplicaSummary::read(list)));
    }

    fn handle_call_started(&self, call: &Value) {
        let (Some(id), Some(subject)) = (call["id"].as_str(), call["subject"].as_str()) else { return };
        let is_here = call["replica"].as_str() == self.shared.lock().replica.as_deref();
        let is_own = call["front"] == "control" && is_here && self.link.take_announced(subject);
        if !is_own {
            return self.log_call(call, "started", call["startedAt"].as_str());
        }
        let own_calls = &mut self.shared.lock().own_calls;
        if own_calls.len() < MOST_CALLS {
            own_calls.insert(id.to_owned());
        }
    }

    fn handle_call_ended(&self, call: &Value) {
        let Some(id) = call["id"].as_str() else { return };
        if self.shared.lock().own_calls.remove(id) {
            return;
        }
        let duration = call["durationMs"].as_u64().unwrap_or_default();
        let error = call["error"].as_str().map(|error| format!(": {error}")).unwrap_or_default();
        let status = call["status"].as_str().unwrap_or("ended");
        let status = CallStatus::from_word(status).map_or(status, |known| known.as_str());
        self.log_call(call, &format!("{status} after {duration} ms{error}"), None);
    }

    fn log_call(&self, call: &Value, what: &str, at: Option<&str>) {
        let text = |key: &str| call[key].as_str().unwrap_or_default();
        let front = call["front"].as_str().map(|front| format!(" over {front}")).unwrap_or_default();
        let replica = call["replica"].as_str().map(|name| format!(" at {name}")).unwrap_or_default();
        let caller = text("principal");
        let line = format!("{} {} by {caller}{front}{replica} {what}", text("thing"), text("subject"));
        self.link.log(RemoteLogSubject::Call, call["serverName"].as_str(), parse_time_or_now(at), line);
    }

    fn log_event(&self, subject: RemoteLogSubject, event: &Value, source: Option<&str>, line: String) {
        self.link.log(subject, source, parse_time_or_now(event["at"].as_str()), line);
    }
}

fn parse_time_or_now(at: Option<&str>) -> SystemTime {
    at.and_then(|at| at.parse::<Timestamp>().ok()).map_or_else(SystemTime::now, |Timestamp(at)| at)
}
