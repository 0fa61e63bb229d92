//! A yard of fake servers, an app that shows it, and a simulated user who presses keys.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{
    AuthStatus, BoxFuture, CallTarget, HubError, Outcome, Principal, PromptOffer, ResourceOffer, Source,
    SourceCall, SourceName, SourceOffer, SourceState, SourceStatus, TemplateOffer, ToolListing, ToolOffer,
    Yard,
};

use crate::log::{UiLogEntry, UiLogKind};
use crate::watch::snapshot;
use crate::{
    App, CallId, ClockTime, ColorMode, Effect, KeyPress, UiCallUpdate, UiMessage, UiSettings, UiTestWriter,
};

/// A source that returns fixed data.
pub(super) struct Actor {
    name: SourceName,
    offer: Mutex<Arc<SourceOffer>>,
    status: Mutex<SourceStatus>,
}

impl Source for Actor {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.offer.lock())
    }

    fn status(&self) -> SourceStatus {
        self.status.lock().clone()
    }

    fn call<'a>(&'a self, _call: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(async { Ok(Outcome::success(to_raw(&json!({})))) })
    }
}

pub(super) fn tool(definition: &Value) -> ToolOffer {
    ToolOffer {
        definition: to_raw(definition),
        permissions: Vec::new(),
        metadata: Map::new(),
        hooks: Vec::new(),
        listing: ToolListing::Listed,
    }
}

/// A simulated user of the UI.
pub(super) struct Stage {
    pub(super) app: App,
    yard: Arc<Yard>,
    actors: Vec<Arc<Actor>>,
    base: Instant,
    /// The effects that the app requested, in order.
    pub(super) effects: Vec<Effect>,
}

/// The fixed time of all tests.
pub(super) fn wall() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000)
}

impl Stage {
    /// A yard without servers.
    pub(super) fn empty() -> Self {
        Self::with(UiSettings {
            call_args: vec!["--config".to_owned(), "yard.toml".to_owned()],
            yard: None,
            color: ColorMode::On,
            folder: "/nowhere".into(),
            test_writer: Some(UiTestWriter::new(|call| {
                format!("test of {} {}: {}", call.server, call.raw_name, call.result)
            })),
        })
    }

    /// A remote yard without servers.
    pub(super) fn elsewhere() -> Self {
        Self::with(UiSettings {
            yard: Some("http://127.0.0.1:8080/".to_owned()),
            folder: "/nowhere".into(),
            ..UiSettings::default()
        })
    }

    fn with(settings: UiSettings) -> Self {
        let yard = Yard::with_sources([]);
        let base = Instant::now();
        let now = ClockTime { instant: base + Duration::from_secs(65), wall: wall() };
        let app = App::new(settings, snapshot(&yard, &Principal::owner()), now);
        Self { app, yard, actors: Vec::new(), base, effects: Vec::new() }
    }

    /// The usual servers, one in every state.
    pub(super) fn usual() -> Self {
        let mut stage = Self::empty();
        stage.add("files", files(), |status| SourceStatus {
            transport: Some("stdio"),
            version: Some("2025-11-25"),
            era: Some("legacy"),
            ..status
        });
        stage.add("weather", weather(), |status| SourceStatus {
            transport: Some("streamable-http"),
            version: Some("2026-07-28"),
            era: Some("modern"),
            authorization: AuthStatus::OAuth,
            ..status
        });
        stage.add("chrome", chrome(), |status| status);
        stage.add("slow", SourceOffer::default(), |status| SourceStatus {
            state: SourceState::Starting,
            startup_complete: false,
            ..status
        });
        stage.add("github", SourceOffer::default(), |status| SourceStatus {
            state: SourceState::NeedsAuthorization,
            transport: Some("streamable-http"),
            authorization: AuthStatus::NotLoggedIn,
            reason: Some("authentication required".to_owned()),
            suggestion: Some("run `toolyard login github`".to_owned()),
            ..status
        });
        let retry = stage.base + Duration::from_secs(70);
        stage.add("broken", SourceOffer::default(), |status| SourceStatus {
            state: SourceState::Retrying,
            transport: Some("stdio"),
            reason: Some("node exited with code 1".to_owned()),
            stderr: [
                "loading",
                "Error: Cannot find module 'left-pad'",
                "  at \u{1b}[31mrequire\u{1b}[0m (node:internal)",
            ]
            .map(str::to_owned)
            .to_vec(),
            retry_at: Some(retry),
            ..status
        });
        stage.add("wrong", SourceOffer::default(), |status| SourceStatus {
            state: SourceState::Failed,
            reason: Some("the variable API_KEY is not set".to_owned()),
            ..status
        });
        stage.add("off", SourceOffer::default(), |status| SourceStatus {
            state: SourceState::Disabled,
            ..status
        });
        stage
    }

    pub(super) fn add(
        &mut self,
        name: &str,
        offer: SourceOffer,
        status: impl FnOnce(SourceStatus) -> SourceStatus,
    ) {
        let ready = SourceStatus { since: self.base, ..SourceStatus::new(SourceState::Ready, true) };
        let actor = Arc::new(Actor {
            name: SourceName::new(name),
            offer: Mutex::new(Arc::new(offer)),
            status: Mutex::new(status(ready)),
        });
        self.actors.push(Arc::clone(&actor));
        self.yard.add(actor);
        self.look();
    }

    fn actor(&self, name: &str) -> &Actor {
        self.actors.iter().find(|actor| actor.name.as_str() == name).unwrap()
    }

    /// Replaces what a server offers.
    pub(super) fn offers(&mut self, name: &str, offer: SourceOffer) {
        *self.actor(name).offer.lock() = Arc::new(offer);
        self.yard.refresh();
        self.look();
    }

    pub(super) fn becomes(&mut self, name: &str, state: SourceState, reason: &str) {
        {
            let mut status = self.actor(name).status.lock();
            status.state = state;
            status.reason = Some(reason.to_owned());
        }
        self.look();
    }

    fn look(&mut self) {
        self.tell(UiMessage::Yard(snapshot(&self.yard, &Principal::owner())));
    }

    pub(super) fn tell(&mut self, message: UiMessage) {
        self.effects.extend(self.app.update(message));
    }

    pub(super) fn key(&mut self, key: KeyPress) -> &mut Self {
        self.tell(UiMessage::Key(key));
        self
    }

    pub(super) fn keys(&mut self, keys: &[KeyPress]) -> &mut Self {
        for key in keys {
            self.key(*key);
        }
        self
    }

    pub(super) fn types(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            self.key(KeyPress::Char(c));
        }
        self
    }

    /// Opens the details of the tool of this name, starting at the server list.
    pub(super) fn at_tool(&mut self, name: &str) -> &mut Self {
        self.key(KeyPress::Enter)
            .key(KeyPress::Char('/'))
            .types(name)
            .keys(&[KeyPress::Enter, KeyPress::Enter])
    }

    /// Advances the clock by seconds.
    pub(super) fn later(&mut self, seconds: u64) {
        let instant = self.base + Duration::from_secs(65 + seconds);
        self.tell(UiMessage::Tick(ClockTime { instant, wall: wall() + Duration::from_secs(seconds) }));
    }

    /// Returns the last call that the app requested.
    pub(super) fn call(&self) -> (CallId, String, String) {
        let called = self.effects.iter().rev().find_map(|effect| match effect {
            Effect::Call(id, what) => Some((*id, what)),
            _ => None,
        });
        let (id, what) = called.expect("a call was requested");
        let arguments = match what {
            CallTarget::Tool { arguments, .. } | CallTarget::Prompt { arguments, .. } => arguments.as_ref(),
            CallTarget::Resource { .. } | CallTarget::Completion { .. } => None,
        };
        (id, what.subject().to_owned(), arguments.map(|raw| raw.get().to_owned()).unwrap_or_default())
    }

    pub(super) fn news(&mut self, news: UiCallUpdate) {
        let (id, ..) = self.call();
        self.tell(UiMessage::Call(id, news));
    }

    pub(super) fn answers(&mut self, body: &Value) {
        self.news(UiCallUpdate::Ended(Ok(Outcome::success(to_raw(body))), Duration::from_millis(42)));
    }

    pub(super) fn answers_text(&mut self, body: String) {
        self.news(UiCallUpdate::Ended(Ok(Outcome::success(from_text(body))), Duration::from_millis(42)));
    }

    pub(super) fn fails(&mut self, error: HubError) {
        self.news(UiCallUpdate::Ended(Err(error), Duration::from_millis(1_500)));
    }

    pub(super) fn logs(&mut self, lines: &[(UiLogKind, Option<&str>, &str)]) {
        let entry = |(kind, source, text): &(UiLogKind, Option<&str>, &str)| UiLogEntry {
            at: wall(),
            kind: *kind,
            source: source.map(str::to_owned),
            text: (*text).to_owned(),
        };
        self.tell(UiMessage::LogEntries(lines.iter().map(entry).collect()));
    }

    /// Returns the screen of a terminal of this size, including the cursor.
    pub(super) fn screen(&mut self, columns: u16, lines: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(columns, lines)).unwrap();
        terminal.draw(|frame| self.app.draw(frame)).unwrap();
        let buffer = terminal.backend().buffer();
        let mut screen = Vec::new();
        for y in 0..lines {
            let mut line = String::new();
            let mut x = 0;
            while x < columns {
                let symbol = buffer[(x, y)].symbol();
                line.push_str(symbol);
                // A wide character also covers the next column.
                x += u16::try_from(crate::text::width(symbol)).unwrap().max(1);
            }
            screen.push(line.trim_end().to_owned());
        }
        screen.join("\n")
    }
}

fn files() -> SourceOffer {
    let path = json!({"type": "string", "description": "Where the file is"});
    SourceOffer {
        tools: vec![
            tool(&json!({
                "name": "read_file",
                "title": "Read a file",
                "description": "Reads a file as text.\nOnly the beginning, if you say so.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "head": {"type": "integer", "description": "How many lines", "minimum": 1, "default": 20},
                        "path": path,
                    },
                    "required": ["path"],
                },
                "annotations": {"readOnlyHint": true},
            })),
            tool(&json!({
                "name": "write_file",
                "description": "Writes a file, replacing whatever is there.",
                "inputSchema": {
                    "type": "object",
                    "properties": {
                        "path": path,
                        "text": {"type": "string"},
                        "options": {
                            "type": "object",
                            "description": "How it is written",
                            "properties": {
                                "mode": {"type": "string", "enum": ["create", "append", "replace"], "default": "create"},
                                "backup": {"type": "boolean"},
                            },
                        },
                        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                    },
                    "required": ["path", "text"],
                },
                "annotations": {"readOnlyHint": false, "destructiveHint": true},
            })),
            tool(&json!({"name": "list_roots", "description": "Lists the folders that may be read.",
                "inputSchema": {"type": "object", "properties": {}}, "annotations": {"readOnlyHint": true}})),
        ],
        resources: [("file:///notes.txt", "Notes", "text/plain"), ("file:///logo.png", "Logo", "image/png")]
            .map(|(uri, name, mime)| ResourceOffer {
                definition: to_raw(&json!({"uri": uri, "name": name, "mimeType": mime, "size": 2048, "description": format!("The {name}")})),
                permissions: Vec::new(),
            })
            .to_vec(),
        templates: vec![TemplateOffer {
            definition: to_raw(&json!({"uriTemplate": "file:///{path}{?lines}", "name": "Any file", "description": "A file by its path"})),
            permissions: Vec::new(),
        }],
        prompts: vec![
            PromptOffer {
                definition: to_raw(&json!({
                    "name": "summarise",
                    "description": "Asks for a summary of a file",
                    "arguments": [
                        {"name": "style", "description": "Short or long"},
                        {"name": "path", "description": "Which file", "required": true},
                    ],
                })),
                permissions: Vec::new(),
            },
            PromptOffer { definition: to_raw(&json!({"name": "greet"})), permissions: Vec::new() },
        ],
        ..SourceOffer::default()
    }
}

fn weather() -> SourceOffer {
    let forecast = json!({
        "name": "forecast",
        "description": "The weather of the next days.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit", "kelvin"], "default": "celsius"},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
                "place": {
                    "type": "object",
                    "description": "Where",
                    "properties": {"city": {"type": "string"}, "country": {"type": ["string", "null"], "maxLength": 2}},
                    "required": ["city"],
                },
            },
            "required": ["place", "days"],
        },
        "outputSchema": {"type": "object", "properties": {"days": {"type": "array", "items": {"type": "object"}}}, "required": ["days"]},
    });
    SourceOffer { tools: vec![tool(&forecast)], ..SourceOffer::default() }
}

/// The tool of the well-known example.
fn chrome() -> SourceOffer {
    let definition = json!({
        "name": "javascript_tool",
        "description": "Execute JavaScript code in the context of the current page...",
        "inputSchema": {
            "type": "object",
            "properties": {
                "action": {"type": "string", "description": "Must be set to 'javascript_exec'"},
                "text": {"type": "string", "description": "The JavaScript code to execute..."},
                "tabId": {"type": "number", "description": "Tab ID to execute the code in..."},
            },
            "required": ["action", "text", "tabId"],
        },
    });
    SourceOffer { tools: vec![tool(&definition)], ..SourceOffer::default() }
}
