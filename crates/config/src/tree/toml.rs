//! Parses TOML into a tree. The syntax errors of a text are reported together, one for each line.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeArray, DeFloat, DeInteger, DeTable, DeValue};

use super::{ConfigKey, ConfigNode, ConfigSyntaxError, ConfigValue, Span};

/// Maximum number of syntax errors to report. Further ones are mostly consequences of the first
/// ones.
const MAX_ERRORS: usize = 10;

pub(crate) fn parse(text: &str) -> Result<ConfigNode, Vec<ConfigSyntaxError>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let span = table.span();
        return Ok(ConfigNode { span, value: self::table(table.into_inner()) });
    }
    let mut reported: Vec<ConfigSyntaxError> = errors
        .into_iter()
        .take(10 * MAX_ERRORS)
        .map(|error| ConfigSyntaxError {
            span: error.span().unwrap_or(Span { start: 0, end: 0 }),
            message: error.message().to_owned(),
        })
        .collect();
    // After its first error, the parser often misreads the rest of the line. It reports all errors
    // of one kind before those of another.
    reported.sort_by_cached_key(|error| line_of(text, error.span.start));
    reported.dedup_by_key(|error| line_of(text, error.span.start));
    reported.truncate(MAX_ERRORS);
    Err(reported)
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|&byte| byte == b'\n').count()
}

fn table(table: DeTable<'_>) -> ConfigValue {
    let entry = |(key, value): (Spanned<Cow<'_, str>>, Spanned<DeValue<'_>>)| {
        let key = ConfigKey { span: key.span(), name: key.into_inner().into_owned() };
        (key, node(value))
    };
    let mut entries: Vec<(ConfigKey, ConfigNode)> = table.into_iter().map(entry).collect();
    // The parser sorts keys by name. Restore the order in the file.
    entries.sort_by_key(|(key, _)| key.span.start);
    ConfigValue::Table(entries)
}

fn list(items: DeArray<'_>) -> ConfigValue {
    ConfigValue::List(items.into_iter().map(node).collect())
}

fn node(value: Spanned<DeValue<'_>>) -> ConfigNode {
    let span = value.span();
    let value = match value.into_inner() {
        DeValue::String(text) => ConfigValue::Text(text.into_owned()),
        DeValue::Integer(number) => integer(&number),
        DeValue::Float(number) => self::number(&number),
        DeValue::Boolean(flag) => ConfigValue::Bool(flag),
        DeValue::Datetime(time) => ConfigValue::Text(time.to_string()),
        DeValue::Array(items) => list(items),
        DeValue::Table(entries) => table(entries),
    };
    ConfigNode { span, value }
}

fn integer(number: &DeInteger<'_>) -> ConfigValue {
    // An integer that does not fit is out of range for every key, and is refused like a string.
    i64::from_str_radix(number.as_str(), number.radix())
        .map_or_else(|_| ConfigValue::Text(number.as_str().to_owned()), ConfigValue::Integer)
}

fn number(number: &DeFloat<'_>) -> ConfigValue {
    number
        .as_str()
        .parse()
        .map_or_else(|_| ConfigValue::Text(number.as_str().to_owned()), ConfigValue::Number)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reports_one_error_for_each_line() {
        let broken = "args = [\"-y\"\nfoo = 1\n[servers.a]\nurl = \nname = x y z\n";
        let errors = parse(broken).err().unwrap();
        let lines: Vec<usize> = errors.iter().map(|error| super::line_of(broken, error.span.start)).collect();
        assert_eq!(lines, [1, 2, 3, 4]);
    }
}
