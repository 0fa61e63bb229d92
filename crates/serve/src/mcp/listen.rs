//! What clients are told unasked: lists that changed and resources that were updated. Legacy sessions hear
//! it on their own; modern clients hold a `subscriptions/listen` request open for it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{CatalogChange, Principal, ResourceSubscription, SourceName, YardEvent};
use toolyard_wire::{ClientChannel, InboundRequest, RawJson, RpcError, SessionRegistry};

use super::{McpFront, params};

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";
/// How often calls that wait for an answer in vain are looked for.
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

/// Tells every legacy session what changed, for as long as it is polled.
pub(crate) async fn announce(front: Arc<McpFront>, roster: Arc<SessionRegistry<Principal>>) {
    let mut events = front.yard.events().subscribe_changes();
    let mut sweep = tokio::time::interval(SWEEP);
    let nothing = from_text("{}".to_owned());
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
            // Whoever fell behind does not know what changed, so everything may have.
            Err(RecvError::Lagged(_)) => Arc::new(front.all_changed_event()),
            Err(RecvError::Closed) => return,
        };
        match &*event {
            YardEvent::CatalogChanged(change, sources) => {
                for (caller, session) in roster.all() {
                    if !front.yard.visibility(&caller).sees_changes(sources, &front.reach) {
                        continue;
                    }
                    for method in methods(*change) {
                        session.announce(method, &nothing);
                    }
                }
            }
            YardEvent::ResourceUpdated { source, uri } => {
                let params = to_raw(&json!({"uri": uri}));
                for (caller, session) in roster.all() {
                    let subscribed = session.is_subscribed(uri, |guard| {
                        let held = guard.downcast_ref::<ResourceSubscription>();
                        held.is_some_and(|held| held.is_for(source, uri))
                    });
                    // What the caller may see can have changed since.
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
    /// `resources/subscribe` of the legacy era.
    pub(super) fn subscribe(&self, request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let ResourceUriParams { uri } = params(&request.method, request.params.as_deref())?;
        let Some(held) = self.yard.subscribe(&request.caller, &self.reach, &uri) else {
            let error =
                RpcError::new(toolyard_wire::code::RESOURCE_NOT_FOUND, format!("unknown resource {uri}"));
            return Err(error.with_data(json!({"uri": uri})));
        };
        let most = self.yard.limits().subscriptions;
        match &request.session {
            Some(session) if session.subscribe(&uri, Box::new(held), most) => Ok(from_text("{}".to_owned())),
            _ => Err(too_many_subscriptions(most)),
        }
    }

    pub(super) fn unsubscribe(request: &InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let ResourceUriParams { uri } = params(&request.method, request.params.as_deref())?;
        if let Some(session) = &request.session {
            session.unsubscribe(&uri);
        }
        Ok(from_text("{}".to_owned()))
    }

    /// `subscriptions/listen` of the modern era: goes on until the client hangs up or the server stops.
    pub(super) async fn listen(&self, request: InboundRequest<Principal>) -> Result<RawJson, RpcError> {
        let Listen { notifications: filter } = params(&request.method, request.params.as_deref())?;
        let most = self.yard.limits().subscriptions;
        if filter.resource_subscriptions.len() > most {
            return Err(too_many_subscriptions(most));
        }
        // Listening before saying so, so that nothing falls between the two.
        let mut events = self.yard.events().subscribe_changes();
        let id = from_text(request.id.as_json().to_owned());
        // They are given back when this request ends, however it does.
        let subscribe = |uri: &String| {
            self.yard.subscribe(&request.caller, &self.reach, uri).map(|held| (uri.clone(), held))
        };
        let held: HashMap<String, ResourceSubscription> =
            filter.resource_subscriptions.iter().filter_map(subscribe).collect();
        let tell = |method: &'static str, params: Value| notify(&request.channel, method, params, &id);
        let agreed = filter.acknowledged(&held);
        if tell("notifications/subscriptions/acknowledged", json!({"notifications": agreed})).await.is_err() {
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
                        let _ = tell(method, json!({})).await;
                    }
                }
                YardEvent::ResourceUpdated { source, uri }
                    if held.get(uri).is_some_and(|held| held.is_for(source, uri))
                        && visibility.sees_update(source, uri) =>
                {
                    let _ = tell(UPDATED, json!({"uri": uri})).await;
                }
                _ => {}
            }
        }
    }

    /// What is told to those who missed something.
    fn all_changed_event(&self) -> YardEvent {
        let change = CatalogChange { tools: true, resources: true, prompts: true };
        let sources: Vec<SourceName> = self.yard.statuses().into_iter().map(|(name, _)| name).collect();
        YardEvent::CatalogChanged(change, sources.into())
    }
}

fn too_many_subscriptions(most: usize) -> RpcError {
    RpcError::invalid_request(format!("more than {most} subscriptions to resources (limits.subscriptions)"))
}

impl Filter {
    fn filter_change(&self, change: CatalogChange) -> CatalogChange {
        CatalogChange {
            tools: change.tools && self.tools_list_changed,
            prompts: change.prompts && self.prompts_list_changed,
            resources: change.resources && self.resources_list_changed,
        }
    }

    /// What of the filter will be honoured, as the client is told.
    fn acknowledged(&self, held: &HashMap<String, ResourceSubscription>) -> Value {
        let mut agreed = serde_json::Map::new();
        let flags = [
            ("toolsListChanged", self.tools_list_changed),
            ("promptsListChanged", self.prompts_list_changed),
            ("resourcesListChanged", self.resources_list_changed),
        ];
        for (key, _) in flags.into_iter().filter(|(_, wanted)| *wanted) {
            agreed.insert(key.to_owned(), true.into());
        }
        if !self.resource_subscriptions.is_empty() {
            let kept = self.resource_subscriptions.iter().filter(|uri| held.contains_key(*uri));
            agreed.insert("resourceSubscriptions".to_owned(), kept.cloned().collect());
        }
        agreed.into()
    }
}

async fn notify(
    outlet: &ClientChannel,
    method: &str,
    mut params: Value,
    id: &RawValue,
) -> Result<(), toolyard_wire::ClientGone> {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    outlet.notify(method, &to_raw(&params)).await
}

fn complete_result(id: &RawValue) -> RawJson {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    to_raw(&json!({"resultType": "complete", "_meta": meta}))
}
