//! Calls over real connections.

mod limits;
mod proving;
mod reach;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde_json::Value;
use toolyard_hub::json::from_text;
use toolyard_hub::{
    Deadline, ExecutionId, HubError, Outcome, Principal, SourceCall, SourceName, SourceTarget,
};

use super::HttpExchange;
use crate::auth::TokenCache;
use crate::clients::HttpClients;
use crate::document::DocumentLocation;
use crate::fake_server::{self, FakeServer};
use crate::host_policy::AllowedHosts;
use crate::operation::{Method, Operation, SecurityScheme, ServerUrl};
use crate::request::fixtures::operation;
use crate::settings::DocumentSettings;

/// Everything that a call of one operation needs.
struct Stage {
    http: HttpClients,
    settings: DocumentSettings,
    named: AllowedHosts,
    tokens: Arc<TokenCache>,
    schemes: Vec<SecurityScheme>,
    operation: Operation,
}

impl Stage {
    /// A stage whose operation has a configured base URL.
    fn at(url: &str, operation: Operation) -> Self {
        let mut settings =
            DocumentSettings::new(SourceName::new("made"), DocumentLocation::File("made.yaml".into()));
        settings.base_url = Some(url.to_owned());
        let named = AllowedHosts::new([&Url::parse(url).unwrap()], &[]);
        Self {
            http: fake_server::http_clients(),
            settings,
            named,
            tokens: Arc::default(),
            schemes: Vec::new(),
            operation,
        }
    }

    fn of(fake: &FakeServer, method: Method) -> Self {
        Self::at(&fake.url(), operation(method, "/a"))
    }

    /// A stage whose base URL comes from the document alone.
    fn as_documented(url: &str) -> Self {
        let server = ServerUrl { template: url.to_owned(), variables: Default::default() };
        let mut stage = Self::at("http://unused.example", operation(Method::Get, "/a"));
        stage.settings.base_url = None;
        stage.operation.servers = vec![server];
        stage.named = AllowedHosts::default();
        stage
    }

    async fn call(&self, arguments: &str) -> Result<Outcome, HubError> {
        self.call_with(arguments, &[]).await
    }

    async fn call_with(&self, arguments: &str, headers: &[(&str, &str)]) -> Result<Outcome, HubError> {
        let arguments = from_text(arguments.to_owned());
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let target = SourceTarget::Tool { name: "made".to_owned(), arguments: arguments.clone() };
        let call = SourceCall {
            headers,
            deadline: Deadline::after(Duration::from_secs(60)),
            ..SourceCall::new(ExecutionId::generate()?, target, Principal::owner())
        };
        let exchange = HttpExchange {
            http: &self.http,
            settings: &self.settings,
            named: &self.named,
            tokens: &self.tokens,
            schemes: &self.schemes,
            document: None,
            operation: &self.operation,
        };
        exchange.run(&call, &arguments).await
    }
}

/// Returns the text of the first content block of a result.
fn text(outcome: &Outcome) -> String {
    let result: Value = serde_json::from_str(outcome.body.get()).unwrap();
    result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
