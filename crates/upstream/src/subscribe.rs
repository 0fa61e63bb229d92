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
    if live.is_modern() { listen(inner, live).await } else { subscribe_one_by_one(inner, live).await }
}

fn watched(inner: &UpstreamState) -> BTreeSet<String> {
    inner.watched.lock().clone()
}

/// The modern era: one request that names everything, made again when that changes.
async fn listen(inner: &UpstreamState, live: &LiveConnection) {
    loop {
        let (asked, since) = (watched(inner), Instant::now());
        let mut params = Object::default();
        let filter = json!({
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": asked,
        });
        params.set("notifications", to_raw(&filter));
        let listening = live.ask("subscriptions/listen", params);
        let changed = async {
            // What came and went meanwhile is no reason to ask again, and the old request stays open until then.
            while watched(inner) == asked {
                inner.watch_changed.notified().await;
                tokio::time::sleep_until(since + BETWEEN).await;
            }
        };
        tokio::select! {
            ended = listening => {
                let rejected = matches!(ended, Err(WireError::Rpc(_)));
                // A server without subscriptions is asked again only when there is something new to ask.
                if rejected { inner.watch_changed.notified().await } else { tokio::time::sleep(AGAIN).await }
            }
            () = changed => {}
        }
    }
}

/// The legacy era: one request for each resource, and one when nobody wants to hear of it any more.
async fn subscribe_one_by_one(inner: &UpstreamState, live: &LiveConnection) {
    let mut asked = BTreeSet::new();
    loop {
        let wanted = watched(inner);
        for uri in asked.difference(&wanted) {
            tell(inner, live, "resources/unsubscribe", uri).await;
        }
        for uri in wanted.difference(&asked) {
            tell(inner, live, "resources/subscribe", uri).await;
        }
        let unchanged = asked == wanted;
        asked = wanted;
        if unchanged {
            inner.watch_changed.notified().await;
        }
    }
}

async fn tell(inner: &UpstreamState, live: &LiveConnection, method: &'static str, uri: &str) {
    let mut params = Object::default();
    params.set("uri", to_raw(uri));
    if let Err(failure) = live.ask(method, params).await {
        tracing::debug!(server = %inner.settings.name, uri, %failure, method, "the subscription was refused");
    }
}
