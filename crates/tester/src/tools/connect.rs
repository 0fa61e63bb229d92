//! `connect_to_server`

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::permission::SPAWN;
use toolyard_hub::{ClientCapabilities, ErrorKind, HubError};
use toolyard_upstream::{AddressFilter, CredentialPolicy, DirectConnection, ServerSettings};

use super::ToolInvocation;
use crate::access::{
    authorize_address, can_see_failures, forbidden, opaque_connect_error, required_permissions,
};
use crate::answer::{AnswerMetadata, TesterAnswer};
use crate::caller::TesterCaller;
use crate::connection::{ConnectionTerms, TesterConnection};
use crate::error::TesterError;
use crate::saved_calls::{SavedCallLog, saved_server};
use crate::source::close_all;
use crate::target::{TesterServer, TesterTarget, parse_target, suggest_server};

#[derive(Deserialize)]
struct Arguments {
    url: String,
}

/// The terms on which a caller may connect.
#[derive(Default)]
struct ConnectGrant {
    /// Which resolved addresses may be used. `None` allows all.
    filter: Option<AddressFilter>,
    terms: ConnectionTerms,
}

impl ToolInvocation<'_> {
    pub(super) async fn connect_to_server(&self) -> Result<TesterAnswer, TesterError> {
        let Arguments { url } = self.parse_arguments()?;
        let servers = self.tester.servers.load_full();
        let principal = &self.call.record.principal;
        let target = parse_target(&url, &servers, principal)?;
        let granted = self.authorize_connect(&url, &target, &servers).await?;
        let (seat, ended) = self.tester.connections.reserve(self.caller.clone(), &url)?;
        close_all(ended).await;
        let is_command = matches!(target, TesterTarget::Command(_));
        let saved_calls = SavedCallLog::new(saved_server(&target));
        let (settings, credentials) = self.connection_settings(target);
        // The log level of a client differs from call to call.
        let abilities = ClientCapabilities { log_level: None, ..self.call.client.capabilities().clone() };
        let common = match granted.filter {
            None => Cow::Borrowed(&self.tester.common),
            Some(filter) => Cow::Owned(self.tester.common.with_address_filter(filter).map_err(|error| {
                HubError::new(ErrorKind::Bug, format!("cannot create the HTTP client: {error}"))
            })?),
        };
        let opening = DirectConnection::open(settings, &common, &abilities, credentials);
        let opened = tokio::select! {
            biased;
            opened = opening => opened,
            () = self.call.deadline.passed() => Err(HubError::new(ErrorKind::CannotConnect, "the call exceeded its deadline")),
        };
        let link = opened.map_err(|error| {
            let error = with_server_url(&error, &url);
            let meant = suggest_server(&url, &servers, principal).filter(|_| is_command);
            match meant {
                _ if granted.terms.hides_failures => opaque_connect_error(&url),
                Some(name) => error.with_suggestion(format!("did you mean the configured server `{name}`?")),
                None => with_connect_suggestion(error, is_command),
            }
        })?;
        let connection = Arc::new(TesterConnection::new(url, link, granted.terms, saved_calls));
        let message = connected_message(&connection);
        let answer = TesterAnswer::success()
            .with("connection", connection.details_json())
            .with("message", to_raw(&message))
            .with_metadata(AnswerMetadata::default());
        seat.fill(Arc::clone(&connection));
        if let (TesterCaller::Session { .. }, Some(session)) =
            (&self.caller, &self.call.record.context.client_session)
        {
            self.tester.close_with_session(session.ended().clone(), self.caller.clone(), connection);
        }
        Ok(answer)
    }

    /// Decides whether this caller may connect to the target, and on which terms.
    async fn authorize_connect(
        &self,
        url: &str,
        target: &TesterTarget,
        servers: &BTreeMap<String, TesterServer>,
    ) -> Result<ConnectGrant, HubError> {
        if self.caller == TesterCaller::Process {
            return Ok(ConnectGrant::default());
        }
        let principal = &self.call.record.principal;
        let (action, needed) = match target {
            TesterTarget::Address(_) => {
                let approach = authorize_address(url, servers, principal).await?;
                let hides_failures = !approach.is_configured && !can_see_failures(principal);
                let terms =
                    ConnectionTerms { required_permissions: approach.required_permissions, hides_failures };
                return Ok(ConnectGrant { filter: approach.filter, terms });
            }
            TesterTarget::Command(_) => ("starting a command line".to_owned(), vec![SPAWN.to_owned()]),
            TesterTarget::Configured(settings) => {
                (format!("testing server `{}`", settings.name), required_permissions(settings, principal))
            }
        };
        match self.missing_permission(&needed) {
            None => Ok(ConnectGrant {
                filter: None,
                terms: ConnectionTerms { required_permissions: needed, hides_failures: false },
            }),
            Some(missing) => Err(forbidden(&action, missing)),
        }
    }

    fn connection_settings(&self, target: TesterTarget) -> (ServerSettings, CredentialPolicy) {
        let ours = &self.tester.settings;
        match target {
            TesterTarget::Address(settings) | TesterTarget::Command(settings) => {
                let (start_time, call_time) = (ours.connect_timeout, ours.call_timeout);
                (
                    ServerSettings { start_timeout: start_time, call_timeout: call_time, ..settings },
                    CredentialPolicy::ConfiguredOnly,
                )
            }
            TesterTarget::Configured(settings) => (*settings, CredentialPolicy::Granted),
        }
    }
}

/// Adds the target of the connection to an error.
fn with_server_url(error: &HubError, url: &str) -> HubError {
    let mut details = error.details().cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
    details["server_url"] = url.into();
    let message = match error.message().contains(url) {
        true => error.message().to_owned(),
        false => format!("cannot connect to {url}: {}", error.message()),
    };
    let named = HubError::new(error.kind(), message).with_details(details);
    error.suggestion().map(ToOwned::to_owned).into_iter().fold(named, HubError::with_suggestion)
}

fn connected_message(connection: &TesterConnection) -> String {
    let named = connection.server_info();
    let name = named.name.as_deref().unwrap_or("an unnamed server");
    let version = named.version.map(|version| format!(" {version}")).unwrap_or_default();
    let transport = match connection.is_legacy_sse() {
        true => "the old HTTP+SSE transport, the only one that it supports".to_owned(),
        false => connection.transport().to_owned(),
    };
    let protocol = connection.link.version().as_str();
    format!("Connected to {name}{version} over {transport}, with protocol version {protocol}")
}

/// Adds a suggestion that fits the failure.
fn with_connect_suggestion(error: HubError, is_command: bool) -> HubError {
    if error.suggestion().is_some() {
        return error;
    }
    let fact = |key: &str| error.details().and_then(|details| details.get(key)).cloned();
    let status = fact("http_status").as_ref().and_then(Value::as_u64);
    let message = error.message().to_ascii_lowercase();
    let suggestion = match status {
        Some(401 | 403) => {
            "the server requires authorization: configure it as a server with `headers`, or run \
             `toolyard login`, and connect by its configured name"
        }
        Some(300..=399) => "connect to the address that the server redirects to",
        Some(404..=406) => "check the path: MCP servers often use /mcp, and old ones /sse",
        Some(500..=599) => "the server failed: look at its log",
        Some(_) => "check that this is the address of an MCP server",
        None if is_command && fact("stderr").is_some() => "see its standard error in details.stderr",
        None if is_command => {
            "run the command by hand: an MCP server reads JSON on standard input and writes only JSON to \
             standard output"
        }
        None if message.contains("certificate") => {
            "the server's certificate is not trusted: check its names, its validity period and its issuer"
        }
        None if message.contains("no response within") => {
            "check that the server is listening and not overloaded"
        }
        None if message.contains("does not speak mcp") => {
            "this is not an MCP server: check the address and the path, which is often /mcp"
        }
        None => "check the name and the port, and that the server is running",
    };
    error.with_suggestion(suggestion)
}
