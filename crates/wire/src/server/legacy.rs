//! The parts of the legacy era that are common to all servers and need no service: `initialize`,
//! `ping`, `logging/setLevel`, and notifications from the client.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::client_channel::ClientChannel;
use super::session::Session;
use super::{InboundRequest, RequestTransport, ServerDescription};
use crate::RawJson;
use crate::message::{RequestId, RpcNotification, RpcRequest};
use crate::meta::{ClientProfile, Meta};
use crate::rpc_error::RpcError;
use crate::version::{Era, Version};
use tokio_util::sync::CancellationToken;

/// Reads the params of `initialize`: the protocol version and what the client declares about
/// itself.
pub(crate) fn read_initialize(params: Option<&RawValue>) -> Result<(Version, ClientProfile), RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeParams {
        protocol_version: String,
        capabilities: Option<RawJson>,
        client_info: Option<RawJson>,
    }
    let wrong = |error| RpcError::invalid_params(format!("invalid params of `initialize`: {error}"));
    let params = params.map_or("{}", RawValue::get);
    let read: InitializeParams = serde_json::from_str(params).map_err(wrong)?;
    // The response to an unsupported version is a supported one. The client may then disconnect.
    let version = Version::parse(&read.protocol_version)
        .filter(|version| version.era() == Era::Legacy)
        .unwrap_or(Version::NEWEST_LEGACY);
    let client = match read.capabilities {
        Some(capabilities) => ClientProfile::read(&capabilities, read.client_info)?,
        None => ClientProfile { info: read.client_info, ..ClientProfile::default() },
    };
    Ok((version, client))
}

pub(crate) fn initialize_result(version: Version, about: &ServerDescription) -> RawJson {
    let mut result = serde_json::json!({
        "protocolVersion": version.as_str(),
        "capabilities": about.capabilities,
        "serverInfo": about.info,
    });
    if let Some(instructions) = &about.instructions {
        result["instructions"] = instructions.clone().into();
    }
    raw(&result)
}

/// The requests of a legacy client that the transport responds to. All other methods go to the
/// service.
pub const LEGACY_METHODS: [&str; 3] = ["initialize", "ping", SET_LEVEL];
pub(crate) const SET_LEVEL: &str = "logging/setLevel";

/// Responds to requests that the transport handles. `None` means that the service must respond.
pub(crate) fn answer_in_transport(
    session: &Session,
    request: &RpcRequest,
) -> Option<Result<RawJson, RpcError>> {
    let method = request.method.as_str();
    LEGACY_METHODS.contains(&method).then(|| match method {
        "ping" => Ok(empty_result()),
        SET_LEVEL => set_level(session, request.params.as_deref()),
        _ => Err(RpcError::invalid_request("the session is already initialized")),
    })
}

pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn set_level(session: &Session, params: Option<&RawValue>) -> Result<RawJson, RpcError> {
    #[derive(Deserialize)]
    struct SetLevelParams {
        level: String,
    }
    let read: SetLevelParams = serde_json::from_str(params.map_or("{}", RawValue::get)).map_err(|error| {
        RpcError::invalid_params(format!("invalid params of `logging/setLevel`: {error}"))
    })?;
    if !LEVELS.contains(&read.level.as_str()) {
        let message = format!("unknown log level `{}`; expected one of {}", read.level, LEVELS.join(", "));
        return Err(RpcError::invalid_params(message));
    }
    session.set_log_level(read.level);
    Ok(empty_result())
}

/// Builds a request of a session for the service.
pub(crate) fn build_legacy_request<C>(
    session: &Arc<Session>,
    request: RpcRequest,
    caller: C,
    outlet: ClientChannel,
    transport: RequestTransport,
    closing: CancellationToken,
) -> Result<InboundRequest<C>, RpcError> {
    let meta = Meta::read(request.params.as_deref())?;
    let RpcRequest { id, method, params } = request;
    Ok(InboundRequest {
        id,
        method,
        params,
        meta,
        version: session.version(),
        client: session.client().clone(),
        caller,
        session: Some(Arc::clone(session)),
        channel: outlet,
        transport,
        closing,
    })
}

/// Returns the ID of the request that a `notifications/cancelled` cancels.
pub(crate) fn cancelled_request(notification: &RpcNotification) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct CancelledParams {
        #[serde(rename = "requestId")]
        id: RawJson,
    }
    if notification.method != "notifications/cancelled" {
        return None;
    }
    let params: CancelledParams = serde_json::from_str(notification.params.as_ref()?.get()).ok()?;
    RequestId::from_json(&params.id)
}

pub(crate) fn empty_result() -> RawJson {
    raw(&serde_json::json!({}))
}

fn raw(value: &serde_json::Value) -> RawJson {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
