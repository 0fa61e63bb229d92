//! Answers that go on for long: whoever reads one must still be allowed to. The token is looked at again while the stream
//! is open, as the control socket does.

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

/// How often a token is looked at again.
pub(crate) const RECHECK: Duration = Duration::from_secs(2);

/// What a stream is for, and so what a change of permissions means for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StreamKind {
    /// It says what happens to whoever may see it: it ends when the permissions change, and the client opens it again.
    Subscription,
    /// It carries the answer to a call that was allowed when it began.
    Call,
}

impl StreamKind {
    pub(super) fn from_request(method: &Method, headers: &HeaderMap) -> Self {
        let listens = headers.get("mcp-method").is_some_and(|name| name == "subscriptions/listen");
        if *method == Method::GET || listens { Self::Subscription } else { Self::Call }
    }
}

/// A body that ends when its reader is not allowed to read it any more.
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
                let Poll::Ready(known) = checking.as_mut().poll(cx) else { return };
                self.checking = None;
                self.timer.as_mut().reset(Instant::now() + RECHECK);
                self.over |= match known {
                    Ok(principal) => {
                        self.kind == StreamKind::Subscription
                            && !principal.has_same_rights_as(&self.principal)
                    }
                    // Not their fault, and they were let in before.
                    Err(RejectionReason::JwtKeysUnavailable) => false,
                    Err(reason) => {
                        let principal = self.principal.id();
                        tracing::info!(principal, reason = reason.code(), "a stream ends with its token");
                        true
                    }
                };
            }
            if self.over || self.timer.as_mut().poll(cx).is_pending() {
                return;
            }
            let visitor = self.credentials.clone();
            self.checking = Some(Box::pin(async move { visitor.authenticate().await }));
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
            // Whatever fed the stream learns that nobody reads it any more.
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
        BearerCredentials { tokens: vec![BearerToken::new("secret", principal)], jwt: None }
    }

    /// A stream that never ends by itself, and the keys that let its reader in.
    fn open(kind: StreamKind) -> (BearerTokenStore, Body) {
        let keyring = BearerTokenStore::new(keys(holding(&["read"])));
        let visitor =
            ConnectionCredentials::new(AuthPolicy::TokenStore(keyring.clone()), Some("secret".to_owned()));
        let endless = stream::once(async { Ok::<_, Infallible>(Bytes::from("x")) }).chain(stream::pending());
        let body = RecheckedBody::new(Body::from_stream(endless), visitor, holding(&["read"]), kind);
        (keyring, Body::new(body))
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_token_is_taken_away() {
        for kind in [StreamKind::Subscription, StreamKind::Call] {
            let (keyring, mut body) = open(kind);
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
            assert!(tokio::time::timeout(10 * RECHECK, body.frame()).await.is_err(), "it goes on");
            keyring.replace(BearerCredentials::default());
            let began = Instant::now();
            assert!(body.frame().await.is_none());
            assert!(began.elapsed() <= RECHECK);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_token_expires() {
        let (keyring, mut body) = open(StreamKind::Call);
        body.frame().await.unwrap().unwrap();
        let over = BearerToken::new("secret", holding(&["read"])).with_expiry(toolyard_hub::Timestamp::now());
        keyring.replace(BearerCredentials { tokens: vec![over], jwt: None });
        assert!(body.frame().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn other_permissions_end_what_tells_of_the_yard_and_not_a_call() {
        for (kind, ends) in [(StreamKind::Subscription, true), (StreamKind::Call, false)] {
            let (keyring, mut body) = open(kind);
            body.frame().await.unwrap().unwrap();
            keyring.replace(keys(holding(&["read", "write"])));
            let ended = tokio::time::timeout(10 * RECHECK, body.frame()).await;
            assert_eq!(ended.is_ok_and(|frame| frame.is_none()), ends);
        }
    }
}
