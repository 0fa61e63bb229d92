//! Notifications of changed lists and updated resources. Legacy sessions receive them
//! automatically; modern clients keep a `subscriptions/listen` request open for them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{CatalogChange, Principal, ResourceSubscription, SourceName, YardEvent};
use toolyard_wire::{ClientChannel, InboundRequest, RawJson, RpcError, Service, SessionRegistry};

use super::{McpFront, params};

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";
/// Interval between two checks for expired parked calls.
const SWEEP: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct ResourceUriParams {
    uri: String,
}

#[derive(Deserialize)]
struct Listen {
    notifications: Filter,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    prompts_list_changed: bool,
    resources_list_changed: bool,
    resource_subscriptions: Vec<String>,
}

/// Notifies every legacy session of changes, for as long as the future is polled.
pub(crate) async fn announce(front: Arc<McpFront>, sessions: Arc<SessionRegistry<Principal>>) {
    let mut events = front.yard.events().subscribe_changes();
    let mut sweep = tokio::time::interval(SWEEP);
    let no_params = from_text("{}".to_owned());
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            _ = sweep.tick() => {
                front.parking.sweep();
                continue;
            }
        };
        let event = match event {
            Ok(event) => event,
            // After a lag it is unknown what changed, so everything may have.
            Err(RecvError::Lagged(_)) => Arc::new(front.all_changed_event()),
            Err(RecvError::Closed) => return,
        };
        match &*event {
            YardEvent::CatalogChanged(change, sources) => {
                for (caller, session) in sessions.all() {
                    if !front.yard.visibility(&caller).sees_changes(sources, &front.reach) {
                        continue;
                    }
                    for method in methods(*change) {
                        session.announce(method, &no_params);
                    }
                }
            }
            YardEvent::ResourceUpdated { source, uri } => {
                let params = to_raw(&json!({"uri": uri}));
                for (caller, session) in sessions.all() {
                    let subscribed = session.is_subscribed(uri, |guard| {
                        let subscription = guard.downcast_ref::<ResourceSubscription>();
                        subscription.is_some_and(|subscription| subscription.is_for(source, uri))
                    });
                    // The visibility may have changed since the subscription.
                    if subscribed && front.yard.visibility(&caller).sees_update(source, uri) {
                        session.announce(UPDATED, &params);
                    }
                }
            }
            YardEvent::CallStarted { .. }
            | YardEvent::CallProgress { .. }
            | YardEvent::CallEnded { .. }
            | YardEvent::ResultViolatesSchema { .. }
            | YardEvent::StatusChanged { .. } => {}
        }
    }
}

fn methods(change: CatalogChange) -> impl Iterator<Item = &'static str> {
    [(change.tools, TOOLS), (change.prompts, PROMPTS), (change.resources, RESOURCES)]
        .into_iter()
        .filter_map(|(changed, method)| changed.then_some(method))
}

impl McpFront {
    /// Handles `resources/subscribe` of the legacy era.
    pub(super) async fn subscribe(&self, request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let ResourceUriParams { uri } = params(&request.method, request.params.as_deref())?;
        let Some(subscription) = self.yard.subscribe(&request.caller, &self.reach, &uri) else {
            let error =
                RpcError::new(toolyard_wire::code::RESOURCE_NOT_FOUND, format!("unknown resource `{uri}`"));
            return Err(error.with_data(json!({"uri": uri})));
        };
        let most = self.yard.limits().subscriptions;
        match &request.session {
            Some(session) if session.subscribe(&uri, Box::new(subscription), most) => {
                self.session_changed(session).await;
                Ok(from_text("{}".to_owned()))
            }
            _ => Err(too_many_subscriptions(most)),
        }
    }

    pub(super) async fn unsubscribe(&self, request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let ResourceUriParams { uri } = params(&request.method, request.params.as_deref())?;
        if let Some(session) = &request.session {
            session.unsubscribe(&uri);
            self.session_changed(session).await;
        }
        Ok(from_text("{}".to_owned()))
    }

    /// Handles `subscriptions/listen` of the modern era. Runs until the client disconnects or the
    /// server stops.
    pub(super) async fn listen(&self, request: InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let Listen { notifications: filter } = params(&request.method, request.params.as_deref())?;
        let most = self.yard.limits().subscriptions;
        if filter.resource_subscriptions.len() > most {
            return Err(too_many_subscriptions(most));
        }
        // Subscribes before the acknowledgment, so that no event is lost in between.
        let mut events = self.yard.events().subscribe_changes();
        let id = from_text(request.id.as_json().to_owned());
        // The subscriptions end with this request, however it ends.
        let subscribe = |uri: &String| {
            let subscription = self.yard.subscribe(&request.caller, &self.reach, uri);
            subscription.map(|subscription| (uri.clone(), subscription))
        };
        let subscriptions: HashMap<String, ResourceSubscription> =
            filter.resource_subscriptions.iter().filter_map(subscribe).collect();
        let send = |method: &'static str, params: Value| notify(&request.channel, method, params, &id);
        let accepted = json!({"notifications": filter.acknowledged(&subscriptions)});
        if send("notifications/subscriptions/acknowledged", accepted).await.is_err() {
            return Ok(complete_result(&id));
        }
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = request.closing.cancelled() => return Ok(complete_result(&id)),
            };
            let event = match event {
                Ok(event) => event,
                Err(RecvError::Lagged(_)) => Arc::new(self.all_changed_event()),
                Err(RecvError::Closed) => return Ok(complete_result(&id)),
            };
            let visibility = self.yard.visibility(&request.caller);
            match &*event {
                YardEvent::CatalogChanged(change, sources)
                    if visibility.sees_changes(sources, &self.reach) =>
                {
                    for method in methods(filter.filter_change(*change)) {
                        let _ = send(method, json!({})).await;
                    }
                }
                YardEvent::ResourceUpdated { source, uri }
                    if subscriptions
                        .get(uri)
                        .is_some_and(|subscription| subscription.is_for(source, uri))
                        && visibility.sees_update(source, uri) =>
                {
                    let _ = send(UPDATED, json!({"uri": uri})).await;
                }
                _ => {}
            }
        }
    }

    /// Returns the event for clients that missed other events.
    fn all_changed_event(&self) -> YardEvent {
        let change = CatalogChange { tools: true, resources: true, prompts: true };
        let sources: Vec<SourceName> = self.yard.statuses().into_iter().map(|(name, _)| name).collect();
        YardEvent::CatalogChanged(change, sources.into())
    }
}

fn too_many_subscriptions(most: usize) -> RpcError {
    RpcError::invalid_request(format!(
        "exceeds the limit of {most} resource subscriptions (limits.subscriptions)"
    ))
}

impl Filter {
    fn filter_change(&self, change: CatalogChange) -> CatalogChange {
        CatalogChange {
            tools: change.tools && self.tools_list_changed,
            prompts: change.prompts && self.prompts_list_changed,
            resources: change.resources && self.resources_list_changed,
        }
    }

    /// Returns the accepted part of the filter for the acknowledgment.
    fn acknowledged(&self, subscriptions: &HashMap<String, ResourceSubscription>) -> Value {
        let mut accepted = serde_json::Map::new();
        let flags = [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ];
        for (key, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            accepted.insert(key.to_owned(), true.into());
        }
        if !self.resource_subscriptions.is_empty() {
            let uris = self.resource_subscriptions.iter().filter(|uri| subscriptions.contains_key(*uri));
            accepted.insert("resourceSubscriptions".to_owned(), uris.cloned().collect());
        }
        accepted.into()
    }
}

async fn notify(
    channel: &ClientChannel,
    method: &str,
    mut params: Value,
    id: &RawValue,
) -> Result<(), toolyard_wire::ClientGone> {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    channel.notify(method, &to_raw(&params)).await
}

fn complete_result(id: &RawValue) -> RawJson {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    to_raw(&json!({"resultType": "complete", "_meta": meta}))
}
