//! Parses YAML into values with positions, so that every mistake in a test file can be located.
//! What the values mean is decided in `read`.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use serde_json::{Map, Number, Value};

/// The maximum nesting depth.
const DEEPEST: usize = 64;
/// The maximum number of values in a file. Each use of an alias counts as the values it repeats.
const MOST_VALUES: usize = 200_000;

/// A position in a test file. Lines and columns start at 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePosition {
    pub line: usize,
    pub column: usize,
}

/// A YAML value and where it starts.
#[derive(Debug, Clone)]
pub(crate) struct YamlNode {
    pub(crate) value: YamlValue,
    pub(crate) at: FilePosition,
}

#[derive(Debug, Clone)]
pub(crate) enum YamlValue {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<YamlNode>),
    Map(Vec<(YamlKey, YamlNode)>),
}

#[derive(Debug, Clone)]
pub(crate) struct YamlKey {
    pub(crate) name: String,
    pub(crate) at: FilePosition,
}

/// Why a file is not YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct YamlError {
    pub(crate) message: String,
    pub(crate) at: FilePosition,
}

impl YamlNode {
    /// Converts the value to JSON.
    pub(crate) fn to_json(&self) -> Value {
        match &self.value {
            YamlValue::Null => Value::Null,
            YamlValue::Flag(flag) => Value::Bool(*flag),
            YamlValue::Number(number) => Value::Number(number.clone()),
            YamlValue::Text(text) => Value::String(text.clone()),
            YamlValue::List(items) => items.iter().map(Self::to_json).collect(),
            YamlValue::Map(members) => {
                let members = members.iter().map(|(key, value)| (key.name.clone(), value.to_json()));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    /// Names the type for error messages.
    pub(crate) fn type_name(&self) -> &'static str {
        match &self.value {
            YamlValue::Null => "nothing",
            YamlValue::Flag(_) => "true or false",
            YamlValue::Number(_) => "a number",
            YamlValue::Text(_) => "a text",
            YamlValue::List(_) => "a list",
            YamlValue::Map(_) => "a map",
        }
    }
}

/// Parses the only document of a file.
pub(crate) fn parse_yaml(text: &str) -> Result<YamlNode, YamlError> {
    let mut builder = YamlBuilder::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| YamlError {
            message: format!("invalid YAML: {}", error.info()),
            at: FilePosition { line: error.marker().line(), column: error.marker().col() + 1 },
        })?;
        builder.handle(event, span)?;
    }
    let start = FilePosition { line: 1, column: 1 };
    builder.root.ok_or_else(|| YamlError { message: "the file is empty".to_owned(), at: start })
}

#[derive(Default)]
struct YamlBuilder {
    open: Vec<OpenNode>,
    anchors: HashMap<usize, (YamlNode, usize)>,
    root: Option<YamlNode>,
    count: usize,
}

struct OpenNode {
    at: FilePosition,
    anchor: usize,
    /// How many values were counted before this one.
    first: usize,
    items: OpenItems,
}

enum OpenItems {
    List(Vec<YamlNode>),
    Map { members: Vec<(YamlKey, YamlNode)>, key: Option<YamlKey>, merged: Vec<YamlNode> },
}

impl YamlBuilder {
    fn handle(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let at = FilePosition { line: span.start.line(), column: span.start.col() + 1 };
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(YamlError { message: "a test file has only one YAML document".to_owned(), at })
            }
            Event::SequenceStart(anchor, _) => self.begin(at, anchor, OpenItems::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let items = OpenItems::Map { members: Vec::new(), key: None, merged: Vec::new() };
                self.begin(at, anchor, items)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(),
            Event::Scalar(text, style, anchor, _) => {
                self.charge(1, at)?;
                let value = match style {
                    ScalarStyle::Plain => plain_value(&text),
                    _ => YamlValue::Text(text.clone().into_owned()),
                };
                let node = YamlNode { value, at };
                if anchor > 0 {
                    self.anchors.insert(anchor, (node.clone(), 1));
                }
                self.attach(node, Some((&text, style == ScalarStyle::Plain)))
            }
            Event::Alias(anchor) => {
                let Some((node, size)) = self.anchors.get(&anchor).cloned() else {
                    let message = "an alias refers to a value that contains it".to_owned();
                    return Err(YamlError { message, at });
                };
                self.charge(size, at)?;
                let text = match &node.value {
                    YamlValue::Text(text) => Some(text.clone()),
                    _ => None,
                };
                self.attach(YamlNode { at, ..node }, text.as_deref().map(|text| (text, false)))
            }
            _ => Ok(()),
        }
    }

    fn charge(&mut self, values: usize, at: FilePosition) -> Result<(), YamlError> {
        self.count += values;
        match self.count <= MOST_VALUES {
            true => Ok(()),
            false => {
                Err(YamlError { message: format!("the file exceeds the limit of {MOST_VALUES} values"), at })
            }
        }
    }

    fn begin(&mut self, at: FilePosition, anchor: usize, items: OpenItems) -> Result<(), YamlError> {
        if self.open.len() >= DEEPEST {
            let message = format!("the nesting exceeds the limit of {DEEPEST} levels");
            return Err(YamlError { message, at });
        }
        self.charge(1, at)?;
        self.open.push(OpenNode { at, anchor, first: self.count, items });
        Ok(())
    }

    fn end(&mut self) -> Result<(), YamlError> {
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.items {
            OpenItems::List(items) => YamlValue::List(items),
            OpenItems::Map { mut members, merged, .. } => {
                merged.into_iter().for_each(|source| merge(&mut members, source));
                YamlValue::Map(members)
            }
        };
        let node = YamlNode { value, at: open.at };
        if open.anchor > 0 {
            self.anchors.insert(open.anchor, (node.clone(), self.count - open.first + 1));
        }
        self.attach(node, None)
    }

    /// Adds a value to the innermost open collection. `scalar` is its text, and whether it is plain.
    fn attach(&mut self, node: YamlNode, scalar: Option<(&str, bool)>) -> Result<(), YamlError> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.items {
            OpenItems::List(items) => items.push(node),
            OpenItems::Map { members, key, merged } => match key.take() {
                Some(key) if key.name == "<<" => merged.push(node),
                Some(key) => members.push((key, node)),
                None => {
                    let Some((name, _)) = scalar else {
                        let message = "a key must be a text".to_owned();
                        return Err(YamlError { message, at: node.at });
                    };
                    if members.iter().any(|(known, _)| known.name == name) {
                        let message = format!("the key `{name}` appears twice");
                        return Err(YamlError { message, at: node.at });
                    }
                    *key = Some(YamlKey { name: name.to_owned(), at: node.at });
                }
            },
        }
        Ok(())
    }
}

/// Adds the members of a merged map (`<<`) that do not exist yet.
fn merge(members: &mut Vec<(YamlKey, YamlNode)>, source: YamlNode) {
    match source.value {
        YamlValue::Map(more) => {
            for (key, value) in more {
                if members.iter().all(|(known, _)| known.name != key.name) {
                    members.push((key, value));
                }
            }
        }
        YamlValue::List(maps) => maps.into_iter().for_each(|map| merge(members, map)),
        _ => {}
    }
}

/// Resolves a scalar without quotes, as in the core schema of YAML 1.2.
fn plain_value(text: &str) -> YamlValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return YamlValue::Null,
        "true" | "True" | "TRUE" => return YamlValue::Flag(true),
        "false" | "False" | "FALSE" => return YamlValue::Flag(false),
        _ => {}
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    // A leading zero is a text, such as a postal code, in JSON and in most other formats.
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit())
        && !(digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    match serde_json::from_str::<Number>(unsigned) {
        Ok(number) if is_number => YamlValue::Number(number),
        _ => YamlValue::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse_yaml;

    #[test]
    fn values_and_positions_are_read() {
        let text = "a: 1\nb:\n  - x: true\n    y: '2'\n  - ~\n  - 1.5\n  - 007\n";
        let node = parse_yaml(text).unwrap();
        assert_eq!(node.to_json(), json!({"a": 1, "b": [{"x": true, "y": "2"}, null, 1.5, "007"]}));
        let super::YamlValue::Map(members) = &node.value else { panic!() };
        assert_eq!((members[1].0.at.line, members[1].0.at.column), (2, 1));
        assert_eq!((members[0].1.at.line, members[0].1.at.column), (1, 4));
    }

    #[test]
    fn anchors_and_merges_are_expanded() {
        let text = "base: &base {a: 1, b: 2}\nother:\n  <<: *base\n  b: 3\n";
        assert_eq!(parse_yaml(text).unwrap().to_json()["other"], json!({"b": 3, "a": 1}));
    }

    #[test]
    fn hostile_files_are_refused() {
        let error = |text: &str| parse_yaml(text).unwrap_err().message;
        assert_eq!(error(""), "the file is empty");
        assert_eq!(error("a: 1\na: 2\n"), "the key `a` appears twice");
        assert_eq!(error("a: 1\n---\nb: 1\n"), "a test file has only one YAML document");
        assert_eq!(error(&"[".repeat(100)), "the nesting exceeds the limit of 64 levels");
        let bomb = (1..=9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned(), |text, level| {
            let previous = format!("*a{}", level - 1);
            format!("{text}a{level}: &a{level} [{}]\n", vec![previous; 10].join(", "))
        });
        assert_eq!(error(&bomb), "the file exceeds the limit of 200000 values");
        assert!(error("a: [1").starts_with("invalid YAML: "));
    }
}
