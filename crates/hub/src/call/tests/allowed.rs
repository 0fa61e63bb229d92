//! Entries outside a caller's allow list do not exist for it: in lists, calls and suggestions.

use serde_json::json;

use super::parts;
use crate::error::ErrorKind;
use crate::fake::{
    ScriptedSource, prompts, request, resource_request, resources, templates, tool_request, tools, yard,
};
use crate::glob::Glob;
use crate::principal::{AllowList, Permissions, Principal};
use crate::request::{CallRequest, CallTarget};
use crate::source::SourceOffer;
use crate::yard::Yard;

fn ada(sources: Option<&[&str]>, tools: Option<&[&str]>) -> Principal {
    let list = |globs: Option<&[&str]>| globs.map(|globs| globs.iter().copied().map(Glob::from).collect());
    Principal::new("ada", Permissions::All)
        .with_allow_list(AllowList { sources: list(sources), tools: list(tools) })
}

/// Two sources that share a tool name and have one entry of every other kind.
fn two() -> std::sync::Arc<Yard> {
    let offer = |name: &str, own: &str| SourceOffer {
        resources: resources(&[&format!("{name}://fixed")]).resources,
        templates: templates(&[&format!("{name}://{{id}}")]).templates,
        prompts: prompts(&[&format!("{name}_prompt")]).prompts,
        ..tools(&["query", own])
    };
    yard(&[
        &ScriptedSource::echo("git", offer("git", "commit")),
        &ScriptedSource::echo("web", offer("web", "browse")),
    ])
}

fn seen(yard: &Yard, principal: &Principal) -> Vec<String> {
    let view = yard.view(principal);
    let mut seen: Vec<String> = view.tools().map(|tool| tool.full_name.to_string()).collect();
    seen.extend(view.resources().map(|resource| resource.uri.clone()));
    seen.extend(view.templates().map(|template| template.template.clone()));
    seen.extend(view.prompts().map(|prompt| prompt.full_name.to_string()));
    seen
}

async fn kind(yard: &Yard, principal: &Principal, request: CallRequest) -> Option<ErrorKind> {
    let request = CallRequest { principal: principal.clone(), ..request };
    yard.call(request).await.err().map(|error| error.kind())
}

#[tokio::test]
async fn a_source_allow_list_allows_all_entries_of_those_sources_only() {
    let yard = two();
    let ada = ada(Some(&["g*"]), None);
    assert_eq!(
        seen(&yard, &ada),
        ["mcp__git__query", "mcp__git__commit", "git://fixed", "git://{id}", "mcp__git__git_prompt"]
    );
    let prompt = |name: &str| request(CallTarget::Prompt { name: name.to_owned(), arguments: None });
    for (request, expect) in [
        (tool_request("mcp__git__query"), None),
        // For Ada the name is unique.
        (tool_request("query"), None),
        (tool_request("browse"), Some(ErrorKind::UnknownTool)),
        (tool_request("mcp__web__query"), Some(ErrorKind::UnknownTool)),
        (resource_request("git://fixed"), None),
        (resource_request("git://7"), None),
        (resource_request("web://fixed"), Some(ErrorKind::UnknownResource)),
        (resource_request("web://7"), Some(ErrorKind::UnknownResource)),
        (prompt("git_prompt"), None),
        (prompt("web_prompt"), Some(ErrorKind::UnknownPrompt)),
    ] {
        let asked = format!("{:?}", request.target);
        assert_eq!(kind(&yard, &ada, request).await, expect, "{asked}");
    }
    assert!(
        ada.can_access_source(&crate::SourceName::new("git"))
            && !ada.can_access_source(&crate::SourceName::new("web"))
    );
}

#[tokio::test]
async fn a_tool_allow_list_alone_allows_only_tools() {
    let yard = two();
    assert_eq!(
        seen(&yard, &ada(None, Some(&["mcp__git__*", "*browse"]))).join(" "),
        "mcp__git__query mcp__git__commit mcp__web__browse"
    );
    let both = ada(Some(&["git"]), Some(&["*query"]));
    assert_eq!(seen(&yard, &both).join(" "), "mcp__git__query git://fixed git://{id} mcp__git__git_prompt");
    assert_eq!(seen(&yard, &ada(Some(&[]), None)), [""; 0]);
    assert_eq!(
        kind(&yard, &ada(None, Some(&["*query"])), resource_request("git://fixed")).await,
        Some(ErrorKind::UnknownResource)
    );
}

#[tokio::test]
async fn errors_do_not_reveal_entries_outside_the_allow_list() {
    let yard = two();
    let ada = ada(Some(&["git"]), None);
    for name in ["brwse", "browse", "mcp__web__browse"] {
        let error =
            yard.call(CallRequest { principal: ada.clone(), ..tool_request(name) }).await.unwrap_err();
        assert_eq!(parts(&error), (ErrorKind::UnknownTool, format!("unknown tool `{name}`").as_str(), None));
    }
    let error = yard.call(CallRequest { principal: ada, ..tool_request("comit") }).await.unwrap_err();
    assert_eq!(error.suggestion(), Some("did you mean `commit`?"));
}

#[tokio::test]
async fn a_permission_that_is_missing_is_said_and_a_list_that_does_not_have_it_is_not() {
    let mut offer = tools(&["drop"]);
    offer.tools[0].permissions = vec!["write".to_owned()];
    offer.tools[0].definition = crate::fake::raw(&json!({"name": "drop", "inputSchema": {"type": "object"}}));
    let yard = yard(&[&ScriptedSource::echo("db", offer)]);
    let unprivileged = Principal::new("bob", Permissions::Only(Default::default()));
    assert_eq!(kind(&yard, &unprivileged, tool_request("drop")).await, Some(ErrorKind::Forbidden));
    let elsewhere = unprivileged.with_allow_list(AllowList { sources: Some(vec!["x".into()]), tools: None });
    assert_eq!(kind(&yard, &elsewhere, tool_request("drop")).await, Some(ErrorKind::UnknownTool));
}

#[test]
fn with_restricted_callers_every_list_is_private() {
    let yard = two();
    assert!(!yard.view(&Principal::owner()).is_private());
    assert!(yard.view(&ada(None, Some(&["x"]))).is_private());
    yard.mark_callers_restricted();
    assert!(yard.view(&Principal::owner()).is_private());
}
