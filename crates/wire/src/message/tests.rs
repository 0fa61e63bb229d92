//! Message parser: invalid messages get the error codes of the protocol, and valid ones lose no
//! byte.

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};

use super::{Packet, RpcMessage, parse, write_notification, write_result};
use crate::rpc_error::code;

fn refused(text: &str) -> (i64, Option<String>) {
    let refusal = parse(text.as_bytes()).unwrap_err();
    (refusal.error.code, refusal.id.map(|id| id.as_json().to_owned()))
}

#[test]
fn keeps_ids_and_payloads_as_the_text_they_were() {
    let text = r#"{"params":{"b":1.0, "a":[9007199254740993123]},"id":18446744073709551616,"method":"m","jsonrpc":"2.0"}"#;
    let Packet::Single(RpcMessage::Request(request)) = parse(text.as_bytes()).unwrap() else {
        panic!("not a request")
    };
    assert_eq!(request.id.as_json(), "18446744073709551616");
    assert_eq!(request.params.unwrap().get(), r#"{"b":1.0, "a":[9007199254740993123]}"#);
}

#[test]
fn garbage_gets_the_codes_of_the_protocol() {
    assert_eq!(refused("{"), (code::PARSE, None));
    assert_eq!(refused("nonsense"), (code::PARSE, None));
    assert_eq!(refused("[]"), (code::INVALID_REQUEST, None));
    assert_eq!(refused("17"), (code::INVALID_REQUEST, None));
    assert_eq!(refused("{}"), (code::INVALID_REQUEST, None));
    assert_eq!(
        refused(r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#),
        (code::INVALID_REQUEST, Some("1".into()))
    );
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#), (code::INVALID_REQUEST, None));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#), (code::INVALID_REQUEST, None));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), (code::INVALID_REQUEST, Some("1".into())));
    let params = r#"{"jsonrpc":"2.0","id":"a","method":"m","params":[1]}"#;
    assert_eq!(refused(params), (code::INVALID_REQUEST, Some("\"a\"".into())));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}"#), (code::INVALID_REQUEST, None));
    assert_eq!(
        refused(r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#),
        (code::INVALID_REQUEST, Some("1".into()))
    );
    assert_eq!(parse(b"{\"a\":\"\xff\"}").unwrap_err().error.code, code::PARSE);
}

#[test]
fn deep_nesting_is_rejected_before_parsing() {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    assert_eq!(refused(&deep), (code::INVALID_REQUEST, None));
    let brackets_in_text =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":"\"{}"}}}}"#, "[".repeat(200));
    assert!(parse(brackets_in_text.as_bytes()).is_ok());
}

#[test]
fn a_batch_refuses_its_bad_messages_one_by_one() {
    let Packet::Batch(pieces) = parse(br#"[{"jsonrpc":"2.0","method":"n"}, 1]"#).unwrap() else {
        panic!("not a batch")
    };
    assert!(matches!(pieces[0], Ok(RpcMessage::Notification(_))));
    assert_eq!(pieces[1].as_ref().unwrap_err().error.code, code::INVALID_REQUEST);
}

#[test]
fn what_is_written_is_one_line_and_reads_back() {
    let pretty = serde_json::value::RawValue::from_string("{\n  \"a\": \"x\\ny\"\r\n}".to_owned()).unwrap();
    let written = write_result(&super::RequestId::from_number(1), &pretty);
    assert!(!written.contains('\n') && !written.contains('\r'));
    let Packet::Single(RpcMessage::Response(response)) = parse(written.as_bytes()).unwrap() else {
        panic!("not a response")
    };
    let value: serde_json::Value = serde_json::from_str(response.result.unwrap().get()).unwrap();
    assert_eq!(value, serde_json::json!({"a": "x\ny"}));
    assert!(parse(write_notification("n", &pretty).as_bytes()).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn near_messages_are_parsed_or_refused(text in r#"[\[\]{}:,"a-z0-9\\ .-]{0,80}"#, at in 0_usize..60) {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":1}}"#;
        let (before, after) = message.split_at(at.min(message.len()));
        let _ = parse(format!("{before}{text}{after}").as_bytes());
    }

    #[test]
    fn a_truncated_message_is_never_taken_for_a_whole_one(at in 1_usize..62) {
        let message = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"x":1}}"#;
        prop_assert!(parse(&message.as_bytes()[..at]).is_err());
    }

    #[test]
    fn string_ids_come_back_as_they_were(id in any::<String>()) {
        let id = serde_json::to_string(&id).unwrap();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let Packet::Single(RpcMessage::Request(request)) = parse(text.as_bytes()).unwrap() else { panic!("not a request") };
        prop_assert_eq!(request.id.as_json(), id);
    }
}
