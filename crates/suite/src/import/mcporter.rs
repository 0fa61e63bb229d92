//! Recordings of mcporter: one JSON-RPC message per line. Every recorded request becomes a test that
//! expects the recorded answer; recorded answers of the user are given again.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_upstream::ServerListKind;

use crate::expect::observation::strip_envelope;
use crate::expect::{Condition, ConditionKind, Expectation, ExpectationCheck, Matcher, ValueTarget};
use crate::file::{
    AnswerSequence, CompletionStep, CompletionTargetSpec, FailureExpectation, FilePosition, RunCondition,
    ScriptedAnswers, ServerSpec, StepAction, StepExpectations, TestCase, TestFile, TestFileProblem, TestStep,
    ViolationPolicy,
};

/// Larger recordings are not read.
const LARGEST: usize = 64 << 20;

#[derive(Debug, Deserialize)]
struct RecordedLine {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
    result: Option<Value>,
    error: Option<Value>,
    #[serde(rename = "_meta")]
    meta: LineMeta,
}

#[derive(Debug, Deserialize)]
struct LineMeta {
    dir: String,
    #[serde(default)]
    server: String,
}

/// The lines of one server.
#[derive(Default)]
struct RecordedServer {
    /// Requests of the client, with their line.
    requests: Vec<(usize, RecordedLine)>,
    /// Answers of the server, by the ID of the request.
    answers: BTreeMap<String, RecordedLine>,
    /// Questions of the server, by ID, and what the client answered.
    questions: BTreeMap<String, String>,
    replies: Vec<(String, Value)>,
}

/// Reads a recording. Each server of it becomes a test file; its name is that of a server of the
/// configuration.
pub fn parse_mcporter(path: &Path, text: &str) -> Result<Vec<TestFile>, Vec<TestFileProblem>> {
    if text.len() > LARGEST {
        let message = format!("the recording exceeds the limit of {LARGEST} bytes");
        return Err(vec![TestFileProblem::for_file(path, message)]);
    }
    let mut servers: BTreeMap<String, RecordedServer> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<RecordedLine>(line) {
            Ok(line) => servers.entry(line.meta.server.clone()).or_default().add(index + 1, line),
            Err(error) => {
                let at = FilePosition { line: index + 1, column: error.column().max(1) };
                let message = format!("this is not a line of a recording of mcporter: {error}");
                problems.push(TestFileProblem::at(path, text, at, message));
            }
        }
    }
    if !problems.is_empty() {
        problems.truncate(20);
        return Err(problems);
    }
    let files: Vec<TestFile> = servers
        .into_iter()
        .map(|(name, server)| server.into_file(path, &name))
        .filter(|file| !file.tests.is_empty())
        .collect();
    match files.is_empty() {
        true => Err(vec![TestFileProblem::for_file(
            path,
            "the recording contains no requests that can be repeated",
        )]),
        false => Ok(files),
    }
}

impl RecordedServer {
    fn add(&mut self, number: usize, line: RecordedLine) {
        let id = line.id.as_ref().map(Value::to_string);
        match (line.meta.dir.as_str(), id, line.method.is_some()) {
            ("send", Some(_), true) => self.requests.push((number, line)),
            ("recv", Some(id), false) => drop(self.answers.insert(id, line)),
            ("recv", Some(id), true) => drop(self.questions.insert(id, line.method.unwrap_or_default())),
            ("send", Some(id), false) => {
                if let (Some(method), Some(result)) = (self.questions.get(&id), line.result) {
                    self.replies.push((method.clone(), result));
                }
            }
            _ => {}
        }
    }

    fn into_file(self, path: &Path, name: &str) -> TestFile {
        let mut replies = self.replies;
        let mut tests: Vec<TestCase> = Vec::new();
        for (number, request) in &self.requests {
            // A modern client repeats its request with the answers to questions. That is one test.
            if let Some(answers) = request.params.get("inputResponses").and_then(Value::as_object) {
                let questions = questions_of(&self.answers, &self.requests, request);
                replies.extend(answers.iter().filter_map(|(key, answer)| {
                    Some((questions.get(key)?.get("method")?.as_str()?.to_owned(), answer.clone()))
                }));
            }
            let Some(action) = action_of(request) else { continue };
            let id = request.id.as_ref().map(Value::to_string).unwrap_or_default();
            let Some(answer) = self.answers.get(&id) else { continue };
            if answer.result.as_ref().and_then(|result| result.get("resultType"))
                == Some(&json!("input_required"))
            {
                continue;
            }
            let at = FilePosition { line: *number, column: 1 };
            tests.push(test_of(tests.len() + 1, at, request, action, answer));
        }
        let of_kind = |method: &str| {
            let answers: Vec<Value> = replies
                .iter()
                .filter(|(asked, _)| asked == method)
                .map(|(_, answer)| escape(answer))
                .collect();
            if answers.is_empty() { AnswerSequence::None } else { AnswerSequence::InOrder(answers) }
        };
        let roots = replies.iter().rev().find(|(asked, _)| asked == "roots/list");
        TestFile {
            path: path.to_owned(),
            name: Some(format!("{} ({name})", path.display())),
            server: Some(ServerSpec::Configured(name.replace("${", "$${"))),
            eras: None,
            timeout: None,
            start_timeout: None,
            fixtures: Vec::new(),
            vars: Map::new(),
            answers: ScriptedAnswers {
                elicitation: of_kind("elicitation/create"),
                sampling: of_kind("sampling/createMessage"),
                roots: roots.map(|(_, answer)| escape(answer)),
            },
            log_level: None,
            violations: ViolationPolicy::Ignore,
            redact: Vec::new(),
            only: RunCondition::default(),
            tags: Vec::new(),
            setup: Vec::new(),
            teardown: Vec::new(),
            tests,
        }
    }
}

/// Returns the questions of the answer that this request continues.
fn questions_of(
    answers: &BTreeMap<String, RecordedLine>,
    requests: &[(usize, RecordedLine)],
    request: &RecordedLine,
) -> Map<String, Value> {
    let keys = request.params.get("inputResponses").and_then(Value::as_object);
    let same = |other: &&(usize, RecordedLine)| other.1.method == request.method;
    let asked = requests.iter().filter(same).filter_map(|(_, earlier)| {
        let answer = answers.get(&earlier.id.as_ref()?.to_string())?;
        answer.result.as_ref()?.get("inputRequests")?.as_object()
    });
    let fits =
        |asked: &&Map<String, Value>| keys.is_some_and(|keys| keys.keys().all(|key| asked.contains_key(key)));
    let mut fitting = asked.filter(fits);
    fitting.next().cloned().unwrap_or_default()
}

fn test_of(
    number: usize,
    at: FilePosition,
    request: &RecordedLine,
    action: StepAction,
    answer: &RecordedLine,
) -> TestCase {
    let method = request.method.as_deref().unwrap_or_default();
    let subject =
        ["name", "uri"].iter().find_map(|key| request.params.get(*key)?.as_str()).unwrap_or_default();
    let name = format!("{number} {method} {subject}").trim_end().replace(['\n', '\r'], " ");
    let expect = match (&answer.result, &answer.error) {
        (Some(result), _) => {
            let result = strip_envelope(result.clone());
            let failed = result.get("isError") == Some(&Value::Bool(true));
            let failure = if failed { FailureExpectation::ToolError } else { FailureExpectation::Success };
            let matcher = matcher(at, ConditionKind::Equals(escape(&result)));
            let check = ExpectationCheck::Value { target: ValueTarget::Result, matcher };
            let items = vec![Expectation { at, label: "the recorded result".to_owned(), check }];
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
    TestCase {
        name,
        at,
        isolate: false,
        skip: None,
        only: RunCondition::default(),
        tags: Vec::new(),
        timeout: None,
        vars: Map::new(),
        answers: None,
        redact: Vec::new(),
        steps: vec![TestStep { at, action, timeout: None, expect, captures: Vec::new() }],
    }
}

fn matcher(at: FilePosition, kind: ConditionKind) -> Matcher {
    Matcher { conditions: vec![Condition { at, kind }] }
}

/// Returns the step that repeats a request. Handshakes and subscriptions belong to the connection.
fn action_of(request: &RecordedLine) -> Option<StepAction> {
    let params = &request.params;
    let text = |key: &str| Some(params.get(key)?.as_str()?.replace("${", "$${"));
    let arguments = || escape(params.get("arguments").unwrap_or(&json!({})));
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

/// Protects recorded texts from being read as variables.
fn escape(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("${", "$${")),
        Value::Array(items) => items.iter().map(escape).collect(),
        Value::Object(members) => Value::Object(
            members.iter().map(|(key, value)| (key.replace("${", "$${"), escape(value))).collect(),
        ),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::parse_mcporter;
    use crate::file::{AnswerSequence, FailureExpectation};

    #[test]
    fn requests_become_tests_and_replies_become_answers() {
        let lines = [
            json!({"method": "initialize", "id": 0, "_meta": {"dir": "send", "server": "s"}}),
            json!({"result": {}, "id": 0, "_meta": {"dir": "recv", "server": "s"}}),
            json!({"method": "tools/call", "id": 1, "params": {"name": "a", "arguments": {"x": "${y}"}},
                "_meta": {"dir": "send", "server": "s"}}),
            json!({"method": "elicitation/create", "id": 9, "_meta": {"dir": "recv", "server": "s"}}),
            json!({"result": {"action": "decline"}, "id": 9, "_meta": {"dir": "send", "server": "s"}}),
            json!({"result": {"content": [], "isError": true}, "id": 1, "_meta": {"dir": "recv", "server": "s"}}),
            json!({"method": "resources/read", "id": 2, "params": {"uri": "a:b"}, "_meta": {"dir": "send", "server": "s"}}),
            json!({"error": {"code": -32002, "message": "no"}, "id": 2, "_meta": {"dir": "recv", "server": "s"}}),
            json!({"method": "tools/list", "id": 3, "_meta": {"dir": "send", "server": "s"}}),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let files = parse_mcporter(Path::new("r.ndjson"), &text).unwrap();
        assert_eq!(files.len(), 1);
        let names: Vec<&str> = files[0].tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["1 tools/call a", "2 resources/read a:b"]);
        assert_eq!(files[0].tests[0].steps[0].expect.failure, FailureExpectation::ToolError);
        assert_eq!(files[0].tests[1].steps[0].expect.failure, FailureExpectation::ProtocolError);
        let decline = AnswerSequence::InOrder(vec![json!({"action": "decline"})]);
        assert_eq!(files[0].answers.elicitation, decline);
    }

    #[test]
    fn broken_lines_are_located() {
        let problems = parse_mcporter(Path::new("r.ndjson"), "{}\nx\n").unwrap_err();
        assert_eq!(problems.iter().map(|problem| problem.at.unwrap().line).collect::<Vec<_>>(), [1, 2]);
        assert!(parse_mcporter(Path::new("r.ndjson"), "").is_err());
    }
}
