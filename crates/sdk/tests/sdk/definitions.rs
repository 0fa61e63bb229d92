//! Definitions as clients see them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use toolyard_hub::json as raw;
use toolyard_sdk::yard::Source;
use toolyard_sdk::{Context, Icon, Json, NativeSource, Raw, Tool, ToolError, Yard, tool};

#[derive(Deserialize, JsonSchema)]
struct Shout {
    /// What to shout.
    text: String,
}

/// Says it loudly.
///
/// Twice if need be.
#[tool(
    name = "shout.loud",
    title = "Shout",
    permissions = ["noise"],
    version = "2.1.0",
    author = "Ada",
    category = "text",
    tags = ["loud", "text"],
    deprecates = "1.0.0",
    custom(pricing = "premium", sla = "99.9%", stars = 5),
    read_only = true,
    destructive = false,
    idempotent = true,
    open_world = false,
)]
async fn shout(params: Shout) -> Result<Json<String>, ToolError> {
    Ok(Json(params.text.to_uppercase()))
}

#[test]
fn a_definition_has_its_members_in_the_order_of_the_protocol() {
    let metadata = r#"{"version":"2.1.0","author":"Ada","category":"text","tags":["loud","text"],"deprecates":"1.0.0","custom":{"pricing":"premium","sla":"99.9%","stars":5}}"#;
    let expect = [
        r#"{"name":"shout.loud","title":"Shout","description":"Says it loudly.\n\nTwice if need be.","#,
        r#""inputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"text":{"type":"string","description":"What to shout."}},"required":["text"]},"#,
        r#""outputSchema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"result":{"type":"string"}},"required":["result"]},"#,
        r#""annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},"#,
        &format!(r#""_meta":{{"dev.toolyard/metadata":{metadata}}}}}"#),
    ];
    assert_eq!(shout().to_definition().get(), expect.concat());

    let native = NativeSource::new("demo").tool(shout());
    let offer = native.offer();
    assert_eq!(offer.tools[0].permissions, ["noise"]);
    assert_eq!(serde_json::to_string(&offer.tools[0].metadata).unwrap(), metadata);
}

#[test]
fn members_that_are_not_set_are_omitted() {
    let tool = Tool::new("plain", || async { Ok("text") });
    assert_eq!(
        tool.to_definition().get(),
        r#"{"name":"plain","inputSchema":{"type":"object","properties":{}}}"#
    );
}

#[test]
fn every_member_can_be_overridden_byte_for_byte() {
    let schema = r#"{ "type":"object", "properties": {"big": {"const": 9007199254740993123}, "tiny": {"minimum": 1e400}} }"#;
    let tool = Tool::new("odd", || async { Ok(()) })
        .description("Odd.")
        .icon(Icon::new("https://example.com/i.png").mime_type("image/png").size("48x48"))
        .input_schema(&raw::from_text(schema.to_owned()))
        .output_schema(&raw::from_text(r#"{"z":1,  "type":"object"}"#.to_owned()))
        .definition_member("title", "Set by hand")
        .definition_member("execution", &raw::from_text(r#"{"taskSupport" : "optional"}"#.to_owned()));
    let expect = [
        r#"{"name":"odd","description":"Odd.","inputSchema":"#,
        schema,
        r#","outputSchema":{"z":1,  "type":"object"},"#,
        r#""icons":[{"src":"https://example.com/i.png","mimeType":"image/png","sizes":["48x48"]}],"#,
        r#""title":"Set by hand","execution":{"taskSupport" : "optional"}}"#,
    ];
    assert_eq!(tool.to_definition().get(), expect.concat());
}

#[tokio::test]
async fn a_custom_definition_is_sent_byte_for_byte() {
    let text = r#"{"unknown":[1.0, 2e5,{"b":1,"a":2}], "inputSchema":{"required":[],"type":"object"}, "name":"by-hand","x":9007199254740993}"#;
    let echo = |arguments: Raw, _: Context| async move {
        Ok(raw::from_text(format!(r#"{{"odd":{}}}"#, arguments.get())))
    };
    let tool = Tool::raw("otherwise", echo).definition(&raw::from_text(text.to_owned()));
    assert_eq!(tool.name(), "by-hand");
    let yard = Yard::with_sources([NativeSource::new("n").tool(tool.clone()).into_source()]);
    assert_eq!(yard.catalog().tools()[0].definition.get(), text);

    // Arguments and result are unchanged as well.
    let arguments: Box<serde_json::value::RawValue> =
        raw::from_text(r#"{"n" : 9007199254740993}"#.to_owned());
    let report = toolyard_sdk::testing::call(tool, arguments).await;
    assert_eq!(report.outcome.unwrap().body.get(), r#"{"odd":{"n" : 9007199254740993}}"#);
}

#[test]
fn the_description_of_the_attribute_overrides_the_doc_comment() {
    /// Of the doc comment.
    #[tool(description = concat!("Of the ", "attribute."))]
    async fn described() -> Result<(), ToolError> {
        Ok(())
    }
    let definition: Value = serde_json::from_str(described().to_definition().get()).unwrap();
    assert_eq!(definition["description"], json!("Of the attribute."));
}
