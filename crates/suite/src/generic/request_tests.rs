//! Reads the resources and renders the prompts that a server lists.

use std::time::Instant;

use serde_json::{Value, json};

use super::judge::{Finding, judge_exchange};
use super::progress::GenericProgress;
use super::result_shape::{prompt_result_problem, resource_result_problem};
use super::rules::{PROMPT_FAILED, RESOURCE_FAILED, RESULT_SHAPE, START_FAILED};
use super::target::{CallEnd, GenericTarget};
use crate::expect::observation::StepFailure;
use crate::run::step::CallRequestSpec;

/// How many resources and how many prompts are requested.
const MOST_REQUESTED: usize = 20;

const RESOURCES: &str = "resources can be read";
const PROMPTS: &str = "prompts can be rendered";

/// Reads the listed resources. Returns the number of requests.
pub(crate) async fn read_resources<'l>(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    listed: impl Iterator<Item = &'l String>,
) -> usize {
    let uris: Vec<String> = listed
        .filter_map(|text| serde_json::from_str::<Value>(text).ok()?.get("uri")?.as_str().map(str::to_owned))
        .take(MOST_REQUESTED)
        .collect();
    let requests =
        uris.into_iter().map(|uri| (format!("`{uri}`"), CallRequestSpec::Resource { uri })).collect();
    request_all(progress, target, RESOURCES, requests).await
}

/// Renders the listed prompts. Returns the number of requests.
pub(crate) async fn render_prompts<'l>(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    listed: impl Iterator<Item = &'l String>,
) -> usize {
    let prompt = |text: &String| {
        let definition: Value = serde_json::from_str(text).ok()?;
        let name = definition.get("name")?.as_str()?.to_owned();
        let declared = definition.get("arguments").and_then(Value::as_array).into_iter().flatten();
        let names = declared.filter_map(|argument| argument.get("name")?.as_str());
        let arguments: Value = names.map(|name| (name.to_owned(), json!("a"))).collect();
        Some((format!("`{name}`"), CallRequestSpec::Prompt { name, arguments }))
    };
    let prompts = listed.filter_map(prompt).take(MOST_REQUESTED).collect();
    request_all(progress, target, PROMPTS, prompts).await
}

async fn request_all(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    name: &str,
    requests: Vec<(String, CallRequestSpec)>,
) -> usize {
    if requests.is_empty() {
        return 0;
    }
    let Some(mut test) = progress.begin(name).await else { return 0 };
    let line = progress.options.reproduction.test(name);
    let (started, count) = (Instant::now(), requests.len());
    for (what, request) in requests {
        let is_resource = matches!(request, CallRequestSpec::Resource { .. });
        let record = match target.request(request, progress.limit()).await {
            Ok(record) => record,
            Err(reason) => {
                test.add(Finding::new(START_FAILED, reason), Some(line.clone()));
                break;
            }
        };
        let mut found = judge_exchange(&record);
        let problem = record.seen.result.as_ref().and_then(|result| match is_resource {
            true => resource_result_problem(result),
            false => prompt_result_problem(result),
        });
        found.extend(problem.map(|problem| Finding::new(RESULT_SHAPE, problem)));
        if let (Some(StepFailure::Rpc { code, message, .. }), CallEnd::Answered) =
            (&record.seen.failure, &record.end)
        {
            let rule = if is_resource { RESOURCE_FAILED } else { PROMPT_FAILED };
            found.push(Finding::new(rule, format!("the server answered with the error {code}: {message}")));
        }
        for finding in found {
            let message = format!("{what}: {}", finding.message);
            test.add(Finding { message, ..finding }, Some(line.clone()));
        }
    }
    progress.add_step(&mut test, format!("{count} requests"), started);
    progress.finish(test, target.stderr()).await;
    count
}
