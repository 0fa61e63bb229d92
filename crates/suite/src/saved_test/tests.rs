//! Saved calls are read back as test files.

use std::path::Path;

use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use serde_json::{Value, json};

use super::{SavedCall, SavedOutcome, SavedRequest, SavedServer, append_saved_test, render_saved_tests};
use crate::file::{StepAction, TestFile, parse_test_file};
use crate::values::Variables;

fn echo(message: &str) -> SavedCall {
    let arguments = json!({"message": message});
    let result = json!({"content": [{"type": "text", "text": format!("Echo: {message}")}], "isError": false});
    SavedCall {
        request: SavedRequest::Call { tool: "echo".to_owned(), arguments },
        outcome: SavedOutcome::Result(result),
    }
}

fn parse(text: &str) -> TestFile {
    parse_test_file(Path::new("saved.mcp.yaml"), text)
        .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
}

#[test]
fn a_saved_call_is_a_test_file() {
    let server = SavedServer::Command {
        program: "node".to_owned(),
        args: vec!["build/index.js".to_owned()],
        env: vec!["API_KEY".to_owned()],
        cwd: Some("..".to_owned()),
    };
    let failed = SavedCall {
        request: SavedRequest::Prompt { name: "p".to_owned(), arguments: json!({}) },
        outcome: SavedOutcome::Error(Some(-32602)),
    };
    let read = SavedCall {
        request: SavedRequest::Read { uri: "a://b".to_owned() },
        outcome: SavedOutcome::Result(json!({"contents": [{"uri": "a://b", "text": "x"}], "ttlMs": 0})),
    };
    let structured = SavedCall {
        request: SavedRequest::Call {
            tool: "sum".to_owned(),
            arguments: json!({"on": [1, 2.5, []], "n": null}),
        },
        outcome: SavedOutcome::Result(json!({"content": [], "structuredContent": {"y": 3}, "isError": true})),
    };
    let text =
        render_saved_tests(&server, &[echo("${hi}\n\"x\""), echo("${hi}\n\"x\""), failed, read, structured]);
    insta::assert_snapshot!("saved_calls", text);
    let names: Vec<String> = parse(&text).tests.into_iter().map(|test| test.name).collect();
    let expect = [
        "echo message=${hi} \"x\"",
        "echo message=${hi} \"x\" (2)",
        "p",
        "a://b",
        "sum on=[1,2.5,[]] n=null",
    ];
    assert_eq!(names, expect);
}

#[test]
fn a_test_is_added_to_a_file() {
    let server = SavedServer::Configured("files".to_owned());
    let first = render_saved_tests(&server, &[echo("a")]);
    let second = append_saved_test(Path::new("f"), &first, &echo("a")).unwrap();
    let names: Vec<String> = parse(&second).tests.into_iter().map(|test| test.name).collect();
    assert_eq!(names, ["echo message=a", "echo message=a (2)"]);
    let flow = "server: files\ntests: [{name: a, call: b}]\n";
    let refused = append_saved_test(Path::new("f"), flow, &echo("a")).unwrap_err();
    assert_eq!(refused, "its list of tests is not at its end");
    let moved = "tests:\n  - name: a\n    call: b\nserver: files\n";
    assert!(append_saved_test(Path::new("f"), moved, &echo("a")).is_err());
    let other = append_saved_test(Path::new("f"), "garbage", &echo("a")).unwrap_err();
    assert!(other.starts_with("it is not a test file: "), "{other}");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        prop::sample::select(vec!["true", "no", "~", "- a", "a: b", "#x", "${x}", " ", ""])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(any::<String>(), inner, 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_arguments_are_read_back(value in any_json(), tool in any::<String>()) {
        let arguments = json!({"value": value});
        let call = SavedCall {
            request: SavedRequest::Call { tool: tool.clone(), arguments: arguments.clone() },
            outcome: SavedOutcome::Result(json!({"content": [], "x": value})),
        };
        let text = render_saved_tests(&SavedServer::Configured("s".to_owned()), &[call]);
        let file = parse(&text);
        let StepAction::Call { tool: read, arguments: read_arguments } = &file.tests[0].steps[0].action else {
            panic!("{text}")
        };
        let variables = Variables::default();
        assert_eq!(variables.complete(read_arguments).unwrap(), arguments);
        assert_eq!(variables.complete_text(read).unwrap(), tool);
    }
}
