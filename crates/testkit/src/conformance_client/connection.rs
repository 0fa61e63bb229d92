//! One connection to the suite's server, over the product's own upstream.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;
use toolyard_hub::json::to_raw;
use toolyard_hub::{
    CallerChannel, CallerUpdate, ClientCapabilities, Deadline, ExecutionId, Principal, Source, SourceCall,
    SourceName, SourceOffer, SourceState, SourceTarget,
};
use toolyard_upstream::{
    AuthContext, ServerAuthSettings, ServerSettings, SupervisorCommand, TransportSettings, Upstream,
    UpstreamContext, UrlKind, UrlSettings,
};

use super::{Failure, accept_defaults, browser};

const PATIENCE: Duration = Duration::from_secs(20);
/// Where the suite pretends to publish the client metadata document.
const DOCUMENT: &str = "https://conformance-test.local/client-metadata.json";

type Work<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;

pub(super) struct Connection {
    upstream: Arc<Upstream>,
}

/// A tool as the server advertised it.
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) definition: Value,
}

impl Connection {
    /// Connects and waits for the lists.
    pub(super) async fn open(url: &str, auth: ServerAuthSettings) -> Result<Self, Failure> {
        let keeper = SupervisorCommand {
            program: "none".into(),
            args: Vec::new(),
            environment: toolyard_upstream::ProcessEnvironment::default(),
        };
        let me = to_raw(&json!({"name": "toolyard-conformance-client", "version": "1.0.0"}));
        let person = Some(browser::auto_approve_prompter());
        let auth_shared = AuthContext {
            client_metadata_url: Some(DOCUMENT.to_owned()),
            login_prompter: person,
            ..AuthContext::default()
        };
        let common = UpstreamContext { auth: auth_shared, ..UpstreamContext::new(keeper, me)? };
        let url = UrlSettings { url: url.to_owned(), headers: Default::default(), kind: UrlKind::Any };
        let transport = TransportSettings::Url(url);
        let settings = ServerSettings { auth, ..ServerSettings::new(SourceName::new("suite"), transport) };
        let upstream = Upstream::start(settings, common);
        let limit = Instant::now() + PATIENCE;
        loop {
            let status = upstream.status();
            match status.state {
                SourceState::Ready => return Ok(Self { upstream }),
                SourceState::Starting if Instant::now() < limit => {
                    tokio::time::sleep(Duration::from_millis(5)).await
                }
                state => {
                    upstream.stop().await;
                    return Err(format!("{}: {}", state.label(), status.reason.unwrap_or_default()).into());
                }
            }
        }
    }

    pub(super) async fn close(self) {
        self.upstream.stop().await;
    }

    pub(super) fn offer(&self) -> Arc<SourceOffer> {
        self.upstream.offer()
    }

    pub(super) fn tools(&self) -> Vec<Tool> {
        let offer = self.offer();
        let read = offer.tools.iter().filter_map(|tool| {
            let definition = parse_definition(&tool.definition).ok()?;
            Some(Tool { name: definition["name"].as_str()?.to_owned(), definition })
        });
        read.collect()
    }

    pub(super) async fn call_tool(&self, name: &str, arguments: Value) -> Result<(), Failure> {
        self.call_tool_with(name, arguments, || Box::pin(async { Ok(()) })).await
    }

    /// Calls a tool, and runs `meanwhile` before answering each of its questions.
    pub(super) async fn call_tool_with<'a>(
        &self,
        name: &str,
        arguments: Value,
        meanwhile: impl Fn() -> Work<'a>,
    ) -> Result<(), Failure> {
        let target = SourceTarget::Tool { name: name.to_owned(), arguments: to_raw(&arguments) };
        self.call(target, meanwhile).await
    }

    pub(super) async fn read_resource(&self, uri: &Value) -> Result<(), Failure> {
        let uri = uri.as_str().unwrap_or_default().to_owned();
        self.call(SourceTarget::Resource { uri }, || Box::pin(async { Ok(()) })).await
    }

    pub(super) async fn get_prompt(&self, name: &Value) -> Result<(), Failure> {
        let name = name.as_str().unwrap_or_default().to_owned();
        let target = SourceTarget::Prompt { name, arguments: to_raw(&json!({})) };
        self.call(target, || Box::pin(async { Ok(()) })).await
    }

    async fn call<'a>(&self, target: SourceTarget, meanwhile: impl Fn() -> Work<'a>) -> Result<(), Failure> {
        let abilities = ClientCapabilities { elicit_form: true, ..ClientCapabilities::default() };
        let (client, mut updates) = CallerChannel::new(abilities);
        let call = SourceCall {
            deadline: Deadline::after(PATIENCE),
            client,
            ..SourceCall::new(ExecutionId::generate()?, target, Principal::owner())
        };
        let answered = tokio::time::timeout(PATIENCE, self.upstream.call(call));
        tokio::pin!(answered);
        loop {
            tokio::select! {
                outcome = &mut answered => return Ok(outcome?.map(drop).map_err(|error| error.message_with_suggestion())?),
                Some(update) = updates.recv() => if let CallerUpdate::Ask(ask) = update {
                    meanwhile().await?;
                    let answers = ask.questions.iter().map(|question| {
                        let params = parse_definition(&question.params).unwrap_or_default();
                        (question.key.clone(), to_raw(&accept_defaults(&params["requestedSchema"])))
                    });
                    let _ = ask.reply.send(Ok(answers.collect()));
                },
            }
        }
    }
}

/// Parses a definition.
pub(super) fn parse_definition(raw: &RawValue) -> Result<Value, serde_json::Error> {
    serde_json::from_str(raw.get())
}
