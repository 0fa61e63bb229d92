//! The arguments of the attribute. Each key becomes a call of the `Tool` method with the same name.

use proc_macro2::{Ident, TokenStream};
use quote::quote;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, ExprArray, Lit, LitBool, LitStr, Result, Token, parenthesized};

const KEYS: &str = "name, title, description, permissions, version, author, category, tags, deprecates, custom, \
                    read_only, destructive, idempotent, open_world, hooks";

/// The settings of one tool.
pub(crate) struct ToolSettings {
    pub(crate) name: Option<LitStr>,
    pub(crate) description_source: DescriptionSource,
    /// Method calls in the order of the keys.
    pub(crate) calls: Vec<TokenStream>,
}

/// Where the description comes from.
#[derive(PartialEq, Eq)]
pub(crate) enum DescriptionSource {
    Attribute,
    DocComment,
}

impl Parse for ToolSettings {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut settings =
            Self { name: None, description_source: DescriptionSource::DocComment, calls: Vec::new() };
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            if seen.contains(&key) {
                return Err(Error::new(key.span(), format!("`{key}` is set twice")));
            }
            settings.set(&key, input)?;
            seen.push(key);
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(settings)
    }
}

impl ToolSettings {
    fn set(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        let call = match key.to_string().as_str() {
            "name" => {
                self.name = Some(validate_tool_name(parse_value(input)?)?);
                return Ok(());
            }
            "description" => {
                self.description_source = DescriptionSource::Attribute;
                let text = parse_text(key, input)?;
                quote!(.description(#text))
            }
            "title" | "version" | "author" | "category" | "deprecates" => {
                let text = parse_text(key, input)?;
                quote!(.#key(#text))
            }
            "permissions" | "tags" => {
                let list = parse_list(key, input)?;
                quote!(.#key(#list))
            }
            "read_only" | "destructive" | "idempotent" | "open_world" => {
                let flag: LitBool = parse_value(input).map_err(|error| {
                    Error::new(error.span(), format!("`{key}` must be `true` or `false`"))
                })?;
                quote!(.#key(#flag))
            }
            "hooks" => {
                let hooks: Expr = parse_value(input)?;
                quote!(.hooks(::std::sync::Arc::new(#hooks)))
            }
            "custom" => parse_custom(input)?,
            _ => {
                return Err(Error::new(key.span(), format!("unknown key `{key}`, expected one of: {KEYS}")));
            }
        };
        self.calls.push(call);
        Ok(())
    }
}

fn parse_value<T: Parse>(input: ParseStream<'_>) -> Result<T> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Parses a string literal or an expression that evaluates to a string, such as `include_str!`.
fn parse_text(key: &Ident, input: ParseStream<'_>) -> Result<Expr> {
    let text: Expr = parse_value(input)?;
    match &text {
        Expr::Lit(literal) if !matches!(literal.lit, Lit::Str(_)) => {
            Err(Error::new_spanned(literal, format!("`{key}` must be a string literal")))
        }
        Expr::Array(array) => {
            Err(Error::new_spanned(array, format!("`{key}` must be a single string, not a list")))
        }
        _ => Ok(text),
    }
}

fn parse_list(key: &Ident, input: ParseStream<'_>) -> Result<ExprArray> {
    match parse_value(input)? {
        Expr::Array(list) => Ok(list),
        other => Err(Error::new_spanned(other, format!("`{key}` must be a list of strings: [\"…\"]"))),
    }
}

fn parse_custom(input: ParseStream<'_>) -> Result<TokenStream> {
    struct Member(Ident, Expr);
    impl Parse for Member {
        fn parse(input: ParseStream<'_>) -> Result<Self> {
            Ok(Self(input.parse()?, parse_value(input)?))
        }
    }
    let inside;
    parenthesized!(inside in input);
    let members = Punctuated::<Member, Token![,]>::parse_terminated(&inside)?;
    let members = members.iter().map(|Member(key, value)| {
        let key = key.to_string();
        quote!((#key, ::toolyard_sdk::__private::Value::from(#value)))
    });
    Ok(quote!(.metadata("custom", ::toolyard_sdk::__private::object([#(#members),*]))))
}

/// Validates the name by the rule of the protocol.
pub(crate) fn validate_tool_name(name: LitStr) -> Result<LitStr> {
    let text = name.value();
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if text.is_empty() || text.len() > 128 || !text.chars().all(fine) {
        return Err(Error::new(
            name.span(),
            "a tool name must have 1 to 128 of the characters A-Z a-z 0-9 _ - .",
        ));
    }
    Ok(name)
}
