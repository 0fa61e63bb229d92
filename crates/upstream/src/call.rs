//! One call to a server, from the hub's words to the wire's and back.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, contains_text, to_raw};
use toolyard_hub::{ErrorKind, HubError, Outcome, Raw, SourceCall, SourceError, SourceTarget, meta};
use toolyard_wire::{RpcError, WireError, code};

use crate::connection::{HeaderSchemas, LiveConnection, RequestEnvelope, select_forwarded_headers};
use crate::in_flight::InFlightCall;
use crate::question::parse_input_required;
use crate::settings::ServerSettings;

/// How often a modern server may ask for more before it is taken to go round in circles.
const MOST_ROUNDS: usize = 16;

/// How long an answer is held back for questions that are still open.
const LAST_QUESTIONS: Duration = Duration::from_secs(30);

/// Why a call to the server has no outcome. It is turned into a [`HubError`] once, by whoever gives the call up.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    Wire(WireError),
    /// The server was silent for as long as a call may be.
    TimedOut,
    /// It ended on our side: its question cannot be answered, or somebody else's question ended it.
    Aborted(HubError),
}

impl From<WireError> for UpstreamError {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

impl From<HubError> for UpstreamError {
    fn from(error: HubError) -> Self {
        Self::Aborted(error)
    }
}

/// What a call is sent with.
pub(crate) struct CallSender<'a> {
    pub(crate) live: &'a LiveConnection,
    pub(crate) settings: &'a ServerSettings,
    pub(crate) mirrored: &'a HeaderSchemas,
}

impl CallSender<'_> {
    pub(crate) async fn send(&self, call: &SourceCall) -> Result<Outcome, UpstreamError> {
        let mut in_flight = self.live.calls.register(call);
        let (method, mut params, name) = build_method_params(&call.target);
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
            let outbound = self.live.build_request(method, &params, dress)?;
            let answer = self.live.client.request(outbound);
            let answer =
                wait_with_idle_timeout(answer, &in_flight.flight, self.settings.call_timeout).await?;
            if matches!(&answer, Ok(_) | Err(WireError::Rpc(_) | WireError::SessionGone)) {
                in_flight.mark_answered();
            }
            let answer = answer?;
            if !self.live.is_modern() {
                // A server that asked for the roots before anybody called is told them by whoever called now. This
                // call is the only way to ask the client, so it is not over before that.
                let answered = self.live.calls.wait_for_adopted(&in_flight.flight);
                let _ = tokio::time::timeout(LAST_QUESTIONS, answered).await;
                return Ok(Outcome { failed: is_error_result(&answer), body: answer, modern: false });
            }
            let wrong = |why: String| {
                let message = format!("{} asks in a way that makes no sense: {why}", self.settings.name);
                HubError::new(ErrorKind::ToolFailed, message)
            };
            let Some(asked) = parse_input_required(&answer).map_err(wrong)? else {
                return Ok(Outcome { failed: is_error_result(&answer), body: answer, modern: true });
            };
            let answers = match asked.questions.is_empty() {
                true => Vec::new(),
                false => call.client.ask(asked.questions).await?,
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
        Err(HubError::new(ErrorKind::ToolFailed, message).into())
    }

    /// The error that the caller gets.
    pub(crate) fn hub_error(&self, error: UpstreamError, call: &SourceCall) -> HubError {
        let name = &self.settings.name;
        let failure = match error {
            UpstreamError::Aborted(error) => return error,
            UpstreamError::TimedOut => {
                let (what, seconds) = (call.target.subject(), self.settings.call_timeout.as_secs_f64());
                let message = format!("{name} said nothing about {what} for {seconds} s");
                return HubError::new(ErrorKind::TimedOut, message)
                    .with_suggestion("raise call_timeout of this server if it needs longer");
            }
            UpstreamError::Wire(failure) => failure,
        };
        match failure {
            WireError::Rpc(error) => rpc_to_hub_error(error),
            WireError::SessionGone => {
                let message = format!("{name} dropped the session again after a reconnect");
                HubError::new(ErrorKind::ConnectionLost, message)
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
                    .with_suggestion("if you trust that address, set it as the url of this server")
            }
            WireError::Unauthorized { .. }
            | WireError::Status { .. }
            | WireError::Protocol(_)
            | WireError::TooLarge(_) => HubError::new(ErrorKind::ConnectionLost, format!("{name} {failure}")),
        }
    }
}

/// An error that the server answered with.
pub(crate) fn rpc_to_hub_error(error: RpcError) -> HubError {
    let kind = match error.code {
        code::RESOURCE_NOT_FOUND => ErrorKind::UnknownResource,
        code::INVALID_PARAMS => ErrorKind::InvalidArguments,
        _ => ErrorKind::ToolFailed,
    };
    let origin = SourceError { code: error.code, message: error.message.clone(), data: error.data };
    HubError::new(kind, error.message).with_source_error(origin)
}

/// Puts the server's own last words where a person looks next.
pub(crate) fn with_stderr(error: HubError, stderr: &[String]) -> HubError {
    let last: Vec<&str> = stderr.iter().rev().take(5).rev().map(String::as_str).collect();
    if last.is_empty() { error } else { error.with_suggestion(format!("it last said: {}", last.join(" | "))) }
}

/// The method, its params, and the name that HTTP mirrors.
fn build_method_params(target: &SourceTarget) -> (&'static str, Object, Option<&str>) {
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

fn is_error_result(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ErrorFlag {
        is_error: Option<bool>,
    }
    // A cheap look first: most results do not have the key at all.
    contains_text(result, "\"isError\"")
        && serde_json::from_str::<ErrorFlag>(result.get()).is_ok_and(|says| says.is_error == Some(true))
}

/// Waits for an answer as long as the server is heard of now and then, and the call may go on.
async fn wait_with_idle_timeout<T>(
    answer: impl Future<Output = T>,
    flight: &Arc<InFlightCall>,
    silence: Duration,
) -> Result<T, UpstreamError> {
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return Ok(answer),
            () = flight.activity.notified() => {
                if let Some(why) = flight.abort_reason() {
                    return Err(why.clone().into());
                }
            }
            () = tokio::time::sleep(silence) => {
                // While a person is being asked, nobody is silent.
                if !flight.has_open_questions() {
                    return Err(UpstreamError::TimedOut);
                }
            }
        }
    }
}
