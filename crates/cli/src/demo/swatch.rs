//! A tool that returns an image.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_sdk::{Image, ToolError, tool};

use super::png::{Color, square};

#[derive(Deserialize, JsonSchema)]
struct Swatch {
    /// The color, as `#rrggbb`.
    #[schemars(regex(pattern = r"^#[0-9a-fA-F]{6}$"))]
    color: String,
    /// The width and the height, in pixels.
    #[serde(default = "thirty_two")]
    #[schemars(range(min = 1, max = 256))]
    size: u16,
}

fn thirty_two() -> u16 {
    32
}

/// Draws a square of one color.
#[tool(title = "Draw swatch", category = "pictures", read_only = true, idempotent = true, open_world = false)]
pub(super) async fn draw_swatch(params: Swatch) -> Result<Image, ToolError> {
    let color: Option<Color> = params.color.strip_prefix('#').and_then(|digits| {
        let [_, red, green, blue] = u32::from_str_radix(digits, 16).ok()?.to_be_bytes();
        Some([red, green, blue])
    });
    let invalid = || ToolError::invalid("color", "is not a color in the form #rrggbb", &params.color);
    let color = color.ok_or_else(invalid)?;
    Ok(Image { data: square(color, params.size), mime_type: "image/png".to_owned() })
}
