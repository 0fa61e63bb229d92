//! What happens in the yard that is mirrored: taken over where it is about its servers, told for the log where it is not.
//! Our own calls are told by the hub already.

use std::time::SystemTime;

use serde_json::Value;
use toolyard_hub::{CallStatus, Timestamp};

use super::{RemoteLogSubject, RemoteServerInfo, RemoteSync, StaleLists};

/// More calls than this are not remembered while they run.
const MOST_CALLS: usize = 10_000;

impl RemoteSync {
    /// Takes an event in. Nothing is waited for.
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
                Ok(shown) => self.set_server(shown),
                Err(_) => self.shared.mark_stale(|stale| stale.servers = true),
            },
            Some("changed") => self.shared.mark_stale(|stale| {
                stale.tools |= event["tools"] == true;
                stale.resources |= event["resources"] == true;
                stale.prompts |= event["prompts"] == true;
            }),
            Some("resource") => {
                if let Some(server) = server.and_then(|name| self.shared.server(name)) {
                    server.notify(|feed| feed.resource_updated(&text(&event["uri"])));
                }
            }
            Some("stderr") => {
                if let Some(server) = server.and_then(|name| self.shared.server(name)) {
                    server.add_stderr(&text(&event["line"]));
                }
            }
            Some("call_started") => self.handle_call_started(&event["call"]),
            Some("call_ended") => self.handle_call_ended(&event["call"]),
            Some("log") => {
                let line = [&event["level"], &event["target"], &event["message"]].map(text).join(" ");
                self.log_event(RemoteLogSubject::Yard, event, None, line);
            }
            Some("lagged") => {
                let missed = event["missed"].as_u64().unwrap_or_default();
                self.log_event(
                    RemoteLogSubject::Yard,
                    event,
                    None,
                    format!("{missed} events were missed: too much happens at once"),
                );
                self.shared.mark_stale(|stale| *stale = StaleLists::ALL);
            }
            _ => {}
        }
    }

    fn handle_call_started(&self, call: &Value) {
        let (Some(id), Some(subject)) = (call["id"].as_str(), call["subject"].as_str()) else { return };
        let ours = call["front"] == "control" && self.link.take_announced(subject);
        if !ours {
            return self.log_call(call, "is called", call["startedAt"].as_str());
        }
        let own = &mut self.shared.lock().own_calls;
        if own.len() < MOST_CALLS {
            own.insert(id.to_owned());
        }
    }

    fn handle_call_ended(&self, call: &Value) {
        let Some(id) = call["id"].as_str() else { return };
        if self.shared.lock().own_calls.remove(id) {
            return;
        }
        let took = call["durationMs"].as_u64().unwrap_or_default();
        let why = call["error"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        let status = call["status"].as_str().unwrap_or("over");
        let status = CallStatus::from_word(status).map_or(status, |known| known.as_str());
        self.log_call(call, &format!("{status} after {took} ms{why}"), None);
    }

    fn log_call(&self, call: &Value, what: &str, at: Option<&str>) {
        let text = |key: &str| call[key].as_str().unwrap_or_default();
        let front = call["front"].as_str().map(|front| format!(" over {front}")).unwrap_or_default();
        let line = format!("{} {} by {}{front} {what}", text("thing"), text("subject"), text("principal"));
        self.link.log(RemoteLogSubject::Call, call["serverName"].as_str(), parse_time_or_now(at), line);
    }

    fn log_event(&self, subject: RemoteLogSubject, event: &Value, source: Option<&str>, line: String) {
        self.link.log(subject, source, parse_time_or_now(event["at"].as_str()), line);
    }
}

fn parse_time_or_now(at: Option<&str>) -> SystemTime {
    at.and_then(|at| at.parse::<Timestamp>().ok()).map_or_else(SystemTime::now, |Timestamp(at)| at)
}
