//! YAML as it is usually written: maps and lists by their indentation, texts of one or more lines, and brackets. What is
//! not usual, anchors and tags and tabs and whatever is wrong, is for the parser that knows all of YAML: at the first of it
//! this reader gives up without a word. It may refuse what it likes, but what it reads, it reads as that parser does.

mod brackets;
mod scalar;
mod text;

use super::node::{Members, Node};
use super::text::Reading;
use text::Further;

/// The document, if nothing in it is unusual. What was counted counts only then.
pub(super) fn read(text: &str, reading: &mut Reading) -> Option<Node> {
    if has_odd_characters(text) {
        return None;
    }
    let begin = text.strip_prefix("---\n").map_or(0, |rest| text.len() - rest.len());
    let mut usual = Usual { text, line: begin, at: begin, end: begin, column: 0, depth: 0, reading };
    usual.begin_at(begin)?;
    // A document that is no map is not worth the hurry.
    if usual.is_over() || usual.is_entry() || usual.column > 0 {
        return None;
    }
    let map = usual.map()?;
    usual.is_over().then_some(map)
}

/// Whether there are tabs, other characters that nobody sees, or marks of an encoding.
fn has_odd_characters(text: &str) -> bool {
    // Whole pieces are looked at without a way out, which processors do many bytes at a time.
    let odd = |piece: &[u8]| piece.iter().fold(false, |odd, byte| odd | ((*byte < b' ') & (*byte != b'\n')));
    let mark = "\u{feff}".as_bytes();
    text.as_bytes().chunks(1 << 10).any(odd) || memchr::memmem::find(text.as_bytes(), mark).is_some()
}

/// Collections inside one another: each takes some of the stack.
const DEEPEST: usize = 200;

/// A reader at the first character of what it has not read yet.
struct Usual<'t, 'r> {
    text: &'t str,
    /// Where the line begins.
    line: usize,
    at: usize,
    /// Where the line ends.
    end: usize,
    /// How far what is at hand is indented; also behind a dash, where something begins in the middle of a line.
    column: usize,
    depth: usize,
    reading: &'r mut Reading,
}

/// What a value stands behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    Key,
    Dash,
}

impl Usual<'_, '_> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn is_over(&self) -> bool {
        self.at == self.text.len()
    }

    /// Whether an entry of a list begins here.
    fn is_entry(&self) -> bool {
        self.byte(self.at) == Some(b'-') && matches!(self.byte(self.at + 1), None | Some(b' ' | b'\n'))
    }

    /// Where a line ends that begins, or goes on, here.
    fn end_of(&self, from: usize) -> usize {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        memchr::memchr(b'\n', rest).map_or(self.text.len(), |length| from + length)
    }

    /// How many spaces there are.
    fn blanks(&self, from: usize) -> usize {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| **byte == b' ').count()
    }

    /// Goes to the next line that has anything on it.
    fn go_on(&mut self) -> Option<()> {
        self.begin_at(self.end + 1)
    }

    fn begin_at(&mut self, line: usize) -> Option<()> {
        let mut line = line;
        while line < self.text.len() {
            let end = self.end_of(line);
            let column = self.blanks(line);
            let at = line + column;
            if at < end && self.byte(at) != Some(b'#') {
                let rest = self.text.get(at..end)?;
                let mark = rest.starts_with("---") || rest.starts_with("...") || rest.starts_with('%');
                (self.line, self.at, self.end, self.column) = (line, at, end, column);
                return (column > 0 || !mark).then_some(());
            }
            line = end + 1;
        }
        let over = self.text.len();
        (self.line, self.at, self.end, self.column) = (over, over, over, 0);
        Some(())
    }

    fn count(&mut self) -> Option<()> {
        self.reading.count(1).ok()
    }

    fn enter(&mut self) -> Option<()> {
        self.depth += 1;
        self.count()?;
        (self.depth <= self.reading.depth.min(DEEPEST)).then_some(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Whatever begins here, inside of what is in column `around`.
    fn node(&mut self, around: usize) -> Option<Node> {
        if self.is_entry() {
            return self.list();
        }
        if self.key()?.is_some() { self.map() } else { self.scalar(around) }
    }

    fn map(&mut self) -> Option<Node> {
        let column = self.column;
        self.enter()?;
        let mut members = Members::new();
        while !self.is_over() && self.column == column {
            let (name, after) = self.key()??;
            self.count()?;
            self.at = after;
            let value = self.value(column, Behind::Key)?;
            if members.insert(name, value).is_some() {
                return None;
            }
        }
        self.leave();
        // What is farther right would belong to a value that is complete.
        (self.is_over() || self.column < column).then_some(Node::Object(members))
    }

    fn list(&mut self) -> Option<Node> {
        let column = self.column;
        self.enter()?;
        let mut values = Vec::new();
        while !self.is_over() && self.column == column && self.is_entry() {
            self.at += 1;
            values.push(self.value(column, Behind::Dash)?);
        }
        self.leave();
        (self.is_over() || self.column <= column).then_some(Node::Array(values))
    }

    /// The value behind a key or a dash in this column: on the same line, on the next ones, or none.
    fn value(&mut self, column: usize, behind: Behind) -> Option<Node> {
        self.at += self.blanks(self.at);
        if self.at < self.end && self.byte(self.at) != Some(b'#') {
            if behind == Behind::Key {
                return self.scalar(column);
            }
            self.column = self.at - self.line;
            return self.node(column);
        }
        self.go_on()?;
        // A list may stand right below its key.
        let list = behind == Behind::Key && self.column == column && self.is_entry();
        if !self.is_over() && (self.column > column || list) {
            return self.node(column);
        }
        self.count()?;
        Some(Node::Null)
    }

    /// The key that begins here, if one does, and where what follows its colon begins.
    fn key(&self) -> Option<Option<(Box<str>, usize)>> {
        let first = self.byte(self.at)?;
        if matches!(first, b'"' | b'\'') {
            let Some(quoted) = self.quoted(Further::Nowhere)? else { return Some(None) };
            let colon = self.byte(quoted.after) == Some(b':') && self.is_blank(quoted.after + 1);
            return Some(colon.then(|| (quoted.text.into(), quoted.after + 1)));
        }
        if matches!(first, b'[' | b'{') {
            return Some(None);
        }
        let Some(colon) = self.colon(self.at)? else { return Some(None) };
        let name = self.text.get(self.at..colon)?;
        let usual = self.may_begin_plain(self.at) && name != "<<" && name.len() < 1_000;
        (usual && !name.ends_with(' ')).then(|| Some((name.into(), colon + 1)))
    }

    /// The colon of a key on the rest of this line, if there is one before a comment.
    fn colon(&self, from: usize) -> Option<Option<usize>> {
        let rest = self.text.as_bytes().get(from..self.end)?;
        for found in memchr::memchr2_iter(b':', b'#', rest) {
            let at = from + found;
            if self.byte(at) == Some(b':') {
                if self.is_blank(at + 1) {
                    return Some(Some(at));
                }
            } else if at > 0 && self.byte(at - 1) == Some(b' ') {
                return Some(None);
            }
        }
        Some(None)
    }

    /// Whether there is a space or the end of a line.
    fn is_blank(&self, at: usize) -> bool {
        matches!(self.byte(at), None | Some(b' ' | b'\n'))
    }
}

#[cfg(test)]
mod tests;
