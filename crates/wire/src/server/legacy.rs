//! What the legacy era asks of every server and that needs no service: `initialize`, `ping`,
//! `logging/setLevel`, and the notifications of the client.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::outlet::Outlet;
use super::session::Session;
use super::{About, Inbound, Transport};
use crate::Raw;
use crate::message::{Id, Notification, Request};
use crate::meta::{ClientSide, Meta};
use crate::rpc_error::RpcError;
use crate::version::{Era, Version};
use tokio_util::sync::CancellationToken;

/// What `initialize` says: the version to speak and the client's side.
pub(crate) fn read_initialize(params: Option<&RawValue>) -> Result<(Version, ClientSide), RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Initialize {
        protocol_version: String,
        capabilities: Option<Raw>,
        client_info: Option<Raw>,
    }
    let wrong = |error| RpcError::invalid_params(format!("initialize cannot be read: {error}"));
    let params = params.map_or("{}", RawValue::get);
    let read: Initialize = serde_json::from_str(params).map_err(wrong)?;
    // A version that we do not speak is answered with one that we do; the client may then hang up.
    let version = Version::parse(&read.protocol_version)
        .filter(|version| version.era() == Era::Legacy)
        .unwrap_or(Version::NEWEST_LEGACY);
    let client = match read.capabilities {
        Some(capabilities) => ClientSide::read(&capabilities, read.client_info)?,
        None => ClientSide { info: read.client_info, ..ClientSide::default() },
    };
    Ok((version, client))
}

pub(crate) fn initialize_result(version: Version, about: &About) -> Raw {
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

/// Every request of a legacy client that the transport answers itself. A method that is not listed here goes to the
/// service.
pub const LEGACY_METHODS: [&str; 3] = ["initialize", "ping", "logging/setLevel"];

/// Requests that the transport answers itself; `None` means that the service must.
pub(crate) fn answer_here(session: &Session, request: &Request) -> Option<Result<Raw, RpcError>> {
    let method = request.method.as_str();
    LEGACY_METHODS.contains(&method).then(|| match method {
        "ping" => Ok(empty()),
        "logging/setLevel" => set_level(session, request.params.as_deref()),
        _ => Err(RpcError::invalid_request("this session is initialized already")),
    })
}

pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

fn set_level(session: &Session, params: Option<&RawValue>) -> Result<Raw, RpcError> {
    #[derive(Deserialize)]
    struct SetLevel {
        level: String,
    }
    let read: SetLevel = serde_json::from_str(params.map_or("{}", RawValue::get))
        .map_err(|error| RpcError::invalid_params(format!("logging/setLevel cannot be read: {error}")))?;
    if !LEVELS.contains(&read.level.as_str()) {
        let message = format!("unknown log level {}; say one of {}", read.level, LEVELS.join(", "));
        return Err(RpcError::invalid_params(message));
    }
    session.set_log_level(read.level);
    Ok(empty())
}

/// Makes a request of a session ready for the service.
pub(crate) fn inbound<C>(
    session: &Arc<Session>,
    request: Request,
    caller: C,
    outlet: Outlet,
    transport: Transport,
    closing: CancellationToken,
) -> Result<Inbound<C>, RpcError> {
    let meta = Meta::read(request.params.as_deref())?;
    let Request { id, method, params } = request;
    Ok(Inbound {
        id,
        method,
        params,
        meta,
        version: session.version(),
        client: session.client().clone(),
        caller,
        session: Some(Arc::clone(session)),
        outlet,
        transport,
        closing,
    })
}

/// The request that a `notifications/cancelled` is about.
pub(crate) fn cancelled_request(notification: &Notification) -> Option<Id> {
    #[derive(Deserialize)]
    struct Cancelled {
        #[serde(rename = "requestId")]
        id: Raw,
    }
    if notification.method != "notifications/cancelled" {
        return None;
    }
    let params: Cancelled = serde_json::from_str(notification.params.as_ref()?.get()).ok()?;
    Id::from_json(&params.id)
}

pub(crate) fn empty() -> Raw {
    raw(&serde_json::json!({}))
}

fn raw(value: &serde_json::Value) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
