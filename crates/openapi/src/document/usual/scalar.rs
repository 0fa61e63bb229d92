//! Texts, numbers and the like: which of them begins, and where it ends.

use std::borrow::Cow;

use super::super::node::Node;
use super::super::scalar;
use super::Usual;
use super::text::Further;

impl<'t> Usual<'t, '_> {
    /// What is neither a map nor a list by its indentation; its further lines are farther right than `around`.
    pub(super) fn scalar(&mut self, around: usize) -> Option<Node> {
        let node = match self.byte(self.at)? {
            b'|' | b'>' => {
                self.count()?;
                // It ends where another line begins, which is at hand then.
                return self.block_text(around).map(|text| Node::String(text.into()));
            }
            b'[' | b'{' => self.in_brackets(around)?,
            b'"' | b'\'' => {
                self.count()?;
                let text = self.take_quoted(Further::RightOf(around))?;
                Node::String(text.into())
            }
            _ => {
                self.count()?;
                scalar::plain(&self.plain(around)?)
            }
        };
        self.ends_line()?;
        self.go_on()?;
        Some(node)
    }

    /// Whether nothing but a comment follows on this line.
    pub(super) fn ends_line(&self) -> Option<()> {
        let after = self.at + self.blanks(self.at);
        let comment = self.byte(after) == Some(b'#') && after > self.at;
        (after >= self.end || comment).then_some(())
    }

    /// Whether a text without quotes may begin with what is here.
    pub(super) fn may_begin_plain(&self, at: usize) -> bool {
        match self.byte(at) {
            None | Some(b' ' | b'\n') => false,
            Some(b'-') => self.byte(at + 1).is_some_and(|next| !b" \n,[]{}".contains(&next)),
            Some(first) => !b"?:,[]{}#&*!|>'\"%@`".contains(&first),
        }
    }

    /// A text without quotes. Nothing in it may look like a key.
    fn plain(&mut self, around: usize) -> Option<Cow<'t, str>> {
        if !self.may_begin_plain(self.at) {
            return None;
        }
        let mut text = Cow::Borrowed(self.plain_line(self.at)?);
        while self.at == self.end {
            let Some((blank, line, at)) = self.continues(self.end, around) else { break };
            let end = self.end_of(at);
            if self.byte(at) == Some(b'#') {
                break;
            }
            if self.byte(at) == Some(b'-') && self.is_blank(at + 1) {
                return None;
            }
            (self.line, self.at, self.end) = (line, at, end);
            let more = self.plain_line(at)?;
            let text = text.to_mut();
            fold(text, blank);
            text.push_str(more);
        }
        Some(text)
    }

    /// The part of a line that belongs to a text without quotes; goes behind it.
    fn plain_line(&mut self, from: usize) -> Option<&'t str> {
        let rest = self.text.get(from..self.end)?;
        for found in memchr::memchr2_iter(b':', b'#', rest.as_bytes()) {
            let at = from + found;
            if self.byte(at) == Some(b':') {
                if self.is_blank(at + 1) {
                    return None;
                }
            } else if at > 0 && self.byte(at - 1) == Some(b' ') {
                let text = self.text.get(from..at)?.trim_end_matches(' ');
                self.at = from + text.len();
                return Some(text);
            }
        }
        self.at = self.end;
        Some(rest.trim_end_matches(' '))
    }

    /// The line after one that ends here, if it is farther right than `around`, blank ones left out: how many those are,
    /// where it begins, and where what is on it does.
    pub(super) fn continues(&self, end: usize, around: usize) -> Option<(usize, usize, usize)> {
        let (mut line, mut blank) = (end + 1, 0);
        loop {
            let indentation = self.blanks(line);
            match self.byte(line + indentation)? {
                b'\n' => {
                    blank += 1;
                    line += indentation + 1;
                }
                _ => return (indentation > around).then_some((blank, line, line + indentation)),
            }
        }
    }
}

/// What stands for the end of a line inside a text: a space, or the blank lines after it.
pub(super) fn fold(text: &mut String, blank: usize) {
    if blank == 0 {
        text.push(' ');
    } else {
        text.extend(std::iter::repeat_n('\n', blank));
    }
}
