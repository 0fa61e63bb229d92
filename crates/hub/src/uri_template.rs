//! Matching of URIs against URI templates (RFC 6570): whether a URI can be an expansion of a
//! template, and with which values.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Templates and URIs are untrusted. Longer ones do not match.
const LONGEST: usize = 4096;
/// Maximum number of variables. Hand-written templates have fewer.
const MOST_VALUES: usize = 64;

/// A parsed template.
#[derive(Debug, Clone)]
pub struct UriTemplate {
    pieces: Result<Vec<TemplatePart>, &'static str>,
    /// The literal text that every expansion starts with.
    prefix: String,
    literal_bytes: usize,
    catch_alls: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TemplatePart {
    Literal(String),
    Value {
        name: String,
        span: VariableSpan,
    },
    /// `{?a,b}` and `{&a,b}`: any of the names, in any order, or none.
    Query(Vec<String>),
}

/// How far one value may extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum VariableSpan {
    Segment,
    /// `{+v}` and `{#v}` may span path segments.
    Anything,
}

impl UriTemplate {
    /// Parses a template. A template that is too long matches nothing: see [`Self::problem`].
    pub fn parse(template: &str) -> Self {
        if template.len() > LONGEST {
            let pieces = Err("it is too long to match");
            return Self { pieces, prefix: String::new(), literal_bytes: 0, catch_alls: 0 };
        }
        let pieces = parse_parts(template);
        let prefix = pieces.iter().map_while(TemplatePart::literal).collect();
        let literal_bytes = pieces.iter().filter_map(TemplatePart::literal).map(str::len).sum();
        let is_catch_all =
            |piece: &&TemplatePart| matches!(piece, TemplatePart::Value { span: VariableSpan::Anything, .. });
        let catch_alls = pieces.iter().filter(is_catch_all).count();
        let values = pieces.iter().map(|piece| piece.names().len()).sum::<usize>();
        let pieces =
            if values > MOST_VALUES { Err("it has too many variables to match") } else { Ok(pieces) };
        Self { pieces, prefix, literal_bytes, catch_alls }
    }

    /// The literal text that every expansion starts with. Empty if the template starts with a
    /// variable.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The total length of the literal text.
    pub fn literal_bytes(&self) -> usize {
        self.literal_bytes
    }

    /// The number of variables that can match any text, including slashes.
    pub fn catch_alls(&self) -> usize {
        self.catch_alls
    }

    /// Returns whether this URI can be an expansion of the template.
    pub fn matches(&self, uri: &str) -> bool {
        uri.starts_with(&self.prefix) && self.extract_values(uri).is_some()
    }

    /// Why the template matches no URI, if that is the case.
    pub fn problem(&self) -> Option<&'static str> {
        self.pieces.as_ref().err().copied()
    }

    /// Returns the percent-decoded values that expand the template to this URI, or `None` if there
    /// are none.
    pub fn extract_values(&self, uri: &str) -> Option<Vec<(String, String)>> {
        if uri.len() > LONGEST {
            return None;
        }
        match_parts(self.pieces.as_ref().ok()?, uri)
    }

    /// The names of the template's variables, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.pieces.iter().flatten().flat_map(TemplatePart::names).map(String::as_str)
    }
}

impl TemplatePart {
    fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(text) => Some(text),
            Self::Value { .. } | Self::Query(_) => None,
        }
    }

    fn names(&self) -> &[String] {
        match self {
            Self::Literal(_) => &[],
            Self::Value { name, .. } => std::slice::from_ref(name),
            Self::Query(names) => names,
        }
    }
}

fn parse_parts(template: &str) -> Vec<TemplatePart> {
    let mut pieces: Vec<TemplatePart> = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((expression, behind)) = after.split_once('}') else { break };
        if !before.is_empty() {
            pieces.push(TemplatePart::Literal(before.to_owned()));
        }
        for piece in parse_expression(expression) {
            // `{?a}{&b}` is one query.
            match (pieces.last_mut(), piece) {
                (Some(TemplatePart::Query(known)), TemplatePart::Query(more)) => known.extend(more),
                (_, piece) => pieces.push(piece),
            }
        }
        rest = behind;
    }
    if !rest.is_empty() {
        pieces.push(TemplatePart::Literal(rest.to_owned()));
    }
    pieces
}

fn parse_expression(expression: &str) -> Vec<TemplatePart> {
    let (operator, list) = match expression.chars().next() {
        Some(c @ ('+' | '#' | '.' | '/' | ';' | '?' | '&')) => (Some(c), &expression[1..]),
        _ => (None, expression),
    };
    let plain = |name: &str| {
        let name = name.trim_end_matches('*');
        name.split_once(':').map_or(name, |(name, _)| name).to_owned()
    };
    let names: Vec<String> = list.split(',').map(plain).collect();
    if matches!(operator, Some('?' | '&')) {
        return vec![TemplatePart::Query(names)];
    }
    let span =
        if matches!(operator, Some('+' | '#')) { VariableSpan::Anything } else { VariableSpan::Segment };
    let (first, between) = match operator {
        Some('#') => (Some("#"), ","),
        Some('.') => (Some("."), "."),
        Some('/') => (Some("/"), "/"),
        Some(';') => (Some(";"), ";"),
        _ => (None, ","),
    };
    let mut pieces = Vec::new();
    for (at, name) in names.into_iter().enumerate() {
        match (at, first) {
            (0, Some(first)) => pieces.push(TemplatePart::Literal(first.to_owned())),
            (0, None) => {}
            _ => pieces.push(TemplatePart::Literal(between.to_owned())),
        }
        if operator == Some(';') {
            pieces.push(TemplatePart::Literal(format!("{name}=")));
        }
        pieces.push(TemplatePart::Value { name, span });
    }
    pieces
}

/// Finds the shortest value of each variable for which the rest matches. The possible positions are
/// computed from the end, once per part and position, so that matching never takes more than the
/// product of both lengths.
fn match_parts(pieces: &[TemplatePart], uri: &str) -> Option<Vec<(String, String)>> {
    let mut steps: Vec<Vec<Option<usize>>> = Vec::with_capacity(pieces.len());
    let mut fits: Vec<bool> = (0..=uri.len()).map(|at| at == uri.len()).collect();
    for (behind, piece) in pieces.iter().rev().enumerate() {
        let step = match piece {
            TemplatePart::Literal(text) => literal_ends(text, uri, &fits),
            TemplatePart::Value { span, .. } => variable_ends(*span, uri, &fits),
            TemplatePart::Query(names) if behind == 0 => query_ends(names, uri),
            TemplatePart::Query(_) => fits.iter().enumerate().map(|(at, fits)| fits.then_some(at)).collect(),
        };
        fits = step.iter().map(Option::is_some).collect();
        steps.push(step);
    }
    let (mut values, mut at) = (Vec::new(), 0);
    for (piece, step) in pieces.iter().zip(steps.iter().rev()) {
        let next = step[at]?;
        let text = &uri[at..next];
        match piece {
            TemplatePart::Literal(_) => {}
            TemplatePart::Value { name, .. } => values.push((name.clone(), decode(text))),
            TemplatePart::Query(_) => {
                values.extend(pairs(text).map(|(name, value)| (name.to_owned(), decode(value))))
            }
        }
        at = next;
    }
    (at == uri.len()).then_some(values)
}

/// For every position in the URI: where the part ends if it starts there, provided that the rest
/// matches.
fn literal_ends(text: &str, uri: &str, fits: &[bool]) -> Vec<Option<usize>> {
    let end = |at: usize| (uri.as_bytes()[at..].starts_with(text.as_bytes())).then_some(at + text.len());
    (0..=uri.len()).map(|at| end(at).filter(|end| fits[*end])).collect()
}

fn variable_ends(span: VariableSpan, uri: &str, fits: &[bool]) -> Vec<Option<usize>> {
    let mut ends = vec![None; uri.len() + 1];
    let mut nearest = None;
    for at in (0..uri.len()).rev() {
        if fits[at + 1] && uri.is_char_boundary(at + 1) {
            nearest = Some(at + 1);
        }
        if span == VariableSpan::Segment && matches!(uri.as_bytes()[at], b'/' | b'?' | b'#') {
            nearest = None;
        }
        ends[at] = nearest;
    }
    ends
}

/// The query is the last part: its pairs extend to the end of the URI, or there are none.
fn query_ends(names: &[String], uri: &str) -> Vec<Option<usize>> {
    let mut ends = vec![None; uri.len() + 1];
    ends[uri.len()] = Some(uri.len());
    let mut next_pair = uri.len();
    for at in (0..uri.len()).rev() {
        let byte = uri.as_bytes()[at];
        if matches!(byte, b'?' | b'&') {
            let known = pairs(&uri[at..next_pair]).all(|(name, _)| names.iter().any(|known| known == name));
            ends[at] = ends[next_pair].filter(|_| known);
        }
        if byte == b'&' {
            next_pair = at;
        }
    }
    ends
}

/// Splits a query with its leading `?` or `&` into pairs.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let list = query.strip_prefix(['?', '&']).map(|list| list.split('&'));
    list.into_iter().flatten().map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

fn decode(text: &str) -> String {
    percent_decode_str(text).decode_utf8().map_or_else(|_| text.to_owned(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::UriTemplate;

    fn check(template: &str, uri: &str, expect: Option<&[(&str, &str)]>) {
        let own =
            |list: &[(&str, &str)]| list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let expect: Option<Vec<(String, String)>> = expect.map(own);
        assert_eq!(UriTemplate::parse(template).extract_values(uri), expect, "{template} {uri}");
    }

    #[test]
    fn reads_values_back_out_of_a_uri() {
        check("demo://squares/{n}", "demo://squares/12", Some(&[("n", "12")]));
        check("demo://squares/{n}", "demo://squares/12/3", None);
        check("demo://squares/{n}", "demo://squares/", None);
        check("t://{id}/data", "t://a%20b/data", Some(&[("id", "a b")]));
        check("file:///{+path}", "file:///a/b.txt", Some(&[("path", "a/b.txt")]));
        check("x://{a}-{b}", "x://1-2-3", Some(&[("a", "1"), ("b", "2-3")]));
        check("s://find{?q,page}", "s://find?page=2&q=x%26y", Some(&[("page", "2"), ("q", "x&y")]));
        check("s://find{?q,page}", "s://find", Some(&[]));
        check("s://find{?q}", "s://find?other=1", None);
        check("s://p{/a,b}", "s://p/1/2", Some(&[("a", "1"), ("b", "2")]));
        check("broken://{open", "broken://{open", Some(&[]));
    }

    #[test]
    fn reads_odd_but_legal_templates() {
        check("s://find{?q}{&page}", "s://find?q=1&page=2", Some(&[("q", "1"), ("page", "2")]));
        check("s://find?fixed=1{&q}", "s://find?fixed=1&q=a?b", Some(&[("q", "a?b")]));
        check("s://{a}{b}", "s://xyz", Some(&[("a", "x"), ("b", "yz")]));
        check("s://{?q}/more", "s:///more", Some(&[]));
        check("s://{a}", "s://né/", None);
        check("s://{a}é", "s://né", Some(&[("a", "n")]));
        check("s://{a}", "s://%+1%4", Some(&[("a", "%+1%4")]));
        check("s://{}", "s://x", Some(&[("", "x")]));
        check("", "", Some(&[]));
        check("", "x", None);
        assert_eq!(UriTemplate::parse("a{b}{?c,d}").names().collect::<Vec<_>>(), ["b", "c", "d"]);
    }

    #[test]
    fn no_template_takes_longer_than_its_length_allows() {
        let began = std::time::Instant::now();
        let many = format!("s://{}!", "{a}".repeat(super::MOST_VALUES));
        check(&many, &format!("s://{}", "x".repeat(4000)), None);
        let greedy = format!("{}!", "{+a}aaaaaaaaaaaaaaaaaaaaaaaaaaaa".repeat(60));
        check(&greedy, &"a".repeat(4000), None);
        let query = format!("s://{{+x}}{{?{}}}", "a,".repeat(60));
        let found = UriTemplate::parse(&query).extract_values(&format!("s://x{}", "&a".repeat(2000)));
        assert_eq!(found.map(|values| values.len()), Some(2001));
        // Backtracking would practically never finish, so the bound can be generous.
        assert!(began.elapsed() < std::time::Duration::from_secs(5));
    }

    #[test]
    fn templates_over_the_limits_match_nothing_and_report_why() {
        let deep = UriTemplate::parse(&"{a}".repeat(super::MOST_VALUES + 1));
        assert_eq!(deep.problem(), Some("it has too many variables to match"));
        let long = UriTemplate::parse(&"a".repeat(super::LONGEST + 1));
        assert_eq!(long.problem(), Some("it is too long to match"));
        assert_eq!(long.extract_values(&"a".repeat(super::LONGEST + 1)), None);
        let any = UriTemplate::parse("{+a}");
        assert_eq!((any.problem(), any.extract_values(&"a".repeat(super::LONGEST + 1))), (None, None));
    }

    proptest! {
        #[test]
        fn any_template_and_any_uri_can_be_compared(template in any::<String>(), uri in any::<String>()) {
            let _ = UriTemplate::parse(&template).extract_values(&uri);
        }

        #[test]
        fn values_put_into_a_template_are_read_back(a in "[a-z]{1,9}", b in "[a-z0-9]{1,9}") {
            let values = UriTemplate::parse("s://{a}/x-{b}").extract_values(&format!("s://{a}/x-{b}"));
            assert_eq!(values, Some(vec![("a".to_owned(), a), ("b".to_owned(), b)]));
        }
    }
}
