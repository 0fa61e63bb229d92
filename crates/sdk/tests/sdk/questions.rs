//! Questions to the client and their answers.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_sdk::question::{Question, QuestionKind, Root};
use toolyard_sdk::testing::TestCaller;
use toolyard_sdk::{ClientCapabilities, Context, ElicitResult, ErrorKind, Tool, ToolError, question, tool};

#[derive(Debug, Deserialize, JsonSchema)]
struct Person {
    /// What people call you.
    name: String,
    age: Option<u8>,
}

#[tool]
async fn greet(ctx: Context) -> Result<String, ToolError> {
    Ok(match ctx.elicit::<Person>("person", "Who are you?").await? {
        ElicitResult::Accepted(Person { name, age }) => format!("{name} {age:?}"),
        ElicitResult::Declined => "declined".to_owned(),
        ElicitResult::Cancelled => "cancelled".to_owned(),
    })
}

fn asked(question: &Question) -> (String, QuestionKind, Value) {
    let params = serde_json::from_str(question.params.get()).unwrap();
    (question.key.clone(), question.kind, params)
}

#[tokio::test]
async fn a_form_is_derived_from_a_type_and_parsed_into_it() {
    let accepted = json!({"action": "accept", "content": {"name": "Ada", "age": 36}});
    let report = TestCaller::new().answer("person", accepted).call(greet(), json!({})).await;
    assert_eq!(report.text(), "Ada Some(36)");
    let params = json!({
        "message": "Who are you?",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "name": {"description": "What people call you.", "type": "string"},
                "age": {"type": "integer", "minimum": 0, "maximum": 255},
            },
            "required": ["name"],
        },
    });
    let questions: Vec<_> = report.questions.iter().map(asked).collect();
    assert_eq!(questions, [("person".to_owned(), QuestionKind::ElicitForm, params)]);
}

#[tokio::test]
async fn declining_and_canceling_are_answers() {
    for (action, text) in [("decline", "declined"), ("cancel", "cancelled")] {
        let report =
            TestCaller::new().answer("person", json!({"action": action})).call(greet(), json!({})).await;
        assert_eq!(report.text(), text);
    }
}

#[tokio::test]
async fn an_invalid_answer_is_requested_once_more() {
    let accepted = json!({"action": "accept", "content": {"name": "Ada"}});
    let second =
        TestCaller::new().answer("person", 12345).answer("person", accepted).call(greet(), json!({})).await;
    assert_eq!((second.text().as_str(), second.questions.len()), ("Ada None", 2));

    let nonsense = json!({"action": "accept", "content": {"name": 7}});
    let never = TestCaller::new()
        .answer("person", &nonsense)
        .answer("person", &nonsense)
        .call(greet(), json!({}))
        .await;
    let error = never.outcome.unwrap_err();
    assert_eq!((error.kind(), never.questions.len()), (ErrorKind::InvalidArguments, 2));
    let reason = "invalid type: integer `7`, expected a string at line 1 column 9";
    assert_eq!(error.message(), format!("the answer to `person` does not match the question: {reason}"));
}

#[tokio::test]
async fn a_client_without_the_capability_is_not_asked() {
    let report = TestCaller::new().capabilities(ClientCapabilities::default()).call(greet(), json!({})).await;
    assert_eq!(report.error_kind(), Some(ErrorKind::ClientCannot));
    assert_eq!(report.questions.len(), 0);
}

#[tokio::test]
async fn every_question_has_the_parameters_of_the_protocol() {
    let tool = Tool::new("t", |ctx: Context| async move {
        let agreed = ctx.elicit_url("login", "Please log in", "https://example.com/login").await?;
        let text = ctx.sample_text("poem", "Write a poem", 50).await?;
        let sampled = ctx.sample("prose", &json!({"messages": [], "maxTokens": 9})).await?;
        let roots = ctx.roots("places").await?;
        let form = ctx.elicit_with("form", "Fill in", &json!({"type": "object", "properties": {}})).await?;
        ctx.pause(Duration::from_millis(5)).await;
        assert_eq!(sampled.stop_reason.as_deref(), Some("endTurn"));
        assert_eq!(roots, [Root { uri: "file:///a".to_owned(), name: None }]);
        Ok(format!("{agreed:?} {text} {} {} {form:?}", sampled.model, sampled.text()))
    });
    let written =
        |text: Value| json!({"role": "assistant", "content": text, "model": "m", "stopReason": "endTurn"});
    let report = TestCaller::new()
        .answer("login", json!({"action": "accept"}))
        .answer("poem", written(json!({"type": "text", "text": "Roses"})))
        .answer("prose", written(json!([{"type": "text", "text": "Once"}, {"type": "text", "text": "upon"}])))
        .answer("places", json!({"roots": [{"uri": "file:///a"}]}))
        .answer("form", json!({"action": "accept", "content": {"x": 1}}))
        .call(tool, json!({}))
        .await;
    assert_eq!(report.text(), "Accepted(()) Roses m Once\nupon Accepted(Object {\"x\": Number(1)})");
    assert_eq!(report.pauses, [Duration::from_millis(5)]);
    let message = json!({"role": "user", "content": {"type": "text", "text": "Write a poem"}});
    let url = json!({"mode": "url", "message": "Please log in", "url": "https://example.com/login"});
    let form = json!({"message": "Fill in", "requestedSchema": {"type": "object", "properties": {}}});
    assert_eq!(
        report.questions.iter().map(asked).collect::<Vec<_>>(),
        [
            ("login".to_owned(), QuestionKind::ElicitUrl, url),
            ("poem".to_owned(), QuestionKind::Sample, json!({"messages": [message], "maxTokens": 50})),
            ("prose".to_owned(), QuestionKind::Sample, json!({"messages": [], "maxTokens": 9})),
            ("places".to_owned(), QuestionKind::Roots, json!({})),
            ("form".to_owned(), QuestionKind::ElicitForm, form),
        ]
    );
}

#[tokio::test]
async fn several_questions_are_asked_together() {
    let tool = Tool::new("t", |ctx: Context| async move {
        let questions = vec![question::form::<Person>("person", "Who?")?, question::roots("places")];
        let answers = ctx.ask(questions).await?;
        let ElicitResult::Accepted(person) = answers.form::<Person>("person")? else {
            return Ok("no".to_owned());
        };
        let places = answers.roots("places")?.len();
        Ok(format!("{} {places} {}", person.name, answers.get("other").is_none()))
    });
    let report = TestCaller::new()
        .answer("person", json!({"action": "accept", "content": {"name": "Ada"}}))
        .answer("places", json!({"roots": []}))
        .call(tool, json!({}))
        .await;
    assert_eq!(report.text(), "Ada 0 true");
}
