//! The attribute macro of `toolyard-sdk`. It generates the code you would write by hand with
//! `toolyard_sdk::Tool`. Use it through `toolyard_sdk::tool`.

mod function;
mod settings;

use proc_macro::TokenStream;

/// Creates a tool from an async function.
///
/// The function takes its parameters (a type with `Deserialize` and `JsonSchema`), a `Context`,
/// both in this order, or nothing. It returns `Result<O, ToolError>`. The attribute replaces it
/// with a function without parameters that returns the `Tool`.
///
/// ```
/// use toolyard_sdk::{Context, NativeSource, ToolError, tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Search {
///     /// The words to search for.
///     query: String,
/// }
///
/// /// Searches the archive.
/// #[tool(title = "Search", tags = ["archive"], read_only = true)]
/// async fn search(params: Search, ctx: Context) -> Result<String, ToolError> {
///     ctx.report_progress(50, "searching");
///     Ok(format!("no results for {}", params.query))
/// }
///
/// let source = NativeSource::new("archive").tool(search());
/// ```
///
/// | Key | Sets |
/// |---|---|
/// | `name = "…"` | The name. Default: the name of the function |
/// | `title = "…"` | The display name |
/// | `description = "…"` | The description. Default: the doc comment |
/// | `permissions = ["…"]` | The permissions a caller needs, all of them |
/// | `version`, `author`, `category`, `deprecates` `= "…"` and `tags = ["…"]` | Metadata |
/// | `custom(key = value, …)` | Metadata of your own |
/// | `read_only`, `destructive`, `idempotent`, `open_world` `= true` or `false` | Annotations |
/// | `hooks = expression` | Hooks that run around each call |
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, function: TokenStream) -> TokenStream {
    function::expand(settings.into(), function.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

#[cfg(test)]
mod tests;
