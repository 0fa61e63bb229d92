//! HTTP hooks: endpoints that are asked before a call and told how it ended. They implement the hub's
//! [`Hooks`]. The hub itself knows no network, and no front owns them, because they run around the
//! calls of every front.

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

/// How long connecting to an endpoint may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// More than that no endpoint has to say.
const LONGEST_ANSWER: usize = 10 * 1024 * 1024;

/// One endpoint.
#[derive(Clone)]
pub struct HookSettings {
    /// What it is called in messages; its address may hold a secret.
    pub name: String,
    pub url: Url,
    pub headers: HeaderMap,
    pub events: Vec<HookEvent>,
    /// Globs over full names.
    pub tools: Vec<Glob>,
    pub timeout: Duration,
    pub on_failure: HookFailurePolicy,
}

/// Addresses and headers may hold secrets.
impl fmt::Debug for HookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HookSettings({})", self.name)
    }
}

/// When an endpoint is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookEvent {
    /// It may let the call pass, change its parameters, or refuse it.
    Before,
    /// The tool has answered, perhaps that it failed.
    After,
    /// There is no answer.
    Error,
}

/// What becomes of a call when the endpoint does not say what should.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HookFailurePolicy {
    /// It goes on.
    Open,
    /// It is refused.
    #[default]
    Closed,
}

/// Every hook of the configuration, as one. They can be changed while the yard runs.
pub struct HttpHooks {
    tls: rustls::ClientConfig,
    /// Made for the first request: most yards have no hooks.
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

    /// Redirects are not followed: what is sent is for the address in the configuration.
    fn http(&self) -> Result<&reqwest::Client, reqwest::Error> {
        if let Some(http) = self.http.get() {
            return Ok(http);
        }
        let http = reqwest::Client::builder().tls_backend_preconfigured(self.tls.clone());
        let http = http.redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT).build()?;
        Ok(self.http.get_or_init(|| http))
    }

    /// Obeys these from now on.
    pub fn replace(&self, all: &[HookSettings]) {
        *self.all.write() = all.into();
    }

    fn all(&self) -> Arc<[HookSettings]> {
        Arc::clone(&self.all.read())
    }

    /// Says what happened to everybody who wants to hear it, one after the other. What they answer does not matter.
    async fn notify(&self, said: &HookPayload<'_>) {
        for hook in self.all().iter().filter(|hook| hook.handles(said.event, said.tool)) {
            if let Err(problem) = hook.post(self, said).await {
                tracing::warn!(
                    hook = hook.name,
                    tool = said.tool,
                    problem,
                    "a hook was not told how a call ended"
                );
            }
        }
    }
}

/// What an endpoint is sent.
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

/// What an endpoint answers before a call.
#[derive(Debug)]
enum HookVerdict {
    Pass,
    Change(Raw),
    Refuse(Option<String>),
}

/// The answers that a hook may give before a call, for error messages.
const ANSWERS: &str = "a hook answers with an empty body, {\"action\": \"pass\"}, \
    {\"action\": \"change\", \"params\": {…}} or {\"action\": \"refuse\", \"message\": \"…\"}";

impl HookVerdict {
    /// An empty answer lets the call pass. The error says what is wrong with any other one.
    fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self::Pass);
        }
        let raw: Raw = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let mut members = Object::parse(&raw).map_err(|_| "it is not a JSON object")?;
        let action = members.get("action").ok_or("it has no \"action\"")?;
        let action = json::truncate_for_message(action.get()).into_owned();
        match action.as_str() {
            r#""pass""# => Ok(Self::Pass),
            // Kept as the text that it is: numbers stay as they were written.
            r#""change""# => match members.remove("params") {
                Some(params) if params.get().starts_with('{') => Ok(Self::Change(params)),
                Some(_) => Err("its \"params\" are not an object".to_owned()),
                None => Err("it changes the call without \"params\"".to_owned()),
            },
            r#""refuse""# => match members.remove("message") {
                None => Ok(Self::Refuse(None)),
                Some(message) => serde_json::from_str(message.get())
                    .map(Self::Refuse)
                    .map_err(|_| "its \"message\" is not a string".to_owned()),
            },
            _ => Err(format!("its \"action\" is {action}, and not \"pass\", \"change\" or \"refuse\"")),
        }
    }
}

/// Why an endpoint has not said what is to become of a call.
enum HookAnswerError {
    /// It was not reached, or did not answer as an endpoint does.
    NoAnswer(String),
    /// It answered, but not in words that mean anything here.
    Invalid(String),
}

impl fmt::Display for HookAnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(problem) => f.write_str(problem),
            Self::Invalid(problem) => write!(f, "its answer is invalid: {problem}; {ANSWERS}"),
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

    /// The text of its answer; nothing where it has nothing to say.
    async fn post(&self, hooks: &HttpHooks, said: &HookPayload<'_>) -> Result<String, String> {
        let body = serde_json::to_vec(said).map_err(|error| error.to_string())?;
        let http = hooks.http().map_err(|error| format!("cannot set up HTTP: {error}"))?;
        let request = http
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .timeout(self.timeout)
            .body(body);
        let answer = request.send().await.map_err(|error| describe_error(&error))?;
        if !answer.status().is_success() {
            return Err(format!("it answered {}", answer.status()));
        }
        read_text(answer).await
    }

    async fn decide(&self, hooks: &HttpHooks, said: &HookPayload<'_>) -> Result<HookDecision, HubError> {
        let answered = self.post(hooks, said).await.map_err(HookAnswerError::NoAnswer);
        let unjudged =
            match answered.and_then(|text| HookVerdict::parse(&text).map_err(HookAnswerError::Invalid)) {
                Ok(HookVerdict::Pass) => return Ok(HookDecision::Pass),
                Ok(HookVerdict::Change(params)) => return Ok(HookDecision::Change(params)),
                Ok(HookVerdict::Refuse(message)) => {
                    let unsaid = || format!("{} was refused by the hook {}", said.tool, self.name);
                    return Err(HubError::new(ErrorKind::Forbidden, message.unwrap_or_else(unsaid)));
                }
                Err(unjudged) => unjudged,
            };
        let (hook, tool, problem) = (&self.name, said.tool, unjudged.to_string());
        match self.on_failure {
            HookFailurePolicy::Open => {
                tracing::warn!(hook, tool, problem, "a hook failed and the call goes on");
                Ok(HookDecision::Pass)
            }
            HookFailurePolicy::Closed => {
                tracing::warn!(hook, tool, problem, "a hook failed and the call is refused");
                Err(match unjudged {
                    HookAnswerError::NoAnswer(_) => {
                        let message = format!("the hook {hook} could not be asked about {tool}");
                        HubError::new(ErrorKind::CannotConnect, message).with_suggestion("try again later")
                    }
                    HookAnswerError::Invalid(problem) => {
                        let message =
                            format!("the answer of the hook {hook} about {tool} is invalid: {problem}");
                        HubError::new(ErrorKind::CannotConnect, message).with_suggestion(ANSWERS)
                    }
                })
            }
        }
    }
}

/// The text of an answer that is not too long.
async fn read_text(mut answer: reqwest::Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > LONGEST_ANSWER {
            return Err(format!("it answered more than {LONGEST_ANSWER} bytes"));
        }
    }
    String::from_utf8(bytes).map_err(|_| "it answered no text".to_owned())
}

/// Addresses may hold secrets, so they are not repeated.
fn describe_error(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        "it did not answer in time".to_owned()
    } else if error.is_connect() {
        "it cannot be reached".to_owned()
    } else {
        "the conversation with it failed".to_owned()
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
                let said = HookPayload { params, ..HookPayload::new(HookEvent::Before, call) };
                if let HookDecision::Change(params) = hook.decide(self, &said).await? {
                    changed = Some(params);
                }
            }
            Ok(changed.map_or(HookDecision::Pass, HookDecision::Change))
        })
    }

    fn after<'a>(&'a self, call: HookCall<'a>, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let said = HookPayload {
                result: Some(&outcome.body),
                failed: Some(outcome.failed),
                ..HookPayload::new(HookEvent::After, call)
            };
            self.notify(&said).await;
        })
    }

    fn on_error<'a>(&'a self, call: HookCall<'a>, error: &'a HubError) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let trouble = HookErrorInfo {
                kind: error.kind().as_str(),
                message: error.message(),
                details: error.details(),
            };
            self.notify(&HookPayload { error: Some(trouble), ..HookPayload::new(HookEvent::Error, call) })
                .await;
        })
    }
}
