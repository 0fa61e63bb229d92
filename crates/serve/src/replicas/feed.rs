//! Requests for the events of another replica. Unlike forwarded requests, they carry no credentials
//! of a client: a sealed header proves that a replica sends them.

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use toolyard_hub::{Replica, ReplicaId};
use toolyard_seal::Purpose;

use super::ReplicaRouter;
use crate::router::FEED;

/// Names the replica that the request is for and the one that sends it.
pub(crate) const FOLLOWER: HeaderName = HeaderName::from_static("toolyard-follower");

impl ReplicaRouter {
    /// Requests the events of a replica, if possible those after a position.
    pub(crate) async fn open_feed(
        &self,
        replica: &Replica,
        after: Option<u64>,
    ) -> Result<reqwest::Response, &'static str> {
        let follower = format!("{} {}", replica.id, self.replicas.own_id());
        let follower = self.keys.seal(Purpose::Feed, follower.as_bytes());
        let follower = follower.ok().and_then(|text| HeaderValue::from_str(&text).ok());
        let follower = follower.ok_or("the request cannot be sealed")?;
        let http = self.forwarder.http().ok_or("the HTTP client cannot be created")?;
        let query = after.map(|after| format!("?after={after}")).unwrap_or_default();
        let request = http.get(format!("{}{FEED}{query}", replica.url)).header(FOLLOWER, follower);
        let response = request.send().await.map_err(|_| "the connection failed")?;
        match response.status() {
            StatusCode::OK => Ok(response),
            // It has other keys, an earlier version, or is another process.
            StatusCode::NOT_FOUND | StatusCode::UNAUTHORIZED => Err("it does not accept this replica"),
            _ => Err("it refuses the request"),
        }
    }

    /// Returns whether a live replica requests the events of this one. What is captured of such a
    /// request is useless once either of the two is gone.
    pub(crate) async fn may_open_feed(&self, headers: &HeaderMap) -> bool {
        let sealed = headers.get(FOLLOWER).and_then(|value| value.to_str().ok());
        let Some(opened) = sealed.and_then(|text| self.keys.open(Purpose::Feed, text)) else { return false };
        let text = String::from_utf8(opened).unwrap_or_default();
        let Some((target, follower)) = text.split_once(' ') else { return false };
        target == self.replicas.own_id().as_str()
            && self.replicas.look_up(&ReplicaId::new(follower)).await.is_some()
    }
}
