//! `tools/call`, `resources/read` and `prompts/get`: translates the params into a request for the
//! hub.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use toolyard_hub::{
    CallContext, CallRequest, CallTarget, CallerChannel, ClientCapabilities, ClientSession, Deadline,
    FrontName, LogLevel, Lookup, Outcome, Principal, Priority, Quota, ToolEntry, meta,
};
use toolyard_wire::{Era, InboundRequest, RawJson, RequestTransport, RpcError, check_params};

use super::active_call::McpCallTask;
use super::active_call::{McpCall, QuestionMode};
use super::park::{ParkedRequest, digest};
use super::response::{CachePolicy, cacheable, ensure_modern_fields, strip_modern_fields, with_chunks};
use super::response::{ErrorReporting, error_result};
use super::{McpFront, client_era, params};

/// The kind of a call, which determines how its result is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum McpCallKind {
    Tool,
    Resource,
    Prompt,
    Completion,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NamedParams<'a> {
    name: String,
    arguments: Option<RawJson>,
    #[serde(borrow, default, deserialize_with = "present")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UriParams<'a> {
    uri: String,
    #[serde(borrow, default, deserialize_with = "present")]
    input_responses: Option<&'a RawValue>,
    #[serde(borrow)]
    request_state: Option<&'a RawValue>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// The members that a modern client adds when it repeats a request with answers.
#[derive(Default)]
pub(super) struct InputResponses {
    answers: HashMap<String, RawJson>,
    state: Option<String>,
}

impl InputResponses {
    /// Parses the members. They are ignored in the legacy era, which does not have them.
    fn read(
        request: &InboundRequest<Principal>,
        responses: Option<&RawValue>,
        state: Option<&RawValue>,
    ) -> Result<Self, RpcError> {
        fn read<T: DeserializeOwned>(member: &str, raw: Option<&RawValue>) -> Result<Option<T>, RpcError> {
            raw.map(|raw| serde_json::from_str(raw.get()))
                .transpose()
                .map_err(|error| RpcError::invalid_params(format!("invalid {member}: {error}")))
        }
        if request.version.era() == Era::Legacy {
            return Ok(Self::default());
        }
        let answers = read("inputResponses", responses)?.unwrap_or_default();
        Ok(Self { answers, state: read("requestState", state)? })
    }
}

impl McpFront {
    pub(super) async fn call_tool(&self, request: InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let NamedParams { name, arguments, input_responses, request_state } =
            params(&request.method, request.params.as_deref())?;
        let era = client_era(&request);
        let look_up = || self.yard.look_up_tool(&name, &request.caller, era, &self.reach);
        let mut tool = look_up();
        if tool.is_none() {
            // The source may still be starting, or its entries for this era may not be loaded yet.
            self.yard.wait_for_startup(self.settings.start_wait).await;
            self.yard.discover_era(era, &self.reach, self.settings.start_wait).await;
            tool = look_up();
        }
        if let (RequestTransport::Http(headers), Era::Modern) = (&request.transport, request.version.era())
            && let Some(tool) = tool.as_ref().filter(|tool| tool.is_listed_for(&request.caller))
        {
            check_params(headers, &tool.input_schema, arguments.as_deref())?;
        }
        let repeated = InputResponses::read(&request, input_responses, request_state)?;
        let target = CallTarget::Tool { name, arguments };
        self.run_call(request, target, tool, McpCallKind::Tool, repeated).await
    }

    pub(super) async fn read_resource(
        &self,
        request: InboundRequest<Principal>,
    ) -> Result<RawJson, RpcError> {
        let UriParams { uri, input_responses, request_state } =
            params(&request.method, request.params.as_deref())?;
        let era = client_era(&request);
        let catalog = self.yard.catalog_for_era(era);
        if catalog.resource(&uri).is_none() && catalog.template_for(&uri).is_none() {
            self.yard.wait_for_startup(self.settings.start_wait).await;
            self.yard.discover_era(era, &self.reach, self.settings.start_wait).await;
        }
        let repeated = InputResponses::read(&request, input_responses, request_state)?;
        self.run_call(request, CallTarget::Resource { uri }, None, McpCallKind::Resource, repeated).await
    }

    pub(super) async fn get_prompt(&self, request: InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let NamedParams { name, arguments, input_responses, request_state } =
            params(&request.method, request.params.as_deref())?;
        let era = client_era(&request);
        if let Lookup::Unknown = self.yard.catalog_for_era(era).prompt(&name) {
            self.yard.wait_for_startup(self.settings.start_wait).await;
            self.yard.discover_era(era, &self.reach, self.settings.start_wait).await;
        }
        let repeated = InputResponses::read(&request, input_responses, request_state)?;
        let target = CallTarget::Prompt { name, arguments };
        self.run_call(request, target, None, McpCallKind::Prompt, repeated).await
    }

    /// Passes the request to the hub and waits until there is a response for the client.
    pub(super) async fn run_call(
        &self,
        request: InboundRequest<Principal>,
        target: CallTarget,
        tool: Option<Arc<ToolEntry>>,
        kind: McpCallKind,
        repeated: InputResponses,
    ) -> Result<RawJson, RpcError> {
        let modern = request.version.era() == Era::Modern;
        let mut run = match &repeated.state {
            Some(state) => self.parking.take(state, &request.caller, &digest(&request)?)?,
            None => self.start(&request, target, tool)?,
        };
        run.answer(repeated.answers);
        let mode = if modern { QuestionMode::Modern } else { QuestionMode::Legacy };
        match run.drive(&request.channel, request.meta.progress_token.as_deref(), mode).await {
            Some(Ok(outcome)) => Ok(self.render_result(&request, outcome, &run.chunks, kind)),
            Some(Err(error)) => {
                let reporting =
                    if kind == McpCallKind::Tool { ErrorReporting::Tool } else { ErrorReporting::Other };
                let result = error_result(&error, request.version, reporting)?;
                Ok(if modern { ensure_modern_fields(&self.info, result) } else { result })
            }
            None => match self.yard.charge(&request.caller, Quota::Parked, 1) {
                Ok(charge) => {
                    let (principal, digest) = (&request.caller, digest(&request)?);
                    let parked = ParkedRequest { principal, digest, home: self.own_replica() };
                    self.parking.park(run, charge, parked, &self.info)
                }
                Err(error) => {
                    let reporting =
                        if kind == McpCallKind::Tool { ErrorReporting::Tool } else { ErrorReporting::Other };
                    Ok(ensure_modern_fields(&self.info, error_result(&error, request.version, reporting)?))
                }
            },
        }
    }

    fn start(
        &self,
        request: &InboundRequest<Principal>,
        target: CallTarget,
        tool: Option<Arc<ToolEntry>>,
    ) -> Result<McpCall, RpcError> {
        let version = match (&target, &request.meta.all) {
            (CallTarget::Tool { .. }, Some(meta)) => {
                meta::requested_version(meta).map_err(RpcError::invalid_params)?
            }
            _ => None,
        };
        let capabilities = client_capabilities(request)?;
        let client_session = request.session.as_ref().map(|session| {
            // The log level may differ from call to call.
            let capabilities = ClientCapabilities { log_level: None, ..capabilities.clone() };
            ClientSession::new(session.label(), capabilities, session.closed_token())
        });
        let (client, updates) = CallerChannel::new(capabilities);
        let cancel = tokio_util::sync::CancellationToken::new();
        let call = CallRequest {
            target,
            tool,
            principal: request.caller.clone(),
            deadline: Deadline::after(Duration::MAX),
            cancel: cancel.clone(),
            priority: Priority::Normal,
            context: CallContext {
                session_id: request.session.as_ref().map(|session| session.label().into()),
                front: Some(FrontName::Mcp),
                client_session,
                era: client_era(request),
                scope: self.reach.clone(),
                version,
                ..CallContext::default()
            },
            headers: self.forwarded_headers(&request.transport),
            meta: request.meta.all.clone(),
            client,
            id: None,
            details: None,
        };
        let yard = Arc::clone(&self.yard);
        let work = McpCallTask::new(self.calls.track_future(async move { yard.call(call).await }));
        Ok(McpCall::new(work, updates, cancel))
    }

    /// Returns the caller's headers that the configuration forwards to sources.
    fn forwarded_headers(&self, transport: &RequestTransport) -> Vec<(String, String)> {
        let RequestTransport::Http(headers) = transport else { return Vec::new() };
        let value = |name: &String| Some((name.clone(), headers.get(name)?.to_str().ok()?.to_owned()));
        self.settings.forward_headers.iter().filter_map(value).collect()
    }

    fn render_result(
        &self,
        request: &InboundRequest<Principal>,
        outcome: Outcome,
        chunks: &[serde_json::Value],
        kind: McpCallKind,
    ) -> RawJson {
        let body = match chunks {
            [] => outcome.body,
            chunks => with_chunks(&outcome.body, chunks),
        };
        match (request.version.era(), kind) {
            (Era::Legacy, _) if outcome.modern => strip_modern_fields(&body),
            (Era::Legacy, _) => body,
            // Only the source knows whether the contents change and who may see them.
            (Era::Modern, McpCallKind::Resource) => {
                cacheable(&self.info, &body, CachePolicy::private(Duration::ZERO))
            }
            (Era::Modern, _) => ensure_modern_fields(&self.info, body),
        }
    }
}

/// Returns the capabilities and the log level of the client.
fn client_capabilities(request: &InboundRequest<Principal>) -> Result<ClientCapabilities, RpcError> {
    let level = match &request.session {
        // Until a legacy client sets a level, it gets `info`.
        Some(session) => Some(session.log_level().unwrap_or_else(|| "info".to_owned())),
        None => request.meta.log_level.clone(),
    };
    let log_level = match level {
        Some(level) => Some(read_level(&level)?),
        None => None,
    };
    Ok(ClientCapabilities {
        elicit_form: request.client.elicit_form,
        elicit_url: request.client.elicit_url,
        sample: request.client.sample,
        roots: request.client.roots,
        log_level,
    })
}

fn read_level(level: &str) -> Result<LogLevel, RpcError> {
    serde_json::from_value(level.into())
        .map_err(|_| RpcError::invalid_params(format!("unknown log level {level}")))
}
