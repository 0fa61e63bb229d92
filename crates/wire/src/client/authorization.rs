//! The `Authorization` header. All connections to a server read it from one place, so that a new
//! token reaches them all immediately. This module does not know where tokens come from.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, header};
use parking_lot::RwLock;

/// The current `Authorization` header for all requests to one server. Clones share it.
#[derive(Clone, Default)]
pub struct Authorization(Arc<RwLock<Option<HeaderValue>>>);

impl Authorization {
    /// Sets the value for all further requests and marks it as sensitive.
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

/// Returns all `WWW-Authenticate` challenges of a response in one line.
pub(crate) fn auth_challenge(headers: &HeaderMap) -> Option<String> {
    let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenges: Vec<&str> = challenges.collect();
    (!challenges.is_empty()).then(|| challenges.join(", "))
}
