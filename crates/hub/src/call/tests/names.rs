//! The first step: from the caller's names to the names of the source.

use std::time::{Duration, Instant};

use serde_json::json;

use super::parts;
use crate::error::ErrorKind;
use crate::fake::{
    ScriptedSource, principal_with, prompts, request, resource, resource_request, resources, source_context,
    templates, tool, tool_request, tools, yard,
};
use crate::name::SourceName;
use crate::principal::{AllowList, Permissions, Principal};
use crate::request::{CallContext, CallTarget, CompletionReference};
use crate::scope::YardScope;
use crate::source::SourceOffer;
use crate::status::{SourceState, SourceStatus};

#[tokio::test]
async fn an_unknown_tool_is_refused_with_the_nearest_name() {
    let yard = yard(&[&ScriptedSource::echo("db", tools(&["query", "insert"]))]);
    let error = yard.call(tool_request("qeury")).await.unwrap_err();
    assert_eq!(
        parts(&error),
        (ErrorKind::UnknownTool, "unknown tool `qeury`", Some("did you mean `query`?"))
    );
    let error = yard.call(tool_request("mcp__bd__query")).await.unwrap_err();
    assert_eq!(error.suggestion(), Some("did you mean `mcp__db__query`?"));
    let error = yard.call(tool_request("zzz")).await.unwrap_err();
    assert_eq!(parts(&error), (ErrorKind::UnknownTool, "unknown tool `zzz`", None));
}

#[tokio::test]
async fn a_bare_name_works_where_it_is_unique_and_names_all_where_it_is_not() {
    let first = ScriptedSource::echo("a", tools(&["query", "only_here"]));
    let second = ScriptedSource::echo("b", tools(&["query"]));
    let yard = yard(&[&first, &second]);
    let outcome = yard.call(tool_request("only_here")).await.unwrap();
    assert_eq!(outcome.body.get(), r#""Tool { name: \"only_here\", arguments: RawValue({}) }""#);
    let error = yard.call(tool_request("query")).await.unwrap_err();
    let choice = Some("use one of mcp__a__query, mcp__b__query");
    assert_eq!(parts(&error), (ErrorKind::UnknownTool, "`query` is ambiguous", choice));
    let outcome = yard.call(tool_request("mcp__b__query")).await.unwrap();
    assert_eq!(outcome.body.get(), r#""Tool { name: \"query\", arguments: RawValue({}) }""#);
}

#[tokio::test]
async fn errors_do_not_reveal_names_that_the_caller_may_not_see() {
    let secret = |name: &str| {
        let mut offer = tool(&json!({"name": name, "inputSchema": {"type": "object"}}));
        offer.permissions = vec!["secret".to_owned()];
        offer
    };
    let hidden = ScriptedSource::echo(
        "a",
        SourceOffer { tools: vec![secret("query"), secret("launch")], ..SourceOffer::default() },
    );
    let open = ScriptedSource::echo("b", tools(&["query"]));
    let yard = yard(&[&hidden, &open]);
    let as_ada = |name: &str| {
        let mut request = tool_request(name);
        request.principal = principal_with(&[]);
        yard.call(request)
    };
    assert_eq!(
        parts(&as_ada("lanuch").await.unwrap_err()),
        (ErrorKind::UnknownTool, "unknown tool `lanuch`", None)
    );
    // For Ada, `query` is unique.
    as_ada("query").await.unwrap();
}

#[tokio::test]
async fn a_source_that_has_not_listed_its_entries_is_reported_with_its_state() {
    let down = ScriptedSource::echo("git", SourceOffer::default());
    let reason = Some("no such command".to_owned());
    down.set_status(SourceStatus { reason, ..SourceStatus::new(SourceState::Failed, true) });
    let yard = yard(&[&down, &ScriptedSource::echo("git__hub", tools(&["query"]))]);
    let failed = (ErrorKind::CannotConnect, "server `git` failed: no such command", None);
    assert_eq!(parts(&yard.call(tool_request("mcp__git__commit")).await.unwrap_err()), failed);
    let mut alone = tool_request("commit");
    alone.context = source_context("git");
    assert_eq!(parts(&yard.call(alone).await.unwrap_err()), failed);
    let error = yard.call(tool_request("mcp__git__hub__quiry")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownTool, "the longer prefix counts");
    let mut stranger = tool_request("mcp__git__commit");
    let allowed = AllowList { sources: Some(vec!["git__hub".into()]), tools: None };
    stranger.principal = Principal::new("ada", Permissions::All).with_allow_list(allowed);
    assert_eq!(yard.call(stranger).await.unwrap_err().kind(), ErrorKind::UnknownTool);
    for (state, suggestion) in [
        (SourceState::Starting, "repeat the call in a few seconds"),
        (SourceState::Retrying, "retry later; Toolyard reconnects to the server automatically"),
        (SourceState::Disabled, "enable the server first"),
    ] {
        down.set_status(SourceStatus::new(state, false));
        let message = format!("server `git` is {}", state.label());
        let error = yard.call(tool_request("mcp__git__commit")).await.unwrap_err();
        assert_eq!(parts(&error), (ErrorKind::CannotConnect, message.as_str(), Some(suggestion)));
    }
    down.set_offer(tools(&["commit"]));
    assert_eq!(yard.call(tool_request("mcp__git__comit")).await.unwrap_err().kind(), ErrorKind::UnknownTool);
}

#[tokio::test]
async fn where_one_source_is_served_alone_its_raw_names_count_and_no_others() {
    let first = ScriptedSource::echo("a", tools(&["query", "mine"]));
    let second = ScriptedSource::echo(
        "b",
        SourceOffer { templates: templates(&["b://{x}"]).templates, ..tools(&["query"]) },
    );
    let yard = yard(&[&first, &second]);
    let alone = |mut request: crate::CallRequest| {
        request.context = source_context("b");
        yard.call(request)
    };
    alone(tool_request("query")).await.unwrap();
    let error = alone(tool_request("mcp__b__query")).await.unwrap_err();
    assert_eq!(parts(&error), (ErrorKind::UnknownTool, "unknown tool `mcp__b__query`", None));
    assert_eq!(alone(tool_request("mine")).await.unwrap_err().kind(), ErrorKind::UnknownTool);
    alone(resource_request("b://1")).await.unwrap();
}

#[tokio::test]
async fn where_one_source_is_served_alone_no_resource_of_another_can_be_read() {
    let first = ScriptedSource::echo("a", resources(&["x://1", "x://a"]));
    let second = ScriptedSource::echo("b", resources(&["x://1"]));
    let wide = ScriptedSource::echo("c", templates(&["{+anything}"]));
    let yard = yard(&[&first, &second, &wide]);
    let mut events = yard.events().subscribe();
    let from = async |uri: &str, source: &str| {
        let mut request = resource_request(uri);
        request.context = source_context(source);
        yard.call(request).await
    };
    from("x://1", "b").await.unwrap();
    let started = events.recv().await.unwrap();
    assert!(
        matches!(&*started, crate::YardEvent::CallStarted(call) if call.source_name() == "b"),
        "{started:?}"
    );
    let error = from("x://a", "b").await.unwrap_err();
    assert_eq!(parts(&error), (ErrorKind::UnknownResource, "unknown resource `x://a`", None));
    assert_eq!(error.details(), Some(&json!({"uri": "x://a"})));
}

#[tokio::test]
async fn resources_prompts_and_completions_find_their_source() {
    let offer = SourceOffer {
        resources: vec![resource(&json!({"uri": "x://fixed"}))],
        templates: templates(&["{+wide}", "x://{id}"]).templates,
        prompts: prompts(&["greet"]).prompts,
        ..SourceOffer::default()
    };
    let yard = yard(&[&ScriptedSource::echo("s", offer)]);
    let answer = async |what: CallTarget| yard.call(request(what)).await.unwrap().body.get().to_owned();
    let complete = |reference| CallTarget::Completion {
        reference,
        argument: "id".to_owned(),
        value: "1".to_owned(),
        context: None,
    };
    assert_eq!(answer(resource_request("x://fixed").target).await, r#""Resource { uri: \"x://fixed\" }""#);
    assert_eq!(answer(resource_request("x://7").target).await, r#""Resource { uri: \"x://7\" }""#);
    let prompt = CallTarget::Prompt { name: "mcp__s__greet".to_owned(), arguments: None };
    assert_eq!(answer(prompt).await, r#""Prompt { name: \"greet\", arguments: RawValue({}) }""#);
    assert_eq!(
        answer(complete(CompletionReference::Prompt("greet".to_owned()))).await,
        r#""PromptCompletion { name: \"greet\", argument: \"id\", value: \"1\", context: None }""#
    );
    assert_eq!(
        answer(complete(CompletionReference::Template("x://{id}".to_owned()))).await,
        r#""TemplateCompletion { uri: \"x://{id}\", argument: \"id\", value: \"1\", context: None }""#
    );
    let missing = CallTarget::Prompt { name: "gret".to_owned(), arguments: None };
    let error = yard.call(request(missing)).await.unwrap_err();
    assert_eq!(
        parts(&error),
        (ErrorKind::UnknownPrompt, "unknown prompt `gret`", Some("did you mean `greet`?"))
    );
}

#[tokio::test]
async fn hostile_names_cost_little_and_are_not_repeated_whole() {
    let names: Vec<String> = (0..10_000).map(|at| format!("tool_number_{at}")).collect();
    let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
    let long = "x".repeat(1_000_000);
    names.push(&long);
    let yard = yard(&[&ScriptedSource::echo("many", tools(&names))]);
    let began = Instant::now();
    let error = yard.call(tool_request(&"x".repeat(999_999))).await.unwrap_err();
    assert_eq!(error.message(), format!("unknown tool `{}…`", "x".repeat(200)));
    let error = yard.call(tool_request("tool_numbr_77")).await.unwrap_err();
    assert_eq!(error.suggestion(), Some("did you mean `tool_number_77`?"));
    let error = yard.call(resource_request(&"x://".repeat(100_000))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownResource);
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_front_that_shows_a_part_of_the_yard_leads_nowhere_else() {
    let apart = ScriptedSource::unprefixed("apart", tools(&["search", "run"]));
    let yard = yard(&[&apart, &ScriptedSource::echo("docs", tools(&["search", "read"]))]);
    let sources = || vec![SourceName::new("apart")].into();
    let answer_for = async |reach: &YardScope, name: &str| {
        let context = CallContext { scope: reach.clone(), ..CallContext::default() };
        let request = crate::request::CallRequest { context, ..tool_request(name) };
        yard.call(request)
            .await
            .map(|outcome| outcome.body.get().to_owned())
            .map_err(|error| error.message_with_suggestion())
    };
    let (done, search) = (r#""done""#, r#""Tool { name: \"search\", arguments: RawValue({}) }""#);
    let (all, rest, part) = (YardScope::All, YardScope::Without(sources()), YardScope::Only(sources()));
    // The plain name is the full name of one tool and the bare name of the other.
    assert_eq!(answer_for(&all, "search").await.as_deref(), Ok(done));
    assert_eq!(answer_for(&rest, "search").await.as_deref(), Ok(search));
    assert_eq!(answer_for(&part, "search").await.as_deref(), Ok(done));
    assert_eq!(answer_for(&rest, "run").await, Err("unknown tool `run`".to_owned()));
    assert_eq!(answer_for(&part, "raed").await, Err("unknown tool `raed`".to_owned()));
    assert_eq!(
        answer_for(&rest, "raed").await,
        Err("unknown tool `raed`\nhint: did you mean `read`?".to_owned())
    );
    let listed = |reach: YardScope| {
        let view = yard.view(&Principal::owner()).with_scope(reach);
        view.tools().map(|tool| tool.full_name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(rest), ["mcp__docs__search", "mcp__docs__read"]);
    assert_eq!(listed(part), ["search", "run"]);
}
