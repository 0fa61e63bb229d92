//! Unsolicited notifications. They are sent only to clients that subscribed to them.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Message, Over, Signal, Version};
use toolyard_testkit::probe::NOTE;

use super::start::{probe, server};

const UPDATED: &str = "notifications/resources/updated";
const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";

#[tokio::test]
async fn a_legacy_client_hears_of_changed_lists_and_its_subscriptions() {
    for over in Client::BOTH {
        for version in Version::LEGACY {
            let mut client = probe(over, version).await;
            let mut standing = match over {
                Over::Http => Some(client.listen(None).await.events()),
                Over::Stdio => None,
            };
            client.ask("resources/subscribe", json!({"uri": NOTE})).await.answer.result();
            let mut received = change_everything(&mut client).await;
            received.extend(client.ask("resources/unsubscribe", json!({"uri": NOTE})).await.messages);
            received.extend(client.call("touch", json!({"uri": NOTE})).await.messages);
            received.extend(client.call("change_tools", "{}").await.messages);
            match &mut standing {
                Some(events) => {
                    assert!(received.is_empty(), "{version}: {received:?}");
                    while received.len() < 5 {
                        received.push(events.next_message().await.unwrap().1);
                    }
                }
                // A notification outside any call may arrive after the answer.
                None => {
                    while received.len() < 5 {
                        received.push(client.line().next().await);
                    }
                }
            }
            let received: Vec<Value> = received.into_iter().map(|message| message.value).collect();
            let notification =
                |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
            let expected = [
                notification(UPDATED, json!({"uri": NOTE})),
                notification(TOOLS, json!({})),
                notification(PROMPTS, json!({})),
                notification(RESOURCES, json!({})),
                notification(TOOLS, json!({})),
            ];
            assert_eq!(received, expected, "{over:?} {version}");
        }
    }
}

#[tokio::test]
async fn a_legacy_client_may_have_several_standing_streams_and_hears_everything_once() {
    for version in Version::LEGACY {
        let mut client = probe(Over::Http, version).await;
        let mut first = client.listen(None).await.events();
        let mut second = client.listen(None).await.events();
        client.call("change_tools", "{}").await;
        assert_eq!(second.next_message().await.unwrap().1.method(), Some(TOOLS), "{version}");
        drop(second);
        // The earlier change is not announced again. Later ones may still go to the stream that is
        // closing.
        let mut next = std::pin::pin!(first.next_message());
        let message = loop {
            client.call("change_prompts", "{}").await;
            let soon = tokio::time::timeout(std::time::Duration::from_millis(100), &mut next).await;
            if let Ok(message) = soon {
                break message;
            }
        };
        assert_eq!(message.unwrap().1.method(), Some(PROMPTS), "{version}");
    }
}

#[tokio::test]
async fn a_subscription_is_acknowledged_first_filtered_and_ends_with_a_result() {
    let server = server().await;
    let mut client = Client::join(&server, Version::V2026_07_28).await;
    let mut other = Client::join(&server, Version::V2026_07_28).await;
    let missing = "probe://missing";
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": [NOTE, missing]});
    let mut listening = client.begin("subscriptions/listen", json!({"notifications": filter})).await;
    let id = listening.id.clone();
    let notification = |method: &str, params: Value| {
        let mut params = params;
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": id});
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    };
    let agreed = json!({"toolsListChanged": true, "resourceSubscriptions": [NOTE]});
    let acknowledged =
        notification("notifications/subscriptions/acknowledged", json!({"notifications": agreed}));
    assert_eq!(listening.next().await.unwrap().value, acknowledged);
    change_everything(&mut other).await;
    assert_eq!(listening.next().await.unwrap().value, notification(UPDATED, json!({"uri": NOTE})));
    assert_eq!(listening.next().await.unwrap().value, notification(TOOLS, json!({})));
    server.process().await.signal(Signal::Terminate);
    assert_eq!(listening.finish().await.answer.value, ended(&id));
    assert_eq!(server.process().await.exit().await, Some(0));
}

#[tokio::test]
async fn a_subscription_works_on_stdio_beside_other_requests() {
    let mut client = probe(Over::Stdio, Version::V2026_07_28).await;
    let params = json!({"notifications": {"promptsListChanged": true, "resourcesListChanged": true}});
    let mut listening = client.begin("subscriptions/listen", params).await;
    let acknowledged = listening.next().await.unwrap();
    assert_eq!(acknowledged.method(), Some("notifications/subscriptions/acknowledged"));
    let mut received = change_everything(&mut client).await;
    while received.len() < 2 {
        received.push(listening.next().await.unwrap());
    }
    let methods: Vec<_> = received.iter().map(|message| message.method().unwrap()).collect();
    assert_eq!(methods, [PROMPTS, RESOURCES]);
    let id = listening.id.clone();
    client.line().process().await.signal(Signal::Terminate);
    assert_eq!(listening.finish().await.answer.value, ended(&id));
    assert_eq!(client.line().process().await.exit().await, Some(0));
}

#[tokio::test]
async fn a_cancelled_subscription_is_silent() {
    let mut client = probe(Over::Stdio, Version::V2026_07_28).await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = client.begin("subscriptions/listen", params).await;
    listening.next().await.unwrap();
    client.cancel(&listening.id).await;
    assert!(change_everything(&mut client).await.is_empty());
    assert!(client.ask("tools/list", "{}").await.messages.is_empty());
}

/// Touches two resources, then changes each list. Returns the messages received meanwhile.
async fn change_everything(client: &mut Client) -> Vec<Message> {
    let mut received = Vec::new();
    received.extend(client.call("touch", json!({"uri": "probe://other"})).await.messages);
    received.extend(client.call("touch", json!({"uri": NOTE})).await.messages);
    for change in ["change_tools", "change_prompts", "change_resources"] {
        received.extend(client.call(change, "{}").await.messages);
    }
    received
}

fn ended(id: &Value) -> Value {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": id});
    json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "_meta": meta}})
}
