//! Texts in quotes, and those that are blocks of lines.

use std::borrow::Cow;

use super::Usual;
use super::scalar::fold;

/// A text in quotes, and where the reader is behind it.
pub(super) struct Quoted<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) after: usize,
    line: usize,
    end: usize,
}

/// Where a text in quotes may go on.
#[derive(Clone, Copy)]
pub(super) enum Further {
    Nowhere,
    /// On lines that are farther right than this column.
    RightOf(usize),
}

impl<'t> Usual<'t, '_> {
    /// The text in quotes that is here; goes behind it.
    pub(super) fn take_quoted(&mut self, further: Further) -> Option<Cow<'t, str>> {
        let quoted = self.quoted(further)??;
        (self.line, self.at, self.end) = (quoted.line, quoted.after, quoted.end);
        Some(quoted.text)
    }

    /// The text in quotes that is here; nothing if it goes on where it may not.
    pub(super) fn quoted(&self, further: Further) -> Option<Option<Quoted<'t>>> {
        let quote = self.byte(self.at)?;
        let (mut line, mut at, mut end) = (self.line, self.at + 1, self.end);
        let mut text = Cow::Borrowed("");
        // Up to where spaces at the end of a line are meant.
        let mut solid = 0;
        loop {
            let rest = self.text.get(at..end)?;
            let stop = match quote {
                b'"' => memchr::memchr2(b'"', b'\\', rest.as_bytes()),
                _ => memchr::memchr(quote, rest.as_bytes()),
            };
            let piece = rest.get(..stop.unwrap_or(rest.len()))?;
            match &mut text {
                Cow::Borrowed("") => text = Cow::Borrowed(piece),
                text => text.to_mut().push_str(piece),
            }
            at += piece.len();
            let next = self.byte(at + 1);
            let goes_on = match stop {
                None => true,
                Some(_) if self.byte(at) == Some(b'\\') => match next? {
                    b'\n' => true,
                    _ => {
                        let (meant, length) = self.escaped(at + 1)?;
                        text.to_mut().push(meant);
                        (solid, at) = (text.len(), at + 1 + length);
                        false
                    }
                },
                Some(_) if quote == b'\'' && next == Some(b'\'') => {
                    text.to_mut().push('\'');
                    at += 2;
                    false
                }
                Some(_) => return Some(Some(Quoted { text, after: at + 1, line, end })),
            };
            if goes_on {
                let Further::RightOf(around) = further else { return Some(None) };
                let (blank, begins, first) = self.continues(end, around)?;
                let text = text.to_mut();
                if stop.is_none() {
                    let kept = text.trim_end_matches(' ').len().max(solid);
                    text.truncate(kept);
                    fold(text, blank);
                } else if blank > 0 {
                    return None;
                }
                (line, at, end, solid) = (begins, first, self.end_of(first), text.len());
            }
        }
    }

    /// What an escape stands for, and how long it is behind its backslash.
    fn escaped(&self, at: usize) -> Option<(char, usize)> {
        let digits = match self.byte(at)? {
            b'n' => return Some(('\n', 1)),
            b't' => return Some(('\t', 1)),
            b'r' => return Some(('\r', 1)),
            b'_' => return Some(('\u{a0}', 1)),
            mark @ (b'"' | b'\\' | b'/' | b' ') => return Some((char::from(mark), 1)),
            b'x' => 2,
            b'u' => 4,
            _ => return None,
        };
        let digits = self.text.get(at + 1..at + 1 + digits)?;
        let sound = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let code = u32::from_str_radix(digits, 16).ok().filter(|_| sound)?;
        Some((char::from_u32(code)?, 1 + digits.len()))
    }

    /// A text that is all lines farther right than `around`, as they are or folded; goes to the line behind it.
    pub(super) fn block_text(&mut self, around: usize) -> Option<String> {
        let folded = self.byte(self.at)? == b'>';
        let chomping = self.byte(self.at + 1).filter(|sign| matches!(sign, b'+' | b'-'));
        self.at += 1 + usize::from(chomping.is_some());
        self.ends_line()?;
        let mut line = self.end + 1;
        let (mut text, mut blank, mut indentation, mut last) = (String::new(), 0, 0, None);
        while line < self.text.len() {
            let end = self.end_of(line);
            let column = self.blanks(line);
            let only_spaces = line + column == end;
            // Whether the end of the file ends a line is not the same for everybody.
            if end == self.text.len() && (only_spaces || column > around) {
                return None;
            }
            if only_spaces && (last.is_none() || column <= indentation) {
                // Before the first line, none may be indented more than that.
                indentation = if last.is_none() { indentation.max(column) } else { indentation };
                (blank, line) = (blank + 1, end + 1);
                continue;
            }
            if last.is_none() && column > around {
                if column < indentation {
                    return None;
                }
                indentation = column;
            }
            if column < indentation || column <= around {
                break;
            }
            let content = self.text.get(line + indentation..end)?;
            let spaced = content.starts_with(' ');
            match last {
                None => text.extend(std::iter::repeat_n('\n', blank)),
                Some(false) if folded && !spaced => fold(&mut text, blank),
                Some(_) => text.extend(std::iter::repeat_n('\n', blank + 1)),
            }
            text.push_str(content);
            (last, blank, line) = (Some(spaced), 0, end + 1);
        }
        match chomping {
            None if last.is_some() => text.push('\n'),
            Some(b'+') => text.extend(std::iter::repeat_n('\n', blank + usize::from(last.is_some()))),
            _ => {}
        }
        self.begin_at(line)?;
        Some(text)
    }
}
