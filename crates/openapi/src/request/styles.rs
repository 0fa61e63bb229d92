//! The styles of parameters, as the table of the OpenAPI specification has them. A value is taken apart here once, and
//! put together for the place that it goes to.

use serde_json::value::RawValue;

use super::escape::{Allow, escape, escaped};
use super::given::{Given, plain};
use crate::operation::Style;

/// How deep the value of a parameter may be nested.
const DEEPEST: usize = 64;

/// A value that a style can write: null is none, and members that are null are not there.
#[derive(Debug, PartialEq)]
enum Parts {
    One(String),
    List(Vec<String>),
    Members(Vec<(String, String)>),
}

impl Parts {
    fn read(raw: &RawValue) -> Option<Self> {
        match Given::read(raw) {
            Given::List(items) => Some(Self::List(items.into_iter().filter_map(plain).collect())),
            Given::Object(members) => Some(Self::Members(
                members.into_iter().filter_map(|(name, value)| Some((name, plain(&value)?))).collect(),
            )),
            _ => plain(raw).map(Self::One),
        }
    }

    /// As RFC 6570 has it: an empty list is no value.
    fn is_empty(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::List(items) => items.is_empty(),
            Self::Members(members) => members.is_empty(),
        }
    }
}

/// How a parameter is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Writing<'a> {
    pub(crate) name: &'a str,
    pub(crate) style: Style,
    pub(crate) explode: bool,
    pub(crate) allow: Allow,
}

impl Writing<'_> {
    /// In a path or a header, where a value is one piece of text. Nothing where there is no value.
    pub(crate) fn piece(&self, raw: &RawValue) -> Option<String> {
        let parts = Parts::read(raw).filter(|parts| !parts.is_empty())?;
        let name = escaped(self.name, self.allow);
        let mut piece = String::new();
        let (start, between) = match (self.style, self.explode) {
            (Style::Label, true) => (".", "."),
            (Style::Label, false) => (".", ","),
            (Style::Matrix, true) => (";", ";"),
            (Style::Matrix, false) => (";", ","),
            _ => ("", ","),
        };
        piece.push_str(start);
        let matrix = self.style == Style::Matrix;
        if matrix && !self.explode {
            piece.push_str(&name);
            // As RFC 6570 has it: an empty value has no equals sign here.
            if parts != Parts::One(String::new()) {
                piece.push('=');
            }
        }
        match &parts {
            Parts::One(text) => {
                if matrix && self.explode {
                    piece.push_str(&name);
                    piece.push_str(if text.is_empty() { "" } else { "=" });
                }
                escape(text, self.allow, &mut piece);
            }
            Parts::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    piece.push_str(if at > 0 { between } else { "" });
                    if matrix && self.explode {
                        piece.push_str(&name);
                        piece.push_str(if item.is_empty() { "" } else { "=" });
                    }
                    escape(item, self.allow, &mut piece);
                }
            }
            Parts::Members(members) => {
                for (at, (member, value)) in members.iter().enumerate() {
                    piece.push_str(if at > 0 { between } else { "" });
                    escape(member, self.allow, &mut piece);
                    piece.push_str(if self.explode { "=" } else { "," });
                    escape(value, self.allow, &mut piece);
                }
            }
        }
        Some(piece)
    }

    /// In a query, a cookie or a form: pairs, encoded already.
    pub(crate) fn pairs(&self, raw: &RawValue) -> Vec<(String, String)> {
        let name = escaped(self.name, Allow::Unreserved);
        if self.style == Style::DeepObject && raw.get().starts_with(['{', '[']) {
            let mut pairs = Vec::new();
            self.deep(&name, raw, 0, &mut pairs);
            return pairs;
        }
        let Some(parts) = Parts::read(raw).filter(|parts| !parts.is_empty()) else { return Vec::new() };
        let value = |text: &str| escaped(text, self.allow);
        let between = match self.style {
            Style::SpaceDelimited => "%20",
            Style::PipeDelimited => "%7C",
            Style::TabDelimited => "%09",
            _ => ",",
        };
        match parts {
            Parts::One(text) => vec![(name, value(&text))],
            Parts::List(items) if self.explode => {
                items.iter().map(|item| (name.clone(), value(item))).collect()
            }
            Parts::List(items) => {
                let items: Vec<String> = items.iter().map(|item| value(item)).collect();
                vec![(name, items.join(between))]
            }
            Parts::Members(members) if self.explode => {
                members.iter().map(|(name, text)| (escaped(name, Allow::Unreserved), value(text))).collect()
            }
            Parts::Members(members) => {
                let flat: Vec<String> =
                    members.iter().flat_map(|(name, text)| [value(name), value(text)]).collect();
                vec![(name, flat.join(between))]
            }
        }
    }

    /// `name[member]=value`, and further down `name[member][0]=value`. The specification leaves open what is below the
    /// first level; this is what the servers do that go further.
    fn deep(&self, name: &str, raw: &RawValue, depth: usize, pairs: &mut Vec<(String, String)>) {
        if depth >= DEEPEST {
            pairs.push((name.to_owned(), escaped(raw.get(), self.allow)));
            return;
        }
        match Given::read(raw) {
            Given::Object(members) => {
                for (member, value) in &members {
                    let below = format!("{name}%5B{}%5D", escaped(member, Allow::Unreserved));
                    self.deep(&below, value, depth + 1, pairs);
                }
            }
            Given::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.deep(&format!("{name}%5B{at}%5D"), item, depth + 1, pairs);
                }
            }
            _ => pairs.extend(plain(raw).map(|text| (name.to_owned(), escaped(&text, self.allow)))),
        }
    }
}

#[cfg(test)]
mod tests;
