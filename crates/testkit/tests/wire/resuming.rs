//! A legacy client that lost its connection resumes where it stopped.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Events, Over, Version};

use super::start::probe;

#[tokio::test]
async fn a_stream_goes_on_with_what_was_missed_and_the_answer() {
    for version in Version::LEGACY {
        let mut client = probe(Over::Http, version).await;
        let (id, mut events) = three_steps(&mut client).await;
        let (last, first) = events.next_message().await.unwrap();
        assert_eq!(first.params()["message"], "step 1", "{version}");
        drop(events);
        client.call("open", json!({"gate": "g", "n": 3})).await.answer.result();

        let mut resumed = client.listen(last.as_deref()).await.events();
        let expected = ["step 2", "step 3"].map(|step| json!(["notifications/progress", step]));
        let mut missed = Vec::new();
        for _ in 0..2 {
            let (_, message) = resumed.next_message().await.unwrap();
            missed.push(json!([message.method(), message.params()["message"]]));
        }
        assert_eq!(missed, expected, "{version}");
        let (last, answer) = resumed.next_message().await.unwrap();
        assert_eq!((answer.id(), answer.content()), (&id, "arrived"), "{version}");
        assert!(resumed.next().await.is_none(), "{version}");

        let mut over = client.listen(last.as_deref()).await.events();
        assert!(over.next().await.is_none(), "{version}: an event was sent twice");
    }
}

#[tokio::test]
async fn every_event_has_an_id_of_its_own_and_newer_clients_get_one_first() {
    for version in Version::LEGACY {
        let mut client = probe(Over::Http, version).await;
        client.call("open", json!({"gate": "g", "n": 3})).await.answer.result();
        let (_, mut events) = three_steps(&mut client).await;
        let mut seen = Vec::new();
        while let Some(event) = events.next().await {
            seen.push((event.id.unwrap(), event.message.is_some()));
        }
        let numbers = if version >= Version::V2025_11_25 { 0..=4 } else { 1..=4 };
        let expected: Vec<(String, bool)> = numbers.map(|at| (format!("1-{at}"), at > 0)).collect();
        assert_eq!(seen, expected, "{version}");
    }
}

#[tokio::test]
async fn a_place_that_is_not_known_cannot_be_resumed() {
    let mut client = probe(Over::Http, Version::V2025_11_25).await;
    client.call("open", json!({"gate": "g", "n": 3})).await.answer.result();
    let (_, mut events) = three_steps(&mut client).await;
    while events.next().await.is_some() {}
    for last in ["1-99", "7-1", "nonsense", "-", "1-"] {
        assert_eq!(client.listen(Some(last)).await.refusal().await, (400, -32600), "{last}");
    }
}

#[tokio::test]
async fn a_stream_belongs_to_its_session() {
    let mut client = probe(Over::Http, Version::V2025_11_25).await;
    let (_, mut events) = three_steps(&mut client).await;
    let (last, _) = events.next_message().await.unwrap();
    let other = Client::join(client.server(), Version::V2025_11_25).await;
    assert_eq!(other.listen(last.as_deref()).await.refusal().await, (400, -32600));
}

/// Starts three steps through the gate `g`. Returns the id of the request and its stream.
async fn three_steps(client: &mut Client) -> (Value, Events) {
    let call = client.begin_watched_call("steps", json!({"gate": "g", "n": 3}), "tok").await;
    let id = call.id.clone();
    (id, call.reply().await.events())
}
