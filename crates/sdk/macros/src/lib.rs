//! The attribute that makes a tool out of a function. It writes what one would write by hand with
//! `toolyard_sdk::Tool`; nothing can be done with it that cannot be done without it.

mod function;
mod settings;

use proc_macro::TokenStream;

/// Makes a tool out of an async function.
///
/// The function may take its parameters (anything that is `Deserialize` and `JsonSchema`), a `Context`, both in
/// this order, or nothing, and returns `Result<O, ToolError>`. It becomes a function of no arguments that returns
/// the `Tool`, so that `Native::new("demo").tool(add())` registers `async fn add(…)`.
///
/// | key | what it sets |
/// |---|---|
/// | `name = "…"` | the name; without it, that of the function |
/// | `title = "…"` | a name for people |
/// | `description = "…"` | what it does; without it, the doc comment |
/// | `permissions = ["…"]` | what a caller needs, all of it |
/// | `version`, `author`, `category`, `deprecates` `= "…"` and `tags = ["…"]` | metadata |
/// | `custom(key = value, …)` | metadata of your own |
/// | `read_only`, `destructive`, `idempotent`, `open_world` `= true` or `false` | annotations |
/// | `hooks = expression` | code to run around each call |
#[proc_macro_attribute]
pub fn tool(settings: TokenStream, function: TokenStream) -> TokenStream {
    function::expand(settings.into(), function.into()).unwrap_or_else(|error| error.to_compile_error()).into()
}

#[cfg(test)]
mod tests;
