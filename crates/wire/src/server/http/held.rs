//! Answers whose bytes their caller is charged for until they are sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};

use super::Endpoint;
use crate::message::{Id, write_error, write_outcome};
use crate::server::{Answer, Charge, Service};

/// Smaller answers are not worth counting.
const SMALL: usize = 1024;

/// An answer as text, with what its caller was charged for it.
pub(super) struct HeldAnswer {
    pub(super) text: String,
    pub(super) charge: Charge,
}

impl From<String> for HeldAnswer {
    fn from(text: String) -> Self {
        Self { text, charge: None }
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

/// A body that holds charges until it has been sent.
pub(super) fn hold_body(text: String, charges: Vec<Charge>) -> Body {
    let charges: Vec<_> = charges.into_iter().flatten().collect();
    if charges.is_empty() {
        return Body::from(text);
    }
    Body::new(HeldBody { body: Body::from(text), _charges: charges })
}

struct HeldBody {
    body: Body,
    _charges: Vec<Box<dyn std::any::Any + Send + Sync>>,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
