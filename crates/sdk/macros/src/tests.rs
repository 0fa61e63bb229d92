//! The errors of the attribute: their messages and spans. The tests of the SDK cover accepted
//! functions.

use crate::function::expand;

/// Returns the message and the source text of its span.
fn expand_error(settings: &str, function: &str) -> (String, String) {
    let parse = |text: &str| text.parse::<proc_macro2::TokenStream>().unwrap();
    let error = expand(parse(settings), parse(function)).unwrap_err();
    (error.to_string(), error.span().source_text().unwrap())
}

fn check(settings: &str, function: &str, message: &str, at: &str) {
    assert_eq!(
        expand_error(settings, function),
        (message.to_owned(), at.to_owned()),
        "{settings} {function}"
    );
}

#[test]
fn an_error_in_the_function_has_the_span_of_its_cause() {
    check("", "fn f() -> Result<(), ToolError> {}", "a tool must be an `async fn`", "fn");
    check("", "async fn f<T>(p: T) -> R {}", "a tool cannot have generic parameters", "<T>");
    check(
        "",
        "async fn f(&self) -> R {}",
        "a tool must be a free function; use `Tool::new` for a tool with state",
        "&self",
    );
    check(
        "",
        "async fn f(p: P, ctx: &Context) -> R {}",
        "a tool takes its arguments by value; remove the `&`",
        "&Context",
    );
    check("", "async fn f(p: P) {}", "a tool must return `Result<_, ToolError>`", "f");
    check(
        "",
        "async fn f(ctx: sdk::Context, p: P) -> R {}",
        "the parameters must come before the `Context`",
        "sdk::Context",
    );
    check(
        "",
        "async fn f(a: A, b: B) -> R {}",
        "expected `Context`; put all parameters into one struct",
        "B",
    );
    check(
        "",
        "async fn f(a: A, ctx: Context, c: C) -> R {}",
        "a tool takes at most its parameters and a `Context`",
        "C",
    );
}

#[test]
fn an_error_in_the_settings_has_the_span_of_its_cause() {
    let function = "async fn f() -> R {}";
    check(
        "nmae = \"x\"",
        function,
        "unknown key `nmae`, expected one of: name, title, description, permissions, version, author, category, tags, \
         deprecates, custom, read_only, destructive, idempotent, open_world, hooks",
        "nmae",
    );
    check("title = 7", function, "`title` must be a string literal", "7");
    check("author = [\"a\"]", function, "`author` must be a single string, not a list", "[\"a\"]");
    check("tags = \"a\"", function, "`tags` must be a list of strings: [\"…\"]", "\"a\"");
    check("read_only = 1", function, "`read_only` must be `true` or `false`", "1");
    check("title = \"a\", title = \"b\"", function, "`title` is set twice", "title");
    check(
        "name = \"two words\"",
        function,
        "a tool name must have 1 to 128 of the characters A-Z a-z 0-9 _ - .",
        "\"two words\"",
    );
    check(
        "",
        "async fn größe() -> R {}",
        "a tool name must have 1 to 128 of the characters A-Z a-z 0-9 _ - .",
        "größe",
    );
}

#[test]
fn expands_to_the_builder_calls() {
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
            ::toolyard_sdk::__private::assert_params::<P>();
            ::toolyard_sdk::__private::assert_return_type::<R>();
            ::toolyard_sdk::Tool::new("f", f)
                .description("Adds.\n\nTwice.")
                .tags(["t"])
                .metadata("custom", ::toolyard_sdk::__private::object([("a", ::toolyard_sdk::__private::Value::from(1))]))
        }
    "#;
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(squeezed(&written.to_string()), squeezed(expect));
}
