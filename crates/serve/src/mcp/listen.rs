//! What clients are told unasked: lists that changed and resources that were updated. Legacy sessions hear
//! it on their own; modern clients hold a `subscriptions/listen` request open for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_hub::{Change, Event, Principal};
use toolyard_wire::{Inbound, Outlet, Raw, Roster, RpcError};

use super::{Front, params};

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";
/// More resources than this in one subscription are refused.
const MOST_URIS: usize = 1_000;
/// How often calls that wait for an answer in vain are looked for.
const SWEEP: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Located {
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
pub(crate) async fn announce(front: Arc<Front>, roster: Arc<Roster<Principal>>) {
    let mut events = front.yard.events().changes();
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
            Err(RecvError::Lagged(_)) => Arc::new(Event::Changed(everything())),
            Err(RecvError::Closed) => return,
        };
        match &*event {
            Event::Changed(change) => {
                for session in roster.all() {
                    for method in methods(*change) {
                        session.announce(method, &nothing);
                    }
                }
            }
            Event::ResourceUpdated { uri, .. } => {
                let params = to_raw(&json!({"uri": uri}));
                for session in roster.all() {
                    if session.is_subscribed(uri) {
                        session.announce(UPDATED, &params);
                    }
                }
            }
            Event::CallStarted { .. }
            | Event::CallProgress { .. }
            | Event::CallEnded { .. }
            | Event::ResultOdd { .. }
            | Event::StatusChanged { .. } => {}
        }
    }
}

fn everything() -> Change {
    Change { tools: true, resources: true, prompts: true }
}

fn methods(change: Change) -> impl Iterator<Item = &'static str> {
    [(change.tools, TOOLS), (change.prompts, PROMPTS), (change.resources, RESOURCES)]
        .into_iter()
        .filter_map(|(changed, method)| changed.then_some(method))
}

impl Front {
    /// `resources/subscribe` of the legacy era.
    pub(super) fn subscribe(&self, request: &Inbound<Principal>) -> Result<Raw, RpcError> {
        let Located { uri } = params(&request.method, request.params.as_deref())?;
        if !self.may_see(&request.caller, &uri) {
            let error =
                RpcError::new(toolyard_wire::code::RESOURCE_NOT_FOUND, format!("unknown resource {uri}"));
            return Err(error.with_data(json!({"uri": uri})));
        }
        let subscribed = request.session.as_ref().is_some_and(|session| session.subscribe(&uri));
        if subscribed {
            self.yard.watch(&uri);
            Ok(from_text("{}".to_owned()))
        } else {
            Err(RpcError::invalid_request("this session has too many subscriptions"))
        }
    }

    pub(super) fn unsubscribe(request: &Inbound<Principal>) -> Result<Raw, RpcError> {
        let Located { uri } = params(&request.method, request.params.as_deref())?;
        if let Some(session) = &request.session {
            session.unsubscribe(&uri);
        }
        Ok(from_text("{}".to_owned()))
    }

    /// `subscriptions/listen` of the modern era: goes on until the client hangs up or the server stops.
    pub(super) async fn listen(&self, request: Inbound<Principal>) -> Result<Raw, RpcError> {
        let Listen { notifications: filter } = params(&request.method, request.params.as_deref())?;
        if filter.resource_subscriptions.len() > MOST_URIS {
            return Err(RpcError::invalid_params(format!("a subscription may name {MOST_URIS} resources")));
        }
        // Listening before saying so, so that nothing falls between the two.
        let mut events = self.yard.events().changes();
        let id = from_text(request.id.as_json().to_owned());
        let seen = |uri: &String| self.may_see(&request.caller, uri);
        let uris: HashSet<String> =
            filter.resource_subscriptions.iter().filter(|uri| seen(uri)).cloned().collect();
        uris.iter().for_each(|uri| self.yard.watch(uri));
        let tell = |method: &'static str, params: Value| tell(&request.outlet, method, params, &id);
        let agreed = filter.agreed(&uris);
        if tell("notifications/subscriptions/acknowledged", json!({"notifications": agreed})).await.is_err() {
            return Ok(ended(&id));
        }
        loop {
            let event = tokio::select! {
                event = events.recv() => event,
                () = request.closing.cancelled() => return Ok(ended(&id)),
            };
            let event = match event {
                Ok(event) => event,
                Err(RecvError::Lagged(_)) => Arc::new(Event::Changed(everything())),
                Err(RecvError::Closed) => return Ok(ended(&id)),
            };
            match &*event {
                Event::Changed(change) => {
                    for method in methods(filter.wanted(*change)) {
                        let _ = tell(method, json!({})).await;
                    }
                }
                Event::ResourceUpdated { uri, .. } if uris.contains(uri) => {
                    let _ = tell(UPDATED, json!({"uri": uri})).await;
                }
                _ => {}
            }
        }
    }

    fn may_see(&self, principal: &Principal, uri: &str) -> bool {
        let catalog = self.yard.catalog();
        let (resource, template) = match self.reach.alone() {
            None => (catalog.resource(uri), catalog.template_for(uri)),
            Some(source) => (catalog.resource_of(source, uri), catalog.template_of(source, uri)),
        };
        let resource = resource.filter(|resource| self.reach.covers(&resource.source));
        let template = template.filter(|template| self.reach.covers(&template.source));
        let resource = resource.map(|resource| &resource.permissions);
        let permissions = resource.or_else(|| template.map(|template| &template.permissions));
        permissions.is_some_and(|permissions| principal.lacks(permissions).is_none())
    }
}

impl Filter {
    fn wanted(&self, change: Change) -> Change {
        Change {
            tools: change.tools && self.tools_list_changed,
            prompts: change.prompts && self.prompts_list_changed,
            resources: change.resources && self.resources_list_changed,
        }
    }

    /// What of the filter will be honoured, as the client is told.
    fn agreed(&self, uris: &HashSet<String>) -> Value {
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
            let kept = self.resource_subscriptions.iter().filter(|uri| uris.contains(*uri));
            agreed.insert("resourceSubscriptions".to_owned(), kept.cloned().collect());
        }
        agreed.into()
    }
}

async fn tell(
    outlet: &Outlet,
    method: &str,
    mut params: Value,
    id: &RawValue,
) -> Result<(), toolyard_wire::Gone> {
    params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
    outlet.notify(method, &to_raw(&params)).await
}

fn ended(id: &RawValue) -> Raw {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    to_raw(&json!({"resultType": "complete", "_meta": meta}))
}
