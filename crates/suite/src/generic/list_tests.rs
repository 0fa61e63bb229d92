//! The tests of a server as a whole: its start, its lists, its definitions, and what belongs to no
//! tool. Starts the tests of the tools.

use std::collections::HashSet;
use std::time::Instant;

use toolyard_definitions::lint::{LintSeverity, lint};
use toolyard_definitions::{OfferProfile, ServerOffer};
use toolyard_upstream::{Era, STOP_GRACE, ServerListKind, TransportSettings};

use super::canary::MASK;
use super::judge::{Finding, ToolUnderTest};
use super::progress::{GenericProgress, RunningTest};
use super::rules::{
    ENVIRONMENT_LEAKED, LINT, LIST_CHANGED, LIST_FAILED, LIST_ORDER, NOTHING_CALLED, PROTOCOL_VIOLATION,
    RuleSeverity, START_FAILED, START_SLOW, STOP_SLOW, UNKNOWN_TOOL,
};
use super::target::GenericTarget;
use super::{GenericScope, concurrent_calls, request_tests, tool_tests, unknown_names};
use crate::expect::AssertionFailure;
use crate::run::session::TestSession;

const START: &str = "the server starts";
const LISTS: &str = "the lists can be read";
const STABLE: &str = "the lists stay the same";
const DEFINITIONS: &str = "the definitions pass lint";
const UNCHANGED: &str = "calls do not change the lists";
const ENVIRONMENT: &str = "the environment stays private";
const STOP: &str = "the server stops";
const CALLED: &str = "tools were called";

/// The lists of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ServerLists {
    /// Each list with its items as the server sent them.
    lists: Vec<(ServerListKind, Vec<String>)>,
    /// How often the server had announced changes when they were read.
    announced: u64,
}

impl ServerLists {
    fn items(&self, kind: ServerListKind) -> impl Iterator<Item = &String> {
        self.lists.iter().filter(move |(known, _)| *known == kind).flat_map(|(_, items)| items)
    }
}

/// Runs all tests of a server.
pub(crate) async fn run(progress: &mut GenericProgress<'_>, target: &mut GenericTarget<'_>) {
    let is_single_call = progress.options.arguments.is_some();
    if !start(progress, target).await {
        return;
    }
    let (lists, findings) = read_lists(target).await;
    let tools: Vec<ToolUnderTest> = lists
        .items(ServerListKind::Tools)
        .filter_map(|text| serde_json::value::RawValue::from_string(text.clone()).ok())
        .filter_map(|raw| ToolUnderTest::read(&raw))
        .collect();
    progress.announce(2 * tools.len() + 11).await;
    if !is_single_call {
        test_lists(progress, target, &lists, findings).await;
    }
    let calls = call_tools(progress, target, &tools).await;
    if is_single_call {
        return;
    }
    let mut requests = 0;
    if progress.options.tools.is_empty() {
        requests +=
            request_tests::read_resources(progress, target, lists.items(ServerListKind::Resources)).await;
        requests +=
            request_tests::render_prompts(progress, target, lists.items(ServerListKind::Prompts)).await;
        let offered: Vec<ServerListKind> = lists.lists.iter().map(|(kind, _)| *kind).collect();
        unknown_names::refuse_unknown_names(progress, target, &offered).await;
        concurrent_calls::answer_concurrent_calls(progress, target).await;
        compare_after_calls(progress, target, &lists).await;
        check_environment(progress, target).await;
        stop(progress, target).await;
    }
    if let Some(mut test) = progress.begin(CALLED).await {
        if calls == 0 && (requests == 0 || !tools.is_empty()) {
            let message = match tools.len() {
                0 => "the server offers nothing that could be tested".to_owned(),
                count => format!(
                    "none of the {count} tools was called, because none declares `readOnlyHint: true`; pass \
                     --destructive to call all, against a server whose data may be lost"
                ),
            };
            test.add(Finding::new(NOTHING_CALLED, message), None);
        }
        progress.finish(test, Vec::new()).await;
    }
}

/// Connects. Returns whether that succeeded.
async fn start(progress: &mut GenericProgress<'_>, target: &mut GenericTarget<'_>) -> bool {
    let mut started = Instant::now();
    if progress.options.server.transport.downloader().is_some() && target.session().await.is_ok() {
        // The first start may have downloaded the server.
        if started.elapsed() > progress.options.max_start {
            target.close().await;
        }
        started = Instant::now();
    }
    let connected = target.session().await.map(|session| (session.identity(), session.era()));
    let duration = started.elapsed();
    if let (Ok((_, era)), Some(wanted)) = (&connected, progress.era())
        && *era != wanted
    {
        let reason = format!("the server does not have the {} era", wanted.as_str());
        progress.skip(START, &reason).await;
        return false;
    }
    progress.identity = connected.as_ref().ok().map(|(identity, _)| identity.clone());
    let line = progress.options.reproduction.test(START);
    // A server that cannot be started is reported even if the test is not selected.
    let test = match (progress.begin(START).await, &connected) {
        (None, Err(_)) => progress.begin_unfiltered(START).await,
        (test, _) => test,
    };
    if let Some(mut test) = test {
        test.started_at(started);
        progress.add_step(&mut test, "connect".to_owned(), started);
        let most = progress.options.max_start;
        match &connected {
            Err(reason) => test.add(Finding::new(START_FAILED, reason.clone()), Some(line)),
            Ok(_) if duration > most => {
                let (took, most) = (duration.as_secs_f64(), most.as_secs_f64());
                let message = format!("the server took {took:.1} s to start; the limit is {most:.1} s");
                test.add(Finding::new(START_SLOW, message), Some(line));
            }
            Ok(_) => add_violations(&mut test, target, &line),
        }
        progress.finish(test, target.stderr()).await;
    }
    connected.is_ok()
}

/// Adds what the server did wrong outside of calls.
fn add_violations(test: &mut RunningTest, target: &mut GenericTarget<'_>, line: &str) {
    for violation in target.take_violations() {
        test.add(Finding::new(PROTOCOL_VIOLATION, violation), Some(line.to_owned()));
    }
}

/// Reads all lists that the server declares.
async fn read_lists(target: &mut GenericTarget<'_>) -> (ServerLists, Vec<Finding>) {
    let mut found = Vec::new();
    let mut lists = ServerLists::default();
    let session = match target.session().await {
        Ok(session) => session,
        Err(reason) => return (lists, vec![Finding::new(START_FAILED, reason)]),
    };
    lists.announced = session.link.list_change_count();
    for (kind, capability, name) in [
        (ServerListKind::Tools, "tools", "tools/list"),
        (ServerListKind::Resources, "resources", "resources/list"),
        (ServerListKind::Templates, "resources", "resources/templates/list"),
        (ServerListKind::Prompts, "prompts", "prompts/list"),
    ] {
        if !session.has_capability(capability) {
            continue;
        }
        match session.link.list(kind).await {
            Ok(pages) => {
                if let Some(reason) = pages.truncated_reason {
                    found.push(Finding::new(
                        LIST_FAILED,
                        format!("`{name}` was not read to its end: {reason}"),
                    ));
                }
                if pages.pages_without_list > 0 {
                    found.push(Finding::new(LIST_FAILED, format!("the result of `{name}` has no list")));
                }
                lists.lists.push((kind, pages.items.iter().map(|item| item.get().to_owned()).collect()));
            }
            // Templates were added later than resources, and not every server with resources has them.
            Err(error)
                if kind == ServerListKind::Templates
                    && error.source_error().is_some_and(|error| error.code == -32601) => {}
            Err(error) => {
                found.push(Finding::new(LIST_FAILED, format!("`{name}` failed: {}", error.message())));
            }
        }
    }
    (lists, found)
}

async fn test_lists(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    lists: &ServerLists,
    findings: Vec<Finding>,
) {
    if let Some(mut test) = progress.begin(LISTS).await {
        let line = progress.options.reproduction.test(LISTS);
        for finding in findings {
            test.add(finding, Some(line.clone()));
        }
        add_violations(&mut test, target, &line);
        progress.finish(test, target.stderr()).await;
    }
    if let Some(mut test) = progress.begin(STABLE).await {
        let line = progress.options.reproduction.test(STABLE);
        let (again, _) = read_lists(target).await;
        for finding in compare(lists, &again) {
            test.add(finding, Some(line.clone()));
        }
        progress.finish(test, target.stderr()).await;
    }
    check_definitions(progress, target, lists).await;
}

/// Returns what changed between two reads without an announcement.
fn compare(before: &ServerLists, after: &ServerLists) -> Vec<Finding> {
    let mut found = Vec::new();
    if before.announced != after.announced {
        return found;
    }
    for ((kind, old), (_, new)) in before.lists.iter().zip(&after.lists) {
        let name = match kind {
            ServerListKind::Tools => "tools",
            ServerListKind::Resources => "resources",
            ServerListKind::Templates => "resource templates",
            ServerListKind::Prompts => "prompts",
        };
        let sorted = |items: &[String]| {
            let mut items = items.to_vec();
            items.sort();
            items
        };
        if sorted(old) != sorted(new) {
            let (known, current): (HashSet<_>, HashSet<_>) = (old.iter().collect(), new.iter().collect());
            let gone = known.difference(&current).count();
            let added = current.difference(&known).count();
            let message = format!(
                "the list of {name} changed without a notification: {gone} items are gone or different, {added} are new"
            );
            found.push(Finding::new(LIST_CHANGED, message));
        } else if old != new {
            found.push(Finding::new(LIST_ORDER, format!("the order of the list of {name} changed")));
        }
    }
    found
}

async fn check_definitions(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    lists: &ServerLists,
) {
    let Some(mut test) = progress.begin(DEFINITIONS).await else { return };
    let items = |kind: ServerListKind| {
        let is_declared = lists.lists.iter().any(|(known, _)| *known == kind);
        let raw = |text: &String| serde_json::value::RawValue::from_string(text.clone()).ok();
        is_declared.then(|| lists.items(kind).filter_map(raw).collect())
    };
    let profile = target.session().await.ok().map(|session| profile(session));
    let offer = ServerOffer {
        name: progress.options.server.name.to_string(),
        profile,
        tools: items(ServerListKind::Tools),
        prompts: items(ServerListKind::Prompts),
        resources: items(ServerListKind::Resources),
        templates: items(ServerListKind::Templates),
    };
    let offer = match &progress.options.canary {
        Some(value) => offer.masked(&[(value.clone(), MASK.to_owned())]),
        None => offer,
    };
    let findings = lint(&offer, &progress.options.lint);
    let line = progress.options.reproduction.test(DEFINITIONS);
    for finding in &findings {
        let severity = match finding.severity {
            severity if severity >= progress.options.lint_level => RuleSeverity::Failure,
            LintSeverity::Info => continue,
            _ => RuleSeverity::Warning,
        };
        let kind = finding.kind.map_or("server", |kind| kind.as_str());
        let message = format!("{kind} `{}`: {} ({})", finding.name, finding.message, finding.rule);
        let failure = AssertionFailure {
            rule: Some(LINT.id),
            reproduce: (severity == RuleSeverity::Failure).then(|| line.clone()),
            ..AssertionFailure::new(test.at(), message)
        };
        test.add_failure(severity, failure);
    }
    progress.send_lint(findings).await;
    progress.finish(test, Vec::new()).await;
}

fn profile(session: &TestSession) -> OfferProfile {
    OfferProfile {
        info: session.link.server_info().map(|info| info.to_owned()),
        capabilities: Some(session.link.capabilities().to_owned()),
        instructions: session.link.instructions().map(str::to_owned),
    }
}

/// Runs the tests of the tools. Returns the number of calls.
async fn call_tools(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    tools: &[ToolUnderTest],
) -> usize {
    let wanted = progress.options.tools.clone();
    for name in wanted.iter().filter(|name| !tools.iter().any(|tool| tool.name == **name)) {
        if let Some(mut test) = progress.begin(&format!("tool {name}")).await {
            let names = || tools.iter().map(|tool| tool.name.as_str());
            let hint = match toolyard_hub::nearest(name, names()) {
                Some(close) => format!("did you mean `{close}`?"),
                None => format!("it has {}", names().take(20).collect::<Vec<_>>().join(", ")),
            };
            let message = format!("the server has no tool `{name}`; {hint}");
            test.add(Finding::new(UNKNOWN_TOOL, message), None);
            progress.finish(test, Vec::new()).await;
        }
    }
    let mut calls = 0;
    let mut seen: HashSet<&str> = HashSet::new();
    for tool in tools {
        // A second tool of the same name cannot be called, and lint reports it.
        if !seen.insert(&tool.name) {
            continue;
        }
        if !wanted.is_empty() && !wanted.contains(&tool.name) {
            continue;
        }
        if progress.options.scope == GenericScope::ReadOnly && !tool.is_read_only {
            let reason = "the tool does not declare `readOnlyHint: true`; --destructive calls it";
            progress.skip(&format!("tool {}", tool.name), reason).await;
            continue;
        }
        calls += Box::pin(tool_tests::run(progress, target, tool)).await;
    }
    calls
}

/// Reads the lists again after everything was called.
async fn compare_after_calls(
    progress: &mut GenericProgress<'_>,
    target: &mut GenericTarget<'_>,
    lists: &ServerLists,
) {
    let Some(mut test) = progress.begin(UNCHANGED).await else { return };
    let line = progress.options.reproduction.run(progress.options.seed, progress.options.cases);
    let is_modern = target.session().await.is_ok_and(|session| session.era() == Era::Modern);
    let (again, findings) = read_lists(target).await;
    for finding in findings {
        test.add(finding, Some(line.clone()));
    }
    // A modern server announces changes only to clients that subscribe, which the run does not.
    if !is_modern {
        for finding in compare(lists, &again) {
            test.add(finding, Some(line.clone()));
        }
    }
    progress.finish(test, target.stderr()).await;
}

/// Reports a canary in messages that belong to no call, such as lists.
async fn check_environment(progress: &mut GenericProgress<'_>, target: &mut GenericTarget<'_>) {
    if !progress.has_canary() {
        progress.skip(ENVIRONMENT, "the run did not start the server").await;
        return;
    }
    let Some(mut test) = progress.begin(ENVIRONMENT).await else { return };
    let line = progress.options.reproduction.test(ENVIRONMENT);
    for form in target.take_leaks() {
        let message = format!("the server sent the value of a secret environment variable {form}");
        test.add(Finding::new(ENVIRONMENT_LEAKED, message), Some(line.clone()));
    }
    progress.finish(test, target.stderr()).await;
}

/// Closes the connection, and looks how long a process that the run started needs to exit.
async fn stop(progress: &mut GenericProgress<'_>, target: &mut GenericTarget<'_>) {
    if !matches!(progress.options.server.transport, TransportSettings::Command(_)) {
        return;
    }
    let Some(mut test) = progress.begin(STOP).await else { return };
    let line = progress.options.reproduction.test(STOP);
    match target.session().await {
        Ok(_) => {
            let started = Instant::now();
            target.close().await;
            if started.elapsed() >= STOP_GRACE {
                let message = format!(
                    "the server did not exit within {} s after its standard input was closed; a signal ended it",
                    STOP_GRACE.as_secs()
                );
                test.add(Finding::new(STOP_SLOW, message), Some(line));
            }
        }
        Err(reason) => test.add(Finding::new(START_FAILED, reason), Some(line)),
    }
    progress.finish(test, Vec::new()).await;
}

#[cfg(test)]
mod tests {
    use toolyard_upstream::ServerListKind;

    use super::{ServerLists, compare};

    fn lists(items: &[&str], announced: u64) -> ServerLists {
        let items = items.iter().map(|&item| item.to_owned()).collect();
        ServerLists { lists: vec![(ServerListKind::Tools, items)], announced }
    }

    #[test]
    fn lists_may_change_only_with_an_announcement() {
        let rules = |before: &ServerLists, after: &ServerLists| -> Vec<&str> {
            compare(before, after).into_iter().map(|finding| finding.rule.id).collect()
        };
        let before = lists(&["a", "b"], 0);
        assert_eq!(rules(&before, &before), Vec::<&str>::new());
        assert_eq!(rules(&before, &lists(&["b", "a"], 0)), ["list-order"]);
        assert_eq!(rules(&before, &lists(&["a", "c"], 0)), ["list-changed"]);
        assert_eq!(rules(&before, &lists(&["a"], 0)), ["list-changed"]);
        assert_eq!(rules(&before, &lists(&["a"], 1)), Vec::<&str>::new());
    }
}
