//! A call of the mirror: asked of the yard over the line, with what is said meanwhile handed on both ways.

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use toolyard_hub::json::{self, Object, to_raw};
use toolyard_hub::{
    CallerChannel, ClientCapabilities, ErrorKind, HubError, Outcome, Question, Raw, RawAnswers, SourceCall,
    SourceTarget,
};

use super::control_client::{ControlClient, RemoteRequest, RequestEvent};
use super::decode::request_fields;
use super::server::RemoteServer;

/// Times longer than this are not said: the yard allows less anyway.
const LONG: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Carries a call out; dropping the future cancels it there.
pub(super) async fn call(server: &RemoteServer, call: SourceCall) -> Result<Outcome, HubError> {
    let SourceCall { target, deadline, client, .. } = call;
    let abilities = client.capabilities().clone();
    let ControlCall { subtype, subject, params: mut words, kind } =
        build_control_call(server, target, &abilities)?;
    let remaining = deadline.remaining();
    if remaining < LONG && subtype != "mcp_complete" {
        let millis = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX);
        words.set("timeout_ms", to_raw(&millis.max(1)));
    }
    let line = server.link.client()?;
    server.link.announce(&subject);
    let mut asked = line.request(subtype, words).await?;
    let id = asked.id;
    let mut answering = FuturesUnordered::new();
    let response = loop {
        tokio::select! {
            said = asked.next_event() => match said {
                RequestEvent::Progress(progress) => client.report_progress(progress),
                RequestEvent::Log(line) => client.log(line),
                RequestEvent::Chunk(chunk) => client.send_chunk(chunk).await,
                RequestEvent::Questions(questions) => answering.push(answer_questions(&line, &client, id, questions)),
                RequestEvent::Response(end) => break end,
            },
            Some(answered) = answering.next() => answered?,
        }
    };
    let response = response.map_err(|error| match error.kind() {
        // One code of the yard stands for both.
        ErrorKind::UnknownResource => error.with_kind(kind),
        _ => error,
    })?;
    let response = Object::parse(&response).unwrap_or_default();
    let body = response.get("result").map_or_else(json::empty_object, ToOwned::to_owned);
    let result = Object::parse(&body).unwrap_or_default();
    let failed = result.get("isError").is_some_and(|failed| failed.get() == "true");
    Ok(Outcome { failed, modern: result.contains("resultType"), body })
}

/// Puts the questions of a call to the caller, and hands the answers on.
async fn answer_questions(
    line: &std::sync::Arc<ControlClient>,
    client: &CallerChannel,
    id: u64,
    questions: Vec<Question>,
) -> Result<(), HubError> {
    let answers: RawAnswers = client.ask(questions).await?;
    let mut said = Object::default();
    for (key, answer) in answers {
        said.set(&key, answer);
    }
    let mut words = Object::default();
    words.set("request", to_raw(&id));
    words.set("answers", said.to_raw());
    line.request("mcp_answer", words).await.map(RemoteRequest::response)?.await.map(drop)
}

/// A call in the words of the control socket.
struct ControlCall {
    subtype: &'static str,
    /// What the yard will say that it is of.
    subject: String,
    params: Object,
    /// What it means if there is no such thing.
    kind: ErrorKind,
}

fn build_control_call(
    server: &RemoteServer,
    target: SourceTarget,
    abilities: &ClientCapabilities,
) -> Result<ControlCall, HubError> {
    let gone = |kind: ErrorKind, name: &str| {
        HubError::new(kind, format!("the yard does not offer {} any more", json::truncate_for_message(name)))
    };
    let tool = |raw: &str| server.full_tool_name(raw).ok_or_else(|| gone(ErrorKind::UnknownTool, raw));
    let prompt = |raw: &str| server.full_prompt_name(raw).ok_or_else(|| gone(ErrorKind::UnknownPrompt, raw));
    let short = |uri: &str| json::truncate_for_message(uri).into_owned();
    Ok(match target {
        SourceTarget::Tool { name, arguments } => {
            let subject = tool(&name)?;
            let mut words =
                request_fields([("tool", subject.as_str().into()), ("asks", question_kinds(abilities))]);
            words.set("arguments", arguments);
            ControlCall { subtype: "mcp_call", subject, params: words, kind: ErrorKind::UnknownTool }
        }
        SourceTarget::Resource { uri } => {
            let name = toolyard_hub::Source::name(server).as_str();
            let words = request_fields([("uri", uri.as_str().into()), ("server_name", name.into())]);
            ControlCall {
                subtype: "mcp_read",
                subject: short(&uri),
                params: words,
                kind: ErrorKind::UnknownResource,
            }
        }
        SourceTarget::Prompt { name, arguments } => {
            let subject = prompt(&name)?;
            let mut words = request_fields([("name", subject.as_str().into())]);
            words.set("arguments", arguments);
            ControlCall { subtype: "mcp_prompt", subject, params: words, kind: ErrorKind::UnknownPrompt }
        }
        SourceTarget::PromptCompletion { name, argument, value, context } => {
            let subject = prompt(&name)?;
            let reference = json!({"type": "ref/prompt", "name": subject});
            let words = completion(reference, &argument, &value, context);
            ControlCall { subtype: "mcp_complete", subject, params: words, kind: ErrorKind::UnknownPrompt }
        }
        SourceTarget::TemplateCompletion { uri, argument, value, context } => {
            let words = completion(json!({"type": "ref/resource", "uri": uri}), &argument, &value, context);
            ControlCall {
                subtype: "mcp_complete",
                subject: short(&uri),
                params: words,
                kind: ErrorKind::UnknownResource,
            }
        }
    })
}

fn completion(reference: Value, argument: &str, value: &str, context: Option<Raw>) -> Object {
    let mut words =
        request_fields([("ref", reference), ("argument", json!({"name": argument, "value": value}))]);
    if let Some(context) = context {
        words.set("context", context);
    }
    words
}

/// What the caller can be asked.
fn question_kinds(abilities: &ClientCapabilities) -> Value {
    let kinds = [
        (abilities.elicit_form, "elicit_form"),
        (abilities.elicit_url, "elicit_url"),
        (abilities.sample, "sample"),
        (abilities.roots, "roots"),
    ];
    kinds.into_iter().filter(|(can, _)| *can).map(|(_, kind)| kind).collect()
}
