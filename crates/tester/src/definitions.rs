//! The definitions of the nine tools. Their texts and schemas are a contract and live in
//! `definitions.json`.

use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Raw, Schema, SchemaViolation, SourceOffer, ToolListing, ToolOffer};

static TEXT: &str = include_str!("definitions.json");

static DEFINITIONS: LazyLock<Vec<Raw>> = LazyLock::new(|| {
    // The file is part of the crate, and a test parses all of it.
    serde_json::from_str(TEXT).unwrap_or_default()
});

/// One of the nine tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TesterTool {
    ConnectToServer,
    Disconnect,
    GetConnectionStatus,
    ListTools,
    CallTool,
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

impl TesterTool {
    pub(crate) const ALL: [Self; 9] = [
        Self::ConnectToServer,
        Self::Disconnect,
        Self::GetConnectionStatus,
        Self::ListTools,
        Self::CallTool,
        Self::ListResources,
        Self::ReadResource,
        Self::ListPrompts,
        Self::GetPrompt,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ConnectToServer => "connect_to_server",
            Self::Disconnect => "disconnect",
            Self::GetConnectionStatus => "get_connection_status",
            Self::ListTools => "list_tools",
            Self::CallTool => "call_tool",
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }

    fn definition(self) -> Object {
        #[derive(Deserialize)]
        struct DefinitionName {
            name: String,
        }
        let is_this = |text: &&Raw| {
            serde_json::from_str::<DefinitionName>(text.get()).is_ok_and(|named| named.name == self.name())
        };
        let found = DEFINITIONS.iter().find(is_this);
        found.and_then(|text| Object::parse(text).ok()).unwrap_or_default()
    }

    /// Returns the advertised schema of its arguments.
    pub(crate) fn input_schema(self) -> Raw {
        self.definition().remove("inputSchema").unwrap_or_else(|| to_raw(&json!({})))
    }

    /// Returns a part of its return schema, addressed by a path of keys.
    pub(crate) fn output_schema_part(self, path: &[&str]) -> Schema {
        let mut at = self.definition().remove("outputSchema");
        for key in path {
            at = at.and_then(|schema| Object::parse(&schema).ok()?.remove(key));
        }
        Schema::new(at.unwrap_or_else(|| to_raw(&true)))
    }
}

/// Returns where an object from the server violates a part of the return schema. Checks only the
/// keys that the schema names, because other values may contain numbers that cannot be parsed
/// without loss.
pub(crate) fn contract_violations(part: &Schema, given: &RawValue) -> Vec<SchemaViolation> {
    #[derive(Deserialize)]
    struct SchemaProperties {
        properties: Map<String, Value>,
    }
    let keys = serde_json::from_str::<SchemaProperties>(part.text().get())
        .map(|part| part.properties)
        .unwrap_or_default();
    let Ok(object) = Object::parse(given) else { return part.violations(given) };
    let mut outline = Object::default();
    for (key, value) in object.members().filter(|(key, _)| keys.contains_key(*key)) {
        let readable = serde_json::from_str::<Value>(value.get()).is_ok();
        let stands_for = match value.get().as_bytes().first() {
            Some(b'{') if !readable => to_raw(&json!({})),
            Some(b'[') if !readable => to_raw(&json!([])),
            _ => value.to_owned(),
        };
        outline.set(key, stands_for);
    }
    part.violations(&outline.to_raw())
}

/// Returns the definitions of all tools.
pub(crate) fn offer() -> Arc<SourceOffer> {
    let tool = |definition: &Raw| ToolOffer {
        definition: definition.clone(),
        permissions: Vec::new(),
        metadata: Map::new(),
        hooks: Vec::new(),
        listing: ToolListing::Listed,
    };
    Arc::new(SourceOffer { tools: DEFINITIONS.iter().map(tool).collect(), ..SourceOffer::default() })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{DEFINITIONS, TEXT, TesterTool};

    /// The JSON blocks of the specification of these tools.
    static SPEC: &str = include_str!("../../../tests/data/spec/tester-tools.json");

    #[test]
    fn every_verb_has_a_definition_and_the_other_way_round() {
        let defined: Vec<Value> = serde_json::from_str(TEXT).unwrap();
        let names: Vec<&str> = defined.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, TesterTool::ALL.map(TesterTool::name));
        assert_eq!(DEFINITIONS.len(), 9);
    }

    #[test]
    fn definitions_are_those_of_the_document_but_for_the_line_about_local_servers() {
        let spec: Value = serde_json::from_str(SPEC).unwrap();
        let prefix = spec["prefix"].as_str().unwrap();
        let defined: Vec<Value> = serde_json::from_str(TEXT).unwrap();
        let specified = spec["tools"].as_array().unwrap();
        assert_eq!(specified.len(), defined.len());
        for (specified, defined) in specified.iter().zip(&defined) {
            let name = defined["name"].as_str().unwrap();
            assert_eq!(specified["name"], format!("{prefix}{name}"));
            assert_eq!(specified["inputSchema"].to_string(), defined["inputSchema"].to_string(), "{name}");
            assert_eq!(specified["returnSchema"].to_string(), defined["outputSchema"].to_string(), "{name}");
            let (theirs, ours) = (text(&specified["description"]), text(&defined["description"]));
            let differ: Vec<(&str, &str)> =
                theirs.lines().zip(ours.lines()).filter(|(theirs, ours)| theirs != ours).collect();
            match name {
                "connect_to_server" => {
                    assert_eq!(theirs.lines().count(), ours.lines().count());
                    let [(theirs, ours)] = differ.as_slice() else { panic!("{differ:?}") };
                    assert_eq!(*theirs, "For local servers, this will be implemented in Phase 2.");
                    assert!(ours.starts_with("For local servers, provide the command line"), "{ours}");
                }
                _ => assert_eq!(theirs, ours, "{name}"),
            }
        }
    }

    fn text(value: &Value) -> &str {
        value.as_str().unwrap()
    }
}
