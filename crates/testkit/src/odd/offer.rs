//! What the misbehaving servers offer. Definitions are text, so that nothing normalizes them.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::rpc::{Params, Reply, Server};
use super::{Eras, Kind};
use crate::probe::ODD_DEFINITION;

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const MODERN: &str = "2026-07-28";

impl Server {
    pub(super) fn initialize_result(&self, params: &Params) -> String {
        let version = params.protocol_version.as_deref().filter(|version| LEGACY.contains(version));
        let version = version.unwrap_or(LEGACY[LEGACY.len() - 1]);
        let (info, capabilities) = (self.info(), self.capabilities());
        let more = self.unknown_keys();
        format!(
            r#"{{{more}"serverInfo":{info},"protocolVersion":"{version}","capabilities":{capabilities}}}"#
        )
    }

    pub(super) fn discover_result(&self) -> String {
        let mut versions = vec![MODERN];
        if self.kind().eras() == Eras::Both {
            versions.extend(LEGACY);
        }
        let (info, capabilities, versions) = (self.info(), self.capabilities(), json!(versions));
        let meta = format!(r#"{{"io.modelcontextprotocol/serverInfo":{info}}}"#);
        let more = self.unknown_keys();
        format!(r#"{{{more}"supportedVersions":{versions},"capabilities":{capabilities},"_meta":{meta}}}"#)
    }

    fn info(&self) -> Value {
        json!({"name": format!("odd-{}", self.kind()), "version": "1"})
    }

    fn capabilities(&self) -> Value {
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if self.kind().is_rich() {
            capabilities["resources"] = json!({});
            capabilities["prompts"] = json!({});
        }
        if self.kind() == Kind::Subscribable {
            capabilities["resources"] = json!({"subscribe": true});
        }
        if self.kind() == Kind::UnknownKeys {
            capabilities["x-unknown"] = json!({"since": 9_007_199_254_740_993_u64});
        }
        capabilities
    }

    /// Returns unknown keys for the start of an object.
    fn unknown_keys(&self) -> &'static str {
        if self.kind() == Kind::UnknownKeys { r#""x-unknown":{"z":9007199254740993,"a":null},"# } else { "" }
    }

    /// Answers every method except calls.
    pub(super) fn answer_other(&self, method: &str, params: &Params) -> Reply {
        match method {
            "tools/list" => self.list_tools(params),
            "resources/list" if self.kind().is_rich() => {
                self.page("resources", &self.named(resource, 3), params)
            }
            "resources/templates/list" if self.kind().is_rich() => {
                self.page("resourceTemplates", &self.named(template, 2), params)
            }
            "prompts/list" if self.kind().is_rich() => self.page("prompts", &self.named(prompt, 3), params),
            "resources/read" if self.kind() == Kind::IllTyped => {
                Reply::Result(r#"{"contents":[{"uri":5,"mimeType":["text"],"text":"words"}]}"#.to_owned())
            }
            "prompts/get" if self.kind() == Kind::IllTyped => {
                Reply::Result(r#"{"messages":[{"role":"user","content":["words"]}]}"#.to_owned())
            }
            "resources/read" if self.kind().is_rich() && params.uri.starts_with("odd://") => {
                let contents = json!([{"uri": params.uri, "text": format!("the text of {}", params.uri)}]);
                Reply::Result(format!(r#"{{{}"contents":{contents}}}"#, self.unknown_keys()))
            }
            "prompts/get" if self.kind().is_rich() => {
                let content = json!({"type": "text", "text": format!("the prompt {}", params.name)});
                let messages = json!([{"role": "user", "content": content}]);
                Reply::Result(format!(r#"{{{}"messages":{messages}}}"#, self.unknown_keys()))
            }
            _ => Reply::Error(-32601, format!("no such method: {method}")),
        }
    }

    fn list_tools(&self, params: &Params) -> Reply {
        let before = match params.cursor {
            None => self.listed.fetch_add(1, Ordering::Relaxed),
            Some(_) => self.listed.load(Ordering::Relaxed).saturating_sub(1),
        };
        match self.kind() {
            Kind::EndlessPages => endless(params),
            Kind::EndlessLater if before > 0 => endless(params),
            Kind::HangsLater if before > 0 => Reply::Silence,
            Kind::Dual => self.page("tools", &dual_tools(params.is_modern()), params),
            _ => self.page("tools", &self.tools(), params),
        }
    }

    fn named(&self, make: fn(u64, &str) -> String, number: u64) -> Vec<String> {
        (1..=number).map(|number| make(number, self.unknown_keys())).collect()
    }

    /// Returns a list, or one page of it.
    fn page(&self, key: &str, items: &[String], params: &Params) -> Reply {
        let more = self.unknown_keys();
        if self.kind() != Kind::Pages {
            return Reply::Result(format!(r#"{{{more}"{key}":[{}]}}"#, items.join(",")));
        }
        let at: usize = match params.cursor.as_deref().map(str::parse) {
            None => 0,
            Some(Ok(at)) if at < items.len() => at,
            Some(_) => return Reply::Error(-32602, "no such cursor".to_owned()),
        };
        let next =
            if at + 1 < items.len() { format!(r#","nextCursor":"{}""#, at + 1) } else { String::new() };
        Reply::Result(format!(r#"{{"{key}":[{}]{next}}}"#, items[at]))
    }

    fn tools(&self) -> Vec<String> {
        let mut tools = vec![tool("echo"), tool("requests")];
        tools.extend(match self.kind() {
            Kind::Pages => ["first", "second", "third"].map(tool).to_vec(),
            Kind::UnknownKeys => vec![ODD_DEFINITION.to_owned()],
            Kind::NullSchema => vec![with_schema("null_schema", "null")],
            Kind::BadSchema => vec![with_schema("bad_schema", BAD)],
            Kind::ArrayOutput => {
                let array = r#"{"type":"array","items":{"type":"integer"}}"#;
                vec![format!(
                    r#"{{"name":"array","inputSchema":{{"type":"object"}},"outputSchema":{array}}}"#
                )]
            }
            Kind::LongName => vec![tool(&long_name())],
            Kind::ClashingNames => ["read.file", "read file"].map(tool).to_vec(),
            Kind::OddContent => ["hologram", "list_tools"].map(tool).to_vec(),
            Kind::ProgressThenSilence => ["silence", "steady"].map(tool).to_vec(),
            Kind::ExitsMidCall => vec![tool("exit")],
            Kind::NeverAnswers => vec![tool("never")],
            Kind::Huge => vec![tool("huge")],
            Kind::Changes => vec![tool(&format!("tool_{}", self.seen.starts)), tool("exit")],
            Kind::Subscribable => ["subscriptions", "exit"].map(tool).to_vec(),
            Kind::Asks => ["elicit", "sample", "roots", "everything", "wait"].map(tool).to_vec(),
            Kind::AsksItself => ["told", "wait"].map(tool).to_vec(),
            Kind::CountsSessions => vec![tool("sessions")],
            Kind::Financials => vec![spec_tool("found")],
            Kind::Documents => vec![spec_tool("noSchema")],
            Kind::WrongOutput => ["wrong", "missing"].map(with_output).to_vec(),
            Kind::Hostile => HOSTILE.map(tool).to_vec(),
            Kind::IllTyped => {
                vec![r#"{"name":"typed","description":5,"inputSchema":{}}"#.to_owned(), "7".to_owned()]
            }
            _ => Vec::new(),
        });
        tools
    }
}

/// Returns the tools of `dual` in the given era.
fn dual_tools(is_modern: bool) -> Vec<String> {
    let of_era: &[&str] = if is_modern { &["modern_tool"] } else { &["poll", "legacy_tool"] };
    ["echo", "requests", "elicit", "sample"].iter().chain(of_era).map(|name| tool(name)).collect()
}

/// Returns a tool of the document about `inspect_tool`, as its server would advertise it.
fn spec_tool(which: &str) -> String {
    let document: Value = serde_json::from_str(include_str!("../../../../tests/data/spec/inspect-tool.json"))
        .unwrap_or_default();
    let shown = &document[which];
    let name = shown["name"].as_str().and_then(|name| name.rsplit("__").next()).unwrap_or_default();
    let mut tool =
        json!({"name": name, "description": shown["description"], "inputSchema": shown["inputSchema"]});
    if !shown["outputSchema"].is_null() {
        tool["outputSchema"] = shown["outputSchema"].clone();
    }
    tool.to_string()
}

/// Tool names as JSON text: emoji, a right-to-left script, a direction override, and terminal
/// control sequences.
pub(super) const HOSTILE: [&str; 4] =
    ["🔥_party_👩‍👩‍👧", "أداة", r"safe\u202eelif_eteled", r"clear\u001b[2J\u009b31m\u0007screen"];

/// A schema that is a JSON object but invalid.
const BAD: &str =
    r#"{"type":"object","properties":{"a":{"type":"strin"},"b":{"pattern":"("}},"required":"a"}"#;

pub(super) fn long_name() -> String {
    "long_".chars().cycle().take(200).collect()
}

/// Returns a page of one megabyte with the cursor of the next page.
fn endless(params: &Params) -> Reply {
    let at: u64 = params.cursor.as_deref().and_then(|cursor| cursor.parse().ok()).unwrap_or_default();
    let text = "x".repeat(1_000_000);
    let tool = format!(r#"{{"name":"t{at}","description":"{text}","inputSchema":{{"type":"object"}}}}"#);
    Reply::Result(format!(r#"{{"tools":[{tool}],"nextCursor":"{}"}}"#, at + 1))
}

fn tool(name: &str) -> String {
    with_schema(name, r#"{"type":"object"}"#)
}

fn with_schema(name: &str, schema: &str) -> String {
    format!(r#"{{"name":"{name}","description":"The tool {name}.","inputSchema":{schema}}}"#)
}

fn with_output(name: &str) -> String {
    let output = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}},"outputSchema":{output}}}"#)
}

fn resource(number: u64, more: &str) -> String {
    format!(r#"{{{more}"uri":"odd://{number}","name":"resource {number}"}}"#)
}

fn template(number: u64, more: &str) -> String {
    format!(r#"{{{more}"uriTemplate":"odd://{number}/{{word}}","name":"template {number}"}}"#)
}

fn prompt(number: u64, more: &str) -> String {
    format!(r#"{{{more}"name":"prompt_{number}","description":"The prompt {number}."}}"#)
}
