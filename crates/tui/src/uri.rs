//! Expands URI templates (RFC 6570). The hub matches URIs against templates.

/// Expands a template with these values; variables without a value are omitted.
pub(crate) fn expand(template: &str, values: &[(String, String)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((expression, behind)) = after.split_once('}') else { break };
        out.push_str(before);
        out.push_str(&expand_expression(expression, values));
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// Returns the variables that are required: those outside of a query.
pub(crate) fn required_variables(template: &str) -> Vec<String> {
    let expressions =
        template.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(inside, _)| inside);
    let needed = expressions.filter(|inside| !inside.starts_with(['?', '&', '#', ';']));
    needed.flat_map(|inside| parse_expression(inside).1).map(|(name, _)| name.to_owned()).collect()
}

/// Parses an expression into its operator and its variables, each with the maximum number of
/// characters to use.
fn parse_expression(expression: &str) -> (Option<char>, Vec<(&str, usize)>) {
    let operator = expression.chars().next().filter(|c| "+#./;?&".contains(*c));
    let list = if operator.is_some() { &expression[1..] } else { expression };
    let name = |part: &'_ str| -> (usize, usize) {
        let bare = part.trim_end_matches('*');
        match bare.split_once(':') {
            Some((name, most)) => (name.len(), most.parse().unwrap_or(usize::MAX)),
            None => (bare.len(), usize::MAX),
        }
    };
    let cut = |part| {
        let (end, most) = name(part);
        (&part[..end], most)
    };
    (operator, list.split(',').map(cut).collect())
}

fn expand_expression(expression: &str, values: &[(String, String)]) -> String {
    let (operator, names) = parse_expression(expression);
    let (first, between, named, unencoded) = match operator {
        Some('+') => ("", ",", false, RESERVED),
        Some('#') => ("#", ",", false, RESERVED),
        Some('.') => (".", ".", false, ""),
        Some('/') => ("/", "/", false, ""),
        Some(';') => (";", ";", true, ""),
        Some('?') => ("?", "&", true, ""),
        Some('&') => ("&", "&", true, ""),
        _ => ("", ",", false, ""),
    };
    let mut parts = Vec::new();
    for (name, most) in names {
        let Some((_, value)) = values.iter().find(|(known, _)| known == name) else { continue };
        let value: String = value.chars().take(most).collect();
        let value = encode(&value, unencoded);
        parts.push(if named { format!("{name}={value}") } else { value });
    }
    if parts.is_empty() { String::new() } else { format!("{first}{}", parts.join(between)) }
}

/// The characters that `+` and `#` do not encode, in addition to letters and digits.
const RESERVED: &str = ":/?#[]@!$&'()*+,;=";

fn encode(text: &str, unencoded: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if plain || unencoded.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{expand, required_variables};

    #[test]
    fn templates_are_filled_in_as_the_standard_says() {
        let values: Vec<(String, String)> = [("a", "x y"), ("path", "b/c"), ("q", "ü"), ("v", "abcdef")]
            .map(|(n, v)| (n.into(), v.into()))
            .into();
        for (template, expected) in [
            ("r://{a}", "r://x%20y"),
            ("r://{path}", "r://b%2Fc"),
            ("r://{+path}/end", "r://b/c/end"),
            ("r://h{/a,v}", "r://h/x%20y/abcdef"),
            ("r://h{?q,none}", "r://h?q=%C3%BC"),
            ("r://h?z=1{&q}", "r://h?z=1&q=%C3%BC"),
            ("r://h{;a}", "r://h;a=x%20y"),
            ("r://h{#path}", "r://h#b/c"),
            ("r://{v:3}", "r://abc"),
            ("r://{none}", "r://"),
            ("r://{open", "r://{open"),
        ] {
            assert_eq!(expand(template, &values), expected, "{template}");
        }
        assert_eq!(required_variables("a://{x}/{+y}{?q}{/z*}"), ["x", "y", "z"]);
    }
}
