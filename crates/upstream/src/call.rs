//! One call to a server, from the hub's words to the wire's and back.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, mentions, to_raw};
use toolyard_hub::{ErrorKind, HubError, Outcome, Raw, SourceCall, SourceError, SourceTarget, meta};
use toolyard_wire::{WireError, code};

use crate::auth::Challenge;
use crate::connection::{HeaderSchemas, LiveConnection, RequestEnvelope, select_forwarded_headers};
use crate::in_flight::InFlightCall;
use crate::question::parse_input_required;
use crate::settings::ServerSettings;

/// How often a modern server may ask for more before it is taken to go round in circles.
const MOST_ROUNDS: usize = 16;

/// How long an answer is held back for questions that are still open.
const LAST_QUESTIONS: Duration = Duration::from_secs(30);

/// How a call to the server ended without an outcome.
#[derive(Debug)]
pub(crate) enum UpstreamCallError {
    /// It never reached the server: it may be sent again.
    Unsent,
    /// The server wants to know who we are, or that we may do more: it may be sent again after that.
    Challenged(Challenge),
    Error(HubError),
}

/// Why there is no outcome, before anybody has put it in words.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    Failure(WireError),
    /// Nothing was heard for as long as a call may be silent.
    Silent,
    Error(HubError),
}

/// What a call is sent with.
pub(crate) struct CallSender<'a> {
    pub(crate) live: &'a LiveConnection,
    pub(crate) settings: &'a ServerSettings,
    pub(crate) mirrored: &'a HeaderSchemas,
}

impl CallSender<'_> {
    pub(crate) async fn perform(&self, call: &SourceCall) -> Result<Outcome, UpstreamCallError> {
        self.exchange(call).await.map_err(|stopped| match stopped {
            ExchangeError::Failure(failure) => self.ended(failure),
            ExchangeError::Silent => self.silent(call),
            ExchangeError::Error(error) => UpstreamCallError::Error(error),
        })
    }

    pub(crate) async fn exchange(&self, call: &SourceCall) -> Result<Outcome, ExchangeError> {
        let mut in_flight = self.live.calls.enter(call);
        let (method, mut params, name) = request(&call.target);
        // Only who asked for a version is refused where the server does not have it any more.
        let version = call.record.context.version.as_deref().filter(|_| call.record.context.version_asked);
        let asking = version.map(|version| meta::with_requested_version(version, call.meta.as_deref()));
        for _ in 0..MOST_ROUNDS {
            let dress = RequestEnvelope {
                meta: asking.as_deref().or(call.meta.as_deref()),
                abilities: call.client.capabilities().clone(),
                tag: Some(in_flight.tag),
                name,
                schema: name.and_then(|name| self.mirrored.get(name)).map(|schema| &**schema),
                headers: select_forwarded_headers(&self.settings.forward_headers, &call.headers),
            };
            let outbound = self.live.build_request(method, &params, dress).map_err(ExchangeError::Failure)?;
            let answer = self.live.client.request(outbound);
            let answer = patiently(answer, &in_flight.flight, self.settings.call_time).await?;
            if matches!(&answer, Ok(_) | Err(WireError::Rpc(_) | WireError::SessionGone)) {
                in_flight.mark_answered();
            }
            let answer = answer.map_err(ExchangeError::Failure)?;
            if !self.live.is_modern() {
                // A server that asked for the roots before anybody called is told them by whoever called now. This
                // call is the only way to ask the client, so it is not over before that.
                let answered = self.live.calls.wait_for_adopted(&in_flight.flight);
                let _ = tokio::time::timeout(LAST_QUESTIONS, answered).await;
                return Ok(Outcome { failed: says_failed(&answer), body: answer, modern: false });
            }
            let wrong = |why: String| {
                ExchangeError::Error(HubError::new(
                    ErrorKind::ToolFailed,
                    format!("{} asks in a way that makes no sense: {why}", self.settings.name),
                ))
            };
            let Some(asked) = parse_input_required(&answer).map_err(wrong)? else {
                return Ok(Outcome { failed: says_failed(&answer), body: answer, modern: true });
            };
            let answers = match asked.questions.is_empty() {
                true => Vec::new(),
                false => call.client.ask(asked.questions).await.map_err(ExchangeError::Error)?,
            };
            let mut responses = Object::default();
            for (key, answer) in answers {
                responses.set(&key, answer);
            }
            params.set("inputResponses", responses.to_raw());
            match asked.state {
                Some(state) => params.set("requestState", state),
                None => drop(params.remove("requestState")),
            }
        }
        let message =
            format!("{} asked for input {MOST_ROUNDS} times and never answered", self.settings.name);
        Err(ExchangeError::Error(HubError::new(ErrorKind::ToolFailed, message)))
    }

    fn silent(&self, call: &SourceCall) -> UpstreamCallError {
        let seconds = self.settings.call_time.as_secs_f64();
        let what = match &call.target {
            SourceTarget::Tool { name, .. }
            | SourceTarget::Prompt { name, .. }
            | SourceTarget::PromptCompletion { name, .. } => name,
            SourceTarget::Resource { uri } | SourceTarget::TemplateCompletion { uri, .. } => uri,
        };
        let message = format!("{} said nothing about {what} for {seconds} s", self.settings.name);
        UpstreamCallError::Error(
            HubError::new(ErrorKind::TimedOut, message)
                .suggest("raise call_timeout of this server if it needs longer"),
        )
    }

    fn ended(&self, failure: WireError) -> UpstreamCallError {
        let name = &self.settings.name;
        if let Some(challenge) = Challenge::from_error(&failure) {
            return UpstreamCallError::Challenged(challenge);
        }
        let error = match failure {
            WireError::SessionGone => return UpstreamCallError::Unsent,
            WireError::Rpc(error) => {
                let kind = match error.code {
                    code::RESOURCE_NOT_FOUND => ErrorKind::UnknownResource,
                    code::INVALID_PARAMS => ErrorKind::InvalidArguments,
                    _ => ErrorKind::ToolFailed,
                };
                let origin =
                    SourceError { code: error.code, message: error.message.clone(), data: error.data };
                HubError::new(kind, error.message).with_source_error(origin)
            }
            WireError::Unreachable(why) => {
                HubError::new(ErrorKind::CannotConnect, format!("{name} cannot be reached: {why}"))
            }
            WireError::Lost(why) => with_stderr(
                HubError::new(ErrorKind::ConnectionLost, format!("the connection to {name} was lost: {why}")),
                &self.live.stderr(),
            ),
            WireError::Redirected { .. } => {
                HubError::new(ErrorKind::ConnectionLost, format!("{name} {failure}"))
                    .suggest("if you trust that address, set it as the url of this server")
            }
            WireError::Unauthorized { .. }
            | WireError::Status { .. }
            | WireError::Protocol(_)
            | WireError::TooLarge(_) => HubError::new(ErrorKind::ConnectionLost, format!("{name} {failure}")),
        };
        UpstreamCallError::Error(error)
    }
}

/// Puts the server's own last words where a person looks next.
pub(crate) fn with_stderr(error: HubError, stderr: &[String]) -> HubError {
    let last: Vec<&str> = stderr.iter().rev().take(5).rev().map(String::as_str).collect();
    if last.is_empty() { error } else { error.suggest(format!("it last said: {}", last.join(" | "))) }
}

/// The method, its params, and the name that HTTP mirrors.
fn request(target: &SourceTarget) -> (&'static str, Object, Option<&str>) {
    let mut params = Object::default();
    let complete = |reference, argument: &str, value: &str, context: &Option<Raw>| {
        let mut params = Object::default();
        params.set("ref", to_raw(&reference));
        params.set("argument", to_raw(&json!({"name": argument, "value": value})));
        if let Some(context) = context {
            params.set("context", context.clone());
        }
        ("completion/complete", params, None)
    };
    match target {
        SourceTarget::Tool { name, arguments } => {
            params.set("name", to_raw(name));
            params.set("arguments", arguments.clone());
            ("tools/call", params, Some(name.as_str()))
        }
        SourceTarget::Prompt { name, arguments } => {
            params.set("name", to_raw(name));
            params.set("arguments", arguments.clone());
            ("prompts/get", params, Some(name.as_str()))
        }
        SourceTarget::Resource { uri } => {
            params.set("uri", to_raw(uri));
            ("resources/read", params, Some(uri.as_str()))
        }
        SourceTarget::PromptCompletion { name, argument, value, context } => {
            complete(json!({"type": "ref/prompt", "name": name}), argument, value, context)
        }
        SourceTarget::TemplateCompletion { uri, argument, value, context } => {
            complete(json!({"type": "ref/resource", "uri": uri}), argument, value, context)
        }
    }
}

fn says_failed(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ErrorFlag {
        is_error: Option<bool>,
    }
    // A cheap look first: most results do not have the key at all.
    mentions(result, "\"isError\"")
        && serde_json::from_str::<ErrorFlag>(result.get()).is_ok_and(|says| says.is_error == Some(true))
}

/// Waits for an answer as long as the server is heard of now and then, and the call may go on.
async fn patiently<T>(
    answer: impl Future<Output = T>,
    flight: &Arc<InFlightCall>,
    silence: Duration,
) -> Result<T, ExchangeError> {
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return Ok(answer),
            () = flight.heard.notified() => {
                if let Some(why) = flight.abort_reason() {
                    return Err(ExchangeError::Error(why.clone()));
                }
            }
            () = tokio::time::sleep(silence) => {
                // While a person is being asked, nobody is silent.
                if !flight.has_open_questions() {
                    return Err(ExchangeError::Silent);
                }
            }
        }
    }
}
