//! Tapes from short recordings.

use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use serde_json::json;
use toolyard_wire::Era;

use super::{Tape, TapeStep, matched_params};
use crate::format::Cassette;

const HEADER: &str = r#"{"toolyard_cassette":1,"toolyard":"0.1.0","server":"s","transport":"stdio","started":"2027-01-31T12:00:00.000Z"}"#;

/// Builds a tape from lines such as `> {"id":1,"method":"a"}`. A number behind the arrow is the
/// stream.
pub(crate) fn tape(lines: &[&str]) -> Tape {
    let mut text = format!("{HEADER}\n");
    for (index, line) in lines.iter().enumerate() {
        let (start, message) = line.split_once(' ').unwrap();
        let from = if start.starts_with('>') { "client" } else { "server" };
        let stream = start[1..].parse().map(|stream: u64| format!("\"stream\":{stream},"));
        let stream = stream.unwrap_or_default();
        // A line that is not JSON-RPC is the body of a failed HTTP request.
        let status = if message.contains("oops") { "\"status\":503," } else { "" };
        let message = message.replacen('{', "{\"jsonrpc\":\"2.0\",", 1);
        text += &format!("{{\"at\":{index},\"from\":\"{from}\",{stream}{status}\"message\":{message}}}\n");
    }
    Tape::new(&Cassette::parse(text.as_bytes()).unwrap())
}

fn show(tape: &Tape) -> Vec<String> {
    let step = |step: &TapeStep| match step {
        TapeStep::Respond { at, .. } => format!("respond {at}"),
        TapeStep::RespondText { at, .. } => format!("text {at}"),
        TapeStep::Notify { at, exchange, .. } => format!("notify {at} for {exchange}"),
        TapeStep::Ask { at, id, .. } => format!("ask {at} {id}"),
        TapeStep::Await { at, id, .. } => format!("await {at} {id}"),
    };
    let show = |(index, exchange): (usize, &super::Exchange)| {
        let steps: Vec<String> = exchange.steps.iter().map(step).collect();
        format!("{index} {}: {}", exchange.trigger.method, steps.join(", "))
    };
    tape.exchanges.iter().enumerate().map(show).collect()
}

#[test]
fn what_the_server_sends_belongs_to_what_the_client_sent() {
    let tape = tape(&[
        r#"> {"id":0,"method":"initialize"}"#,
        r#"< {"id":0,"result":{}}"#,
        r#"> {"method":"notifications/initialized"}"#,
        r#"< {"id":0,"method":"roots/list"}"#,
        r#"> {"id":0,"result":{"roots":[]}}"#,
        r#"< {"method":"notifications/message","params":{"data":"roots"}}"#,
        r#"> {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"a"}}}"#,
        r#"> {"id":2,"method":"tools/call","params":{"_meta":{"progressToken":"b"}}}"#,
        r#"< {"method":"notifications/progress","params":{"progressToken":"a"}}"#,
        r#"< {"method":"notifications/message","params":{"data":"for the latest"}}"#,
        r#"< {"id":2,"result":{}}"#,
        r#"< {"id":1,"result":{}}"#,
    ]);
    let expect = [
        "0 initialize: respond 1",
        "1 notifications/initialized: ask 3 0, await 4 0, notify 5 for 1",
        "2 tools/call: notify 8 for 2, respond 11",
        "3 tools/call: notify 9 for 3, respond 10",
    ];
    assert_eq!(show(&tape), expect);
    assert_eq!(tape.eras, [Era::Legacy]);
}

#[test]
fn a_subscription_receives_what_a_later_call_causes() {
    let tape = tape(&[
        r#"> {"id":1,"method":"subscriptions/listen","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}}"#,
        r#"< {"method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        r#"> {"id":2,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}}"#,
        r#"< {"method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#,
        r#"< {"id":2,"result":{}}"#,
    ]);
    assert_eq!(
        show(&tape),
        ["0 subscriptions/listen: notify 1 for 0", "1 tools/call: notify 3 for 0, respond 4"]
    );
    assert_eq!(tape.eras, [Era::Modern]);
}

#[test]
fn streams_tell_equal_ids_of_two_clients_apart() {
    let tape = tape(&[
        r#">1 {"id":1,"method":"a"}"#,
        r#">2 {"id":1,"method":"b"}"#,
        r#"<1 {"method":"notifications/message"}"#,
        r#"<2 {"id":1,"result":{}}"#,
        r#"<1 {"id":1,"result":{}}"#,
    ]);
    assert_eq!(show(&tape), ["0 a: notify 2 for 0, respond 4", "1 b: respond 3"]);
}

proptest! {
    #[test]
    fn any_file_is_read_or_refused(
        lines in prop::collection::vec(
            prop_oneof![
                any::<Vec<u8>>(),
                prop::sample::select(vec![
                    r#"{"at":1,"from":"client","message":{"jsonrpc":"2.0","id":1,"method":"a"}}"#,
                    r#"{"at":1,"from":"client","stream":1,"message":{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}}"#,
                    r#"{"at":2,"from":"server","message":{"jsonrpc":"2.0","id":1,"result":{}}}"#,
                    r#"{"at":2,"from":"server","message":{"jsonrpc":"2.0","id":1,"method":"roots/list"}}"#,
                    r#"{"at":2,"from":"client","message":[{"jsonrpc":"2.0","id":1,"result":{}},7]}"#,
                    r#"{"at":0,"from":"server","stream":1,"status":400,"text":"no"}"#,
                    r#"{"at":3,"from":"server","message":{"jsonrpc":"2.0","method":"n","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1}}}}"#,
                ]).prop_map(|line| line.as_bytes().to_vec()),
            ],
            0..12,
        ),
    ) {
        let mut text = HEADER.as_bytes().to_vec();
        for line in &lines {
            text.push(b'\n');
            text.extend_from_slice(line);
        }
        if let Ok(cassette) = Cassette::parse(&text) {
            let tape = Tape::new(&cassette);
            let steps: usize = tape.exchanges.iter().map(|exchange| exchange.steps.len()).sum();
            assert!(tape.exchanges.len() + steps <= 2 * cassette.entries.len());
        }
    }
}

#[test]
fn cancelled_requests_are_known() {
    let tape = tape(&[
        r#"> {"id":1,"method":"tools/call"}"#,
        r#"> {"method":"notifications/cancelled","params":{"requestId":1}}"#,
    ]);
    assert!(tape.exchanges[0].is_canceled && !tape.exchanges[1].is_canceled);
}

#[test]
fn metadata_of_the_protocol_does_not_matter() {
    let text = r#"{"name":"a","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/clientInfo":{},"traceparent":"x"}}"#;
    assert_eq!(matched_params(text), json!({"name": "a"}));
    let own = r#"{"_meta":{"com.example/x":1,"progressToken":1},"arguments":{"a":{}}}"#;
    assert_eq!(matched_params(own), json!({"_meta": {"com.example/x": 1}, "arguments": {"a": {}}}));
}
