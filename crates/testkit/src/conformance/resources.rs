//! The resources of the suite.

use serde_json::json;
use toolyard_sdk::{Context, NativeSource, Resource, ResourceTemplate, ToolError, Values};

use super::PNG;

pub(super) fn register(native: NativeSource) -> NativeSource {
    native
        .resource(
            Resource::text(
                "test://static-text",
                "Static text",
                "This is the content of the static text resource.",
            )
            .description("A text that does not change.")
            .mime_type("text/plain"),
        )
        .resource(
            Resource::binary("test://static-binary", "Static binary", PNG)
                .description("A picture that does not change.")
                .mime_type("image/png"),
        )
        .resource(
            Resource::text("test://watched-resource", "Watched resource", "Watched resource content")
                .description("A text to subscribe to.")
                .mime_type("text/plain"),
        )
        .template(
            ResourceTemplate::new("test://template/{id}/data", "Template", data)
                .description("Data for any id.")
                .mime_type("application/json"),
        )
}

async fn data(values: Values, _: Context) -> Result<String, ToolError> {
    let id = values.text("id");
    Ok(json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string())
}
