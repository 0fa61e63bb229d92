//! How definitions of sources become catalog entries.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use serde_json::json;

use super::Catalog;
use crate::events::CatalogChange;
use crate::fake::{ScriptedSource, prompts, resource, resources, templates, text, tool, tools};
use crate::json::Raw;
use crate::name::SourceName;
use crate::request::ClientEra;
use crate::source::{PromptOffer, Source, SourceOffer, TemplateOffer, ToolListing, ToolOffer};

fn build(sources: &[&Arc<ScriptedSource>]) -> Catalog {
    Catalog::build(&owned(sources))
}

fn owned(sources: &[&Arc<ScriptedSource>]) -> Vec<Arc<dyn Source>> {
    sources.iter().map(|source| Arc::clone(*source) as Arc<dyn Source>).collect()
}

fn defined(definition: Raw) -> ToolOffer {
    let (metadata, listing) = (serde_json::Map::new(), ToolListing::Listed);
    ToolOffer { definition, permissions: Vec::new(), metadata, hooks: Vec::new(), listing }
}

fn warnings(catalog: &Catalog) -> Vec<String> {
    catalog.warnings().iter().map(|(source, text)| format!("{source}: {text}")).collect()
}

fn full_names(catalog: &Catalog) -> Vec<&str> {
    catalog.tools().iter().map(|tool| tool.full_name.as_str()).collect()
}

#[test]
fn invalid_definitions_are_skipped_without_affecting_others() {
    let definitions = ["7", "[]", r#"{"title":"no name"}"#, r#"{"name":7}"#, r#"{"name":"\ud800"}"#];
    let mut tools = tools(&["good", "good"]).tools;
    tools.extend(definitions.map(|definition| defined(text(definition))));
    let offer = SourceOffer {
        tools,
        prompts: vec![PromptOffer { definition: text("null"), permissions: Vec::new() }],
        resources: vec![resource(&json!({"name": "no uri"}))],
        templates: vec![TemplateOffer { definition: text(r#"{"uriTemplate":[]}"#), permissions: Vec::new() }],
        supports_completion: false,
        reserved: None,
    };
    let catalog =
        build(&[&ScriptedSource::echo("bad", offer), &ScriptedSource::echo("fine", resources(&["x://1"]))]);
    assert_eq!(full_names(&catalog), ["mcp__bad__good"]);
    assert_eq!((catalog.resources().len(), catalog.templates().len(), catalog.prompts().len()), (1, 0, 0));
    assert_eq!(
        warnings(&catalog),
        [
            "bad: a tool was skipped: the source offers good more than once",
            "bad: a tool was skipped: invalid type: integer `7`, expected a JSON object at line 1 column 1",
            "bad: a tool was skipped: invalid type: sequence, expected a JSON object at line 1 column 0",
            "bad: a tool was skipped: it has no name",
            "bad: a tool was skipped: it has no name",
            "bad: a tool was skipped: it has no name",
            "bad: a prompt was skipped: invalid type: null, expected a JSON object at line 1 column 4",
            "bad: a resource was skipped: it has no uri",
            "bad: a resource template was skipped: it has no uriTemplate",
        ]
    );
}

#[test]
fn an_input_schema_that_breaks_clients_is_shown_as_an_open_object_and_kept_as_it_was() {
    for schema in ["null", "true", r#"["object"]"#, r#"{"type":["object"]}"#, r#"{"type":"string"}"#, "{}"] {
        let definition = format!(r#"{{"name":"t", "inputSchema": {schema}, "execution":{{"x":1.0}}}}"#);
        let offer = SourceOffer { tools: vec![defined(text(&definition))], ..SourceOffer::default() };
        let catalog = build(&[&ScriptedSource::echo("s", offer)]);
        let tool = &catalog.tools()[0];
        assert_eq!(tool.definition.get(), definition);
        assert_eq!(
            tool.shown.get(),
            r#"{"name":"mcp__s__t","inputSchema":{"type":"object"},"execution":{"x":1.0}}"#
        );
        assert_eq!(tool.input_schema.get(), r#"{"type":"object"}"#);
        assert_eq!(warnings(&catalog), ["s: the input schema of tool t is not an object schema"]);
        tool.check(&text(r#"{"anything":1}"#)).now_or_never().unwrap().unwrap();
    }
}

#[test]
fn titles_come_from_title_then_annotations_then_name() {
    let schema = json!({"type": "object"});
    let offers = [
        json!({"name": "a", "title": "A", "annotations": {"title": "B"}, "inputSchema": schema}),
        json!({"name": "a2", "annotations": {"title": "B"}, "inputSchema": schema}),
        json!({"name": "a3", "annotations": ["odd"], "title": 7, "inputSchema": schema}),
    ];
    let catalog = build(&[&ScriptedSource::echo(
        "s",
        SourceOffer { tools: offers.iter().map(tool).collect(), ..SourceOffer::default() },
    )]);
    let titles: Vec<_> = catalog.tools().iter().map(|tool| tool.title.as_str()).collect();
    assert_eq!(titles, ["A", "B", "a3"]);
}

#[test]
fn where_two_sources_offer_a_resource_the_first_answers_for_it() {
    let first = ScriptedSource::echo("a", resources(&["x://1"]));
    let second = ScriptedSource::echo("b", resources(&["x://1", "x://2"]));
    let catalog = build(&[&first, &second]);
    let holders: Vec<_> = catalog.resources().iter().map(|r| format!("{} {}", r.uri, r.source)).collect();
    assert_eq!(holders, ["x://1 a", "x://2 b"]);
    assert_eq!(warnings(&catalog), ["b: resource x://1 is already offered by a"]);
    let b = SourceName::new("b");
    assert_eq!(catalog.resource_in_source(&b, "x://1").map(|r| r.source.as_str()), Some("b"));
    assert!(catalog.resource_in_source(&SourceName::new("a"), "x://2").is_none());
}

#[test]
fn a_uri_leads_to_the_template_of_that_text_or_to_the_most_specific_that_fits() {
    let wide = ScriptedSource::echo("wide", templates(&["x://{+all}"]));
    let narrow = ScriptedSource::echo("narrow", templates(&["x://{id}", "y://{id}/z"]));
    let catalog = build(&[&wide, &narrow]);
    let found = |uri: &str| catalog.template_for(uri).map(|template| template.template.as_str());
    assert_eq!(found("x://7"), Some("x://{id}"));
    assert_eq!(found("x://7/8"), Some("x://{+all}"));
    assert_eq!(found("x://{id}"), Some("x://{id}"));
    assert_eq!(found("y://7/z"), Some("y://{id}/z"));
    assert_eq!(found("y://7/8/z"), None);
    let narrow = SourceName::new("narrow");
    assert_eq!(catalog.template_in_source(&narrow, "x://7").map(|t| t.template.as_str()), Some("x://{id}"));
}

/// Checks which source serves a URI, regardless of the order of the sources.
#[track_caller]
fn check_answers(sources: &[(&str, &[&str])], uri: &str, expect: Option<&str>) {
    let fakes: Vec<_> =
        sources.iter().map(|(name, uris)| ScriptedSource::echo(name, templates(uris))).collect();
    let mut order: Vec<&Arc<ScriptedSource>> = fakes.iter().collect();
    for _ in 0..2 {
        let catalog = build(&order);
        let found = catalog.template_for(uri).map(|template| template.source.to_string());
        assert_eq!(found.as_deref(), expect, "{uri}");
        order.reverse();
    }
}

#[test]
fn the_longest_literal_beginning_answers_whatever_the_order_of_the_sources() {
    let sources: &[(&str, &[&str])] = &[
        ("everything", &["{+any}"]),
        ("files", &["file:///{+path}"]),
        ("home", &["file:///home/{+path}", "{scheme}://odd/{id}"]),
        ("logs", &["file:///{name}.log"]),
    ];
    check_answers(sources, "file:///etc/passwd", Some("files"));
    check_answers(sources, "file:///home/ada", Some("home"));
    check_answers(sources, "file:///boot.log", Some("logs"));
    check_answers(sources, "http://odd/7", Some("home"));
    check_answers(sources, "http://even/7", Some("everything"));
    // Identical templates are ordered by source name.
    check_answers(&[("b", &["x://{id}"]), ("a", &["x://{id}"])], "x://1", Some("a"));
}

#[test]
fn a_catch_all_answers_for_no_address_that_another_source_has_one_for_too() {
    check_answers(&[("a", &["{+any}"]), ("b", &["{+all}"])], "x://1", None);
    check_answers(&[("a", &["{+any}", "{+more}"])], "x://1", Some("a"));
    check_answers(&[("a", &["{+any}"]), ("b", &["x://{id}"])], "x://1", Some("b"));
    check_answers(&[("a", &["{+any}"]), ("b", &["x://{id}"])], "y://1", Some("a"));
}

#[test]
fn a_resource_answers_before_any_template() {
    let catch_all = ScriptedSource::echo("a", templates(&["x://{id}", "{+any}"]));
    let exact = ScriptedSource::echo("b", resources(&["x://1"]));
    for order in [[&catch_all, &exact], [&exact, &catch_all]] {
        let catalog = build(&order);
        let holder = catalog.match_uri("x://1", &crate::Principal::owner(), &crate::YardScope::All).unwrap();
        assert_eq!(holder.source().as_str(), "b");
    }
}

#[test]
fn a_template_that_cannot_be_matched_is_listed_with_a_warning() {
    let long = "{a}".repeat(1000);
    let catalog = build(&[&ScriptedSource::echo("s", templates(&[&long]))]);
    assert_eq!(catalog.templates().len(), 1);
    assert!(catalog.template_for("aaa").is_none());
    let shown = format!("{}…", &long[..200]);
    assert_eq!(
        warnings(&catalog),
        [format!("s: resource template {shown}: it has too many variables to match")]
    );
}

#[test]
fn says_exactly_which_lists_changed() {
    let change = |before: SourceOffer, now: SourceOffer| {
        build(&[&ScriptedSource::echo("s", now)]).change_since(&build(&[&ScriptedSource::echo("s", before)]))
    };
    let none = CatalogChange::default();
    assert_eq!(change(tools(&["a"]), tools(&["a"])), none);
    assert_eq!(change(tools(&["a"]), tools(&["b"])), CatalogChange { tools: true, ..none });
    assert_eq!(change(tools(&["a", "b"]), tools(&["b", "a"])), CatalogChange { tools: true, ..none });
    assert_eq!(change(prompts(&["a"]), prompts(&[])), CatalogChange { prompts: true, ..none });
    assert_eq!(
        change(resources(&["x://1"]), resources(&["x://2"])),
        CatalogChange { resources: true, ..none }
    );
    assert_eq!(
        change(templates(&["x://{a}"]), templates(&["x://{b}"])),
        CatalogChange { resources: true, ..none }
    );
    assert_eq!(change(tools(&["a"]), prompts(&["a"])), CatalogChange { tools: true, prompts: true, ..none });
    let mut guarded = tools(&["a"]);
    guarded.tools[0].permissions = vec!["read".to_owned()];
    assert_eq!(change(tools(&["a"]), guarded), CatalogChange { tools: true, ..none });
    // In the yard both are shown with an open object schema. A source served alone is shown
    // unchanged.
    let odd = |schema: &str| SourceOffer {
        tools: vec![defined(text(&format!(r#"{{"name":"a","inputSchema":{schema}}}"#)))],
        ..SourceOffer::default()
    };
    assert_eq!(change(odd("null"), odd("7")), CatalogChange { tools: true, ..none });
}

#[test]
fn what_did_not_change_is_neither_read_nor_compiled_again() {
    let steady = ScriptedSource::echo("steady", tools(&["query"]));
    let busy = ScriptedSource::echo("busy", tools(&["a", "b"]));
    let sources = owned(&[&steady, &busy]);
    let before = Catalog::build(&sources);
    for tool in before.tools() {
        assert_eq!(tool.schema_problem(), None);
    }
    let moved = owned(&[&steady, &ScriptedSource::echo("busy", tools(&["new", "b"]))]);
    let now = before.rebuild(&moved, ClientEra::Newest);
    assert_eq!(full_names(&now), ["mcp__steady__query", "mcp__busy__new", "mcp__busy__b"]);
    assert!(Arc::ptr_eq(&before.tools()[0], &now.tools()[0]));
    let compiled = |catalog: &Catalog, at: usize| Arc::as_ptr(&catalog.tools()[at].compiled);
    assert_eq!(compiled(&before, 2), compiled(&now, 2));
    assert_ne!(compiled(&before, 0), compiled(&now, 1));
}

#[test]
fn a_schema_is_compiled_once_however_often_it_is_checked() {
    let catalog = build(&[&ScriptedSource::echo("s", tools(&["t"]))]);
    let tool = &catalog.tools()[0];
    assert_eq!(tool.compiled.address(), None);
    tool.check(&text("{}")).now_or_never().unwrap().unwrap();
    let first = tool.compiled.address();
    tool.check(&text("{}")).now_or_never().unwrap().unwrap();
    assert_eq!((first, first.is_some()), (tool.compiled.address(), true));
}

#[test]
fn names_taken_by_another_source_are_reassigned() {
    let native = ScriptedSource::unprefixed("native", tools(&["mcp__s__t"]));
    let source = ScriptedSource::echo("s", SourceOffer { prompts: prompts(&["p"]).prompts, ..tools(&["t"]) });
    let alone = build(&[&source]);
    assert_eq!(full_names(&alone), ["mcp__s__t"]);
    let both = alone.rebuild(&owned(&[&native, &source]), ClientEra::Newest);
    let rebuilt = build(&[&native, &source]);
    assert_eq!(full_names(&both), full_names(&rebuilt));
    assert_eq!(full_names(&both)[0], "mcp__s__t");
    let shown = |catalog: &Catalog| {
        catalog.tools().iter().map(|tool| tool.shown.get().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&both), shown(&rebuilt));
    assert_eq!(alone.prompts()[0].full_name, both.prompts()[0].full_name);
}

#[test]
fn a_source_that_panics_offers_nothing_and_does_not_affect_others() {
    struct Crashing(SourceName);
    impl Source for Crashing {
        fn name(&self) -> &SourceName {
            &self.0
        }
        fn offer(&self) -> Arc<SourceOffer> {
            panic!("on purpose")
        }
        fn call<'a>(
            &'a self,
            _call: crate::SourceCall,
        ) -> crate::BoxFuture<'a, Result<crate::Outcome, crate::HubError>> {
            Box::pin(std::future::pending())
        }
    }
    let mut sources: Vec<Arc<dyn Source>> = vec![Arc::new(Crashing(SourceName::new("bad")))];
    sources.extend(owned(&[&ScriptedSource::echo("fine", tools(&["t"]))]));
    let catalog = Catalog::build(&sources);
    assert_eq!(full_names(&catalog), ["mcp__fine__t"]);
    assert_eq!(warnings(&catalog), ["bad: it panicked while listing its entries"]);
}

#[test]
fn ten_thousand_tools_are_read_in_good_time_and_kept_in_no_time() {
    let names: Vec<String> = (0..100).map(|at| format!("tool_number_{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let fakes: Vec<_> =
        (0..100).map(|at| ScriptedSource::echo(&format!("source{at}"), tools(&names))).collect();
    let sources = owned(&fakes.iter().collect::<Vec<_>>());
    let began = Instant::now();
    let first = Catalog::build(&sources);
    let read = began.elapsed();
    assert_eq!(first.tools().len(), 10_000);
    let began = Instant::now();
    let second = first.rebuild(&sources, ClientEra::Newest);
    let kept = began.elapsed();
    assert_eq!(second.change_since(&first), CatalogChange::default());
    // Generous, because this is a debug build on a shared machine. A quadratic algorithm would need
    // minutes.
    assert!(read < Duration::from_secs(10) && kept < Duration::from_secs(5), "{read:?} {kept:?}");
}
