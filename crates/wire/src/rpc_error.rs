//! JSON-RPC errors: the error codes of the protocol and the HTTP status that each one maps to.

use serde_json::{Value, json};

use crate::version::Version;

/// The error codes that the protocol defines.
pub mod code {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;
    /// Legacy era only. The modern era uses `INVALID_PARAMS`.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    pub const HEADER_MISMATCH: i64 = -32020;
    pub const MISSING_CAPABILITY: i64 = -32021;
    pub const UNSUPPORTED_VERSION: i64 = -32022;
}

/// The error member of a JSON-RPC response.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({code})")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
    status: u16,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        let status = match code {
            code::PARSE
            | code::INVALID_REQUEST
            | code::HEADER_MISMATCH
            | code::MISSING_CAPABILITY
            | code::UNSUPPORTED_VERSION => 400,
            code::METHOD_NOT_FOUND => 404,
            _ => 200,
        };
        Self { code, message: message.into(), data: None, status }
    }

    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// Sets the HTTP status of an error whose status does not follow from its code.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Returns the HTTP status of a modern response with this error.
    pub fn status(&self) -> u16 {
        self.status
    }

    pub fn parse(message: impl Into<String>) -> Self {
        Self::new(code::PARSE, message)
    }

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_REQUEST, message)
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(code::INVALID_PARAMS, message)
    }

    pub fn method_not_found(method: &str) -> Self {
        Self::new(code::METHOD_NOT_FOUND, format!("unknown method `{method}`"))
    }

    pub fn header_mismatch(message: impl Into<String>) -> Self {
        Self::new(code::HEADER_MISMATCH, message)
    }

    pub fn unsupported_version(requested: &str) -> Self {
        let supported: Vec<&str> = Version::modern().map(Version::as_str).collect();
        Self::new(code::UNSUPPORTED_VERSION, format!("unsupported protocol version `{requested}`"))
            .with_data(json!({"supported": supported, "requested": requested}))
    }
}
