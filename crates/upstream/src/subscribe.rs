//! Subscriptions at a server, kept in step with what the yard has subscriptions to, for as long as one connection lives.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use toolyard_hub::json::{Object, to_raw};
use toolyard_wire::WireError;

use crate::connection::LiveConnection;
use crate::upstream::UpstreamState;

/// A modern server is asked to listen to something else at most this often: every change is a new request.
const BETWEEN: Duration = Duration::from_millis(100);
/// How long after a server ended a subscription it is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// Asks to hear of changes: of lists always, of resources as long as there are subscriptions. Never ends by itself.
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

/// The modern era: one request that names everything, made again when that changes.
async fn listen_for_changes(inner: &UpstreamState, live: &LiveConnection) {
    loop {
        let (asked, since) = (subscribed_uris(inner), Instant::now());
        let mut params = Object::default();
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": asked,
        });
        params.set("notifications", to_raw(&filter));
        let listening = live.request("subscriptions/listen", params);
        let changed = async {
            // What came and went meanwhile is no reason to ask again, and the old request stays open until then.
            while subscribed_uris(inner) == asked {
                inner.subscriptions_changed.notified().await;
                tokio::time::sleep_until(since + BETWEEN).await;
            }
        };
        tokio::select! {
            ended = listening => {
                let rejected = matches!(ended, Err(WireError::Rpc(_)));
                // A server without subscriptions is asked again only when there is something new to ask.
                if rejected { inner.subscriptions_changed.notified().await } else { tokio::time::sleep(AGAIN).await }
            }
            () = changed => {}
        }
    }
}

/// The legacy era: one request for each resource, and one when nobody wants to hear of it any more.
async fn sync_subscriptions(inner: &UpstreamState, live: &LiveConnection) {
    let mut asked = BTreeSet::new();
    loop {
        let wanted = subscribed_uris(inner);
        for uri in asked.difference(&wanted) {
            send_subscription(inner, live, "resources/unsubscribe", uri).await;
        }
        for uri in wanted.difference(&asked) {
            send_subscription(inner, live, "resources/subscribe", uri).await;
        }
        let unchanged = asked == wanted;
        asked = wanted;
        if unchanged {
            inner.subscriptions_changed.notified().await;
        }
    }
}

async fn send_subscription(inner: &UpstreamState, live: &LiveConnection, method: &'static str, uri: &str) {
    let mut params = Object::default();
    params.set("uri", to_raw(uri));
    if let Err(failure) = live.request(method, params).await {
        tracing::debug!(server = %inner.settings.name, uri, %failure, method, "the subscription was refused");
    }
}
