//! Sources are added, changed and removed; views and watchers follow.

use std::sync::Arc;

use tokio::sync::broadcast::Receiver;

use crate::events::{CatalogChange, YardEvent};
use crate::fake::{ScriptedSource, principal_with, prompts, resources, tools, yard};
use crate::name::SourceName;
use crate::principal::Principal;
use crate::scope::YardScope;
use crate::source::SourceOffer;
use crate::view::CatalogView;
use crate::yard::Yard;

fn names(view: &CatalogView) -> Vec<&str> {
    view.tools().map(|tool| tool.full_name.as_str()).collect()
}

fn changes(events: &mut Receiver<Arc<YardEvent>>) -> Vec<CatalogChange> {
    let mut seen = Vec::new();
    while let Ok(event) = events.try_recv() {
        match &*event {
            YardEvent::CatalogChanged(change, _) => seen.push(*change),
            // For added and removed sources.
            YardEvent::StatusChanged { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    seen
}

fn everything(yard: &Yard) -> CatalogView {
    yard.view(&Principal::owner())
}

#[test]
fn a_source_is_replaced_in_its_position_and_removed_completely() {
    let yard = yard(&[&ScriptedSource::echo("a", tools(&["x"])), &ScriptedSource::echo("b", tools(&["y"]))]);
    let mut events = yard.events().subscribe();
    yard.add(ScriptedSource::echo("a", tools(&["x", "z"])));
    assert_eq!(names(&everything(&yard)), ["mcp__a__x", "mcp__a__z", "mcp__b__y"]);
    yard.remove(&SourceName::new("a"));
    assert_eq!(names(&everything(&yard)), ["mcp__b__y"]);
    yard.remove(&SourceName::new("unknown"));
    assert_eq!(changes(&mut events), [CatalogChange { tools: true, ..CatalogChange::default() }; 2]);
}

#[test]
fn watchers_receive_only_what_changed() {
    let source = ScriptedSource::echo("s", tools(&["a"]));
    let yard = yard(&[&source]);
    let mut events = yard.events().subscribe();
    source.set_offer(tools(&["a"]));
    assert_eq!(changes(&mut events), []);
    source.set_offer(SourceOffer { prompts: prompts(&["p"]).prompts, ..resources(&["x://1"]) });
    assert_eq!(changes(&mut events), [CatalogChange { tools: true, resources: true, prompts: true }]);
    source.notifier().resource_updated("x://1");
    let event = events.try_recv().unwrap();
    assert!(
        matches!(&*event, YardEvent::ResourceUpdated { source, uri } if source.as_str() == "s" && uri == "x://1")
    );
}

#[test]
fn a_catalog_in_hand_never_changes() {
    let source = ScriptedSource::echo("s", tools(&["a"]));
    let yard = yard(&[&source]);
    let before = everything(&yard);
    source.set_offer(tools(&["b"]));
    assert_eq!((names(&before), names(&everything(&yard))), (vec!["mcp__s__a"], vec!["mcp__s__b"]));
}

#[test]
fn a_view_shows_what_the_principal_may_see_of_one_source_or_of_all() {
    let mut guarded = tools(&["open", "read", "both"]);
    guarded.tools[1].permissions = vec!["read".to_owned()];
    guarded.tools[2].permissions = vec!["read".to_owned(), "write".to_owned()];
    let mut first = SourceOffer { resources: resources(&["x://1"]).resources, ..guarded };
    first.resources[0].permissions = vec!["read".to_owned()];
    let second = SourceOffer { resources: resources(&["x://1"]).resources, ..tools(&["other"]) };
    let yard = yard(&[&ScriptedSource::echo("a", first), &ScriptedSource::echo("b", second)]);
    let reader = yard.view(&principal_with(&["read"]));
    assert_eq!(names(&reader), ["mcp__a__open", "mcp__a__read", "mcp__b__other"]);
    assert_eq!(
        names(&reader.clone().with_scope(YardScope::Source(SourceName::new("a")))),
        ["mcp__a__open", "mcp__a__read"]
    );
    assert_eq!(names(&everything(&yard)).len(), 4);
    let holders = |view: &CatalogView| view.resources().map(|r| r.source.to_string()).collect::<Vec<_>>();
    assert_eq!(holders(&everything(&yard)), ["a"]);
    assert_eq!(holders(&everything(&yard).with_scope(YardScope::Source(SourceName::new("b")))), ["b"]);
    assert_eq!(holders(&yard.view(&principal_with(&[]))), [""; 0]);
    assert!(reader.is_private() && everything(&yard).is_private());
    yard.remove(&SourceName::new("a"));
    assert!(!everything(&yard).is_private());
}

#[test]
fn concurrent_changes_all_reach_the_catalog() {
    let sources: Vec<_> = (0..8).map(|at| ScriptedSource::echo(&format!("s{at}"), tools(&["old"]))).collect();
    let yard = yard(&sources.iter().collect::<Vec<_>>());
    std::thread::scope(|scope| {
        for source in &sources {
            scope.spawn(move || {
                for round in 0..50 {
                    source.set_offer(tools(&[&format!("t{round}")]));
                }
            });
        }
    });
    let expected: Vec<_> = (0..8).map(|at| format!("mcp__s{at}__t49")).collect();
    assert_eq!(names(&everything(&yard)), expected);
}

#[test]
fn a_source_that_outlives_its_yard_has_no_effect() {
    let source = ScriptedSource::echo("s", tools(&["a"]));
    drop(yard(&[&source]));
    source.set_offer(tools(&["b"]));
    source.notifier().resource_updated("x://1");
}

#[test]
fn what_is_odd_about_an_offer_is_in_the_status_of_its_source() {
    let yard = yard(&[
        &ScriptedSource::echo("a", resources(&["x://1"])),
        &ScriptedSource::echo("b", resources(&["x://1"])),
    ]);
    let warnings: Vec<_> =
        yard.statuses().into_iter().map(|(name, status)| (name.to_string(), status.warnings)).collect();
    let warning = "resource x://1 is already offered by a".to_owned();
    assert_eq!(warnings, [("a".to_owned(), Vec::new()), ("b".to_owned(), vec![warning])]);
}
