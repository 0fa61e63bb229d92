//! The nine tools. Each one finds its connection, performs one operation on it, and reports exactly
//! what happened.

mod arguments;
mod call_tool;
mod connect;
mod disconnect;
mod get_prompt;
mod lists;
mod read_resource;
mod status;

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use toolyard_hub::json::Object;
use toolyard_hub::{ErrorKind, HubError, Outcome, Raw, SourceCall, SourceTarget};

use crate::access::forbidden;
use crate::answer::{Stopwatch, TesterAnswer, failure};
use crate::caller::TesterCaller;
use crate::connection::TesterConnection;
use crate::definitions::TesterTool;
use crate::error::TesterError;
use crate::source::Tester;

/// One call of one of the tools.
#[derive(Debug)]
struct ToolInvocation<'a> {
    tester: &'a Tester,
    call: SourceCall,
    caller: TesterCaller,
    arguments: Raw,
}

pub(crate) async fn run_tool(tester: &Tester, mut call: SourceCall) -> Result<Outcome, HubError> {
    let watch = Stopwatch::start();
    let nothing = SourceTarget::Resource { uri: String::new() };
    let SourceTarget::Tool { name, arguments } = std::mem::replace(&mut call.target, nothing) else {
        return Err(HubError::new(ErrorKind::Bug, "the tester offers only tools"));
    };
    let Some(verb) = TesterTool::from_name(&name) else {
        return Err(HubError::new(ErrorKind::UnknownTool, format!("unknown tool `{name}`")));
    };
    let caller = TesterCaller::from_call(&call, tester.settings.sharing);
    let this = ToolInvocation { tester, call, caller, arguments };
    let answer = match verb {
        TesterTool::ConnectToServer => this.connect_to_server().await,
        TesterTool::Disconnect => this.disconnect().await,
        TesterTool::GetConnectionStatus => Ok(this.get_connection_status()),
        TesterTool::ListTools => this.list_tools().await,
        TesterTool::CallTool => this.call_tool().await,
        TesterTool::ListResources => this.list_resources().await,
        TesterTool::ReadResource => this.read_resource().await,
        TesterTool::ListPrompts => this.list_prompts().await,
        TesterTool::GetPrompt => this.get_prompt().await,
    };
    let connection = tester.connections.peek(&this.caller);
    // The status reports all violations itself.
    let noting = connection.as_ref().filter(|_| verb != TesterTool::GetConnectionStatus);
    let notes = noting.map(|connection| connection.take_violations()).unwrap_or_default();
    Ok(match answer {
        Ok(answer) => answer.with_notes(notes).into_outcome(watch),
        Err(fault) => {
            let connection = fault.connection.clone().or(connection);
            failure(&TesterError { connection, ..fault }, notes, watch)
        }
    })
}

/// Adds to an argument error of the yard the input schema of the tool, as help for the next call.
pub(crate) fn explain_invalid_arguments(tool: &str, error: &HubError) -> HubError {
    let Some(verb) = TesterTool::from_name(tool).filter(|_| error.kind() == ErrorKind::InvalidArguments)
    else {
        return error.clone();
    };
    let mut details = error.details().cloned().filter(Value::is_object).unwrap_or_else(|| json!({}));
    details["input_schema"] = serde_json::from_str(verb.input_schema().get()).unwrap_or_default();
    let error = error.clone().with_details(details);
    error.with_suggestion(format!(
        "call {tool} with arguments that match its input schema, which is in the details"
    ))
}

impl ToolInvocation<'_> {
    /// Parses the arguments, which the yard has checked against the tool's schema.
    fn parse_arguments<T: DeserializeOwned>(&self) -> Result<T, HubError> {
        serde_json::from_str(self.arguments.get()).map_err(|error| {
            HubError::new(ErrorKind::InvalidArguments, format!("invalid arguments: {error}"))
        })
    }

    fn connection(&self) -> Result<Arc<TesterConnection>, TesterError> {
        let connection = self.tester.connections.connection(&self.caller)?;
        // Permissions can change while a connection is open.
        if let Some(missing) = self.missing_permission(&connection.terms.required_permissions) {
            return Err(forbidden("this connection", missing).into());
        }
        Ok(connection)
    }

    /// Runs an operation on a connection until it completes, the deadline passes, or the connection
    /// is closed.
    async fn run_on_connection<T>(
        &self,
        connection: &Arc<TesterConnection>,
        work: impl Future<Output = Result<T, HubError>>,
    ) -> Result<T, TesterError> {
        let done = tokio::select! {
            biased;
            done = work => done,
            () = connection.closed.cancelled() => {
                Err(HubError::new(ErrorKind::NotConnected, "the connection was closed during the call").with_suggestion("call connect_to_server again"))
            }
            () = self.call.deadline.passed() => {
                Err(HubError::new(ErrorKind::TimedOut, "the call exceeded its deadline"))
            }
        };
        connection.touch();
        done.map_err(|error| {
            let error = if connection.terms.hides_failures { hide_failure(error) } else { error };
            TesterError::on_connection(connection, with_suggestion(error))
        })
    }

    /// Returns the first of these permissions that the caller lacks. The single client of a process
    /// is its owner and lacks none.
    fn missing_permission<'b>(&self, needed: &'b [String]) -> Option<&'b str> {
        match self.caller {
            TesterCaller::Process => None,
            TesterCaller::Session { .. } => self.call.record.principal.first_missing_permission(needed),
        }
    }

    /// Builds a call to the server under test for the same caller.
    fn build_call(&self, target: SourceTarget) -> SourceCall {
        SourceCall {
            record: Arc::clone(&self.call.record),
            target,
            deadline: self.call.deadline.clone(),
            cancel: self.call.cancel.clone(),
            headers: self.call.headers.clone(),
            meta: None,
            client: self.call.client.clone(),
        }
    }
}

/// Removes the server's response from transport errors. Protocol errors are unchanged.
fn hide_failure(error: HubError) -> HubError {
    match error.kind() {
        ErrorKind::CannotConnect | ErrorKind::ConnectionLost | ErrorKind::Unauthenticated => {
            HubError::new(error.kind(), "the connection to the server failed").with_suggestion(
                "call connect_to_server again; only callers with the permission `spawn` see the cause",
            )
        }
        _ => error,
    }
}

/// Adds a suggestion to an error on a connection that has none.
fn with_suggestion(error: HubError) -> HubError {
    if error.suggestion().is_some() {
        return error;
    }
    let status = error.details().and_then(|details| details.get("http_status")).and_then(Value::as_u64);
    match (error.kind(), status) {
        (ErrorKind::Unauthenticated, _) => error.with_suggestion(
            "the server no longer accepts the token: run `toolyard login`, then call disconnect and connect_to_server",
        ),
        (ErrorKind::ConnectionLost, Some(404)) => {
            error.with_suggestion("the session is gone: call disconnect, then connect_to_server")
        }
        (ErrorKind::ConnectionLost, Some(_)) => error.with_suggestion("see the server's response in the details"),
        (ErrorKind::ConnectionLost, None) => {
            error.with_suggestion("look for the cause in the details and the server's log, then call connect_to_server again")
        }
        (ErrorKind::ToolFailed, _) => error.with_suggestion("see the server's error in details.rpc_error"),
        _ => error,
    }
}

/// Parses a result from the server as an object. Records a violation if it is not one.
fn parse_result_object(
    connection: &Arc<TesterConnection>,
    method: &str,
    body: &Raw,
) -> Result<Object, TesterError> {
    Object::parse(body).map_err(|error| {
        let kind = match body.get().as_bytes().first() {
            Some(b'[') => "a list",
            Some(b'"') => "a string",
            Some(b'n') => "null",
            Some(b't' | b'f') => "true or false",
            Some(b'{') => "an invalid object",
            _ => "a number",
        };
        let rule = format!("the result of {method} must be an object, but is {kind}");
        connection.record_violations(std::slice::from_ref(&rule));
        let error =
            HubError::new(ErrorKind::ConnectionLost, rule).with_details(json!({"reason": error.to_string()}));
        TesterError::on_connection(
            connection,
            error.with_suggestion("fix the server's response, which violates the protocol"),
        )
    })
}

/// Starts an answer with the connection that it is about.
fn connection_answer(connection: &TesterConnection) -> TesterAnswer {
    TesterAnswer::success().with("connection", connection.summary_json())
}
