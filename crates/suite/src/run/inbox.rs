//! The notifications of a connection, as a tap on its messages sees them: also those that belong to
//! no call, in the order of arrival, and unfiltered.

use std::sync::Arc;

use parking_lot::Mutex;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use toolyard_wire::{MessageTap, WireDirection};

use crate::expect::matcher::is_superset;
use crate::expect::observation::ObservedNotification;
use crate::generic::CanaryWatch;

/// How many notifications of one test are kept, and how many bytes of them. More are counted.
const MOST: usize = 10_000;
const MOST_BYTES: usize = 16 << 20;

/// The notifications that arrived since the test began.
#[derive(Debug, Default)]
pub(crate) struct NotificationInbox {
    state: Mutex<InboxState>,
    arrived: Notify,
    canary: Option<Arc<CanaryWatch>>,
}

#[derive(Debug, Default)]
struct InboxState {
    messages: Vec<InboxMessage>,
    bytes: usize,
    dropped: u64,
}

#[derive(Debug)]
struct InboxMessage {
    notification: ObservedNotification,
    /// Whether a `wait` step was satisfied by it.
    was_awaited: bool,
}

/// A position in the inbox.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InboxMark {
    index: usize,
    dropped: u64,
}

impl NotificationInbox {
    /// Creates an inbox that also looks for a canary in every message.
    pub(crate) fn watching(canary: Option<Arc<CanaryWatch>>) -> Self {
        Self { canary, ..Self::default() }
    }

    /// Returns the tap that fills this inbox.
    pub(crate) fn tap(self: &Arc<Self>) -> MessageTap {
        let inbox = Arc::clone(self);
        Arc::new(move |direction, text| {
            if direction == WireDirection::FromServer {
                inbox.canary.iter().for_each(|canary| canary.examine(text));
                inbox.read(text);
            }
        })
    }

    fn read(&self, text: &[u8]) {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            id: Option<IgnoredAny>,
            method: Option<String>,
            #[serde(borrow)]
            params: Option<&'a RawValue>,
        }
        let add = |envelope: Envelope<'_>| {
            if let (None, Some(method)) = (envelope.id, envelope.method) {
                self.add(method, envelope.params);
            }
        };
        match text.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => {
                if let Ok(envelope) = serde_json::from_slice(text) {
                    add(envelope);
                }
            }
            Some(b'[') => {
                let batch: Vec<Envelope<'_>> = serde_json::from_slice(text).unwrap_or_default();
                batch.into_iter().for_each(add);
            }
            _ => {}
        }
    }

    fn add(&self, method: String, params: Option<&RawValue>) {
        let bytes = method.len() + params.map_or(0, |params| params.get().len());
        let mut state = self.state.lock();
        if state.messages.len() >= MOST || state.bytes + bytes > MOST_BYTES {
            state.dropped += 1;
            return;
        }
        let params = params.and_then(|params| serde_json::from_str(params.get()).ok());
        state.bytes += bytes;
        let notification = ObservedNotification { method, params: params.unwrap_or_default() };
        state.messages.push(InboxMessage { notification, was_awaited: false });
        drop(state);
        self.arrived.notify_waiters();
    }

    /// Forgets everything, at the start of a test.
    pub(crate) fn clear(&self) {
        *self.state.lock() = InboxState::default();
    }

    /// Returns the current end.
    pub(crate) fn mark(&self) -> InboxMark {
        let state = self.state.lock();
        InboxMark { index: state.messages.len(), dropped: state.dropped }
    }

    /// Returns what arrived after the mark, and how much was dropped.
    pub(crate) fn since(&self, mark: InboxMark) -> (Vec<ObservedNotification>, u64) {
        let state = self.state.lock();
        let messages = state.messages.get(mark.index..).unwrap_or_default();
        let messages = messages.iter().map(|message| message.notification.clone()).collect();
        (messages, state.dropped.saturating_sub(mark.dropped))
    }

    /// Waits for a notification that no earlier `wait` step was satisfied by.
    pub(crate) async fn wait_for(&self, method: &str, params: Option<&Value>) -> ObservedNotification {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            // Registered before looking, so that nothing is missed in between.
            arrived.as_mut().enable();
            if let Some(found) = self.take(method, params) {
                return found;
            }
            arrived.await;
        }
    }

    /// Waits for a notification after the mark, without taking it from `wait` steps.
    pub(crate) async fn wait_since(&self, mark: InboxMark, method: &str) {
        loop {
            let arrived = self.arrived.notified();
            tokio::pin!(arrived);
            arrived.as_mut().enable();
            if self.since(mark).0.iter().any(|message| message.method == method) {
                return;
            }
            arrived.await;
        }
    }

    fn take(&self, method: &str, params: Option<&Value>) -> Option<ObservedNotification> {
        let mut state = self.state.lock();
        let found = state.messages.iter_mut().find(|message| {
            !message.was_awaited
                && message.notification.method == method
                && params.is_none_or(|params| is_superset(&message.notification.params, params))
        })?;
        found.was_awaited = true;
        Some(found.notification.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use serde_json::json;
    use toolyard_wire::WireDirection;

    use super::{MOST, NotificationInbox};

    #[tokio::test]
    async fn each_notification_satisfies_one_wait() {
        let inbox = Arc::new(NotificationInbox::default());
        let tap = inbox.tap();
        let mark = inbox.mark();
        let params = json!({"uri": "a:b"});
        let waiting = tokio::spawn({
            let (inbox, params) = (Arc::clone(&inbox), params.clone());
            async move { inbox.wait_for("notifications/x", Some(&params)).await }
        });
        tap(WireDirection::ToServer, br#"{"method": "notifications/x", "params": {"uri": "a:b"}}"#);
        tap(WireDirection::FromServer, br#"{"id": 1, "method": "roots/list"}"#);
        tap(WireDirection::FromServer, b"no json");
        tap(WireDirection::FromServer, br#"[{"method": "notifications/x", "params": {"uri": "a:c"}}]"#);
        tap(WireDirection::FromServer, br#"{"method": "notifications/x", "params": {"uri": "a:b", "n": 1}}"#);
        assert_eq!(waiting.await.unwrap().params, json!({"uri": "a:b", "n": 1}));
        assert_eq!(inbox.wait_for("notifications/x", Some(&params)).now_or_never(), None);
        assert_eq!(inbox.since(mark).0.len(), 2);
    }

    #[test]
    fn a_flood_is_counted_and_not_kept() {
        let inbox = Arc::new(NotificationInbox::default());
        let (tap, mark) = (inbox.tap(), inbox.mark());
        for _ in 0..MOST + 5 {
            tap(WireDirection::FromServer, br#"{"method": "notifications/x"}"#);
        }
        let (kept, dropped) = inbox.since(mark);
        assert_eq!((kept.len(), dropped), (MOST, 5));
        inbox.clear();
        assert_eq!(inbox.since(inbox.mark()).1, 0);
    }
}
