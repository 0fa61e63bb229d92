//! Recordings of `toolyard record` as tests, to compare a server with what was recorded.

use std::path::Path;

use serde_json::{Value, json};
use toolyard_cassette::{Cassette, Exchange, Tape, TapeStep};
use toolyard_hub::ClientCapabilities;
use toolyard_upstream::Era;

use super::recorded::{RecordedFileOptions, RecordedMessage, RecordedServer, UnrepeatableRequests};
use crate::expect::ConditionKind;
use crate::file::{AnswerSequence, TestFile, TestFileProblem};

/// Returns a test file for each era of a recording. They name no server.
pub fn import_cassette(path: &Path, cassette: &Cassette) -> Result<Vec<TestFile>, Vec<TestFileProblem>> {
    let tape = Tape::new(cassette);
    let files: Vec<TestFile> = tape
        .eras
        .iter()
        .map(|era| file_of(path, &tape, *era))
        .filter(|file| !file.tests.is_empty())
        .collect();
    match files.is_empty() {
        true => {
            let message = "the recording contains no requests that can be repeated";
            Err(vec![TestFileProblem::for_file(path, message)])
        }
        false => Ok(files),
    }
}

fn file_of(path: &Path, tape: &Tape, era: Era) -> TestFile {
    let mut server = RecordedServer::default();
    let of_era = |exchange: &&Exchange| exchange.era == era;
    // Several clients can have used the same IDs, so each request gets the number of its exchange.
    let mut declared = ClientCapabilities::default();
    for (number, exchange) in tape.requests().filter(of_era).enumerate() {
        add_capabilities(&mut declared, exchange.capabilities.as_ref());
        server.add_request(
            exchange.line,
            RecordedMessage {
                id: Some(json!(number)),
                method: Some(exchange.trigger.method.clone()),
                params: exchange.trigger.params.clone(),
                ..RecordedMessage::default()
            },
        );
        for step in &exchange.steps {
            match step {
                TapeStep::Respond { message, .. } => {
                    server.add_answer(RecordedMessage { id: Some(json!(number)), ..read(message.get()) });
                }
                TapeStep::Ask { message, .. } => server.add_question(&read(message.get())),
                TapeStep::Await { message, .. } => server.add_reply(read(message.get())),
                TapeStep::RespondText { .. } | TapeStep::Notify { .. } => {}
            }
        }
    }
    let mut file = server.into_file(RecordedFileOptions {
        path,
        name: path.display().to_string(),
        server: None,
        era: Some(era),
        unrepeatable: UnrepeatableRequests::Skip,
        condition: ConditionKind::EqualsRecorded,
    });
    // Servers offer different things to different clients.
    let answers = &mut file.answers;
    if (declared.elicit_form || declared.elicit_url) && answers.elicitation.is_none() {
        answers.elicitation = AnswerSequence::InOrder(Vec::new());
    }
    if declared.sample && answers.sampling.is_none() {
        answers.sampling = AnswerSequence::InOrder(Vec::new());
    }
    if declared.roots && answers.roots.is_none() {
        answers.roots = Some(json!({"roots": []}));
    }
    file.capabilities = Some(declared);
    file
}

/// Adds what a recorded client could answer. Elicitation without a mode is that of forms.
fn add_capabilities(declared: &mut ClientCapabilities, recorded: Option<&Value>) {
    let get = |name: &str| recorded.and_then(|capabilities| capabilities.get(name));
    if let Some(modes) = get("elicitation") {
        let has_url = modes.get("url").is_some();
        declared.elicit_url |= has_url;
        declared.elicit_form |= modes.get("form").is_some() || !has_url;
    }
    declared.sample |= get("sampling").is_some();
    declared.roots |= get("roots").is_some();
}

/// Reads a message that was parsed before.
fn read(text: &str) -> RecordedMessage {
    serde_json::from_str(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;
    use toolyard_cassette::Cassette;
    use toolyard_hub::ClientCapabilities;
    use toolyard_upstream::Era;

    use super::{add_capabilities, import_cassette};
    use crate::expect::{ConditionKind, ExpectationCheck};
    use crate::file::AnswerSequence;

    const HEADER: &str = r#"{"toolyard_cassette":1,"toolyard":"0.1.0","server":"s","transport":"stdio","started":"2027-01-31T12:00:00.000Z"}"#;

    #[test]
    fn elicitation_without_a_mode_is_that_of_forms() {
        for (recorded, form, url) in [
            (json!({}), false, false),
            (json!({"elicitation": {}}), true, false),
            (json!({"elicitation": {"form": {}}}), true, false),
            (json!({"elicitation": {"url": {}}}), false, true),
            (json!({"elicitation": {"form": {}, "url": {}}}), true, true),
        ] {
            let mut declared = ClientCapabilities::default();
            add_capabilities(&mut declared, Some(&recorded));
            assert_eq!((declared.elicit_form, declared.elicit_url), (form, url), "{recorded}");
        }
    }

    #[test]
    fn requests_become_tests_and_others_are_skipped() {
        let lines = [
            ("client", json!({"id": 0, "method": "initialize", "params": {"capabilities": {"roots": {}}}})),
            ("server", json!({"id": 0, "result": {}})),
            ("client", json!({"id": 1, "method": "tools/call", "params": {"name": "ask"}})),
            ("server", json!({"id": 7, "method": "elicitation/create", "params": {}})),
            ("client", json!({"id": 7, "result": {"action": "decline"}})),
            ("server", json!({"id": 1, "result": {"content": []}})),
            ("client", json!({"id": 2, "method": "logging/setLevel", "params": {"level": "debug"}})),
            ("server", json!({"id": 2, "result": {}})),
            ("client", json!({"id": 3, "method": "tools/list"})),
            ("server", json!({"id": 3, "result": {"tools": [{"name": "a"}], "nextCursor": "b"}})),
            ("client", json!({"id": 4, "method": "tools/list", "params": {"cursor": "b"}})),
            ("server", json!({"id": 4, "result": {"tools": [{"name": "b"}]}})),
            ("client", json!({"id": 5, "method": "prompts/get", "params": {"name": "p"}})),
        ];
        let mut text = format!("{HEADER}\n");
        for (index, (from, mut message)) in lines.into_iter().enumerate() {
            message["jsonrpc"] = json!("2.0");
            text += &format!("{}\n", json!({"at": index, "from": from, "message": message}));
        }
        let cassette = Cassette::parse(text.as_bytes()).unwrap();
        let files = import_cassette(Path::new("s.cassette"), &cassette).unwrap();
        assert_eq!(files.len(), 1);
        let file = &files[0];
        assert_eq!(file.eras, Some(vec![Era::Legacy]));
        let names: Vec<(&str, Option<&str>)> =
            file.tests.iter().map(|test| (test.name.as_str(), test.skip.as_deref())).collect();
        let expect = [
            ("1 tools/call ask", None),
            ("2 logging/setLevel", Some("this request cannot be repeated on its own")),
            ("3 tools/list", None),
            ("4 prompts/get p", Some("the recording has no answer")),
        ];
        assert_eq!(names, expect);
        assert_eq!(file.answers.elicitation, AnswerSequence::InOrder(vec![json!({"action": "decline"})]));
        assert_eq!(file.answers.roots, Some(json!({"roots": []})));
        assert!(file.answers.sampling.is_none());
        let declared = ClientCapabilities { roots: true, ..ClientCapabilities::default() };
        assert_eq!(
            file.capabilities,
            Some(declared),
            "what the recorded client declared, not what it answered"
        );
        let ExpectationCheck::Value { matcher, .. } = &file.tests[2].steps[0].expect.items[0].check else {
            panic!("{:?}", file.tests[2])
        };
        let ConditionKind::EqualsRecorded(list) = &matcher.conditions[0].kind else { panic!("{matcher:?}") };
        assert_eq!(*list, json!({"tools": [{"name": "a"}, {"name": "b"}]}));
    }
}
