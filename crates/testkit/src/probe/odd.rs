//! Tools whose JSON is unusual and must arrive exactly as written.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_hub::json;
use toolyard_sdk::{Context, Raw, Tool, ToolError, tool};

/// Unknown keys everywhere, an unusual order and spacing, and numbers that exceed the range of a
/// double.
pub const DEFINITION: &str = concat!(
    r#"{"x-first":{"z":1,"a":[ 9007199254740993,18446744073709551616,1e400,1.0 ]},"#,
    r#""inputSchema":{"x-vendor":{"b":1.0,"a":1e400},"$defs":{"big":{"type":"integer","#,
    r#""maximum":18446744073709551616,"x-n":9007199254740993}},"type":"object","#,
    r##""properties":{"z":{"$ref":"#/$defs/big"},"a":{"type":"string","x-y":null}},"##,
    r#""$schema":"https://json-schema.org/draft/2020-12/schema"},"execution":{"taskSupport":"forbidden"},"#,
    r#""description":"odd \u00e9 é \/ /","name":"odd","annotations":{"x-hint":1.0,"readOnlyHint":true},"#,
    r#""_meta":{"com.example/last":{"n":18446744073709551616}},"x-null":null,"x-empty":{}}"#,
);

/// The result of the tool, equally unusual.
pub const RESULT: &str = concat!(
    r#"{"x-first":[1e400, 1.0,{"b":1,"a":2}],"isError":false,"structuredContent":{"z":9007199254740993,"#,
    r#""a":18446744073709551616,"f":1.0,"x":1e400},"content":[{"x-block":{"n":9007199254740993},"#,
    r#""text":"odd \u00e9 é \/ /","type":"text"}],"_meta":{"com.example/b":1.0,"com.example/a":null},"#,
    r#""x-last":{"deep":[[[18446744073709551616]]]}}"#,
);

pub(super) fn tools() -> Vec<Tool> {
    let unusual = |_: Raw, _: Context| async { Ok(json::from_text(RESULT.to_owned())) };
    let echo = |arguments: Raw, _: Context| async move {
        Ok(json::from_text(format!(r#"{{"content":[],"structuredContent":{arguments}}}"#)))
    };
    vec![
        Tool::raw("odd", unusual).definition(&json::from_text(DEFINITION.to_owned())),
        Tool::raw("echo", echo).description("Gives back its arguments."),
        big(),
        crash(),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Size {
    /// How many bytes of text to give.
    bytes: usize,
}

/// Gives a long text.
#[tool]
async fn big(params: Size) -> Result<String, ToolError> {
    Ok("x".repeat(params.bytes))
}

/// Panics.
#[tool]
#[expect(clippy::panic, reason = "the purpose of this tool")]
async fn crash() -> Result<&'static str, ToolError> {
    panic!("intentional panic of the probe")
}
