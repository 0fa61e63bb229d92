//! The product as a client in each scenario of the client mode of the conformance suite.

mod browser;
mod connection;

use serde_json::{Map, Value, json};
use toolyard_hub::Secret;
use toolyard_upstream::{OAuthSettings, ServerAuthSettings};

use connection::{Connection, parse_definition};

pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// One run of the suite.
#[derive(Debug)]
pub struct Scenario {
    name: String,
    /// What the suite passes in addition to the address.
    context: Value,
    url: String,
}

impl Scenario {
    pub fn new(name: String, context: &str, url: String) -> Result<Self, Failure> {
        Ok(Self { name, context: serde_json::from_str(context)?, url })
    }

    fn context_text(&self, key: &str) -> Option<String> {
        self.context.get(key).and_then(Value::as_str).map(str::to_owned)
    }

    /// Returns how the client authenticates: with the suite's credentials, or as the server
    /// demands.
    fn auth(&self) -> ServerAuthSettings {
        let secret = self.context_text("client_secret").or_else(|| self.context_text("private_key_pem"));
        let Some(client_id) = self.context_text("client_id") else { return ServerAuthSettings::OnChallenge };
        ServerAuthSettings::OAuth(OAuthSettings {
            client_id: Some(client_id),
            client_secret: secret.map(Secret::new),
            client_credentials: self.name.starts_with("auth/client-credentials"),
            ..OAuthSettings::default()
        })
    }
}

/// Scenarios in which a correct client refuses to continue because the server is at fault.
const REFUSALS: [&str; 7] = [
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
];

/// Does what the scenario expects. Fails if the server does not do its part.
pub async fn run(scenario: &Scenario) -> Result<(), Failure> {
    let connected = Connection::open(&scenario.url, scenario.auth()).await;
    if REFUSALS.contains(&scenario.name.as_str()) {
        return match connected {
            Ok(_) => Err("connected to a server that must not be trusted".into()),
            Err(_) => Ok(()),
        };
    }
    let connection = connected?;
    match scenario.name.as_str() {
        "http-standard-headers" => exercise_all(&connection).await?,
        "http-custom-headers" => call_requested_tools(&connection, scenario).await?,
        "json-schema-ref-no-deref" | "request-metadata" | "initialize" => {}
        "json-schema-2020-12-preservation" => echo(&connection).await?,
        "sep-2322-client-request-state" => call_during_question(&connection).await?,
        _ => call_every_tool(&connection).await?,
    }
    connection.close().await;
    Ok(())
}

async fn call_every_tool(connection: &Connection) -> Result<(), Failure> {
    for tool in connection.tools() {
        connection.call_tool(&tool.name, json!({"a": 2, "b": 3})).await?;
    }
    Ok(())
}

/// Uses each kind of item that a server can offer.
async fn exercise_all(connection: &Connection) -> Result<(), Failure> {
    call_every_tool(connection).await?;
    for resource in &connection.offer().resources {
        connection.read_resource(&parse_definition(&resource.definition)?["uri"]).await?;
    }
    for prompt in &connection.offer().prompts {
        connection.get_prompt(&parse_definition(&prompt.definition)?["name"]).await?;
    }
    Ok(())
}

async fn call_requested_tools(connection: &Connection, scenario: &Scenario) -> Result<(), Failure> {
    let calls = scenario.context["toolCalls"].as_array().ok_or("the suite lists no calls")?;
    for call in calls {
        let name = call["name"].as_str().unwrap_or_default();
        connection.call_tool(name, call["arguments"].clone()).await?;
    }
    Ok(())
}

/// Sends a schema back unchanged.
async fn echo(connection: &Connection) -> Result<(), Failure> {
    let tools = connection.tools();
    let focal = tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = focal.ok_or("the tool is missing")?.definition["inputSchema"].clone();
    connection.call_tool("json_schema_echo", json!({"schema": schema})).await
}

/// Makes another call while the first one waits for an answer.
async fn call_during_question(connection: &Connection) -> Result<(), Failure> {
    connection
        .call_tool_with("test_mrtr_echo_state", json!({}), || {
            Box::pin(connection.call_tool("test_mrtr_unrelated", json!({})))
        })
        .await?;
    connection.call_tool("test_mrtr_no_state", json!({})).await?;
    connection.call_tool("test_mrtr_no_result_type", json!({})).await
}

/// Answers a form as a person would who accepts every default.
fn accept_defaults(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let answers = properties.into_iter().map(|(name, property)| {
        let value = property.get("default").cloned().unwrap_or(Value::Bool(true));
        (name, value)
    });
    json!({"action": "accept", "content": answers.collect::<Map<String, Value>>()})
}
