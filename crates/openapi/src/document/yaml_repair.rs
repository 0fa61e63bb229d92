//! Rewrites YAML that other parsers accept and this one rejects:
//!
//! - Flow collections that are nested deeper than the parser supports. Such parts are dropped
//!   anyway, so they are removed beforehand.
//! - Quoted scalars whose continuation lines are not indented more than their key.
//! - Closing brackets that are not indented more than their key.

use saphyr_parser::{Event, Marker, Span};

/// Maximum nesting depth of brackets in the parser.
const DEEPEST: usize = 255;

/// A line, from 1, and a column in characters, from 0.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TextPlace {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl From<&Marker> for TextPlace {
    fn from(marker: &Marker) -> Self {
        Self { line: marker.line(), column: marker.col() }
    }
}

/// Where the parser stopped, and the state of the events before. Its errors have no kinds, only
/// messages.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StopPlace {
    pub(super) error: TextPlace,
    /// The end of the last event.
    last_event_end: TextPlace,
    /// The number of open flow collections at that point.
    brackets: usize,
}

impl StopPlace {
    /// Records an event.
    pub(super) fn record_event(&mut self, event: &Event<'_>, span: Span) {
        self.last_event_end = TextPlace::from(&span.end);
        match event {
            // A flow collection contains only flow collections. A block collection starts with an
            // empty span, a flow collection with a bracket.
            Event::SequenceStart(..) | Event::MappingStart(..)
                if self.brackets > 0 || span.start.index() < span.end.index() =>
            {
                self.brackets += 1;
            }
            Event::SequenceEnd | Event::MappingEnd => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
    }

    pub(super) fn with_error(self, error: &Marker) -> Self {
        Self { error: TextPlace::from(error), ..self }
    }

    /// Whether the line consists only of closing brackets, with open collections for them to close.
    pub(super) fn is_closing_bracket(&self, text: &str) -> bool {
        self.open_brackets(text).is_some_and(|open| open > 0)
    }

    fn open_brackets(&self, text: &str) -> Option<usize> {
        let (end, _) = locate(text, self.error)?;
        let line = text.get(..end)?.rfind('\n').map_or(0, |at| at + 1);
        if !is_closing_line(text.get(line..)?.split('\n').next()?) {
            return None;
        }
        let (start, _) = locate(text, self.last_event_end)?;
        let mut scanner = Scanner { text: text.get(..end)?.as_bytes(), at: start.min(end) };
        let mut open = self.brackets;
        while let Some(token) = scanner.next() {
            open = match token {
                Token::Opens => open + 1,
                Token::Closes => open.saturating_sub(1),
            };
        }
        Some(open)
    }
}

/// Returns the text with lines that consist of closing brackets moved far to the right.
pub(super) fn indent_closing_brackets(text: &str) -> String {
    let mut shifted = String::with_capacity(text.len() + 1_000);
    for line in text.split_inclusive('\n') {
        if is_closing_line(line) {
            shifted.push_str(&" ".repeat(80));
        }
        shifted.push_str(line);
    }
    shifted
}

fn is_closing_line(line: &str) -> bool {
    let bare = line.trim();
    !bare.is_empty() && bare.trim_end_matches(',').chars().all(|character| "]}".contains(character))
}

/// Returns the text with `null` in place of everything that is nested deeper than the parser
/// supports, from this bracket to the end of the outermost one around it. Returns `None` if there
/// is no bracket here, or if too few of them are closed.
pub(super) fn drop_deep_brackets(text: &str, at: TextPlace) -> Option<String> {
    let (start, found) = locate(text, at)?;
    if !matches!(found, '[' | '{') {
        return None;
    }
    let mut scanner = Scanner { text: text.as_bytes(), at: start };
    let mut out = String::with_capacity(text.len());
    out.push_str(text.get(..start)?);
    let mut kept_from = start;
    let mut open = DEEPEST;
    while open > 0 {
        let at = scanner.at;
        match scanner.next()? {
            Token::Opens => {
                open += 1;
                if open == DEEPEST + 1 {
                    out.push_str(text.get(kept_from..at)?);
                    out.push_str("null");
                }
            }
            Token::Closes => {
                if open == DEEPEST + 1 {
                    kept_from = scanner.at;
                }
                open -= 1;
            }
        }
    }
    out.push_str(text.get(kept_from..)?);
    Some(out)
}

/// Returns the text with the continuation lines of the quoted scalar at this position indented more
/// than its first line. The amount of indentation has no meaning in a quoted scalar. Returns `None`
/// if they are indented already, or if that takes more than `most` bytes.
pub(super) fn indent_quoted_lines(text: &str, at: TextPlace, most: usize) -> Option<String> {
    let (start, quote) = locate(text, at)?;
    let quote = u8::try_from(quote).ok().filter(|quote| matches!(quote, b'"' | b'\''))?;
    let mut scanner = Scanner { text: text.as_bytes(), at: start + 1 };
    scanner.skip_quoted(quote)?;
    let (before, quoted, after) = (text.get(..start)?, text.get(start..scanner.at)?, text.get(scanner.at..)?);
    let its_line = before.rsplit('\n').next()?;
    let indentation = 1 + its_line.bytes().take_while(|byte| b" -?".contains(byte)).count();
    let further = quoted.split('\n').skip(1);
    let is_indented = |line: &str| line.bytes().take_while(|byte| *byte == b' ').count() >= indentation;
    if further.clone().count().saturating_mul(indentation) > most || further.clone().all(is_indented) {
        return None;
    }
    let indented = quoted.replace('\n', &format!("\n{}", " ".repeat(indentation)));
    Some(format!("{before}{indented}{after}"))
}

/// Returns the byte offset of a position and the character there.
fn locate(text: &str, at: TextPlace) -> Option<(usize, char)> {
    let before: usize = text.split_inclusive('\n').take(at.line.checked_sub(1)?).map(str::len).sum();
    let (within, found) = text.get(before..)?.char_indices().nth(at.column)?;
    Some((before + within, found))
}

enum Token {
    Opens,
    Closes,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// Returns the next bracket that is not part of a string or a comment.
    fn next(&mut self) -> Option<Token> {
        // A quote starts a string only where a value may begin. Inside a plain scalar it is an
        // ordinary character.
        let mut may_begin = true;
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            match byte {
                b'[' | b'{' => return Some(Token::Opens),
                b']' | b'}' => return Some(Token::Closes),
                b'"' | b'\'' if may_begin => {
                    self.skip_quoted(byte)?;
                    may_begin = false;
                }
                b'#' if self.follows_whitespace() => self.skip_line(),
                b',' | b':' => may_begin = true,
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => may_begin = false,
            }
        }
    }

    fn skip_quoted(&mut self, quote: u8) -> Option<()> {
        loop {
            let byte = *self.text.get(self.at)?;
            self.at += 1;
            if byte == b'\\' && quote == b'"' {
                self.at += 1;
            } else if byte == quote {
                if quote == b'"' || self.text.get(self.at) != Some(&quote) {
                    return Some(());
                }
                self.at += 1;
            }
        }
    }

    fn follows_whitespace(&self) -> bool {
        let before = self.at.checked_sub(2).and_then(|at| self.text.get(at));
        before.is_none_or(|before| before.is_ascii_whitespace())
    }

    fn skip_line(&mut self) {
        while self.text.get(self.at).is_some_and(|next| *next != b'\n') {
            self.at += 1;
        }
    }
}
