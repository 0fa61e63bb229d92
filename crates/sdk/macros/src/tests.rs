//! What the attribute refuses, in which words, and where it points. What it accepts is tested in the sdk.

use crate::function::expand;

/// The message and the text that it points at.
fn refusal(settings: &str, function: &str) -> (String, String) {
    let parse = |text: &str| text.parse::<proc_macro2::TokenStream>().unwrap();
    let error = expand(parse(settings), parse(function)).unwrap_err();
    (error.to_string(), error.span().source_text().unwrap())
}

fn check(settings: &str, function: &str, message: &str, at: &str) {
    assert_eq!(refusal(settings, function), (message.to_owned(), at.to_owned()), "{settings} {function}");
}

#[test]
fn points_at_what_is_wrong_with_the_function() {
    check("", "fn f() -> Result<(), ToolError> {}", "a tool is an async function: write `async fn`", "fn");
    check("", "async fn f<T>(p: T) -> R {}", "a tool has no generic parameters", "<T>");
    check(
        "",
        "async fn f(&self) -> R {}",
        "a tool is a free function; for one that holds state, see `Tool::new`",
        "&self",
    );
    check(
        "",
        "async fn f(p: P, ctx: &Context) -> R {}",
        "a tool owns what it gets: take it by value, without `&`",
        "&Context",
    );
    check("", "async fn f(p: P) {}", "a tool returns `Result<_, ToolError>`", "f");
    check(
        "",
        "async fn f(ctx: sdk::Context, p: P) -> R {}",
        "the parameters come first, then the `Context`",
        "sdk::Context",
    );
    check(
        "",
        "async fn f(a: A, b: B) -> R {}",
        "this can only be the `Context`; put all parameters into one struct",
        "B",
    );
    check(
        "",
        "async fn f(a: A, ctx: Context, c: C) -> R {}",
        "a tool takes its parameters and a `Context`, and nothing else",
        "C",
    );
}

#[test]
fn points_at_what_is_wrong_with_the_settings() {
    let function = "async fn f() -> R {}";
    check(
        "nmae = \"x\"",
        function,
        "unknown key `nmae`; there are name, title, description, permissions, version, author, category, tags, \
         deprecates, custom, read_only, destructive, idempotent, open_world, hooks",
        "nmae",
    );
    check("title = 7", function, "`title` is a text in quotes", "7");
    check("author = [\"a\"]", function, "`author` is one text, not a list", "[\"a\"]");
    check("tags = \"a\"", function, "`tags` is a list of texts: [\"…\"]", "\"a\"");
    check("read_only = 1", function, "`read_only` is `true` or `false`", "1");
    check("title = \"a\", title = \"b\"", function, "`title` is set twice", "title");
    check(
        "name = \"two words\"",
        function,
        "a name is 1 to 128 of the characters A-Z a-z 0-9 _ - .",
        "\"two words\"",
    );
    check("", "async fn größe() -> R {}", "a name is 1 to 128 of the characters A-Z a-z 0-9 _ - .", "größe");
}

#[test]
fn writes_what_one_would_write_by_hand() {
    let function = "/// Adds.\n///\n/// Twice.\n#[cfg(unix)] #[inline] pub async fn f(p: P) -> R { p }";
    let settings = "tags = [\"t\"], custom(a = 1)";
    let written = expand(settings.parse().unwrap(), function.parse().unwrap()).unwrap();
    let expect = r#"
        #[doc = " Adds."]
        #[doc = ""]
        #[doc = " Twice."]
        #[cfg(unix)]
        pub fn f() -> ::toolyard_sdk::Tool {
            #[inline]
            async fn f(p: P) -> R { p }
            ::toolyard_sdk::macros::can_be_params::<P>();
            ::toolyard_sdk::macros::can_be_returned::<R>();
            ::toolyard_sdk::Tool::new("f", f)
                .description("Adds.\n\nTwice.")
                .tags(["t"])
                .metadata("custom", ::toolyard_sdk::macros::object([("a", ::toolyard_sdk::macros::Value::from(1))]))
        }
    "#;
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(squeezed(&written.to_string()), squeezed(expect));
}
