//! Forwards a call to the remote yard, with its progress, log lines, chunks, questions and answers.

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

/// Longer timeouts are not sent, because the yard allows less anyway.
const LONGEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

/// Executes a call on the remote yard. Dropping the future cancels the call there.
pub(super) async fn call(server: &RemoteServer, call: SourceCall) -> Result<Outcome, HubError> {
    let SourceCall { target, deadline, client, .. } = call;
    let capabilities = client.capabilities().clone();
    let ControlCall { subtype, subject, mut params, kind } =
        build_control_call(server, target, &capabilities)?;
    let remaining = deadline.remaining();
    if remaining < LONGEST_TIMEOUT && subtype != "mcp_complete" {
        let millis = u64::try_from(remaining.as_millis()).unwrap_or(u64::MAX);
        params.set("timeout_ms", to_raw(&millis.max(1)));
    }
    let control = server.link.client()?;
    server.link.announce(&subject);
    let mut request = control.request(subtype, params).await?;
    let id = request.id;
    let mut answering = FuturesUnordered::new();
    let response = loop {
        tokio::select! {
            event = request.next_event() => match event {
                RequestEvent::Progress(progress) => client.report_progress(progress),
                RequestEvent::Log(line) => client.log(line),
                RequestEvent::Chunk(chunk) => client.send_chunk(chunk).await,
                RequestEvent::Questions(questions) => answering.push(answer_questions(&control, &client, id, questions)),
                RequestEvent::Response(response) => break response,
            },
            Some(result) = answering.next() => result?,
        }
    };
    let response = response.map_err(|error| match error.kind() {
        // The yard uses one code for unknown resources and prompts.
        ErrorKind::UnknownResource => error.with_kind(kind),
        _ => error,
    })?;
    let response = Object::parse(&response).unwrap_or_default();
    let body = response.get("result").map_or_else(json::empty_object, ToOwned::to_owned);
    let result = Object::parse(&body).unwrap_or_default();
    let failed = result.get("isError").is_some_and(|failed| failed.get() == "true");
    Ok(Outcome { failed, modern: result.contains("resultType"), body })
}

/// Asks the caller the questions of a call, and sends the answers to the yard.
async fn answer_questions(
    control: &std::sync::Arc<ControlClient>,
    client: &CallerChannel,
    id: u64,
    questions: Vec<Question>,
) -> Result<(), HubError> {
    let answers: RawAnswers = client.ask(questions).await?;
    let mut members = Object::default();
    for (key, answer) in answers {
        members.set(&key, answer);
    }
    let mut params = Object::default();
    params.set("request", to_raw(&id));
    params.set("answers", members.to_raw());
    control.request("mcp_answer", params).await.map(RemoteRequest::response)?.await.map(drop)
}

/// A call as a request of the control protocol.
struct ControlCall {
    subtype: &'static str,
    /// The subject of the call in the events of the yard.
    subject: String,
    params: Object,
    /// The error kind if the target does not exist.
    kind: ErrorKind,
}

fn build_control_call(
    server: &RemoteServer,
    target: SourceTarget,
    capabilities: &ClientCapabilities,
) -> Result<ControlCall, HubError> {
    let not_offered = |kind: ErrorKind, name: &str| {
        HubError::new(kind, format!("the yard no longer offers {}", json::truncate_for_message(name)))
    };
    let tool = |raw: &str| server.full_tool_name(raw).ok_or_else(|| not_offered(ErrorKind::UnknownTool, raw));
    let prompt =
        |raw: &str| server.full_prompt_name(raw).ok_or_else(|| not_offered(ErrorKind::UnknownPrompt, raw));
    let short = |uri: &str| json::truncate_for_message(uri).into_owned();
    Ok(match target {
        SourceTarget::Tool { name, arguments } => {
            let subject = tool(&name)?;
            let mut params =
                request_fields([("tool", subject.as_str().into()), ("asks", question_kinds(capabilities))]);
            params.set("arguments", arguments);
            ControlCall { subtype: "mcp_call", subject, params, kind: ErrorKind::UnknownTool }
        }
        SourceTarget::Resource { uri } => {
            let name = toolyard_hub::Source::name(server).as_str();
            let params = request_fields([("uri", uri.as_str().into()), ("server_name", name.into())]);
            ControlCall {
                subtype: "mcp_read",
                subject: short(&uri),
                params,
                kind: ErrorKind::UnknownResource,
            }
        }
        SourceTarget::Prompt { name, arguments } => {
            let subject = prompt(&name)?;
            let mut params = request_fields([("name", subject.as_str().into())]);
            params.set("arguments", arguments);
            ControlCall { subtype: "mcp_prompt", subject, params, kind: ErrorKind::UnknownPrompt }
        }
        SourceTarget::PromptCompletion { name, argument, value, context } => {
            let subject = prompt(&name)?;
            let reference = json!({"type": "ref/prompt", "name": subject});
            let params = completion(reference, &argument, &value, context);
            ControlCall { subtype: "mcp_complete", subject, params, kind: ErrorKind::UnknownPrompt }
        }
        SourceTarget::TemplateCompletion { uri, argument, value, context } => {
            let params = completion(json!({"type": "ref/resource", "uri": uri}), &argument, &value, context);
            ControlCall {
                subtype: "mcp_complete",
                subject: short(&uri),
                params,
                kind: ErrorKind::UnknownResource,
            }
        }
    })
}

fn completion(reference: Value, argument: &str, value: &str, context: Option<Raw>) -> Object {
    let mut params =
        request_fields([("ref", reference), ("argument", json!({"name": argument, "value": value}))]);
    if let Some(context) = context {
        params.set("context", context);
    }
    params
}

/// Returns the kinds of questions that the caller can answer.
fn question_kinds(capabilities: &ClientCapabilities) -> Value {
    let kinds = [
        (capabilities.elicit_form, "elicit_form"),
        (capabilities.elicit_url, "elicit_url"),
        (capabilities.sample, "sample"),
        (capabilities.roots, "roots"),
    ];
    kinds.into_iter().filter(|(is_supported, _)| *is_supported).map(|(_, kind)| kind).collect()
}
