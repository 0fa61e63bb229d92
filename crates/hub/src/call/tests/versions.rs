//! Tools with one name and several versions.

use std::sync::Arc;

use serde_json::{Value, json};

use super::parts;
use crate::call_details::CallDetails;
use crate::error::{ErrorKind, HubError};
use crate::fake::{ScriptedSource, raw, tool, tool_request, yard};
use crate::outcome::Outcome;
use crate::request::{CallContext, CallRequest};
use crate::source::{SourceCall, SourceOffer, ToolOffer};
use crate::yard::Yard;

fn versioned(name: &str, metadata: Value) -> ToolOffer {
    let mut offer =
        tool(&json!({"name": name, "description": metadata.to_string(), "inputSchema": {"type": "object"}}));
    if let Value::Object(metadata) = metadata {
        offer.metadata = metadata;
    }
    offer
}

/// A source that answers with the requested version.
fn source(tools: Vec<ToolOffer>) -> Arc<ScriptedSource> {
    ScriptedSource::with_handler(
        "s",
        SourceOffer { tools, ..SourceOffer::default() },
        |call: SourceCall| async move { Ok(Outcome::success(raw(&json!(call.record.context.version)))) },
    )
}

fn three() -> Vec<ToolOffer> {
    vec![
        versioned("t", json!({"version": "1.9.0"})),
        versioned("other", json!({})),
        versioned("t", json!({"version": "1.10.0", "deprecates": "1.0.0"})),
        versioned("t", json!({"version": "1.0.0"})),
    ]
}

async fn ask(yard: &Yard, version: Option<&str>) -> (Result<String, HubError>, Option<String>) {
    let details = Arc::new(CallDetails::default());
    let context = CallContext { version: version.map(ToOwned::to_owned), ..CallContext::default() };
    let request = CallRequest { context, details: Some(Arc::clone(&details)), ..tool_request("t") };
    let outcome = yard.call(request).await.map(|outcome| outcome.body.get().to_owned());
    (outcome, details.tool().and_then(|tool| tool.deprecated_by.clone()))
}

#[tokio::test]
async fn the_newest_has_the_name_and_older_ones_are_reached_by_their_version() {
    let yard = yard(&[&source(three())]);
    let catalog = yard.catalog();
    let listed: Vec<_> =
        catalog.tools().iter().map(|tool| (tool.full_name.as_str(), tool.version())).collect();
    assert_eq!(listed, [("mcp__s__t", Some("1.10.0")), ("mcp__s__other", None)]);
    assert_eq!(catalog.warnings(), []);
    for (asked, answered, deprecated) in [
        (None, "1.10.0", None),
        (Some("1.10.0"), "1.10.0", None),
        (Some("1.9.0"), "1.9.0", None),
        (Some("1.0.0"), "1.0.0", Some("1.10.0")),
    ] {
        let (outcome, by) = ask(&yard, asked).await;
        assert_eq!((outcome.unwrap(), by.as_deref()), (format!("\"{answered}\""), deprecated));
    }
}

#[tokio::test]
async fn a_version_that_is_not_there_is_refused_with_those_that_are() {
    let yard_of_three = yard(&[&source(three())]);
    let (outcome, _) = ask(&yard_of_three, Some("2")).await;
    let there = Some("use one of the versions 1.10.0, 1.9.0, 1.0.0");
    assert_eq!(
        parts(&outcome.unwrap_err()),
        (ErrorKind::UnknownTool, "tool `mcp__s__t` has no version `2`", there)
    );
    for (metadata, advice) in [
        (json!({"version": "1"}), "use version 1"),
        (json!({}), "omit the version, because this tool has none"),
        (json!({"version": 7}), "omit the version, because this tool has none"),
    ] {
        let (outcome, _) = ask(&yard(&[&source(vec![versioned("t", metadata)])]), Some("2")).await;
        assert_eq!(outcome.unwrap_err().suggestion(), Some(advice));
    }
}

#[tokio::test]
async fn tools_of_one_name_that_do_not_all_say_a_version_of_their_own_cannot_share_it() {
    for (first, second) in [
        (json!({}), json!({"version": "1"})),
        (json!({"version": "1"}), json!({})),
        (json!({"version": "1.0"}), json!({"version": "v1.0+x"})),
    ] {
        let yard = yard(&[&source(vec![versioned("t", first.clone()), versioned("t", second)])]);
        let catalog = yard.catalog();
        assert_eq!(catalog.tools().len(), 1);
        assert_eq!(catalog.tools()[0].metadata, *first.as_object().unwrap());
        assert_eq!(catalog.warnings()[0].1, "a tool was skipped: the source offers t more than once");
    }
}

#[tokio::test]
async fn an_older_version_that_comes_or_goes_is_a_change() {
    let source = source(three());
    let yard = yard(&[&source]);
    let mut events = yard.events().subscribe();
    source.set_offer(SourceOffer { tools: three(), ..SourceOffer::default() });
    assert!(events.try_recv().is_err());
    source.set_offer(SourceOffer { tools: three()[..3].to_vec(), ..SourceOffer::default() });
    assert!(events.try_recv().is_ok());
    assert_eq!(ask(&yard, Some("1.0.0")).await.0.unwrap_err().kind(), ErrorKind::UnknownTool);
}
