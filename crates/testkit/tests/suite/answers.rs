//! Scripted answers to the questions of servers, in both eras.

use super::{assert_passed, outcomes, run};

#[tokio::test]
async fn questions_are_answered_in_both_eras() {
    let report = run(
        r#"
server: SERVER
eras: [legacy, modern]
answers:
  elicitation: {accept: {name: Ada, username: ada, email: "a@b.c", ok: true, color: red}}
  sampling: Paris
  roots: ["file:///a", b]
tests:
  - name: a form
    call: test_elicitation
    arguments: {message: who?}
    expect:
      text: {contains: "action=accept"}
      questions: {length: 1, jsonpath: {"$[0].method": elicitation/create, "$[0].params.message": who?}}
  - {name: a model, call: test_sampling, arguments: {prompt: x}, expect: {text: "LLM response: Paris"}}
  - {name: roots, call: test_input_required_result_list_roots, expect: {text: "Found 2 root(s)"}}
  - {name: several rounds, call: test_input_required_result_multi_round, expect: {questions: {length: {min: 2}}}}
  - name: another answer
    answers: {elicitation: [decline]}
    call: test_elicitation
    arguments: {message: who?}
    expect: {text: {contains: "action=decline"}}
"#,
    )
    .await;
    assert_passed(&report, 10);
}

#[tokio::test]
async fn a_question_without_an_answer_is_explained() {
    let report = run(r#"
server: SERVER
eras: [legacy, modern]
answers: {elicitation: [{accept: {username: a, email: b}}]}
tests:
  - name: twice
    steps:
      - {call: test_elicitation, arguments: {message: one}}
      - {call: test_elicitation, arguments: {message: two}}
"#)
    .await;
    let found = outcomes(&report);
    assert_eq!(found.len(), 2);
    for outcome in found {
        let expected = "the server sent `elicitation/create`, and the test has no answer left for it";
        assert!(outcome.contains("failed") && outcome.contains(expected), "{outcome}");
    }
}
