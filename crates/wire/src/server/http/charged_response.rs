//! Responses whose bytes are charged to their caller until they are sent.

use axum::body::{Body, Bytes};

use super::Endpoint;
use crate::message::{RequestId, write_error, write_outcome};
use crate::server::{Charge, RpcResult, Service};

/// Smaller responses are not charged.
const SMALL: usize = 1024;

/// A response as text, with its charge.
pub(crate) struct ChargedResponse {
    pub(super) text: String,
    pub(super) charge: Charge,
}

impl From<String> for ChargedResponse {
    fn from(text: String) -> Self {
        Self { text, charge: None }
    }
}

impl From<ChargedResponse> for ChargedBytes {
    fn from(ChargedResponse { text, charge }: ChargedResponse) -> Self {
        Self { text: text.into(), charge }
    }
}

/// A response as bytes. The charge lives exactly as long as the bytes still have to be sent.
pub(crate) struct ChargedBytes {
    pub(super) text: Bytes,
    pub(super) charge: Charge,
}

impl From<ChargedBytes> for Bytes {
    fn from(held: ChargedBytes) -> Self {
        if held.charge.is_some() { Self::from_owner(held) } else { held.text }
    }
}

impl AsRef<[u8]> for ChargedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl<S: Service> Endpoint<S> {
    /// Serializes a response. If the caller may not have more bytes in flight, an error takes its
    /// place.
    pub(super) fn charge_response(
        &self,
        caller: &S::Caller,
        id: &RequestId,
        answer: &RpcResult,
    ) -> ChargedResponse {
        let size = answer.as_ref().map_or(0, |body| body.get().len());
        if size < SMALL {
            return write_outcome(id, answer).into();
        }
        match self.service.charge_bytes(caller, size) {
            Ok(charge) => ChargedResponse { text: write_outcome(id, answer), charge },
            Err(error) => write_error(Some(id), &error).into(),
        }
    }
}

/// Returns the body of one response.
pub(super) fn charged_body(answer: ChargedResponse) -> Body {
    Body::from(Bytes::from(ChargedBytes::from(answer)))
}
