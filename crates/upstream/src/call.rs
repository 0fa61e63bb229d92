//! One call to a server, from the hub's words to the wire's and back.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::{Object, mentions, to_raw};
use toolyard_hub::{Call, Error, Kind, Origin, Outcome, Raw, Target, meta};
use toolyard_wire::{Failure, code};

use crate::auth::Challenge;
use crate::calls::Flight;
use crate::live::{Dress, Live, Mirrored, forwarded};
use crate::question::required;
use crate::settings::ServerSettings;

/// How often a modern server may ask for more before it is taken to go round in circles.
const MOST_ROUNDS: usize = 16;

/// How long an answer is held back for questions that are still open.
const LAST_QUESTIONS: Duration = Duration::from_secs(30);

/// How a call to the server ended without an outcome.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It never reached the server: it may be sent again.
    Unsent,
    /// The server wants to know who we are, or that we may do more: it may be sent again after that.
    Challenged(Challenge),
    Error(Error),
}

/// Why there is no outcome, before anybody has put it in words.
#[derive(Debug)]
pub(crate) enum Stopped {
    Failure(Failure),
    /// Nothing was heard for as long as a call may be silent.
    Silent,
    Error(Error),
}

/// What a call is sent with.
pub(crate) struct Sending<'a> {
    pub(crate) live: &'a Live,
    pub(crate) settings: &'a ServerSettings,
    pub(crate) mirrored: &'a Mirrored,
}

impl Sending<'_> {
    pub(crate) async fn perform(&self, call: &Call) -> Result<Outcome, Ended> {
        self.exchange(call).await.map_err(|stopped| match stopped {
            Stopped::Failure(failure) => self.ended(failure),
            Stopped::Silent => self.silent(call),
            Stopped::Error(error) => Ended::Error(error),
        })
    }

    pub(crate) async fn exchange(&self, call: &Call) -> Result<Outcome, Stopped> {
        let mut in_flight = self.live.calls.enter(call);
        let (method, mut params, name) = request(&call.target);
        // Only who asked for a version is refused where the server does not have it any more.
        let version = call.context.version.as_deref().filter(|_| call.context.version_asked);
        let asking = version.map(|version| meta::asking_for(version, call.meta.as_deref()));
        for _ in 0..MOST_ROUNDS {
            let dress = Dress {
                meta: asking.as_deref().or(call.meta.as_deref()),
                abilities: call.client.abilities().clone(),
                tag: Some(in_flight.tag),
                name,
                schema: name.and_then(|name| self.mirrored.get(name)).map(|schema| &**schema),
                headers: forwarded(&self.settings.forward_headers, &call.context.headers),
            };
            let outbound = self.live.dress(method, &params, dress).map_err(Stopped::Failure)?;
            let answer = self.live.client.request(outbound);
            let answer = patiently(answer, &in_flight.flight, self.settings.call_time).await?;
            if matches!(&answer, Ok(_) | Err(Failure::Rpc(_) | Failure::SessionGone)) {
                in_flight.answered();
            }
            let answer = answer.map_err(Stopped::Failure)?;
            if !self.live.is_modern() {
                // A server that asked for the roots before anybody called is told them by whoever called now. This
                // call is the only way to ask the client, so it is not over before that.
                let answered = self.live.calls.adopted_answered(&in_flight.flight);
                let _ = tokio::time::timeout(LAST_QUESTIONS, answered).await;
                return Ok(Outcome { failed: says_failed(&answer), body: answer, modern: false });
            }
            let wrong = |why: String| {
                Stopped::Error(Error::new(
                    Kind::ToolFailed,
                    format!("{} asks in a way that makes no sense: {why}", self.settings.name),
                ))
            };
            let Some(asked) = required(&answer).map_err(wrong)? else {
                return Ok(Outcome { failed: says_failed(&answer), body: answer, modern: true });
            };
            let answers = match asked.questions.is_empty() {
                true => Vec::new(),
                false => call.client.ask(asked.questions).await.map_err(Stopped::Error)?,
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
        Err(Stopped::Error(Error::new(Kind::ToolFailed, message)))
    }

    fn silent(&self, call: &Call) -> Ended {
        let seconds = self.settings.call_time.as_secs_f64();
        let what = match &call.target {
            Target::Tool { name, .. }
            | Target::Prompt { name, .. }
            | Target::PromptCompletion { name, .. } => name,
            Target::Resource { uri } | Target::TemplateCompletion { uri, .. } => uri,
        };
        let message = format!("{} said nothing about {what} for {seconds} s", self.settings.name);
        Ended::Error(
            Error::new(Kind::TimedOut, message)
                .suggest("raise call_timeout of this server if it needs longer"),
        )
    }

    fn ended(&self, failure: Failure) -> Ended {
        let name = &self.settings.name;
        if let Some(challenge) = Challenge::of(&failure) {
            return Ended::Challenged(challenge);
        }
        let error = match failure {
            Failure::SessionGone => return Ended::Unsent,
            Failure::Rpc(error) => {
                let kind = match error.code {
                    code::RESOURCE_NOT_FOUND => Kind::UnknownResource,
                    code::INVALID_PARAMS => Kind::InvalidArguments,
                    _ => Kind::ToolFailed,
                };
                let origin = Origin { code: error.code, message: error.message.clone(), data: error.data };
                Error::new(kind, error.message).from_source(origin)
            }
            Failure::Unreachable(why) => {
                Error::new(Kind::CannotConnect, format!("{name} cannot be reached: {why}"))
            }
            Failure::Lost(why) => with_stderr(
                Error::new(Kind::ConnectionLost, format!("the connection to {name} was lost: {why}")),
                &self.live.stderr(),
            ),
            Failure::Redirected { .. } => Error::new(Kind::ConnectionLost, format!("{name} {failure}"))
                .suggest("if you trust that address, set it as the url of this server"),
            Failure::Unauthorized { .. }
            | Failure::Status { .. }
            | Failure::Protocol(_)
            | Failure::TooLarge(_) => Error::new(Kind::ConnectionLost, format!("{name} {failure}")),
        };
        Ended::Error(error)
    }
}

/// Puts the server's own last words where a person looks next.
pub(crate) fn with_stderr(error: Error, stderr: &[String]) -> Error {
    let last: Vec<&str> = stderr.iter().rev().take(5).rev().map(String::as_str).collect();
    if last.is_empty() { error } else { error.suggest(format!("it last said: {}", last.join(" | "))) }
}

/// The method, its params, and the name that HTTP mirrors.
fn request(target: &Target) -> (&'static str, Object, Option<&str>) {
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
        Target::Tool { name, arguments } => {
            params.set("name", to_raw(name));
            params.set("arguments", arguments.clone());
            ("tools/call", params, Some(name.as_str()))
        }
        Target::Prompt { name, arguments } => {
            params.set("name", to_raw(name));
            params.set("arguments", arguments.clone());
            ("prompts/get", params, Some(name.as_str()))
        }
        Target::Resource { uri } => {
            params.set("uri", to_raw(uri));
            ("resources/read", params, Some(uri.as_str()))
        }
        Target::PromptCompletion { name, argument, value, context } => {
            complete(json!({"type": "ref/prompt", "name": name}), argument, value, context)
        }
        Target::TemplateCompletion { uri, argument, value, context } => {
            complete(json!({"type": "ref/resource", "uri": uri}), argument, value, context)
        }
    }
}

fn says_failed(result: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Says {
        is_error: Option<bool>,
    }
    // A cheap look first: most results do not have the key at all.
    mentions(result, "\"isError\"")
        && serde_json::from_str::<Says>(result.get()).is_ok_and(|says| says.is_error == Some(true))
}

/// Waits for an answer as long as the server is heard of now and then, and the call may go on.
async fn patiently<T>(
    answer: impl Future<Output = T>,
    flight: &Arc<Flight>,
    silence: Duration,
) -> Result<T, Stopped> {
    tokio::pin!(answer);
    loop {
        tokio::select! {
            answer = &mut answer => return Ok(answer),
            () = flight.heard.notified() => {
                if let Some(why) = flight.stopped() {
                    return Err(Stopped::Error(why.clone()));
                }
            }
            () = tokio::time::sleep(silence) => {
                // While a person is being asked, nobody is silent.
                if !flight.is_asked() {
                    return Err(Stopped::Silent);
                }
            }
        }
    }
}
