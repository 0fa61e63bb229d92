//! Calls over the socket: their questions, how they end, and what happens to them when the client
//! disconnects or the yard stops.

use serde_json::{Value, json};
use toolyard_testkit::harness::Scratch;

use super::house::House;

#[tokio::test]
async fn a_socket_that_goes_away_cancels_its_calls_and_no_others() {
    let house = House::new().await;
    let scratch = Scratch::new();
    let (mut going, mut staying) = (house.owner().await, house.owner().await);
    let traces = scratch.traces("call");
    going.send("mcp_call", json!({"tool": "wait_until_cancelled", "arguments": traces.arguments()})).await;
    let slow = staying.send("mcp_call", json!({"tool": "slow", "arguments": {"ms": 1_000}})).await;
    traces.wait_started().await;
    going.disconnect();
    traces.wait_cancelled().await;
    assert_eq!(staying.response(slow).await["response"]["result"]["content"][0]["text"], "at last");
}

#[tokio::test]
async fn what_is_said_before_the_end_comes_before_the_end_and_in_order() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let call = socket.send("mcp_call", json!({"tool": "pieces", "arguments": {"n": 50}})).await;
    let end = socket.response(call).await;
    assert_eq!(end["response"]["result"]["content"][0]["text"], "50 pieces");
    let chunks: Vec<Value> = socket
        .take_unclaimed()
        .into_iter()
        .filter(|message| message["type"] == "chunk")
        .map(|message| message["chunk"].clone())
        .collect();
    assert_eq!(chunks, (1..=50).map(|at| json!(format!("piece {at}"))).collect::<Vec<_>>());
}

#[tokio::test]
async fn answers_that_make_no_sense_are_refused_and_the_question_stays_open() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let call = socket.send("mcp_call", json!({"tool": "ask_twice"})).await;
    let answer = |key: &str, answer: Value| json!({"request": call, "answers": {key: answer}});
    let with_key = |key: &'static str| move |message: &Value| message["questions"][0]["key"] == key;
    socket.next_matching("the first question", with_key("first")).await;
    let ada = json!({"action": "accept", "content": {"name": "Ada"}});
    assert_eq!(socket.request("mcp_answer", answer("third", ada.clone())).await, Err("NOT_FOUND".to_owned()));
    let wrong = socket.request("mcp_answer", answer("first", json!({"action": "perhaps"}))).await;
    assert_eq!(wrong, Err("VALIDATION_ERROR".to_owned()));
    let unknown_request = json!({"request": 999, "answers": {"first": ada}});
    assert_eq!(socket.request("mcp_answer", unknown_request).await, Err("NOT_FOUND".to_owned()));
    socket.request("mcp_answer", answer("first", ada.clone())).await.unwrap();
    socket.next_matching("the second question", with_key("second")).await;
    assert_eq!(socket.request("mcp_answer", answer("first", ada)).await, Err("NOT_FOUND".to_owned()));
    socket.request("mcp_answer", answer("second", json!({"action": "decline"}))).await.unwrap();
    assert_eq!(socket.response(call).await["response"]["result"]["content"][0]["text"], "Ada, then declined");
    // Clients that cannot answer are not question.
    let mute = json!({"tool": "ask", "arguments": {"about": "x"}, "asks": []});
    assert_eq!(socket.request("mcp_call", mute).await, Err("EXECUTION_ERROR".to_owned()));
}

#[tokio::test]
async fn a_question_of_an_old_server_reaches_the_socket_whose_call_it_is_about() {
    let mut house = House::new().await;
    house.add("asks", "asks").await;
    let mut sockets = [house.owner().await, house.owner().await];
    let calls = [
        sockets[0].send("mcp_call", json!({"tool": "mcp__asks__elicit"})).await,
        sockets[1].send("mcp_call", json!({"tool": "mcp__asks__elicit"})).await,
    ];
    for (socket, call) in sockets.iter_mut().zip(calls) {
        let question = socket.next_matching("the question", |message| message["type"] == "ask").await;
        assert_eq!(question["id"], call);
        let key = question["questions"][0]["key"].as_str().unwrap();
        let answers = json!({key: {"action": "decline"}});
        socket.request("mcp_answer", json!({"request": call, "answers": answers})).await.unwrap();
        assert_eq!(socket.response(call).await["type"], "response");
    }
    house.end().await;
}

#[tokio::test]
async fn time_that_is_up_ends_a_call() {
    let house = House::new().await;
    let mut socket = house.owner().await;
    let slow = json!({"tool": "slow", "arguments": {"ms": 60_000}, "timeout_ms": 50});
    assert_eq!(socket.request("mcp_call", slow).await, Err("TIMEOUT_ERROR".to_owned()));
}

#[tokio::test]
async fn a_yard_that_stops_lets_calls_finish_and_says_goodbye() {
    let house = House::new().await;
    let (mut busy, mut idle) = (house.owner().await, house.owner().await);
    let call = busy.send("mcp_call", json!({"tool": "slow", "arguments": {"ms": 700}})).await;
    // The call is running before anything stops.
    idle.request("mcp_servers", json!({})).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    house.stop.cancel();
    assert_eq!(idle.wait_closed().await, 1001);
    assert_eq!(busy.response(call).await["response"]["result"]["content"][0]["text"], "at last");
    assert_eq!(busy.wait_closed().await, 1001);
    house.end().await;
}
