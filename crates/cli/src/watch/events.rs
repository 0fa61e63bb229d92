//! Formats the events of a yard as readable lines or as lines of JSON. Control characters in text
//! from servers and clients never reach the terminal.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;
use toolyard_hub::{CallStatus, SourceState};
use toolyard_remote::ReplicaSummary;

use crate::clean::{clean_line, escape_json};

/// Calls beyond this number are not tracked while they run.
const MOST_CALLS: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineStyle {
    Plain,
    Colored,
}

/// Selects events by server. Tracks the server of every running call.
pub(super) struct EventFilter {
    server: Option<String>,
    calls: HashMap<String, String>,
}

impl EventFilter {
    pub(super) fn new(server: Option<String>) -> Self {
        Self { server, calls: HashMap::new() }
    }

    pub(super) fn is_wanted(&mut self, event: &Value) -> bool {
        let Some(server) = &self.server else { return true };
        let of_call = event["call"]["serverName"].as_str();
        match event["event"].as_str() {
            Some("server") => event["server"]["name"] == **server || event["serverName"] == **server,
            Some("resource" | "stderr") => event["serverName"] == **server,
            Some("call_started") => {
                let id = event["call"]["id"].as_str().unwrap_or_default().to_owned();
                if let Some(server) = of_call.filter(|_| self.calls.len() < MOST_CALLS) {
                    self.calls.insert(id, server.to_owned());
                }
                of_call == Some(server)
            }
            Some("call_progress") => event["id"].as_str().and_then(|id| self.calls.get(id)) == Some(server),
            Some("call_ended") => {
                event["call"]["id"].as_str().map(|id| self.calls.remove(id));
                of_call == Some(server)
            }
            Some("lagged") => true,
            _ => false,
        }
    }
}

/// Returns the received event as one line without control characters.
pub(super) fn sanitize_json(text: &str) -> Cow<'_, str> {
    escape_json(text)
}

/// Formats an event as a readable line.
pub(super) fn format_line(event: &Value, style: LineStyle) -> String {
    let text = |value: &Value| clean_line(value.as_str().unwrap_or_default());
    let name = text(&event["event"]);
    let (color, description) = match name.as_str() {
        "server" => {
            let server = &event["server"];
            if server.is_null() {
                (RED, format!("{} was removed", text(&event["serverName"])))
            } else {
                let state = text(&server["state"]);
                let known = SourceState::from_word(&state);
                let color = match known {
                    Some(SourceState::Ready) => GREEN,
                    Some(SourceState::Starting | SourceState::Disabled) => YELLOW,
                    _ => RED,
                };
                let state = known.map_or(state.as_str(), |known| known.label());
                let reason = format_reason(server);
                let elsewhere = format_elsewhere(state, &server["replicas"]);
                (color, format!("{} is {state}{reason}{elsewhere}", text(&server["name"])))
            }
        }
        "changed" => {
            let lists = ["tools", "resources", "prompts"].into_iter().filter(|list| event[*list] == true);
            (YELLOW, format!("lists changed: {}", lists.collect::<Vec<_>>().join(", ")))
        }
        "resource" => {
            (YELLOW, format!("{} of {} was updated", text(&event["uri"]), text(&event["serverName"])))
        }
        "call_started" => (BLUE, format_call(&event["call"])),
        "call_progress" => {
            let total = event["total"].as_f64().map(|total| format!(" of {total}")).unwrap_or_default();
            let message = event["message"].as_str().map(|message| format!(": {}", clean_line(message)));
            let id = text(&event["id"]);
            let replica = at_replica(event);
            let message = message.unwrap_or_default();
            (BLUE, format!("{}{replica} {}{total}{message}", short(&id), event["progress"]))
        }
        "call_ended" => {
            let status = text(&event["call"]["status"]);
            let known = CallStatus::from_word(&status);
            let color = if known == Some(CallStatus::Succeeded) { GREEN } else { RED };
            let status = known.map_or(status.as_str(), |known| known.as_str());
            let error = event["call"]["error"].as_str().map(|why| format!(": {}", clean_line(why)));
            let millis = &event["call"]["durationMs"];
            (
                color,
                format!(
                    "{} {status} after {millis} ms{}",
                    format_call(&event["call"]),
                    error.unwrap_or_default()
                ),
            )
        }
        "log" => {
            let level = text(&event["level"]);
            let color = if matches!(level.as_str(), "error" | "warn") { RED } else { GREY };
            let target = text(&event["target"]);
            (color, format!("{level} {target}{}: {}", at_replica(event), text(&event["message"])))
        }
        "stderr" => {
            let server = text(&event["serverName"]);
            (GREY, format!("{server}{}: {}", at_replica(event), text(&event["line"])))
        }
        "replicas" => {
            let summary = ReplicaSummary::read(event).unwrap_or_default();
            let color = if summary.problems.is_empty() { GREEN } else { RED };
            (color, clean_line(&summary.line()))
        }
        "lagged" => (RED, format!("{} events were dropped because they arrived too fast", event["missed"])),
        _ => (GREY, clean_line(&event.to_string())),
    };
    let at = text(&event["at"]);
    // The date is not needed while watching.
    let at = at.split_once('T').map_or(at.as_str(), |(_, time)| time.trim_end_matches('Z'));
    match style {
        LineStyle::Plain => format!("{at} {name:<13} {description}"),
        LineStyle::Colored => format!("{GREY}{at}{RESET} {color}{name:<13}{RESET} {description}"),
    }
}

const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const BLUE: &str = "\x1b[34m";
const GREY: &str = "\x1b[90m";
const RESET: &str = "\x1b[0m";

fn format_call(call: &Value) -> String {
    let text = |key: &str| call[key].as_str().map(clean_line).unwrap_or_default();
    let front = call["front"].as_str().map(|front| format!(" over {}", clean_line(front)));
    format!(
        "{} {} by {}{}{}",
        short(&text("id")),
        text("subject"),
        text("principal"),
        front.unwrap_or_default(),
        at_replica(call)
    )
}

/// Returns where it happened, if the yard has several replicas.
fn at_replica(event: &Value) -> String {
    event["replica"].as_str().map(|name| format!(" at {}", clean_line(name))).unwrap_or_default()
}

fn format_reason(server: &Value) -> String {
    server["reason"].as_str().map(|why| format!(": {}", clean_line(why))).unwrap_or_default()
}

/// Returns the states of a server at the replicas where it is in another one.
fn format_elsewhere(state: &str, replicas: &Value) -> String {
    let describe = |server: &Value| {
        let there = clean_line(server["state"].as_str()?);
        let there = SourceState::from_word(&there).map_or(there.as_str(), |known| known.label()).to_owned();
        let name = clean_line(server["name"].as_str()?);
        (there != state).then(|| format!("; {there} at {name}{}", format_reason(server)))
    };
    replicas.as_array().into_iter().flatten().filter_map(describe).collect()
}

/// Returns a short form of a call ID that still distinguishes calls.
fn short(id: &str) -> &str {
    let bare = id.strip_prefix("exec-").unwrap_or(id);
    bare.char_indices().nth(8).map_or(bare, |(end, _)| &bare[..end])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{EventFilter, LineStyle, format_line, sanitize_json};
    use crate::clean::is_deceptive;

    fn events() -> Vec<Value> {
        let at = "2026-11-15T12:00:01.250Z";
        let call = json!({
            "id": "exec-000102030405060708090a0b0c0d0eff", "thing": "tool", "subject": "mcp__files__read",
            "serverName": "files", "principal": "ada", "front": "mcp", "startedAt": at, "status": "running",
        });
        let mut over = call.clone();
        over["status"] = "failed".into();
        let mut at_replica = call.clone();
        at_replica["replica"] = "b\u{1b}".into();
        let elsewhere =
            json!([{"name": "b", "state": "failed", "reason": "no"}, {"name": "c", "state": "ready"}]);
        over["durationMs"] = 12.into();
        over["error"] = "no\u{1b}[2J such file\nat all".into();
        vec![
            json!({"event": "server", "server": {"name": "files", "state": "retrying", "reason": "it\u{9b}1m died"}}),
            json!({"event": "server", "serverName": "files", "gone": true}),
            json!({"event": "changed", "tools": true, "resources": false, "prompts": true}),
            json!({"event": "resource", "serverName": "files", "uri": "file:///a\u{202e}"}),
            json!({"event": "call_started", "call": call}),
            json!({"event": "call_progress", "id": call["id"], "progress": 1, "total": 4, "message": "\r\u{7}one"}),
            json!({"event": "call_ended", "call": over}),
            json!({"event": "log", "level": "warn", "target": "toolyard_hub", "message": "odd"}),
            json!({"event": "stderr", "serverName": "files", "line": "\u{1b}]0;title\u{7}"}),
            json!({"event": "lagged", "missed": 7}),
            json!({"event": "something new", "x": "\u{1b}"}),
            json!({"event": "call_started", "call": at_replica}),
            json!({"event": "call_progress", "id": call["id"], "progress": 1, "replica": "b"}),
            json!({"event": "stderr", "serverName": "files", "line": "odd", "replica": "b"}),
            json!({"event": "server", "server": {"name": "files", "state": "ready", "replicas": elsewhere}}),
            json!({"event": "replicas", "store": "unavailable", "replicas": [{"name": "a"}, {"name": "b", "state": "draining"}]}),
        ]
        .into_iter()
        .map(|mut event| {
            event["at"] = at.into();
            event
        })
        .collect()
    }

    #[test]
    fn every_event_is_one_line_that_no_terminal_obeys() {
        let lines: Vec<String> = events().iter().map(|event| format_line(event, LineStyle::Plain)).collect();
        assert!(lines.iter().all(|line| !line.contains(is_deceptive)));
        insta::assert_snapshot!(lines.join("\n"));
        let colored = format_line(&events()[2], LineStyle::Colored);
        assert_eq!(
            colored,
            "\x1b[90m12:00:01.250\x1b[0m \x1b[33mchanged      \x1b[0m lists changed: tools, prompts"
        );
    }

    #[test]
    fn words_of_older_yards_are_shown_as_todays() {
        let line = |event: Value| format_line(&event, LineStyle::Plain);
        let server = json!({"event": "server", "server": {"name": "files", "state": "backing_off"}});
        assert_eq!(line(server).trim(), "server        files is retrying");
        let call = json!({"id": "exec-1", "subject": "add", "principal": "ada", "status": "completed", "durationMs": 7});
        let call = json!({"event": "call_ended", "call": call});
        assert_eq!(line(call.clone()).trim(), "call_ended    1 add by ada succeeded after 7 ms");
        assert!(format_line(&call, LineStyle::Colored).contains("\x1b[32mcall_ended"));
    }

    #[test]
    fn json_is_one_line_and_says_the_same() {
        for event in events() {
            let text = serde_json::to_string_pretty(&event).unwrap();
            let line = sanitize_json(&text);
            assert!(!line.contains(is_deceptive), "{line:?}");
            assert!(!line.contains(['\u{1b}', '\u{9b}', '\u{202e}', '\n']), "{line:?}");
            assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), event);
        }
    }

    #[test]
    fn only_what_is_about_one_server_is_shown_where_that_is_wanted() {
        let shown = |server: Option<&str>| {
            let mut seen = EventFilter::new(server.map(str::to_owned));
            let names = events().into_iter().filter(|event| seen.is_wanted(event));
            names.map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(shown(None).len(), events().len());
        let of_files = [
            "server",
            "server",
            "resource",
            "call_started",
            "call_progress",
            "call_ended",
            "stderr",
            "lagged",
            "call_started",
            "call_progress",
            "stderr",
            "server",
        ];
        assert_eq!(shown(Some("files")), of_files);
        assert_eq!(shown(Some("other")), ["lagged"]);
    }
}
