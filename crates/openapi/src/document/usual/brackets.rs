//! Lists and maps in brackets.

use super::super::node::{Members, Node};
use super::super::scalar;
use super::Usual;
use super::text::Further;

impl<'t> Usual<'t, '_> {
    /// The list or the map that begins here; goes behind it. Further lines are farther right than `around`.
    pub(super) fn in_brackets(&mut self, around: usize) -> Option<Node> {
        self.enter()?;
        let list = self.byte(self.at)? == b'[';
        self.step(around)?;
        let node = if list { self.values(around)? } else { self.members(around)? };
        self.leave();
        Some(node)
    }

    fn values(&mut self, around: usize) -> Option<Node> {
        let mut values = Vec::new();
        while self.byte(self.at)? != b']' {
            values.push(self.inside(around)?);
            self.next(b']', around)?;
        }
        self.at += 1;
        Some(Node::Array(values))
    }

    fn members(&mut self, around: usize) -> Option<Node> {
        let mut members = Members::new();
        while self.byte(self.at)? != b'}' {
            self.count()?;
            let quoted = matches!(self.byte(self.at)?, b'"' | b'\'');
            let key: Box<str> =
                if quoted { self.take_quoted(Further::Nowhere)?.into() } else { self.word()?.into() };
            let colon = self.byte(self.at)? == b':' && self.is_blank(self.at + 1);
            if !colon || &*key == "<<" {
                return None;
            }
            self.step(around)?;
            let value = self.inside(around)?;
            if members.insert(key, value).is_some() {
                return None;
            }
            self.next(b'}', around)?;
        }
        self.at += 1;
        Some(Node::Object(members))
    }

    /// One value inside brackets.
    fn inside(&mut self, around: usize) -> Option<Node> {
        match self.byte(self.at)? {
            b'[' | b'{' => self.in_brackets(around),
            b'"' | b'\'' => {
                self.count()?;
                self.take_quoted(Further::Nowhere).map(|text| Node::String(text.into()))
            }
            _ => {
                self.count()?;
                self.word().map(scalar::plain)
            }
        }
    }

    /// A text without quotes, up to what ends it; goes behind it.
    fn word(&mut self) -> Option<&'t str> {
        if !self.may_begin_plain(self.at) {
            return None;
        }
        let rest = self.text.get(self.at..self.end)?;
        let ends = |(at, byte): (usize, &u8)| match byte {
            b',' | b'[' | b']' | b'{' | b'}' | b'#' => true,
            b':' => self.byte(self.at + at + 1).is_none_or(|next| b" \n,[]{}".contains(&next)),
            _ => false,
        };
        let length = rest.as_bytes().iter().enumerate().position(ends).unwrap_or(rest.len());
        let word = rest.get(..length)?.trim_end_matches(' ');
        let key = rest.as_bytes().get(length) == Some(&b':');
        // Before a colon nothing is left out, so that a key is all of what stands there.
        self.at += if key { length } else { word.len() };
        (!key || word.len() == length).then_some(word)
    }

    /// Goes on behind a comma, or stays before the bracket that ends it all.
    fn next(&mut self, bracket: u8, around: usize) -> Option<()> {
        self.skip(around)?;
        match self.byte(self.at)? {
            b',' => {
                self.step(around)?;
                (self.byte(self.at)? != bracket).then_some(())
            }
            found => (found == bracket).then_some(()),
        }
    }

    /// Goes behind one character, to the next that is no space.
    fn step(&mut self, around: usize) -> Option<()> {
        self.at += 1;
        self.skip(around)
    }

    fn skip(&mut self, around: usize) -> Option<()> {
        self.at += self.blanks(self.at);
        if self.at == self.end {
            let (_, line, at) = self.continues(self.end, around)?;
            (self.line, self.at, self.end) = (line, at, self.end_of(at));
        }
        Some(())
    }
}
