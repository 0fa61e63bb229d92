//! Parses JSON into a tree. Comments and trailing commas are allowed. If a key is present more than
//! once, the last one applies.

use jsonc_parser::ast::{Object, Value as Ast};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{ConfigKey, ConfigNode, ConfigSyntaxError, ConfigValue, Span};

pub(crate) fn parse(text: &str) -> Result<ConfigNode, ConfigSyntaxError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| {
        ConfigSyntaxError { span: span(error.range()), message: lowercase(&error.kind().to_string()) }
    })?;
    match parsed.value {
        Some(value) => Ok(node(&value)),
        None => Err(ConfigSyntaxError {
            span: Span { start: 0, end: 0 },
            message: "the file is empty".to_owned(),
        }),
    }
}

fn node(value: &Ast<'_>) -> ConfigNode {
    let span = span(value.range());
    let value = match value {
        Ast::StringLit(text) => ConfigValue::Text(text.value.to_string()),
        Ast::NumberLit(number) => self::number(number.value),
        Ast::BooleanLit(flag) => ConfigValue::Bool(flag.value),
        Ast::NullKeyword(_) => ConfigValue::Null,
        Ast::Array(items) => ConfigValue::List(items.elements.iter().map(node).collect()),
        Ast::Object(object) => table(object),
    };
    ConfigNode { span, value }
}

fn table(object: &Object<'_>) -> ConfigValue {
    let mut entries: Vec<(ConfigKey, ConfigNode)> = Vec::with_capacity(object.properties.len());
    for property in &object.properties {
        let key = ConfigKey { name: property.name.as_str().to_owned(), span: span(property.name.range()) };
        entries.retain(|(earlier, _)| earlier.name != key.name);
        entries.push((key, node(&property.value)));
    }
    ConfigValue::Table(entries)
}

fn number(text: &str) -> ConfigValue {
    text.parse()
        .map(ConfigValue::Integer)
        .or_else(|_| text.parse().map(ConfigValue::Number))
        .unwrap_or(ConfigValue::Null)
}

fn span(range: Range) -> Span {
    Span { start: range.start, end: range.end }
}

fn lowercase(message: &str) -> String {
    let mut letters = message.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}
