//! HTTP hooks: endpoints that approve or change calls, and are notified of their results. They
//! implement the [`Hooks`] trait of the hub, which has no network access itself. No front owns
//! them, because they apply to the calls of every front.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::RwLock;
use reqwest::Url;
use reqwest::header::HeaderMap;
use reqwest::redirect::Policy;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::json::{self, Object};
use toolyard_hub::{BoxFuture, ErrorKind, Glob, HookCall, HookDecision, Hooks, HubError, Outcome, Raw};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Size limit of a response, in bytes.
const LONGEST_ANSWER: usize = 10 * 1024 * 1024;

/// The settings of one hook.
#[derive(Clone)]
pub struct HookSettings {
    /// The name used in messages, because the URL may contain a secret.
    pub name: String,
    pub url: Url,
    pub headers: HeaderMap,
    pub events: Vec<HookEvent>,
    /// Globs over full tool names.
    pub tools: Vec<Glob>,
    pub timeout: Duration,
    pub on_failure: HookFailurePolicy,
}

/// Omits the URL and the headers, which may contain secrets.
impl fmt::Debug for HookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HookSettings({})", self.name)
    }
}

/// When a hook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookEvent {
    /// before the call; the hook can pass, change or refuse it.
    Before,
    /// after the tool has answered, even if it reported an error.
    After,
    /// after the call failed without an answer.
    Error,
}

/// What happens to a call if a hook fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookFailurePolicy {
    /// The call proceeds.
    Open,
    /// The call is refused.
    #[default]
    Closed,
}

/// All configured hooks. They can be replaced while the yard runs.
pub struct HttpHooks {
    tls: rustls::ClientConfig,
    /// Created by the first request, because most yards have no hooks.
    http: OnceLock<reqwest::Client>,
    all: RwLock<Arc<[HookSettings]>>,
}

impl fmt::Debug for HttpHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.all().iter()).finish()
    }
}

impl HttpHooks {
    pub fn new(tls: rustls::ClientConfig, all: &[HookSettings]) -> Arc<Self> {
        Arc::new(Self { tls, http: OnceLock::new(), all: RwLock::new(all.into()) })
    }

    /// Returns the HTTP client. It does not follow redirects, because payloads are meant only for
    /// the configured URL.
    fn http(&self) -> Result<&reqwest::Client, reqwest::Error> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        let http = reqwest::Client::builder().tls_backend_preconfigured(self.tls.clone());
        let http = http.redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(self.http.get_or_init(|| http))
    }

    /// Replaces the hooks.
    pub fn replace(&self, all: &[HookSettings]) {
        *self.all.write() = all.into();
    }

    fn all(&self) -> Arc<[HookSettings]> {
        Arc::clone(&self.all.read())
    }

    /// Notifies all matching hooks, one after the other. Their responses are ignored.
    async fn notify(&self, payload: &HookPayload<'_>) {
        for hook in self.all().iter().filter(|hook| hook.handles(payload.event, payload.tool)) {
            if let Err(problem) = hook.post(self, payload).await {
                let tool = payload.tool;
                tracing::warn!(hook = hook.name, tool, problem, "cannot notify a hook of the end of a call");
            }
        }
    }
}

/// The payload sent to a hook.
#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct HookPayload<'a> {
    event: HookEvent,
    execution_id: String,
    tool: &'a str,
    server: &'a str,
    principal: &'a str,
    params: &'a RawValue,
    context: HookContext<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<HookErrorInfo<'a>>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct HookContext<'a> {
    session_id: Option<&'a str>,
    user_id: Option<&'a str>,
}

#[derive(Clone, Serialize)]
struct HookErrorInfo<'a> {
    kind: &'static str,
    message: &'a str,
    details: Option<&'a Value>,
}

impl<'a> HookPayload<'a> {
    fn new(event: HookEvent, call: HookCall<'a>) -> Self {
        let HookCall { record, arguments } = call;
        Self {
            event,
            execution_id: record.id.public_id(),
            tool: record.tool_name(),
            server: record.source_name(),
            principal: record.principal.id(),
            params: arguments,
            context: HookContext {
                session_id: record.context.session_id.as_deref(),
                user_id: record.context.user_id.as_deref(),
            },
            result: None,
            failed: None,
            error: None,
        }
    }
}

/// The response of a hook before a call.
#[derive(Debug)]
enum HookVerdict {
    Pass,
    Change(Raw),
    Refuse(Option<String>),
}

/// The valid responses of a hook before a call, for error messages.
const ANSWERS: &str = "a hook must return an empty body, {\"action\": \"pass\"}, \
    {\"action\": \"change\", \"params\": {…}} or {\"action\": \"refuse\", \"message\": \"…\"}";

impl HookVerdict {
    /// Parses a response. An empty one lets the call pass.
    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::Pass);
        }
        let raw: Raw = serde_json::from_str(text).map_err(|error| format!("invalid JSON: {error}"))?;
        let mut members = Object::parse(&raw).map_err(|_| "not a JSON object")?;
        let action = members.get("action").ok_or("`action` is missing")?;
        let action = json::truncate_for_message(action.get()).into_owned();
        match action.as_str() {
            r#""pass""# => Ok(Self::Pass),
            // Passed on as text, so that numbers stay as they were written.
            r#""change""# => match members.remove("params") {
                Some(params) if params.get().starts_with('{') => Ok(Self::Change(params)),
                Some(_) => Err("`params` is not an object".to_owned()),
                None => Err("`params` is missing for the action \"change\"".to_owned()),
            },
            r#""refuse""# => match members.remove("message") {
                None => Ok(Self::Refuse(None)),
                Some(message) => serde_json::from_str(message.get())
                    .map(Self::Refuse)
                    .map_err(|_| "`message` is not a string".to_owned()),
            },
            _ => Err(format!("`action` is {action}; expected \"pass\", \"change\" or \"refuse\"")),
        }
    }
}

/// Why a hook returned no decision.
enum HookAnswerError {
    /// The hook could not be reached or returned an error.
    NoAnswer(String),
    /// The response is invalid.
    Invalid(String),
}

impl fmt::Display for HookAnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(problem) => f.write_str(problem),
            Self::Invalid(problem) => write!(f, "invalid response: {problem}; {ANSWERS}"),
        }
    }
}

impl HookSettings {
    fn handles(&self, event: HookEvent, tool: &str) -> bool {
        self.events.contains(&event) && self.matches_tool(tool)
    }

    fn matches_tool(&self, tool: &str) -> bool {
        self.tools.iter().any(|glob| glob.matches(tool))
    }

    /// Sends a payload and returns the body of the response, which may be empty.
    async fn post(&self, hooks: &HttpHooks, payload: &HookPayload<'_>) -> Result<String, String> {
        let body = serde_json::to_vec(payload).map_err(|error| error.to_string())?;
        let http = hooks.http().map_err(|error| format!("cannot create the HTTP client: {error}"))?;
        let request = http
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .timeout(self.timeout)
            .body(body);
        let response = request.send().await.map_err(|error| describe_error(&error))?;
        if !response.status().is_success() {
            return Err(format!("the hook returned HTTP status {}", response.status()));
        }
        read_text(response).await
    }

    async fn decide(&self, hooks: &HttpHooks, payload: &HookPayload<'_>) -> Result<HookDecision, HubError> {
        let response = self.post(hooks, payload).await.map_err(HookAnswerError::NoAnswer);
        let error =
            match response.and_then(|text| HookVerdict::parse(&text).map_err(HookAnswerError::Invalid)) {
                Ok(HookVerdict::Pass) => return Ok(HookDecision::Pass),
                Ok(HookVerdict::Change(params)) => return Ok(HookDecision::Change(params)),
                Ok(HookVerdict::Refuse(message)) => {
                    let default = || format!("hook `{}` refused the call of {}", self.name, payload.tool);
                    return Err(HubError::new(ErrorKind::Forbidden, message.unwrap_or_else(default)));
                }
                Err(error) => error,
            };
        let (hook, tool, problem) = (&self.name, payload.tool, error.to_string());
        match self.on_failure {
            HookFailurePolicy::Open => {
                tracing::warn!(hook, tool, problem, "a hook failed; the call proceeds");
                Ok(HookDecision::Pass)
            }
            HookFailurePolicy::Closed => {
                tracing::warn!(hook, tool, problem, "a hook failed; the call is refused");
                Err(match error {
                    HookAnswerError::NoAnswer(_) => {
                        let message = format!("hook `{hook}` failed, so {tool} was not called");
                        HubError::new(ErrorKind::CannotConnect, message).with_suggestion("retry later")
                    }
                    HookAnswerError::Invalid(problem) => {
                        let message =
                            format!("hook `{hook}` returned an invalid response for {tool}: {problem}");
                        HubError::new(ErrorKind::CannotConnect, message).with_suggestion(ANSWERS)
                    }
                })
            }
        }
    }
}

/// Reads the body of a response, up to [`LONGEST_ANSWER`].
async fn read_text(mut response: reqwest::Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LONGEST_ANSWER {
            return Err(format!("the response exceeds the limit of {LONGEST_ANSWER} bytes"));
        }
    }
    String::from_utf8(bytes).map_err(|_| "the response is not valid UTF-8".to_owned())
}

/// Describes an error without the URL, which may contain secrets.
fn describe_error(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        "no response in time".to_owned()
    } else if error.is_connect() {
        "the hook cannot be reached".to_owned()
    } else {
        "the request failed".to_owned()
    }
}

impl Hooks for HttpHooks {
    fn applies_to(&self, tool: &str) -> bool {
        self.all().iter().any(|hook| hook.matches_tool(tool))
    }

    fn before<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookDecision, HubError>> {
        Box::pin(async move {
            let mut changed: Option<Raw> = None;
            for hook in
                self.all().iter().filter(|hook| hook.handles(HookEvent::Before, call.record.tool_name()))
            {
                let params = changed.as_deref().unwrap_or(call.arguments);
                let payload = HookPayload { params, ..HookPayload::new(HookEvent::Before, call) };
                if let HookDecision::Change(params) = hook.decide(self, &payload).await? {
                    changed = Some(params);
                }
            }
            Ok(changed.map_or(HookDecision::Pass, HookDecision::Change))
        })
    }

    fn after<'a>(&'a self, call: HookCall<'a>, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let payload = HookPayload {
                result: Some(&outcome.body),
                failed: Some(outcome.failed),
                ..HookPayload::new(HookEvent::After, call)
            };
            self.notify(&payload).await;
        })
    }

    fn on_error<'a>(&'a self, call: HookCall<'a>, error: &'a HubError) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let info = HookErrorInfo {
                kind: error.kind().as_str(),
                message: error.message(),
                details: error.details(),
            };
            let payload = HookPayload { error: Some(info), ..HookPayload::new(HookEvent::Error, call) };
            self.notify(&payload).await;
        })
    }
}
