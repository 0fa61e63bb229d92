//! Tools that ask: with a request of the server in the legacy era, and with an `input_required`
//! result in the modern one.

use serde_json::{Value, json};
use toolyard_testkit::harness::{Client, Message, Version};

use super::start::{both_eras, probe, server, server_with};

const WITH_FORMS: [Version; 2] = [Version::V2025_06_18, Version::V2025_11_25];

#[tokio::test]
async fn a_legacy_client_is_asked_while_the_call_goes_on() {
    for over in Client::BOTH {
        for version in WITH_FORMS {
            let mut client = probe(over, version).await;
            for (answer, text) in [
                (json!({"action": "accept", "content": {"name": "Ada"}}), "tea: Ada"),
                (json!({"action": "decline"}), "tea: declined"),
                (json!({"action": "cancel"}), "tea: cancelled"),
            ] {
                let mut call = client.begin_call("ask", json!({"about": "tea"})).await;
                let question = call.next().await.unwrap();
                assert_eq!(question.method(), Some("elicitation/create"), "{over:?} {version}");
                assert_eq!(question.params()["message"], "Who is it, for tea?", "{over:?} {version}");
                client.reply(question.id(), answer).await;
                assert_eq!(call.finish().await.answer.content(), text, "{over:?} {version}");
            }
        }
    }
}

#[tokio::test]
async fn a_modern_client_repeats_its_request_with_the_answer() {
    for over in Client::BOTH {
        let mut client = probe(over, Version::V2026_07_28).await;
        let first = client.ask("tools/call", ask_twice()).await.answer;
        assert_eq!(question(&first, "first"), "Who is first?", "{over:?}");
        let second =
            client.ask("tools/call", repeat(ask_twice(), &first, named("first", "Ada"))).await.answer;
        assert_eq!(question(&second, "second"), "Who is second?", "{over:?}");
        let done =
            client.ask("tools/call", repeat(ask_twice(), &second, named("second", "Bob"))).await.answer;
        assert_eq!(done.content(), "Ada, then Bob", "{over:?}");
    }
}

#[tokio::test]
async fn a_state_is_good_once_and_for_one_request() {
    for over in Client::BOTH {
        let mut client = probe(over, Version::V2026_07_28).await;
        let input_required = client.ask("tools/call", ask("tea")).await.answer;
        let answer = named("name", "Ada");

        let other =
            client.ask("tools/call", repeat(ask("coffee"), &input_required, answer.clone())).await.answer;
        assert_eq!(other.code(), -32602, "{over:?}: for another request");
        let other =
            client.ask("tools/call", repeat(ask_twice(), &input_required, answer.clone())).await.answer;
        assert_eq!(other.code(), -32602, "{over:?}: for another tool");
        let state = input_required.result()["requestState"].as_str().unwrap();
        let (first, second) = state.split_at(state.len() / 2);
        for tampered in [
            String::new(),
            first.to_owned(),
            format!("{state}."),
            state.to_uppercase(),
            format!("{first}{}", second.chars().rev().collect::<String>()),
        ] {
            let mut again = repeat(ask("tea"), &input_required, answer.clone());
            again["requestState"] = json!(tampered);
            let refused = client.ask("tools/call", again).await.answer;
            assert_eq!(refused.code(), -32602, "{over:?}: {tampered}");
        }

        let done = client.ask("tools/call", repeat(ask("tea"), &input_required, answer.clone())).await.answer;
        assert_eq!(done.content(), "tea: Ada", "{over:?}");
        let used = client.ask("tools/call", repeat(ask("tea"), &input_required, answer)).await.answer;
        assert_eq!(used.code(), -32602, "{over:?}: used already");
    }
}

#[tokio::test]
async fn a_state_is_good_for_one_principal() {
    let server = server_with(&["--token", "ada=one", "--token", "bob=two"]).await;
    let version = Version::V2026_07_28;
    let mut ada = Client::join_as(&server, version, Some("one".to_owned())).await;
    let mut bob = Client::join_as(&server, version, Some("two".to_owned())).await;
    let input_required = ada.ask("tools/call", ask("tea")).await.answer;
    let stolen =
        bob.ask("tools/call", repeat(ask("tea"), &input_required, named("name", "Bob"))).await.answer;
    assert_eq!(stolen.code(), -32602);
    let done = ada.ask("tools/call", repeat(ask("tea"), &input_required, named("name", "Ada"))).await.answer;
    assert_eq!(done.content(), "tea: Ada");
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_asked_for_again() {
    for over in Client::BOTH {
        let mut client = probe(over, Version::V2026_07_28).await;
        let input_required = client.ask("tools/call", ask("tea")).await.answer;
        let nonsense = json!({"name": {"action": "perhaps"}, "unknown": 7});
        let again = client.ask("tools/call", repeat(ask("tea"), &input_required, nonsense)).await.answer;
        assert_eq!(question(&again, "name"), "Who is it, for tea?", "{over:?}");
        let done = client.ask("tools/call", repeat(ask("tea"), &again, named("name", "Ada"))).await.answer;
        assert_eq!(done.content(), "tea: Ada", "{over:?}");
    }
}

#[tokio::test]
async fn two_clients_do_not_see_each_others_questions() {
    for version in WITH_FORMS {
        let server = server().await;
        let mut ada = Client::join(&server, version).await;
        let mut bob = Client::join(&server, version).await;
        let mut of_ada = ada.begin_call("ask", json!({"about": "tea"})).await;
        let mut of_bob = bob.begin_call("ask", json!({"about": "coffee"})).await;
        let (to_ada, to_bob) = (of_ada.next().await.unwrap(), of_bob.next().await.unwrap());
        assert_eq!(to_ada.params()["message"], "Who is it, for tea?");
        assert_eq!(to_bob.params()["message"], "Who is it, for coffee?");
        bob.reply(to_bob.id(), json!({"action": "accept", "content": {"name": "Bob"}})).await;
        assert_eq!(of_bob.finish().await.answer.content(), "coffee: Bob");
        ada.reply(to_ada.id(), json!({"action": "accept", "content": {"name": "Ada"}})).await;
        assert_eq!(of_ada.finish().await.answer.content(), "tea: Ada");
    }
}

#[tokio::test]
async fn a_client_that_refuses_fails_the_call_and_nothing_else() {
    for (over, version) in both_eras().filter(|(_, version)| !version.is_modern()) {
        let mut client = probe(over, version).await;
        let mut call = client.begin_call("ask", json!({"about": "tea"})).await;
        let question = call.next().await.unwrap();
        client.reply(question.id(), json!({"nonsense": 1})).await;
        assert_eq!(call.finish().await.answer.result()["isError"], true, "{over:?} {version}");
        client.ask("tools/list", "{}").await.answer.result();
    }
}

fn ask(about: &str) -> Value {
    json!({"name": "ask", "arguments": {"about": about}})
}

fn ask_twice() -> Value {
    json!({"name": "ask_twice", "arguments": {}})
}

/// Returns the message of the question with this key, which must be the only one.
fn question<'a>(answer: &'a Message, key: &str) -> &'a str {
    let requests = answer.result()["inputRequests"].as_object().unwrap();
    assert_eq!(requests.keys().collect::<Vec<_>>(), [key]);
    assert_eq!(requests[key]["method"], "elicitation/create");
    requests[key]["params"]["message"].as_str().unwrap()
}

/// Returns the same request with the answers added.
fn repeat(mut request: Value, input_required: &Message, answers: Value) -> Value {
    request["requestState"] = input_required.result()["requestState"].clone();
    request["inputResponses"] = answers;
    request
}

fn named(key: &str, name: &str) -> Value {
    json!({key: {"action": "accept", "content": {"name": name}}})
}
