//! Recorded sessions as tests: every request becomes a test that expects the recorded answer, and
//! recorded answers of the user are given again. Where the messages come from is up to the importers.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_upstream::{Era, ServerListKind};

use crate::expect::observation::strip_envelope;
use crate::expect::{Condition, ConditionKind, Expectation, ExpectationCheck, Matcher, ValueTarget};
use crate::file::{
    AnswerSequence, CompletionStep, CompletionTargetSpec, FailureExpectation, FilePosition, RunCondition,
    ScriptedAnswers, ServerSpec, StepAction, StepExpectations, TestCase, TestFile, TestStep, ViolationPolicy,
};
use crate::values::escape_variables;

/// Requests that every connection sends by itself.
const OF_THE_CONNECTION: [&str; 3] = ["initialize", "server/discover", "ping"];

/// A message of a recording.
#[derive(Debug, Default, Deserialize)]
pub(super) struct RecordedMessage {
    pub(super) id: Option<Value>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
    pub(super) result: Option<Value>,
    pub(super) error: Option<Value>,
}

impl RecordedMessage {
    fn id_text(&self) -> String {
        self.id.as_ref().map(Value::to_string).unwrap_or_default()
    }
}

/// What happens to requests that cannot be a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnrepeatableRequests {
    Omit,
    /// They become skipped tests.
    Skip,
}

/// How a recording becomes a test file.
pub(super) struct RecordedFileOptions<'a> {
    pub(super) path: &'a Path,
    pub(super) name: String,
    pub(super) server: Option<ServerSpec>,
    pub(super) era: Option<Era>,
    pub(super) unrepeatable: UnrepeatableRequests,
    /// How a result is compared with the recorded one.
    pub(super) condition: fn(Value) -> ConditionKind,
}

/// The lines of one server.
#[derive(Debug, Default)]
pub(super) struct RecordedServer {
    /// Requests of the client, with their line.
    requests: Vec<(usize, RecordedMessage)>,
    /// Answers of the server, by the ID of the request.
    answers: BTreeMap<String, RecordedMessage>,
    /// Questions of the server, by ID, and what the client answered.
    questions: BTreeMap<String, String>,
    replies: Vec<(String, Value)>,
}

impl RecordedServer {
    pub(super) fn add_request(&mut self, line: usize, request: RecordedMessage) {
        self.requests.push((line, request));
    }

    pub(super) fn add_answer(&mut self, answer: RecordedMessage) {
        self.answers.insert(answer.id_text(), answer);
    }

    pub(super) fn add_question(&mut self, question: &RecordedMessage) {
        self.questions.insert(question.id_text(), question.method.clone().unwrap_or_default());
    }

    pub(super) fn add_reply(&mut self, reply: RecordedMessage) {
        if let (Some(method), Some(result)) = (self.questions.get(&reply.id_text()), reply.result) {
            self.replies.push((method.clone(), result));
        }
    }

    /// Returns a file with a test for each request.
    pub(super) fn into_file(self, options: RecordedFileOptions<'_>) -> TestFile {
        let mut replies = self.replies;
        let mut tests: Vec<TestCase> = Vec::new();
        // The items of all pages of each list, and the positions of its tests.
        let mut lists: Vec<(ServerListKind, Vec<Value>)> = Vec::new();
        let mut list_tests = Vec::new();
        for (number, request) in &self.requests {
            // A modern client repeats its request with the answers to questions. That is one test.
            if let Some(answers) = request.params.get("inputResponses").and_then(Value::as_object) {
                let questions = questions_of(&self.answers, &self.requests, request);
                replies.extend(answers.iter().filter_map(|(key, answer)| {
                    Some((questions.get(key)?.get("method")?.as_str()?.to_owned(), answer.clone()))
                }));
            }
            let at = FilePosition { line: *number, column: 1 };
            let answer = self.answers.get(&request.id_text());
            let (action, answer) = match (action_of(request), answer) {
                (Some(action), Some(answer)) => (action, answer),
                (action, _) => {
                    let is_shown =
                        !OF_THE_CONNECTION.contains(&request.method.as_deref().unwrap_or_default());
                    if options.unrepeatable == UnrepeatableRequests::Skip && is_shown {
                        let reason = match action {
                            Some(_) => "the recording has no answer",
                            None => "this request cannot be repeated on its own",
                        };
                        let skip = Some(reason.to_owned());
                        tests.push(TestCase { skip, ..empty_test(tests.len() + 1, at, request) });
                    }
                    continue;
                }
            };
            if answer.result.as_ref().and_then(|result| result.get("resultType"))
                == Some(&json!("input_required"))
            {
                continue;
            }
            if let (StepAction::List(kind), Some(_)) = (&action, request.params.get("cursor")) {
                // A test reads all pages of a list.
                if let Some((_, items)) = lists.iter_mut().rev().find(|(other, _)| other == kind) {
                    items.extend(items_of(*kind, answer));
                }
                continue;
            }
            let test = empty_test(tests.len() + 1, at, request);
            if let StepAction::List(kind) = &action
                && answer.result.is_some()
            {
                list_tests.push(tests.len());
                lists.push((*kind, items_of(*kind, answer)));
            }
            tests.push(TestCase { steps: vec![step_of(at, action, answer, options.condition)], ..test });
        }
        for (position, (kind, items)) in list_tests.into_iter().zip(lists) {
            let at = tests[position].at;
            let expected =
                recorded_result(at, (options.condition)(escape_variables(&json!({list_key(kind): items}))));
            tests[position].steps[0].expect.items = vec![expected];
        }
        let of_kind = |method: &str| {
            let answers: Vec<Value> = replies
                .iter()
                .filter(|(asked, _)| asked == method)
                .map(|(_, answer)| escape_variables(answer))
                .collect();
            if answers.is_empty() { AnswerSequence::None } else { AnswerSequence::InOrder(answers) }
        };
        let roots = replies.iter().rev().find(|(asked, _)| asked == "roots/list");
        TestFile {
            path: options.path.to_owned(),
            name: Some(options.name),
            server: options.server,
            eras: options.era.map(|era| vec![era]),
            answers: ScriptedAnswers {
                elicitation: of_kind("elicitation/create"),
                sampling: of_kind("sampling/createMessage"),
                roots: roots.map(|(_, answer)| escape_variables(answer)),
            },
            violations: ViolationPolicy::Ignore,
            tests,
            ..TestFile::default()
        }
    }
}

/// Returns the questions of the answer that this request continues.
fn questions_of(
    answers: &BTreeMap<String, RecordedMessage>,
    requests: &[(usize, RecordedMessage)],
    request: &RecordedMessage,
) -> Map<String, Value> {
    let keys = request.params.get("inputResponses").and_then(Value::as_object);
    let same = |other: &&(usize, RecordedMessage)| other.1.method == request.method;
    let asked = requests.iter().filter(same).filter_map(|(_, earlier)| {
        let answer = answers.get(&earlier.id.as_ref()?.to_string())?;
        answer.result.as_ref()?.get("inputRequests")?.as_object()
    });
    let fits =
        |asked: &&Map<String, Value>| keys.is_some_and(|keys| keys.keys().all(|key| asked.contains_key(key)));
    let mut fitting = asked.filter(fits);
    fitting.next().cloned().unwrap_or_default()
}

fn empty_test(number: usize, at: FilePosition, request: &RecordedMessage) -> TestCase {
    let method = request.method.as_deref().unwrap_or_default();
    let subject =
        ["name", "uri"].iter().find_map(|key| request.params.get(*key)?.as_str()).unwrap_or_default();
    TestCase {
        name: format!("{number} {method} {subject}").trim_end().replace(['\n', '\r'], " "),
        at,
        isolate: false,
        skip: None,
        only: RunCondition::default(),
        tags: Vec::new(),
        timeout: None,
        vars: Map::new(),
        answers: None,
        redact: Vec::new(),
        steps: Vec::new(),
    }
}

/// Returns the step that repeats a request and expects its recorded answer.
fn step_of(
    at: FilePosition,
    action: StepAction,
    answer: &RecordedMessage,
    condition: fn(Value) -> ConditionKind,
) -> TestStep {
    let expect = match (&answer.result, &answer.error) {
        (Some(result), _) => {
            let result = strip_envelope(result.clone());
            let failed = result.get("isError") == Some(&Value::Bool(true));
            let failure = if failed { FailureExpectation::ToolError } else { FailureExpectation::Success };
            let items = vec![recorded_result(at, condition(escape_variables(&result)))];
            StepExpectations { failure, items, ..StepExpectations::default() }
        }
        (None, error) => {
            let code = error.as_ref().and_then(|error| error.get("code")?.as_i64());
            let check = code.map(ExpectationCheck::ErrorCode);
            let items =
                check.into_iter().map(|check| Expectation { at, label: "error code".to_owned(), check });
            let failure = FailureExpectation::ProtocolError;
            StepExpectations { failure, items: items.collect(), ..StepExpectations::default() }
        }
    };
    let expect = StepExpectations { skip_output_schema: true, ..expect };
    TestStep { at, action, timeout: None, expect, captures: Vec::new() }
}

fn recorded_result(at: FilePosition, kind: ConditionKind) -> Expectation {
    let matcher = Matcher { conditions: vec![Condition { at, kind }] };
    let check = ExpectationCheck::Value { target: ValueTarget::Result, matcher };
    Expectation { at, label: "the recorded result".to_owned(), check }
}

fn list_key(kind: ServerListKind) -> &'static str {
    match kind {
        ServerListKind::Tools => "tools",
        ServerListKind::Prompts => "prompts",
        ServerListKind::Resources => "resources",
        ServerListKind::Templates => "resourceTemplates",
    }
}

/// Returns the items of one page.
fn items_of(kind: ServerListKind, answer: &RecordedMessage) -> Vec<Value> {
    let page = answer.result.as_ref().and_then(|result| result.get(list_key(kind))?.as_array());
    page.cloned().unwrap_or_default()
}

/// Returns the step that repeats a request. Handshakes and subscriptions belong to the connection.
fn action_of(request: &RecordedMessage) -> Option<StepAction> {
    let params = &request.params;
    let text = |key: &str| Some(params.get(key)?.as_str()?.replace("${", "$${"));
    let arguments = || escape_variables(params.get("arguments").unwrap_or(&json!({})));
    Some(match request.method.as_deref()? {
        "tools/call" => StepAction::Call { tool: text("name")?, arguments: arguments() },
        "prompts/get" => StepAction::Prompt { name: text("name")?, arguments: arguments() },
        "resources/read" => StepAction::Read { uri: text("uri")? },
        "tools/list" => StepAction::List(ServerListKind::Tools),
        "prompts/list" => StepAction::List(ServerListKind::Prompts),
        "resources/list" => StepAction::List(ServerListKind::Resources),
        "resources/templates/list" => StepAction::List(ServerListKind::Templates),
        "completion/complete" => {
            let reference = params.get("ref")?;
            let member = |key: &str| Some(reference.get(key)?.as_str()?.to_owned());
            let reference = match reference.get("type")?.as_str()? {
                "ref/prompt" => CompletionTargetSpec::Prompt(member("name")?),
                _ => CompletionTargetSpec::Template(member("uri")?),
            };
            let argument = |key: &str| Some(params.get("argument")?.get(key)?.as_str()?.to_owned());
            let context = params.get("context").and_then(|context| context.get("arguments")).cloned();
            let (argument, value) = (argument("name")?, argument("value").unwrap_or_default());
            StepAction::Complete(CompletionStep { reference, argument, value, context })
        }
        _ => return None,
    })
}
