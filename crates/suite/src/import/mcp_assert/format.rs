//! The format of the files of mcp-assert. Unknown keys are ignored, as in mcp-assert.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::check::{AssertLoggingExpect, AssertNotificationExpect, AssertResultExpect};
use super::trajectory::{TraceEntry, TrajectoryRule};

#[derive(Debug, Deserialize)]
pub(super) struct AssertFile {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) server: AssertServer,
    #[serde(default)]
    pub(super) setup: Vec<AssertCall>,
    pub(super) assert: Option<AssertCall>,
    pub(super) assert_resources: Option<AssertResources>,
    pub(super) assert_prompts: Option<AssertPrompts>,
    pub(super) assert_completion: Option<AssertCompletion>,
    pub(super) assert_sampling: Option<AssertSampling>,
    pub(super) assert_logging: Option<AssertLogging>,
    pub(super) assert_notifications: Option<AssertNotifications>,
    pub(super) timeout: Option<String>,
    #[serde(default)]
    pub(super) skip: bool,
    pub(super) skip_unless_env: Option<String>,
    #[serde(default)]
    pub(super) trace: Vec<TraceEntry>,
    pub(super) audit_log: Option<String>,
    #[serde(default)]
    pub(super) trajectory: Vec<TrajectoryRule>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AssertServer {
    pub(super) command: Option<String>,
    #[serde(default)]
    pub(super) args: Vec<Value>,
    #[serde(default)]
    pub(super) env: Map<String, Value>,
    pub(super) transport: Option<String>,
    pub(super) url: Option<String>,
    #[serde(default)]
    pub(super) headers: Map<String, Value>,
    pub(super) docker: Option<String>,
    #[serde(default)]
    pub(super) client_capabilities: AssertCapabilities,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct AssertCapabilities {
    pub(super) roots: Option<Vec<String>>,
    pub(super) sampling: Option<AssertSamplingAnswer>,
    pub(super) elicitation: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertSamplingAnswer {
    #[serde(default)]
    pub(super) text: String,
    pub(super) model: Option<String>,
    pub(super) stop_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertCall {
    pub(super) tool: String,
    pub(super) args: Option<Value>,
    #[serde(default)]
    pub(super) expect: AssertResultExpect,
    #[serde(default)]
    pub(super) capture: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertResources {
    pub(super) list: Option<Value>,
    pub(super) read: Option<String>,
    #[serde(default)]
    pub(super) expect: AssertResultExpect,
    pub(super) subscribe: Option<String>,
    pub(super) unsubscribe: Option<String>,
    pub(super) expect_notification: Option<bool>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertPrompts {
    pub(super) list: Option<Value>,
    pub(super) get: Option<AssertPromptGet>,
    #[serde(default)]
    pub(super) expect: AssertResultExpect,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertPromptGet {
    pub(super) name: String,
    pub(super) arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertCompletion {
    pub(super) r#ref: AssertReference,
    pub(super) argument: AssertArgument,
    #[serde(default)]
    pub(super) expect: AssertResultExpect,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertReference {
    pub(super) r#type: String,
    pub(super) name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertArgument {
    pub(super) name: String,
    #[serde(default)]
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertSampling {
    pub(super) tool: String,
    pub(super) args: Option<Value>,
    #[serde(default)]
    pub(super) mock_text: String,
    pub(super) mock_model: Option<String>,
    #[serde(default)]
    pub(super) expect: AssertResultExpect,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertLogging {
    pub(super) set_level: Option<String>,
    pub(super) tool: Option<String>,
    pub(super) args: Option<Value>,
    #[serde(default)]
    pub(super) expect: AssertLoggingExpect,
}

#[derive(Debug, Deserialize)]
pub(super) struct AssertNotifications {
    pub(super) tool: String,
    pub(super) args: Option<Value>,
    #[serde(default)]
    pub(super) expect: AssertNotificationExpect,
}
