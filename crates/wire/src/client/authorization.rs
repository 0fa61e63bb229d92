//! What is sent as `Authorization`: one place that all connections to a server read, so that a new token reaches
//! them all at once. Where tokens come from is not known here.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use parking_lot::RwLock;

/// The current `Authorization` header of everything that is sent to one server. Clones share it.
#[derive(Clone, Default)]
pub struct Authorization(Arc<RwLock<Option<HeaderValue>>>);

impl Authorization {
    /// Sent from now on. The value is marked as one that must not be shown.
    pub fn set(&self, mut value: Option<HeaderValue>) {
        if let Some(value) = &mut value {
            value.set_sensitive(true);
        }
        *self.0.write() = value;
    }

    pub fn get(&self) -> Option<HeaderValue> {
        self.0.read().clone()
    }

    pub(crate) fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(value) = self.get() {
            headers.insert(header::AUTHORIZATION, value);
        }
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authorization")
    }
}

/// Everything that a response says about how to authorise, in one line.
pub(crate) fn auth_challenge(headers: &HeaderMap) -> Option<String> {
    let said = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let said: Vec<&str> = said.collect();
    (!said.is_empty()).then(|| said.join(", "))
}
