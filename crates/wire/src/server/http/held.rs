//! Answers whose bytes their caller is charged for until they are sent.

use axum::body::{Body, Bytes};

use super::Endpoint;
use crate::message::{Id, write_error, write_outcome};
use crate::server::{Answer, Charge, Service};

/// Smaller answers are not worth counting.
const SMALL: usize = 1024;

/// An answer as text, with what its caller was charged for it.
pub(crate) struct HeldAnswer {
    pub(super) text: String,
    pub(super) charge: Charge,
}

impl From<String> for HeldAnswer {
    fn from(text: String) -> Self {
        Self { text, charge: None }
    }
}

impl From<HeldAnswer> for HeldBytes {
    fn from(HeldAnswer { text, charge }: HeldAnswer) -> Self {
        Self { text: text.into(), charge }
    }
}

/// The same as bytes. The charge lives exactly as long as anything still has to send them.
pub(crate) struct HeldBytes {
    pub(super) text: Bytes,
    pub(super) charge: Charge,
}

impl From<HeldBytes> for Bytes {
    fn from(held: HeldBytes) -> Self {
        if held.charge.is_some() { Self::from_owner(held) } else { held.text }
    }
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl<S: Service> Endpoint<S> {
    /// Writes an answer; where its caller may have no more bytes in flight, an error takes its place.
    pub(super) fn hold(&self, caller: &S::Caller, id: &Id, answer: &Answer) -> HeldAnswer {
        let size = answer.as_ref().map_or(0, |body| body.get().len());
        if size < SMALL {
            return write_outcome(id, answer).into();
        }
        match self.service.charge_bytes(caller, size) {
            Ok(charge) => HeldAnswer { text: write_outcome(id, answer), charge },
            Err(error) => write_error(Some(id), &error).into(),
        }
    }
}

/// The body of one answer.
pub(super) fn hold_body(answer: HeldAnswer) -> Body {
    Body::from(Bytes::from(HeldBytes::from(answer)))
}
