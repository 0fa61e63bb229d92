//! Validates every server message against the JSON Schema of the negotiated protocol version.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use jsonschema::Validator;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::message::Message;
use super::version::Version;

static SCHEMAS: LazyLock<HashMap<Version, Value>> = LazyLock::new(|| {
    let read = |text: &str| serde_json::from_str(text).unwrap();
    HashMap::from([
        (Version::V2024_11_05, read(include_str!("../../../../tests/data/mcp-schema/2024-11-05.json"))),
        (Version::V2025_03_26, read(include_str!("../../../../tests/data/mcp-schema/2025-03-26.json"))),
        (Version::V2025_06_18, read(include_str!("../../../../tests/data/mcp-schema/2025-06-18.json"))),
        (Version::V2025_11_25, read(include_str!("../../../../tests/data/mcp-schema/2025-11-25.json"))),
        (Version::V2026_07_28, read(include_str!("../../../../tests/data/mcp-schema/2026-07-28.json"))),
    ])
});

type Validators = Mutex<HashMap<(Version, &'static str), Arc<Validator>>>;
static VALIDATORS: LazyLock<Validators> = LazyLock::new(Mutex::default);

/// Checks the messages of one server. It remembers the requests, because an answer does not name
/// its method.
pub struct Checker {
    version: Version,
    methods: Mutex<HashMap<String, String>>,
}

impl Checker {
    pub fn new(version: Version) -> Self {
        Self { version, methods: Mutex::default() }
    }

    /// Remembers a message of the client. Ignores anything else, because tests also send invalid
    /// input.
    pub fn record_sent(&self, text: &str) {
        match serde_json::from_str(text) {
            Ok(Value::Array(batch)) => batch.iter().for_each(|message| self.record_request(message)),
            Ok(message) => self.record_request(&message),
            Err(_) => {}
        }
    }

    fn record_request(&self, message: &Value) {
        if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
            self.methods.lock().insert(id.to_string(), method.to_owned());
        }
    }

    /// Reads and checks one message, or one batch, from the server.
    pub fn read(&self, text: &str) -> Message {
        let message = Message::new(text);
        match &message.value {
            Value::Array(batch) => batch.iter().for_each(|message| self.check(message)),
            one => self.check(one),
        }
        message
    }

    fn check(&self, message: &Value) {
        let modern_names = self.version >= Version::V2025_11_25;
        if message.get("method").is_some() {
            let (envelope, known) = match message.get("id") {
                Some(_) => ("JSONRPCRequest", "ServerRequest"),
                None => ("JSONRPCNotification", "ServerNotification"),
            };
            self.assert_valid(envelope, message);
            self.assert_valid(known, message);
        } else if message.get("result").is_some() {
            self.assert_valid(
                if modern_names { "JSONRPCResultResponse" } else { "JSONRPCResponse" },
                message,
            );
            let method = self.methods.lock().get(&message["id"].to_string()).cloned();
            let method = method.unwrap_or_else(|| panic!("an answer without a request: {message}"));
            self.assert_valid(self.result_definition(&method, &message["result"]), &message["result"]);
        } else if modern_names {
            self.assert_valid("JSONRPCErrorResponse", message);
        } else if message.get("id").is_some() {
            self.assert_valid("JSONRPCError", message);
        } else {
            // The older schemas do not define an error whose request has no readable id.
            let mut with_id = message.clone();
            with_id["id"] = json!(0);
            self.assert_valid("JSONRPCError", &with_id);
        }
    }

    fn result_definition(&self, method: &str, result: &Value) -> &'static str {
        if self.version.is_modern() && result["resultType"] == "input_required" {
            return "InputRequiredResult";
        }
        match method {
            "initialize" => "InitializeResult",
            "server/discover" => "DiscoverResult",
            "subscriptions/listen" => "SubscriptionsListenResult",
            "tools/list" => "ListToolsResult",
            "tools/call" => "CallToolResult",
            "resources/list" => "ListResourcesResult",
            "resources/templates/list" => "ListResourceTemplatesResult",
            "resources/read" => "ReadResourceResult",
            "prompts/list" => "ListPromptsResult",
            "prompts/get" => "GetPromptResult",
            "completion/complete" => "CompleteResult",
            _ => "EmptyResult",
        }
    }

    fn assert_valid(&self, definition: &'static str, value: &Value) {
        let errors: Vec<String> = validator(self.version, definition)
            .iter_errors(value)
            .map(|error| format!("  at {:?}: {error}", error.instance_path().to_string()))
            .collect();
        assert!(errors.is_empty(), "not a {definition} of {}: {value}\n{}", self.version, errors.join("\n"));
    }
}

fn validator(version: Version, definition: &'static str) -> Arc<Validator> {
    let mut validators = VALIDATORS.lock();
    let made = validators.entry((version, definition)).or_insert_with(|| {
        let mut schema = SCHEMAS[&version].clone();
        let home = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        assert!(schema[home].get(definition).is_some(), "{version} has no {definition}");
        schema["$ref"] = json!(format!("#/{home}/{definition}"));
        Arc::new(jsonschema::validator_for(&schema).unwrap())
    });
    Arc::clone(made)
}

#[cfg(test)]
mod tests {
    use super::{Checker, Version};

    fn caught(version: Version, message: &str) -> bool {
        let checker = Checker::new(version);
        checker.record_sent(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(checker.read(message)))).is_err()
    }

    #[test]
    fn messages_that_break_the_schema_are_caught_in_every_version() {
        for version in Version::ALL {
            for wrong in [
                r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}"#,
                r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text"}]}}"#,
                r#"{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}"#,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"y"}}"#,
                r#"{"jsonrpc":"2.0","error":{"message":"y"}}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/unheard"}"#,
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
                r#"{"id":1,"result":{"resultType":"complete","content":[]}}"#,
            ] {
                assert!(caught(version, wrong), "{version} {wrong}");
            }
            let right = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}"#;
            assert!(!caught(version, right), "{version}");
        }
    }
}
