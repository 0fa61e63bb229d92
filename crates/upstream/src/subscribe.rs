//! Synchronizes the subscriptions of the yard with a server, for the lifetime of one connection.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolyard_hub::json::{Object, to_raw};
use toolyard_wire::WireError;

use crate::connection::LiveConnection;
use crate::upstream::UpstreamState;

/// The minimum interval between two listen requests to a modern server. Every change of the
/// subscriptions is a new request.
const BETWEEN: Duration = Duration::from_millis(100);
/// Delay before a subscription that the server ended is requested again.
const AGAIN: Duration = Duration::from_secs(1);

/// Subscribes to list changes, and to updates of the resources that the yard has subscriptions to.
/// Never returns.
pub(crate) async fn keep_subscribed(inner: &Arc<UpstreamState>, live: &Arc<LiveConnection>) {
    if live.is_modern() {
        listen_for_changes(inner, live).await
    } else {
        sync_subscriptions(inner, live).await
    }
}

fn subscribed_uris(inner: &UpstreamState) -> BTreeSet<String> {
    inner.subscriptions.lock().clone()
}

/// Handles the modern era: one request lists all subscriptions and is repeated when they change.
async fn listen_for_changes(inner: &UpstreamState, live: &LiveConnection) {
    loop {
        let (requested, since) = (subscribed_uris(inner), Instant::now());
        let mut params = Object::default();
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": requested,
        });
        params.set("notifications", to_raw(&filter));
        let listening = live.request("subscriptions/listen", params);
        let changed = async {
            // A subscription that was added and removed in the meantime needs no new request. The
            // old request stays open until the next one.
            while subscribed_uris(inner) == requested {
                inner.subscriptions_changed.notified().await;
                tokio::time::sleep_until(since + BETWEEN).await;
            }
        };
        tokio::select! {
            ended = listening => {
                let rejected = matches!(ended, Err(WireError::Rpc(_)));
                // A server that rejects subscriptions is asked again only when they change.
                if rejected { inner.subscriptions_changed.notified().await } else { tokio::time::sleep(AGAIN).await }
            }
            () = changed => {}
        }
    }
}

/// Handles the legacy era: one request to subscribe to each resource, and one to unsubscribe.
async fn sync_subscriptions(inner: &UpstreamState, live: &LiveConnection) {
    let mut subscribed = BTreeSet::new();
    loop {
        let target = subscribed_uris(inner);
        for uri in subscribed.difference(&target) {
            send_subscription(inner, live, "resources/unsubscribe", uri).await;
        }
        for uri in target.difference(&subscribed) {
            send_subscription(inner, live, "resources/subscribe", uri).await;
        }
        let unchanged = subscribed == target;
        subscribed = target;
        if unchanged {
            inner.subscriptions_changed.notified().await;
        }
    }
}

async fn send_subscription(inner: &UpstreamState, live: &LiveConnection, method: &'static str, uri: &str) {
    let mut params = Object::default();
    params.set("uri", to_raw(uri));
    if let Err(failure) = live.request(method, params).await {
        tracing::debug!(server = %inner.settings.name, uri, %failure, method, "subscription request failed");
    }
}
