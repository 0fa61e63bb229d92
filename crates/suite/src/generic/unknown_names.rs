//! Asks for what the server does not have: it must answer with an error.

use toolyard_hub::json::Object;
use toolyard_upstream::ServerListKind;

use super::judge::{Finding, judge_exchange};
use super::progress::GenericProgress;
use super::rules::{START_FAILED, UNKNOWN_ACCEPTED};
use super::target::GenericTarget;
use crate::run::step::CallRequestSpec;

const UNKNOWN: &str = "unknown names are refused";
/// A name that no server has.
const NAME: &str = "toolyard_no_such_name";
const METHOD: &str = "toolyard/no_such_method";

pub(crate) async fn refuse_unknown_names(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    offered: &[ServerListKind],
) {
    let Some(mut test) = progress.begin(UNKNOWN).await else { return };
    let line = progress.options.reproduction.test(UNKNOWN);
    let arguments = serde_json::json!({});
    let mut requests = Vec::new();
    if offered.contains(&ServerListKind::Tools) {
        let request = CallRequestSpec::Tool { name: NAME.to_owned(), arguments: arguments.clone() };
        requests.push(("tool", request));
    }
    if offered.contains(&ServerListKind::Prompts) {
        requests.push(("prompt", CallRequestSpec::Prompt { name: NAME.to_owned(), arguments }));
    }
    for (kind, request) in requests {
        match target.request(request, progress.limit()).await {
            Ok(record) => {
                for finding in judge_exchange(&record) {
                    let message = format!("unknown {kind}: {}", finding.message);
                    test.add(Finding { message, ..finding }, Some(line.clone()));
                }
                if record.seen.result.is_some() && !record.seen.is_tool_error() {
                    let message = format!("the unknown {kind} `{NAME}` has a result");
                    test.add(Finding::new(UNKNOWN_ACCEPTED, message), Some(line.clone()));
                }
            }
            Err(reason) => test.add(Finding::new(START_FAILED, reason), Some(line.clone())),
        }
    }
    match target.send(METHOD, Object::default(), progress.limit()).await {
        Ok(Some(_)) => {
            let message = format!("the unknown method `{METHOD}` has a result");
            test.add(Finding::new(UNKNOWN_ACCEPTED, message), Some(line));
        }
        Ok(None) => {}
        Err(finding) => {
            let message = format!("unknown method: {}", finding.message);
            test.add(Finding { message, ..finding }, Some(line));
        }
    }
    progress.finish(test, target.stderr()).await;
}
