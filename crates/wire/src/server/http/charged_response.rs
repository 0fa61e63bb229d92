//! Answers whose bytes their caller is charged for until they are sent.

use axum::body::{Body, Bytes};

use super::Endpoint;
use crate::message::{RequestId, write_error, write_outcome};
use crate::server::{Charge, RpcResult, Service};

/// Smaller answers are not worth counting.
const SMALL: usize = 1024;

/// An answer as text, with what its caller was charged for it.
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

/// The same as bytes. The charge lives exactly as long as anything still has to send them.
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
    /// Writes an answer; where its caller may have no more bytes in flight, an error takes its place.
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

/// The body of one answer.
pub(super) fn charged_body(answer: ChargedResponse) -> Body {
    Body::from(Bytes::from(ChargedBytes::from(answer)))
}
