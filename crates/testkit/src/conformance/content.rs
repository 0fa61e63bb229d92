//! Tools that answer with every kind of content.

use serde_json::json;
use toolyard_sdk::{Audio, Content, Contents, Image, Tool, ToolError, tool};

use super::{PNG, WAV};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        test_simple_text(),
        test_image_content(),
        test_audio_content(),
        test_embedded_resource(),
        test_multiple_content_types(),
        test_error_handling(),
    ]
}

/// Answers with a text.
#[tool]
async fn test_simple_text() -> Result<&'static str, ToolError> {
    Ok("This is a simple text response for testing.")
}

/// Answers with a picture.
#[tool]
async fn test_image_content() -> Result<Image, ToolError> {
    Ok(Image { data: PNG.to_vec(), mime_type: "image/png".to_owned() })
}

/// Answers with a sound.
#[tool]
async fn test_audio_content() -> Result<Audio, ToolError> {
    Ok(Audio { data: WAV.to_vec(), mime_type: "audio/wav".to_owned() })
}

/// Answers with a resource and its contents.
#[tool]
async fn test_embedded_resource() -> Result<Content, ToolError> {
    let contents = Contents::text("This is an embedded resource content.").mime_type("text/plain");
    Ok(Content::resource("test://embedded-resource", contents))
}

/// Answers with a text, a picture and a resource.
#[tool]
async fn test_multiple_content_types() -> Result<Vec<Content>, ToolError> {
    let data = json!({"test": "data", "value": 123}).to_string();
    Ok(vec![
        Content::text("Multiple content types test:"),
        Content::image(PNG, "image/png"),
        Content::resource(
            "test://mixed-content-resource",
            Contents::text(data).mime_type("application/json"),
        ),
    ])
}

/// Answers that it failed.
#[tool]
async fn test_error_handling() -> Result<(), ToolError> {
    Err(ToolError::failed("This tool intentionally returns an error for testing"))
}
