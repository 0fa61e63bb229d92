//! Hooks of the configuration: an HTTP endpoint that is asked before a call, and told afterwards. They live here and not
//! in the hub, which knows no network, and not in a front, because they run around calls of every front.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use toolyard_hub::{Before, BoxFuture, Error, HookCall, Hooks, Kind, Outcome, Raw, glob};

use super::read;

/// More than that no endpoint has to say.
const LONGEST_ANSWER: usize = 10 * 1024 * 1024;

/// One endpoint.
#[derive(Clone)]
pub(crate) struct HookSettings {
    /// What it is called in messages; its address may hold a secret.
    pub(crate) name: String,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) events: Vec<Moment>,
    /// Globs over full names.
    pub(crate) tools: Vec<String>,
    pub(crate) timeout: Duration,
    pub(crate) on_failure: OnFailure,
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
pub(crate) enum Moment {
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
pub(crate) enum OnFailure {
    /// It goes on.
    Open,
    /// It is refused.
    #[default]
    Closed,
}

/// Every hook of the configuration, as one. They can be changed while the yard runs.
pub(crate) struct ConfiguredHooks {
    http: reqwest::Client,
    all: RwLock<Arc<[HookSettings]>>,
}

impl ConfiguredHooks {
    pub(crate) fn new(http: reqwest::Client, all: &[HookSettings]) -> Arc<Self> {
        Arc::new(Self { http, all: RwLock::new(all.into()) })
    }

    /// Obeys these from now on.
    pub(crate) fn replace(&self, all: &[HookSettings]) {
        *self.all.write().unwrap_or_else(PoisonError::into_inner) = all.into();
    }

    fn all(&self) -> Arc<[HookSettings]> {
        Arc::clone(&self.all.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Says what happened to everybody who wants to hear it, one after the other. What they answer does not matter.
    async fn tell(&self, said: &Said<'_>) {
        for hook in self.all().iter().filter(|hook| hook.minds(said.event, said.tool)) {
            if let Err(problem) = hook.post(&self.http, said).await {
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
struct Said<'a> {
    event: Moment,
    execution_id: String,
    tool: &'a str,
    server: &'a str,
    principal: &'a str,
    params: &'a RawValue,
    context: Occasion<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Trouble<'a>>,
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Occasion<'a> {
    session_id: Option<&'a str>,
    user_id: Option<&'a str>,
}

#[derive(Clone, Serialize)]
struct Trouble<'a> {
    kind: &'static str,
    message: &'a str,
    details: Option<&'a Value>,
}

impl<'a> Said<'a> {
    fn of(event: Moment, call: HookCall<'a>) -> Self {
        Self {
            event,
            execution_id: call.id.to_string(),
            tool: call.tool,
            server: call.source.as_str(),
            principal: call.principal.id(),
            params: call.arguments,
            context: Occasion {
                session_id: call.context.session_id.as_deref(),
                user_id: call.context.user_id.as_deref(),
            },
            result: None,
            failed: None,
            error: None,
        }
    }
}

/// What an endpoint answers before a call.
#[derive(Deserialize)]
struct Verdict {
    action: Action,
    /// Kept as the text that it is: numbers stay as they were written.
    params: Option<Raw>,
    message: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Pass,
    Change,
    Refuse,
}

impl Verdict {
    /// An answer without a word lets the call pass.
    fn read(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Ok(Self { action: Action::Pass, params: None, message: None });
        }
        serde_json::from_str(text).map_err(|error| format!("its answer makes no sense: {error}"))
    }
}

impl HookSettings {
    fn minds(&self, event: Moment, tool: &str) -> bool {
        self.events.contains(&event) && self.is_for(tool)
    }

    fn is_for(&self, tool: &str) -> bool {
        self.tools.iter().any(|pattern| glob::matches(pattern, tool))
    }

    /// The text of its answer; nothing where it has nothing to say.
    async fn post(&self, http: &reqwest::Client, said: &Said<'_>) -> Result<String, String> {
        let body = serde_json::to_vec(said).map_err(|error| error.to_string())?;
        let request = http
            .post(self.url.clone())
            .headers(self.headers.clone())
            .header("content-type", "application/json")
            .timeout(self.timeout)
            .body(body);
        let answer = request.send().await.map_err(|error| why(&error))?;
        if !answer.status().is_success() {
            return Err(format!("it answered {}", answer.status()));
        }
        read(answer, LONGEST_ANSWER).await
    }

    async fn judge(&self, http: &reqwest::Client, said: &Said<'_>) -> Result<Before, Error> {
        let answered = self.post(http, said).await.and_then(|text| {
            let verdict = Verdict::read(&text)?;
            Ok(match verdict.action {
                Action::Pass => Ok(Before::Pass),
                Action::Change => {
                    Ok(Before::Change(verdict.params.ok_or("it changes the call without `params`")?))
                }
                Action::Refuse => Err(Error::new(
                    Kind::Forbidden,
                    verdict
                        .message
                        .unwrap_or_else(|| format!("{} was refused by the hook {}", said.tool, self.name)),
                )),
            })
        });
        match (answered, self.on_failure) {
            (Ok(judged), _) => judged,
            (Err(problem), OnFailure::Open) => {
                tracing::warn!(
                    hook = self.name,
                    tool = said.tool,
                    problem,
                    "a hook failed and the call goes on"
                );
                Ok(Before::Pass)
            }
            (Err(problem), OnFailure::Closed) => {
                tracing::warn!(
                    hook = self.name,
                    tool = said.tool,
                    problem,
                    "a hook failed and the call is refused"
                );
                let message = format!("the hook {} could not be asked about {}", self.name, said.tool);
                Err(Error::new(Kind::CannotConnect, message).suggest("try again later"))
            }
        }
    }
}

/// Addresses may hold secrets, so they are not repeated.
fn why(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        "it did not answer in time".to_owned()
    } else if error.is_connect() {
        "it cannot be reached".to_owned()
    } else {
        "the conversation with it failed".to_owned()
    }
}

impl Hooks for ConfiguredHooks {
    fn wants(&self, tool: &str) -> bool {
        self.all().iter().any(|hook| hook.is_for(tool))
    }

    fn before<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<Before, Error>> {
        Box::pin(async move {
            let mut changed: Option<Raw> = None;
            for hook in self.all().iter().filter(|hook| hook.minds(Moment::Before, call.tool)) {
                let params = changed.as_deref().unwrap_or(call.arguments);
                let said = Said { params, ..Said::of(Moment::Before, call) };
                if let Before::Change(params) = hook.judge(&self.http, &said).await? {
                    changed = Some(params);
                }
            }
            Ok(changed.map_or(Before::Pass, Before::Change))
        })
    }

    fn after<'a>(&'a self, call: HookCall<'a>, outcome: &'a Outcome) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let said = Said {
                result: Some(&outcome.body),
                failed: Some(outcome.failed),
                ..Said::of(Moment::After, call)
            };
            self.tell(&said).await;
        })
    }

    fn on_error<'a>(&'a self, call: HookCall<'a>, error: &'a Error) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let trouble =
                Trouble { kind: error.kind().as_str(), message: error.message(), details: error.details() };
            self.tell(&Said { error: Some(trouble), ..Said::of(Moment::Error, call) }).await;
        })
    }
}
