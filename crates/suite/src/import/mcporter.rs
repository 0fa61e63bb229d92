//! Recordings of mcporter: one JSON-RPC message per line. Every recorded request becomes a test that
//! expects the recorded answer; recorded answers of the user are given again.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use super::recorded::{RecordedFileOptions, RecordedMessage, RecordedServer, UnrepeatableRequests};
use crate::expect::ConditionKind;
use crate::file::{FilePosition, ServerSpec, TestFile, TestFileProblem};

/// Larger recordings are not read.
const LARGEST: usize = 64 << 20;

#[derive(Debug, Deserialize)]
struct McporterLine {
    #[serde(flatten)]
    message: RecordedMessage,
    #[serde(rename = "_meta")]
    meta: LineMeta,
}

#[derive(Debug, Deserialize)]
struct LineMeta {
    dir: String,
    #[serde(default)]
    server: String,
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
        match serde_json::from_str::<McporterLine>(line) {
            Ok(line) => add(servers.entry(line.meta.server.clone()).or_default(), index + 1, line),
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
        .map(|(name, server)| server.into_file(options(path, &name)))
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

/// Returns the test file for a server of the configuration with this name.
fn options<'a>(path: &'a Path, name: &str) -> RecordedFileOptions<'a> {
    RecordedFileOptions {
        path,
        name: format!("{} ({name})", path.display()),
        server: Some(ServerSpec::Configured(name.replace("${", "$${"))),
        era: None,
        unrepeatable: UnrepeatableRequests::Omit,
        condition: ConditionKind::Equals,
    }
}

fn add(server: &mut RecordedServer, number: usize, line: McporterLine) {
    let McporterLine { message, meta } = line;
    let is_request = message.method.is_some();
    match (meta.dir.as_str(), message.id.is_some(), is_request) {
        ("send", true, true) => server.add_request(number, message),
        ("recv", true, false) => server.add_answer(message),
        ("recv", true, true) => server.add_question(&message),
        ("send", true, false) => server.add_reply(message),
        _ => {}
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
