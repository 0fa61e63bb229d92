//! Resources, templates, prompts and completions, and changes at run time.

use std::sync::Arc;

use serde_json::{Value, json};
use toolyard_hub::{CatalogChange, YardEvent, json as raw};
use toolyard_sdk::call::{CallContext, CallRequest, CallTarget, CompletionReference, Principal};
use toolyard_sdk::testing::{TestCaller, TestReport};
use toolyard_sdk::yard::Source;
use toolyard_sdk::{
    Annotations, Content, Contents, Context, ErrorKind, Icon, Message, NativeSource, Prompt, Resource,
    ResourceTemplate, Tool, ToolError, Yard,
};

fn parsed(definition: &raw::Raw) -> Value {
    serde_json::from_str(definition.get()).unwrap()
}

async fn read(yard: &Arc<Yard>, uri: &str) -> TestReport {
    TestCaller::new().request(yard, CallTarget::Resource { uri: uri.to_owned() }).await
}

async fn prompt(yard: &Arc<Yard>, name: &str, arguments: Value) -> TestReport {
    let what = CallTarget::Prompt { name: name.to_owned(), arguments: Some(raw::to_raw(&arguments)) };
    TestCaller::new().request(yard, what).await
}

async fn complete(
    yard: &Arc<Yard>,
    reference: CompletionReference,
    argument: &str,
    value: &str,
    known: Value,
) -> Value {
    let what = CallTarget::Completion {
        reference,
        argument: argument.to_owned(),
        value: value.to_owned(),
        context: Some(raw::to_raw(&json!({"arguments": known}))),
    };
    TestCaller::new().request(yard, what).await.body()
}

fn library() -> NativeSource {
    NativeSource::new("library")
        .resource(
            Resource::text("lib://readme", "readme", "Größe")
                .title("Read me")
                .description("Start here.")
                .mime_type("text/plain")
                .annotations(Annotations { priority: Some(1.0), ..Annotations::default() })
                .icon(Icon::new("data:,")),
        )
        .resource(Resource::binary("lib://dot", "dot", [1, 2, 3]))
        .resource(Resource::dynamic("lib://who", "who", |ctx: Context| async move {
            Ok(vec![
                Contents::text(ctx.principal().id()),
                Contents::text("b").uri("lib://who/b").mime_type("text/b"),
            ])
        }))
        .template(
            ResourceTemplate::new("lib://books/{shelf}/{n}", "books", |values, _| async move {
                match values.text("n").parse::<u32>() {
                    Ok(n) => Ok(format!("book {n} of {}", values.text("shelf"))),
                    Err(_) => Err(ToolError::not_found(values.text("n"))),
                }
            })
            .mime_type("text/plain")
            .complete("n", |typed, known| async move {
                (0..150).map(|n| format!("{}{typed}{n}", known.text("shelf"))).collect()
            }),
        )
        .prompt(
            Prompt::new("review", |arguments, _| async move {
                Ok(vec![
                    Message::user(format!("Review {}", arguments.text("book"))),
                    Message::assistant(Content::text(arguments.get("tone").unwrap_or("kindly"))),
                ])
            })
            .title("Review")
            .description("Reviews a book.")
            .argument("book", "Which book.")
            .optional_argument("tone", "How.")
            .complete_from("tone", ["Kindly", "coldly", "keenly"]),
        )
}

#[test]
fn definitions_have_the_members_of_the_protocol_and_omit_absent_ones() {
    let offer = library().offer();
    let resources: Vec<Value> = offer.resources.iter().map(|resource| parsed(&resource.definition)).collect();
    assert_eq!(
        resources,
        [
            json!({
                "uri": "lib://readme",
                "name": "readme",
                "title": "Read me",
                "description": "Start here.",
                "mimeType": "text/plain",
                "annotations": {"priority": 1.0},
                "icons": [{"src": "data:,"}],
                "size": 7,
            }),
            json!({"uri": "lib://dot", "name": "dot", "size": 3}),
            json!({"uri": "lib://who", "name": "who"}),
        ]
    );
    assert_eq!(
        offer.templates[0].definition.get(),
        r#"{"uriTemplate":"lib://books/{shelf}/{n}","name":"books","mimeType":"text/plain"}"#
    );
    assert_eq!(
        parsed(&offer.prompts[0].definition),
        json!({
            "name": "review",
            "title": "Review",
            "description": "Reviews a book.",
            "arguments": [
                {"name": "book", "description": "Which book.", "required": true},
                {"name": "tone", "description": "How.", "required": false},
            ],
        })
    );
    assert!(offer.supports_completion);
    assert!(!NativeSource::new("empty").offer().supports_completion);
}

#[tokio::test]
async fn resources_of_every_kind_are_read() {
    let yard = Yard::with_sources([library().into_source()]);
    let contents = async |uri| read(&yard, uri).await.body();
    assert_eq!(
        contents("lib://readme").await,
        json!({"contents": [{"uri": "lib://readme", "mimeType": "text/plain", "text": "Größe"}]})
    );
    assert_eq!(contents("lib://dot").await, json!({"contents": [{"uri": "lib://dot", "blob": "AQID"}]}));
    assert_eq!(
        contents("lib://who").await,
        json!({"contents": [
            {"uri": "lib://who", "text": "test"},
            {"uri": "lib://who/b", "mimeType": "text/b", "text": "b"},
        ]})
    );
    assert_eq!(
        contents("lib://books/a%20b/7").await,
        json!({"contents": [{"uri": "lib://books/a%20b/7", "mimeType": "text/plain", "text": "book 7 of a b"}]})
    );
}

#[tokio::test]
async fn a_uri_without_a_resource_is_unknown() {
    let yard = Yard::with_sources([library().into_source()]);
    for uri in ["lib://books/a/seven", "lib://other"] {
        let error = read(&yard, uri).await.outcome.unwrap_err();
        assert_eq!((error.kind(), error.details()), (ErrorKind::UnknownResource, Some(&json!({"uri": uri}))));
    }
}

#[tokio::test]
async fn a_prompt_renders_its_arguments() {
    let yard = Yard::with_sources([library().into_source()]);
    assert_eq!(
        prompt(&yard, "review", json!({"book": "Emma"})).await.body(),
        json!({
            "description": "Reviews a book.",
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Review Emma"}},
                {"role": "assistant", "content": {"type": "text", "text": "kindly"}},
            ],
        })
    );
}

#[tokio::test]
async fn a_prompt_names_the_argument_that_is_missing_or_wrong() {
    let yard = Yard::with_sources([library().into_source()]);
    let missing = prompt(&yard, "review", json!({"tone": "coldly"})).await.outcome.unwrap_err();
    assert_eq!(missing.message(), "invalid arguments for `review`: `book` is required");
    let details = json!({"field": "book", "reason": "is required", "provided": null});
    assert_eq!((missing.kind(), missing.details()), (ErrorKind::InvalidArguments, Some(&details)));
    let wrong = prompt(&yard, "review", json!({"book": 7})).await.outcome.unwrap_err();
    let details = json!({"field": "book", "reason": "must be a string", "provided": 7});
    assert_eq!((wrong.kind(), wrong.details()), (ErrorKind::InvalidArguments, Some(&details)));
}

#[tokio::test]
async fn arguments_are_completed() {
    let yard = Yard::with_sources([library().into_source()]);
    let review = || CompletionReference::Prompt("review".to_owned());
    assert_eq!(
        complete(&yard, review(), "tone", "k", json!({})).await,
        json!({"completion": {"values": ["Kindly", "keenly"], "total": 2, "hasMore": false}})
    );
    assert_eq!(
        complete(&yard, review(), "book", "E", json!({})).await,
        json!({"completion": {"values": [], "total": 0, "hasMore": false}})
    );
    let books = CompletionReference::Template("lib://books/{shelf}/{n}".to_owned());
    let body = complete(&yard, books, "n", "1", json!({"shelf": "a", "odd": 7})).await;
    let values: Vec<String> = (0..100).map(|n| format!("a1{n}")).collect();
    assert_eq!(body, json!({"completion": {"values": values, "total": 150, "hasMore": true}}));
}

#[tokio::test]
async fn changes_at_run_time_notify_the_yard() {
    let native = NativeSource::new("n").tool(Tool::new("first", || async { Ok("1") }));
    let handle = native.handle();
    let yard = Yard::with_sources([native.into_source()]);
    let mut events = yard.events().subscribe();
    let mut next = || match &*events.try_recv().unwrap() {
        YardEvent::CatalogChanged(change, _) => format!("{change:?}"),
        other => format!("{other:?}"),
    };
    let changed = |change: CatalogChange| format!("{change:?}");
    let names = || yard.catalog().tools().iter().map(|tool| tool.raw_name.clone()).collect::<Vec<_>>();

    handle.add_tool(Tool::new("second", || async { Ok("2") }));
    assert_eq!(names(), ["first", "second"]);
    assert_eq!(next(), changed(CatalogChange { tools: true, ..CatalogChange::default() }));
    handle.add_tool(Tool::new("first", || async { Ok("1") }).title("In its place"));
    assert_eq!(names(), ["first", "second"]);
    assert_eq!(next(), changed(CatalogChange { tools: true, ..CatalogChange::default() }));
    handle.remove_tool("first");
    assert_eq!(names(), ["second"]);
    assert_eq!(next(), changed(CatalogChange { tools: true, ..CatalogChange::default() }));
    handle.add_prompt(Prompt::new("p", |_, _| async { Ok("text") }));
    assert_eq!(next(), changed(CatalogChange { prompts: true, ..CatalogChange::default() }));
    handle.remove_prompt("p");
    assert_eq!(next(), changed(CatalogChange { prompts: true, ..CatalogChange::default() }));
    handle.add_resource(Resource::text("n://a", "a", "a"));
    assert_eq!(next(), changed(CatalogChange { resources: true, ..CatalogChange::default() }));
    handle.resource_updated("n://a");
    assert!(next().starts_with("ResourceUpdated"));
    handle.remove_resource("n://a");
    assert_eq!(next(), changed(CatalogChange { resources: true, ..CatalogChange::default() }));
    assert_eq!(handle.tools().len() + handle.prompts().len() + handle.resources().len(), 1);
}

#[tokio::test]
async fn a_tool_can_change_its_own_source() {
    let tool = Tool::new("grow", |ctx: Context| async move {
        ctx.native().add_tool(Tool::new("grown", || async { Ok("new") }));
        ctx.resource_updated("n://list");
        Ok(())
    });
    let yard = Yard::with_sources([NativeSource::new("n").tool(tool).into_source()]);
    let call = |name: &str| CallTarget::Tool { name: name.to_owned(), arguments: None };
    assert_eq!(
        TestCaller::new().request(&yard, call("grown")).await.error_kind(),
        Some(ErrorKind::UnknownTool)
    );
    TestCaller::new().request(&yard, call("grow")).await.outcome.unwrap();
    assert_eq!(TestCaller::new().request(&yard, call("grown")).await.text(), "new");
}

#[tokio::test]
async fn versions_of_a_tool_coexist() {
    let add = |version: &str| {
        let answer = version.to_owned();
        Tool::new("add", move || {
            let answer = answer.clone();
            async move { Ok(answer) }
        })
        .version(version)
    };
    let native = NativeSource::new("test")
        .tool(add("1.0.0"))
        .tool(add("2.0.0").deprecates("1.0.0"))
        .tool(add("2.0.0"));
    let handle = native.handle();
    assert_eq!(handle.tools().len(), 2);
    let yard = Yard::with_sources([native.tool(add("2.1.0").deprecates("1.0.0")).into_source()]);
    let ask = async |version: Option<&str>| {
        let what = CallTarget::Tool { name: "add".to_owned(), arguments: None };
        let context = CallContext { version: version.map(ToOwned::to_owned), ..Default::default() };
        let request = CallRequest { context, ..CallRequest::new(what, Principal::owner()) };
        let outcome = yard.call(request).await.map_err(|error| error.message_with_suggestion())?;
        let body: Value = serde_json::from_str(outcome.body.get()).unwrap();
        Ok::<_, String>(body["content"][0]["text"].as_str().unwrap().to_owned())
    };
    for (asked, answered) in
        [(None, "2.1.0"), (Some("1.0.0"), "1.0.0"), (Some("2.0.0"), "2.0.0"), (Some("2.1.0"), "2.1.0")]
    {
        assert_eq!(ask(asked).await.as_deref(), Ok(answered));
    }
    let refused = "tool `add` has no version `3`\nhint: use one of the versions 2.1.0, 2.0.0, 1.0.0";
    assert_eq!(ask(Some("3")).await, Err(refused.to_owned()));
    handle.remove_tool("add");
    assert_eq!(yard.catalog().tools().len(), 0);
}
