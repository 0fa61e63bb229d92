//! Parses YAML from the events of saphyr's parser. Nothing here recurses, and each use of an alias
//! counts as the values that it repeats.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, Tag};

use super::node::{SpecNode, SpecObject};
use super::parse::{ParseContext, ParseRefusal};
use super::references::push_segment;
use super::yaml_repair::StopPlace;
use super::{scalar, yaml_repair};

/// Maximum number of bytes that are parsed again because of constructs that other parsers accept
/// and this one rejects. Each such place costs another pass.
const MOST_AGAIN: usize = 16 << 20;
/// Minimum cost of a pass, which limits them to 1,024.
const LEAST_AGAIN: usize = 16 << 10;

/// Parses the first document of a stream and reports further ones. A closing bracket that is not
/// indented more than its key violates YAML, but is common, and most parsers accept it.
pub(super) fn read(text: &str, reading: &mut ParseContext) -> Result<SpecNode, ParseRefusal> {
    let (left, found) = (reading.left, reading.diagnostics.len());
    let mut text = Cow::Borrowed(text);
    let (mut again, mut shifted) = (MOST_AGAIN.max(text.len().saturating_mul(8)), None);
    loop {
        reading.left = left;
        reading.diagnostics.truncate(found);
        let stop = match read_strictly(&text, reading) {
            Ok(value) => {
                if shifted.is_some() {
                    let message = "a closing bracket is not indented; treated as if it were".to_owned();
                    reading.warn(String::new(), "odd-indentation", message);
                }
                return Ok(value);
            }
            Err(stop) => stop,
        };
        let other = match &stop {
            YamlStop::Syntax { at, .. } if at.is_closing_bracket(&text) => shifted.is_none().then(|| {
                shifted = Some(stop.refusal());
                yaml_repair::indent_closing_brackets(&text)
            }),
            YamlStop::Syntax { at, .. } if again >= text.len().max(LEAST_AGAIN) => {
                yaml_repair::drop_deep_brackets(&text, at.error)
                    .or_else(|| yaml_repair::indent_quoted_lines(&text, at.error, MOST_AGAIN))
            }
            YamlStop::Syntax { .. } | YamlStop::Refused(_) => None,
        };
        again = again.saturating_sub(text.len().max(LEAST_AGAIN));
        match other {
            Some(other) => text = Cow::Owned(other),
            // Report the error of the original text, because that is what its author can fix.
            None => return Err(shifted.unwrap_or_else(|| stop.refusal())),
        }
    }
}

/// Why the parser stopped. Its errors have no kinds, so the repair is chosen by the text at that
/// position.
enum YamlStop {
    Syntax { reason: String, at: StopPlace },
    Refused(ParseRefusal),
}

impl YamlStop {
    fn refusal(&self) -> ParseRefusal {
        match self {
            Self::Syntax { reason, at: StopPlace { error, .. } } => {
                ParseRefusal::Syntax(format!("{reason} at line {} column {}", error.line, error.column + 1))
            }
            Self::Refused(refusal) => refusal.clone(),
        }
    }
}

impl From<ParseRefusal> for YamlStop {
    fn from(refusal: ParseRefusal) -> Self {
        Self::Refused(refusal)
    }
}

fn read_strictly(text: &str, reading: &mut ParseContext) -> Result<SpecNode, YamlStop> {
    let mut builder = Builder { reading, open: Vec::new(), anchors: HashMap::new(), root: None, skipping: 0 };
    let mut documents = 0;
    let mut before = StopPlace::default();
    let mut parser = Parser::new_from_str(text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| YamlStop::Syntax {
            reason: error.info().to_owned(),
            at: before.with_error(error.marker()),
        })?;
        before.record_event(&event, span);
        match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    let line = span.start.line();
                    let message = format!("a second YAML document starts at line {line}; ignored");
                    builder.reading.warn(String::new(), "second-document", message);
                    break;
                }
            }
            event => builder.handle_event(event)?,
        }
    }
    builder.root.ok_or_else(|| ParseRefusal::Syntax("it has no content".to_owned()).into())
}

struct Builder<'r> {
    reading: &'r mut ParseContext,
    open: Vec<OpenCollection>,
    anchors: HashMap<usize, AnchoredValue>,
    root: Option<SpecNode>,
    /// Number of open collections below the maximum depth.
    skipping: usize,
}

/// A value that an alias may repeat.
struct AnchoredValue {
    value: SpecNode,
    size: usize,
    height: usize,
}

/// An incomplete collection.
struct OpenCollection {
    anchor: usize,
    size: usize,
    height: usize,
    content: Content,
}

enum Content {
    List(Vec<SpecNode>),
    Map { members: SpecObject, merged: Vec<SpecNode>, key: Option<Key> },
}

enum Key {
    Name(Box<str>),
    Merge,
    /// A key that a JSON object cannot have.
    Unsupported,
}

/// A complete value on its way to its parent.
struct CompleteValue {
    value: SpecNode,
    size: usize,
    height: usize,
    /// The text of a scalar, for use as a key, and whether it was plain.
    text: Option<(Box<str>, bool)>,
}

impl Builder<'_> {
    fn handle_event(&mut self, event: Event<'_>) -> Result<(), ParseRefusal> {
        match event {
            Event::SequenceStart(anchor, _) => self.begin_collection(anchor, Content::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let content = Content::Map { members: SpecObject::new(), merged: Vec::new(), key: None };
                self.begin_collection(anchor, content)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end_collection(),
            Event::Scalar(text, style, anchor, tag) if self.skipping == 0 => {
                self.reading.count(1)?;
                let value = resolve_scalar(&text, style, tag.as_deref());
                let text = Some((text.into(), style == ScalarStyle::Plain));
                let done = CompleteValue { value, size: 1, height: 1, text };
                self.store_anchor(anchor, &done)?;
                self.attach(done);
                Ok(())
            }
            Event::Alias(anchor) if self.skipping == 0 => self.expand_alias(anchor),
            _ => Ok(()),
        }
    }

    fn begin_collection(&mut self, anchor: usize, content: Content) -> Result<(), ParseRefusal> {
        if self.skipping > 0 || self.open.len() >= self.reading.depth {
            self.skipping += 1;
            return Ok(());
        }
        self.reading.count(1)?;
        self.open.push(OpenCollection { anchor, size: 1, height: 1, content });
        Ok(())
    }

    fn end_collection(&mut self) -> Result<(), ParseRefusal> {
        if self.skipping > 0 {
            self.skipping -= 1;
            if self.skipping == 0 {
                let message = "nested too deeply; ignored".to_owned();
                self.reading.warn(self.pointer(), "too-deep", message);
                self.attach(CompleteValue { value: SpecNode::Null, size: 1, height: 1, text: None });
            }
            return Ok(());
        }
        let Some(open) = self.open.pop() else { return Ok(()) };
        let value = match open.content {
            Content::List(values) => SpecNode::Array(values),
            Content::Map { mut members, merged, .. } => {
                for source in merged {
                    self.merge(&mut members, source)?;
                }
                SpecNode::Object(members)
            }
        };
        let done = CompleteValue { value, size: open.size, height: open.height, text: None };
        self.store_anchor(open.anchor, &done)?;
        self.attach(done);
        Ok(())
    }

    fn expand_alias(&mut self, anchor: usize) -> Result<(), ParseRefusal> {
        let Some(known) = self.anchors.get(&anchor) else {
            let message = "an alias refers to a value that contains it; ignored".to_owned();
            self.reading.warn(self.pointer(), "alias-cycle", message);
            self.attach(CompleteValue { value: SpecNode::Null, size: 1, height: 1, text: None });
            return Ok(());
        };
        self.reading.count(known.size)?;
        if self.open.len() + known.height > self.reading.depth {
            let message = "an alias is nested too deeply; ignored".to_owned();
            self.reading.warn(self.pointer(), "too-deep", message);
            self.attach(CompleteValue { value: SpecNode::Null, size: 1, height: 1, text: None });
            return Ok(());
        }
        let text = known.value.as_str().map(|text| (text.into(), false));
        let done = CompleteValue { value: known.value.clone(), size: known.size, height: known.height, text };
        self.attach(done);
        Ok(())
    }

    /// Stores a value that has an anchor. The copy counts like any other value.
    fn store_anchor(&mut self, anchor: usize, done: &CompleteValue) -> Result<(), ParseRefusal> {
        if anchor > 0 {
            self.reading.count(done.size)?;
            let known = AnchoredValue { value: done.value.clone(), size: done.size, height: done.height };
            self.anchors.insert(anchor, known);
        }
        Ok(())
    }

    /// Adds the keys of a merged map that do not exist yet.
    fn merge(&mut self, members: &mut SpecObject, source: SpecNode) -> Result<(), ParseRefusal> {
        match source {
            SpecNode::Object(source) => {
                for (key, value) in source {
                    if !members.contains_key(&key) {
                        members.insert(key, value);
                    }
                }
            }
            SpecNode::Array(sources) => {
                for source in sources {
                    match source {
                        SpecNode::Object(_) => self.merge(members, source)?,
                        _ => self.warn_invalid_merge(),
                    }
                }
            }
            _ => self.warn_invalid_merge(),
        }
        Ok(())
    }

    fn warn_invalid_merge(&mut self) {
        let message = "`<<` requires a map or a list of maps; ignored".to_owned();
        self.reading.warn(self.pointer(), "odd-merge", message);
    }

    /// Adds a complete value to its parent: as the root, a list item, a key, or the value of a key.
    fn attach(&mut self, done: CompleteValue) {
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(done.value);
            return;
        };
        open.size += done.size;
        open.height = open.height.max(done.height + 1);
        let mut twice = None;
        let mut odd = false;
        match &mut open.content {
            Content::List(values) => values.push(done.value),
            Content::Map { members, merged, key } => match key.take() {
                None => {
                    let name = match (done.text, &done.value) {
                        (Some((text, true)), _) if &*text == "<<" => Key::Merge,
                        (Some((text, _)), _) => Key::Name(text),
                        (None, SpecNode::Array(_) | SpecNode::Object(_)) => Key::Unsupported,
                        (None, other) => Key::Name(other.to_string().into()),
                    };
                    *key = Some(name);
                }
                Some(Key::Merge) => merged.push(done.value),
                Some(Key::Unsupported) => odd = true,
                Some(Key::Name(name)) => {
                    if members.contains_key(&name) {
                        twice = Some(name.clone());
                    }
                    members.insert(name, done.value);
                }
            },
        }
        if let Some(name) = twice {
            let mut pointer = self.pointer();
            push_segment(&mut pointer, &name);
            let message = format!("duplicate key `{name}`; the last one applies");
            self.reading.warn(pointer, "duplicate-key", message);
        }
        if odd {
            let message = "a list or a map is used as a key, which JSON does not support; ignored".to_owned();
            self.reading.warn(self.pointer(), "odd-key", message);
        }
    }

    /// Returns the JSON pointer of the current position.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for open in &self.open {
            match &open.content {
                Content::List(values) => push_segment(&mut pointer, &values.len().to_string()),
                Content::Map { key: Some(Key::Name(name)), .. } => push_segment(&mut pointer, name),
                Content::Map { key: Some(Key::Merge), .. } => push_segment(&mut pointer, "<<"),
                Content::Map { .. } => {}
            }
        }
        pointer
    }
}

/// Returns the value of a scalar: by its tag, else a string if it is quoted, else by its form.
fn resolve_scalar(text: &str, style: ScalarStyle, tag: Option<&Tag>) -> SpecNode {
    if let Some(tag) = tag.filter(|tag| tag.is_yaml_core_schema()) {
        match tag.suffix.as_str() {
            "str" | "binary" => return SpecNode::String(text.into()),
            "int" | "float" | "bool" | "null" => return scalar::parse_plain_scalar(text),
            _ => {}
        }
    }
    match style {
        ScalarStyle::Plain => scalar::parse_plain_scalar(text),
        _ => SpecNode::String(text.into()),
    }
}
