//! Repeated authentication of long-running response streams. The token is checked again while the
//! stream is open, as on the control socket.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderMap, Method};
use hyper::body::{Bytes, Frame};
use tokio::time::{Instant, Sleep};
use toolyard_hub::{BoxFuture, Principal};

use super::credentials::ConnectionCredentials;
use super::rejection::RejectionReason;

/// Interval between two checks of a token.
pub(crate) const RECHECK: Duration = Duration::from_secs(1);

/// The purpose of a stream, which determines the effect of changed permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// Events, filtered by permissions. The stream ends when the permissions change, and the client
    /// opens it again.
    Subscription,
    /// The result of a call that was allowed when it started.
    Call,
}

impl StreamKind {
    pub(super) fn from_request(method: &Method, headers: &HeaderMap) -> Self {
        let is_listen = headers.get("mcp-method").is_some_and(|name| name == "subscriptions/listen");
        if *method == Method::GET || is_listen { Self::Subscription } else { Self::Call }
    }
}

/// A response body that ends when its reader is no longer authorized.
pub(super) struct RecheckedBody {
    body: Body,
    credentials: ConnectionCredentials,
    principal: Principal,
    kind: StreamKind,
    timer: Pin<Box<Sleep>>,
    checking: Option<BoxFuture<'static, Result<Principal, RejectionReason>>>,
    over: bool,
}

impl RecheckedBody {
    pub(super) fn new(
        body: Body,
        credentials: ConnectionCredentials,
        principal: Principal,
        kind: StreamKind,
    ) -> Self {
        let timer = Box::pin(tokio::time::sleep(RECHECK));
        Self { body, credentials, principal, kind, timer, checking: None, over: false }
    }

    fn check(&mut self, cx: &mut Context<'_>) {
        loop {
            if let Some(checking) = &mut self.checking {
                let Poll::Ready(result) = checking.as_mut().poll(cx) else { return };
                self.checking = None;
                self.timer.as_mut().reset(Instant::now() + RECHECK);
                self.over |= match result {
                    Ok(principal) => {
                        self.kind == StreamKind::Subscription
                            && !principal.has_same_rights_as(&self.principal)
                    }
                    // The caller did not cause this, and the token was valid before.
                    Err(RejectionReason::JwtKeysUnavailable) => false,
                    Err(reason) => {
                        let principal = self.principal.id();
                        tracing::info!(
                            principal,
                            reason = reason.code(),
                            "closing a stream whose token is no longer valid"
                        );
                        true
                    }
                };
            }
            if self.over || self.timer.as_mut().poll(cx).is_pending() {
                return;
            }
            let credentials = self.credentials.clone();
            self.checking = Some(Box::pin(async move { credentials.authenticate().await }));
        }
    }
}

impl HttpBody for RecheckedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.over {
            self.check(cx);
        }
        if self.over {
            // Dropping the body tells its producer to stop.
            self.body = Body::empty();
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures_util::stream::{self, StreamExt};
    use http_body_util::BodyExt;
    use hyper::body::Bytes;
    use std::convert::Infallible;
    use tokio::time::Instant;
    use toolyard_hub::{Permissions, Principal};

    use super::{RECHECK, RecheckedBody, StreamKind};
    use crate::auth::{AuthPolicy, BearerCredentials, BearerToken, BearerTokenStore, ConnectionCredentials};

    fn holding(permissions: &[&str]) -> Principal {
        let held = permissions.iter().map(|name| (*name).to_owned()).collect();
        Principal::new("ada", Permissions::Only(held))
    }

    fn keys(principal: Principal) -> BearerCredentials {
        BearerCredentials {
            tokens: vec![BearerToken::new("secret", principal)],
            ..BearerCredentials::default()
        }
    }

    /// Returns an endless stream and the token store that authenticates its reader.
    fn open(kind: StreamKind) -> (BearerTokenStore, Body) {
        let store = BearerTokenStore::new(keys(holding(&["read"])));
        let credentials =
            ConnectionCredentials::new(AuthPolicy::TokenStore(store.clone()), Some("secret".to_owned()));
        let endless = stream::once(async { Ok::<_, Infallible>(Bytes::from("x")) }).chain(stream::pending());
        let body = RecheckedBody::new(Body::from_stream(endless), credentials, holding(&["read"]), kind);
        (store, Body::new(body))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_token_is_taken_away() {
        for kind in [StreamKind::Subscription, StreamKind::Call] {
            let (store, mut body) = open(kind);
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
            assert!(
                tokio::time::timeout(10 * RECHECK, body.frame()).await.is_err(),
                "the stream must stay open"
            );
            store.replace(BearerCredentials::default());
            let started = Instant::now();
            assert!(body.frame().await.is_none());
            assert!(started.elapsed() <= RECHECK);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_token_expires() {
        let (store, mut body) = open(StreamKind::Call);
        body.frame().await.unwrap().unwrap();
        let expired =
            BearerToken::new("secret", holding(&["read"])).with_expiry(toolyard_hub::Timestamp::now());
        store.replace(BearerCredentials { tokens: vec![expired], ..BearerCredentials::default() });
        assert!(body.frame().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn changed_permissions_end_a_subscription_but_not_a_call() {
        for (kind, ends) in [(StreamKind::Subscription, true), (StreamKind::Call, false)] {
            let (store, mut body) = open(kind);
            body.frame().await.unwrap().unwrap();
            store.replace(keys(holding(&["read", "write"])));
            let ended = tokio::time::timeout(10 * RECHECK, body.frame()).await;
            assert_eq!(ended.is_ok_and(|frame| frame.is_none()), ends);
        }
    }
}
