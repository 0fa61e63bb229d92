//! One call to a server: translates between the types of the hub and those of the wire crate.

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

/// How many times a modern server may request input for one call.
const MOST_ROUNDS: usize = 16;

/// How long a result is held back for questions that are still open.
const LAST_QUESTIONS: Duration = Duration::from_secs(30);

/// Why a call has no outcome. It becomes a [`HubError`] once no further attempt is made.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    Wire(WireError),
    /// The server sent nothing within the idle timeout of a call.
    TimedOut,
    /// The call was aborted by the yard: its question cannot be answered, or a question of the
    /// server was ambiguous.
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

/// Sends calls over a connection.
pub(crate) struct CallSender<'a> {
    pub(crate) live: &'a LiveConnection,
    pub(crate) settings: &'a ServerSettings,
    pub(crate) mirrored: &'a HeaderSchemas,
}

impl CallSender<'_> {
    pub(crate) async fn send(&self, call: &SourceCall) -> Result<Outcome, UpstreamError> {
        let mut in_flight = self.live.calls.register(call);
        let (method, mut params, name) = build_method_params(&call.target);
        // The version is sent only if the caller requested it explicitly. Only then may the server
        // refuse a version that it no longer has.
        let version = call.record.context.version.as_deref().filter(|_| call.record.context.version_asked);
        let versioned_meta =
            version.map(|version| meta::with_requested_version(version, call.meta.as_deref()));
        for _ in 0..MOST_ROUNDS {
            let envelope = RequestEnvelope {
                meta: versioned_meta.as_deref().or(call.meta.as_deref()),
                capabilities: call.client.capabilities().clone(),
                tag: Some(in_flight.tag),
                name,
                schema: name.and_then(|name| self.mirrored.get(name)).map(|schema| &**schema),
                headers: select_forwarded_headers(&self.settings.forward_headers, &call.headers),
            };
            let outbound = self.live.build_request(method, &params, envelope)?;
            let response = self.live.client.request(outbound);
            let response =
                wait_with_idle_timeout(response, &in_flight.flight, self.settings.call_timeout).await?;
            if matches!(&response, Ok(_) | Err(WireError::Rpc(_) | WireError::SessionGone)) {
                in_flight.mark_answered();
            }
            let result = response?;
            if !self.live.is_modern() {
                // A server may have asked for the roots before any call was made. The client can be
                // asked only during a call, so this call does not end before the roots are
                // answered.
                let answered = self.live.calls.wait_for_adopted(&in_flight.flight);
                let _ = tokio::time::timeout(LAST_QUESTIONS, answered).await;
                return Ok(Outcome { failed: is_error_result(&result), body: result, modern: false });
            }
            let invalid = |reason: String| {
                let message =
                    format!("{} returned an invalid `input_required` result: {reason}", self.settings.name);
                HubError::new(ErrorKind::ToolFailed, message)
            };
            let Some(input) = parse_input_required(&result).map_err(invalid)? else {
                return Ok(Outcome { failed: is_error_result(&result), body: result, modern: true });
            };
            let answers = match input.questions.is_empty() {
                true => Vec::new(),
                false => call.client.ask(input.questions).await?,
            };
            let mut responses = Object::default();
            for (key, answer) in answers {
                responses.set(&key, answer);
            }
            params.set("inputResponses", responses.to_raw());
            match input.state {
                Some(state) => params.set("requestState", state),
                None => drop(params.remove("requestState")),
            }
        }
        let message =
            format!("{} requested input {MOST_ROUNDS} times without returning a result", self.settings.name);
        Err(HubError::new(ErrorKind::ToolFailed, message).into())
    }

    /// Returns the error for the caller.
    pub(crate) fn hub_error(&self, error: UpstreamError, call: &SourceCall) -> HubError {
        let name = &self.settings.name;
        let failure = match error {
            UpstreamError::Aborted(error) => return error,
            UpstreamError::TimedOut => {
                let (subject, seconds) = (call.target.subject(), self.settings.call_timeout.as_secs_f64());
                let message = format!("{name} sent no response or progress for {subject} within {seconds} s");
                return HubError::new(ErrorKind::TimedOut, message)
                    .with_suggestion("increase `call_timeout` of this server if it needs more time");
            }
            UpstreamError::Wire(failure) => failure,
        };
        match failure {
            WireError::Rpc(error) => rpc_to_hub_error(error),
            WireError::SessionGone => {
                let message = format!("{name} dropped the session again after a reconnect");
                HubError::new(ErrorKind::ConnectionLost, message)
            }
            WireError::Unreachable(reason) => {
                HubError::new(ErrorKind::CannotConnect, format!("{name} cannot be reached: {reason}"))
            }
            WireError::Lost(reason) => {
                let message = format!("the connection to {name} was lost: {reason}");
                with_stderr(HubError::new(ErrorKind::ConnectionLost, message), &self.live.stderr())
            }
            WireError::Redirected { .. } => {
                HubError::new(ErrorKind::ConnectionLost, format!("{name} {failure}"))
                    .with_suggestion("if you trust that address, set it as the `url` of this server")
            }
            WireError::Unauthorized { .. }
            | WireError::Status { .. }
            | WireError::Protocol(_)
            | WireError::TooLarge(_) => HubError::new(ErrorKind::ConnectionLost, format!("{name} {failure}")),
        }
    }
}

/// Converts the error response of a server.
pub(crate) fn rpc_to_hub_error(error: RpcError) -> HubError {
    let kind = match error.code {
        code::RESOURCE_NOT_FOUND => ErrorKind::UnknownResource,
        code::INVALID_PARAMS => ErrorKind::InvalidArguments,
        _ => ErrorKind::ToolFailed,
    };
    let origin = SourceError { code: error.code, message: error.message.clone(), data: error.data };
    HubError::new(kind, error.message).with_source_error(origin)
}

/// Adds the last lines of the server's standard error as the suggestion.
pub(crate) fn with_stderr(error: HubError, stderr: &[String]) -> HubError {
    let last: Vec<&str> = stderr.iter().rev().take(5).rev().map(String::as_str).collect();
    if last.is_empty() {
        return error;
    }
    error.with_suggestion(format!("last lines on standard error: {}", last.join(" | ")))
}

/// Returns the method, its params, and the name that HTTP mirrors in a header.
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
    // Checked first because it is cheap: most results do not contain the key.
    contains_text(result, "\"isError\"")
        && serde_json::from_str::<ErrorFlag>(result.get()).is_ok_and(|flag| flag.is_error == Some(true))
}

/// Waits for a response until the server sends nothing for `idle_timeout`, or the call is aborted.
async fn wait_with_idle_timeout<T>(
    response: impl Future<Output = T>,
    flight: &Arc<InFlightCall>,
    idle_timeout: Duration,
) -> Result<T, UpstreamError> {
    tokio::pin!(response);
    loop {
        tokio::select! {
            response = &mut response => return Ok(response),
            () = flight.activity.notified() => {
                if let Some(error) = flight.abort_reason() {
                    return Err(error.clone().into());
                }
            }
            () = tokio::time::sleep(idle_timeout) => {
                // The idle timeout does not apply while the user is being asked.
                if !flight.has_open_questions() {
                    return Err(UpstreamError::TimedOut);
                }
            }
        }
    }
}
