//! The rules of docs/concepts/access.md, clause by clause, as a table of principals and what each sees.

use std::sync::Arc;

use super::RecordedCall;
use crate::error::ErrorKind;
use crate::fake::{ScriptedSource, principal_with, resource_request, resources, tool_request, tools, yard};
use crate::glob::Glob;
use crate::name::SourceName;
use crate::principal::{AllowList, Principal};
use crate::request::{CallRequest, EntryKind};
use crate::source::{Source, SourceOffer};
use crate::status::{SourceState, SourceStatus};
use crate::yard::Yard;

fn lists(sources: Option<&[&str]>, tools: Option<&[&str]>) -> AllowList {
    let own = |globs: Option<&[&str]>| globs.map(|globs| globs.iter().copied().map(Glob::from).collect());
    AllowList { sources: own(sources), tools: own(tools) }
}

fn failed() -> SourceStatus {
    SourceStatus { reason: Some("no such host".to_owned()), ..SourceStatus::new(SourceState::Failed, true) }
}

fn names(yard: &Yard, principal: &Principal) -> Vec<String> {
    yard.statuses_for(principal).into_iter().map(|(name, _)| name.to_string()).collect()
}

/// `git` is open to all, `db` requires `read`; `down` has failed, and `vault` has failed and
/// requires `read`.
fn four() -> Arc<Yard> {
    let mut guarded = tools(&["query"]);
    guarded.tools[0].permissions = vec!["read".to_owned()];
    yard(&[
        &ScriptedSource::echo("git", tools(&["log", "commit"])),
        &ScriptedSource::echo("db", guarded),
        &ScriptedSource::with_status("down", failed(), &[]),
        &ScriptedSource::with_status("vault", failed(), &["read"]),
    ])
}

#[test]
fn a_source_is_visible_if_an_entry_is_or_could_be_usable() {
    let yard = four();
    for (principal, expected) in [
        (Principal::owner(), "git db down vault"),
        (principal_with(&[]), "git down"),
        (principal_with(&["read"]), "git db down vault"),
        (principal_with(&["observe"]), "git db down vault"),
        (principal_with(&["manage"]), "git db down vault"),
        (principal_with(&[]).with_allow_list(lists(Some(&["vault", "d*"]), None)), "down"),
        (principal_with(&["observe"]).with_allow_list(lists(Some(&["vault"]), None)), "vault"),
        (principal_with(&[]).with_allow_list(lists(None, Some(&["mcp__git__log", "mcp__db__*"]))), "git"),
        (principal_with(&["read"]).with_allow_list(lists(None, Some(&["mcp__vault__open"]))), "vault"),
        (principal_with(&["observe"]).with_allow_list(lists(None, Some(&["mcp__git__push"]))), ""),
        (principal_with(&["read"]).with_allow_list(lists(Some(&["git"]), Some(&["*query"]))), ""),
        (principal_with(&["read"]).with_allow_list(lists(Some(&[]), None)), ""),
    ] {
        assert_eq!(names(&yard, &principal).join(" "), expected, "{principal:?}");
        for (name, _) in yard.statuses() {
            let seen = yard.status_for(&principal, &name).is_some();
            assert_eq!(seen, expected.split(' ').any(|one| one == name.as_str()), "{name} {principal:?}");
        }
    }
}

#[tokio::test]
async fn a_call_of_a_source_that_is_not_there_says_why_only_to_who_sees_the_source() {
    let yard = four();
    let elsewhere = principal_with(&["read"]).with_allow_list(lists(Some(&["git"]), None));
    for (principal, kind, message) in [
        (principal_with(&["read"]), ErrorKind::CannotConnect, "server `vault` failed: no such host"),
        (principal_with(&[]), ErrorKind::Forbidden, "mcp__vault__open needs the permission `read`"),
        (elsewhere, ErrorKind::UnknownTool, "unknown tool `mcp__vault__open`"),
    ] {
        let error =
            yard.call(CallRequest { principal, ..tool_request("mcp__vault__open") }).await.unwrap_err();
        assert_eq!((error.kind(), error.message()), (kind, message));
    }
}

#[test]
fn calls_of_others_are_for_observers_whose_lists_include_what_was_called() {
    let yard = four();
    let call = |principal, thing, source, subject| RecordedCall { principal, kind: thing, subject, source };
    let log = call("bob", EntryKind::Tool, Some("git"), "mcp__git__log");
    let alone = call("bob", EntryKind::Tool, Some("git"), "log");
    let page = call("bob", EntryKind::Resource, Some("git"), "git://x");
    let query = call("bob", EntryKind::Tool, Some("db"), "mcp__db__query");
    let nowhere = call("bob", EntryKind::Tool, None, "mcp__db__qery");
    let own = call("ada", EntryKind::Tool, Some("db"), "mcp__db__query");
    let all = [log, alone, page, query, nowhere, own];
    for (principal, expected) in [
        (principal_with(&[]), [false, false, false, false, false, true]),
        (principal_with(&["observe"]), [true; 6]),
        (
            principal_with(&["observe"]).with_allow_list(lists(Some(&["git"]), None)),
            [true, true, true, false, false, true],
        ),
        (
            principal_with(&["observe"]).with_allow_list(lists(None, Some(&["mcp__git__log"]))),
            [true, true, false, false, false, true],
        ),
        (
            principal_with(&["observe"]).with_allow_list(lists(Some(&["git"]), Some(&["*commit"]))),
            [false, false, true, false, false, true],
        ),
        (
            principal_with(&["read"]).with_allow_list(lists(Some(&["db"]), None)),
            [false, false, false, false, false, true],
        ),
    ] {
        let visibility = yard.visibility(&principal);
        assert_eq!(all.map(|call| visibility.sees_call(&call)), expected, "{principal:?}");
        // Canceling follows the same lists, with the `manage` permission.
        let stops = all.map(|call| visibility.may_stop_call(&call));
        assert_eq!(stops, [false, false, false, false, false, true], "{principal:?}");
    }
    let manager = yard.visibility(&principal_with(&["manage"]).with_allow_list(lists(Some(&["git"]), None)));
    assert_eq!(all.map(|call| manager.may_stop_call(&call)), [true, true, true, false, false, true]);
}

#[test]
fn a_source_cannot_name_its_tools_into_the_list_of_another() {
    let yard = yard(&[
        &ScriptedSource::echo("a", tools(&["query"])),
        &ScriptedSource::echo("b", tools(&["mcp__a__query", "gone"])),
    ]);
    let observer = principal_with(&["observe"]).with_allow_list(lists(None, Some(&["mcp__a__query"])));
    let visibility = yard.visibility(&observer);
    // As records name calls of a source that is served alone, for an existing tool and a removed
    // one.
    for source in ["b", "c"] {
        let call = RecordedCall {
            principal: "bob",
            kind: EntryKind::Tool,
            subject: "mcp__a__query",
            source: Some(source),
        };
        assert!(!visibility.sees_call(&call), "{source}");
    }
}

#[test]
fn counters_and_log_lines_follow_the_lists() {
    let yard = four();
    let observer = |allowed| yard.visibility(&principal_with(&["observe"]).with_allow_list(allowed));
    let git = observer(lists(Some(&["git"]), None));
    let log = observer(lists(None, Some(&["mcp__git__log"])));
    let all = observer(AllowList::default());
    for (source, tool, expected) in [
        ("git", "mcp__git__log", [true, true, true]),
        ("git", "mcp__git__commit", [true, false, true]),
        ("git", "", [true, false, true]),
        ("git", "other", [true, false, true]),
        ("db", "mcp__db__query", [false, false, true]),
        ("", "", [false, false, true]),
        ("other", "other", [false, false, true]),
    ] {
        let seen = [&git, &log, &all].map(|visibility| visibility.sees_counter(source, tool));
        assert_eq!(seen, expected, "{source} {tool}");
    }
    let totals = [&git, &log, &all].map(|visibility| visibility.sees_totals("git"));
    assert_eq!(totals, [true, false, true]);
    for (source, expected) in
        [(Some("git"), [true, true, true]), (Some("db"), [false, false, true]), (None, [false, false, true])]
    {
        assert_eq!([&git, &log, &all].map(|visibility| visibility.sees_log_line(source)), expected);
    }
    let reader = yard.visibility(&principal_with(&["read"]));
    assert!(!reader.sees_counter("git", "mcp__git__log") && !reader.sees_log_line(Some("git")));
}

#[test]
fn changes_are_announced_to_the_principals_they_may_affect() {
    let yard = four();
    let hears = |principal: &Principal| {
        let visibility = yard.visibility(principal);
        ["git", "db", "down", "vault"].map(|name| visibility.sees_changes_of(&SourceName::new(name)))
    };
    assert_eq!(hears(&Principal::owner()), [true; 4]);
    // The database might offer an entry without a permission. The configuration of the vault rules
    // that out.
    assert_eq!(hears(&principal_with(&[])), [true, true, true, false]);
    assert_eq!(
        hears(&principal_with(&[]).with_allow_list(lists(Some(&["db"]), None))),
        [false, true, false, false]
    );
    let tools = principal_with(&["read"]).with_allow_list(lists(None, Some(&["mcp__vault__x", "mcp__g*"])));
    assert_eq!(hears(&tools), [true, false, false, true]);
}

#[tokio::test]
async fn of_two_sources_with_one_address_the_one_on_the_list_answers_and_is_listed() {
    let yard = yard(&[
        &ScriptedSource::echo("first", resources(&["x://1"])),
        &ScriptedSource::echo("second", resources(&["x://1"])),
    ]);
    let listed = |principal: &Principal| {
        yard.view(principal).resources().map(|one| one.source.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&Principal::owner()), ["first"]);
    let second = principal_with(&[]).with_allow_list(lists(Some(&["second"]), None));
    assert_eq!(listed(&second), ["second"]);
    let outcome = yard.call(CallRequest { principal: second.clone(), ..resource_request("x://1") }).await;
    outcome.unwrap();
    // The name of the other source is hidden only from this principal.
    let warnings =
        |principal: &Principal| yard.status_for(principal, &SourceName::new("second")).unwrap().warnings;
    assert_eq!(warnings(&Principal::owner()), ["resource x://1 is already offered by first"]);
    assert_eq!(warnings(&second), Vec::<String>::new());
}

#[test]
fn a_source_with_only_protected_entries_is_hidden() {
    for kind in 0..4 {
        let mut offer = SourceOffer::default();
        let permissions = vec!["read".to_owned()];
        match kind {
            0 => offer.tools = tools(&["x"]).tools,
            1 => offer.resources = resources(&["x://1"]).resources,
            2 => offer.templates = crate::fake::templates(&["x://{a}"]).templates,
            _ => offer.prompts = crate::fake::prompts(&["x"]).prompts,
        }
        offer.tools.iter_mut().for_each(|one| one.permissions.clone_from(&permissions));
        offer.resources.iter_mut().for_each(|one| one.permissions.clone_from(&permissions));
        offer.templates.iter_mut().for_each(|one| one.permissions.clone_from(&permissions));
        offer.prompts.iter_mut().for_each(|one| one.permissions.clone_from(&permissions));
        let source = ScriptedSource::echo("x", offer);
        let yard = yard(&[&source]);
        assert_eq!(names(&yard, &principal_with(&[])), Vec::<String>::new());
        assert_eq!(names(&yard, &principal_with(&["read"])), [source.name().as_str()]);
    }
}
