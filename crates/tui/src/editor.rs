//! A text editor for a single line or several lines.

use std::borrow::Cow;

use crate::key::KeyPress;
use crate::text;

/// The text being edited, and the cursor position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Editor {
    text: String,
    /// The cursor position as a byte offset into the text.
    at: usize,
    lines: LineMode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LineMode {
    #[default]
    One,
    Several,
}

impl Editor {
    /// Creates an editor for a single line.
    pub(crate) fn single_line(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { at: text.len(), text, lines: LineMode::One }
    }

    /// Creates an editor for several lines, with the cursor at the start.
    pub(crate) fn multi_line(text: impl Into<String>) -> Self {
        Self { text: text.into(), at: 0, lines: LineMode::Several }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Handles a key; returns whether it was an editing key.
    pub(crate) fn press(&mut self, key: KeyPress) -> bool {
        match key {
            KeyPress::Char(c) => self.insert_text(c.encode_utf8(&mut [0; 4])),
            KeyPress::Enter if self.lines == LineMode::Several => self.insert_text("\n"),
            KeyPress::Backspace => {
                let before = self.previous_boundary();
                self.text.replace_range(before..self.at, "");
                self.at = before;
            }
            KeyPress::Delete => {
                let after = self.next_boundary();
                self.text.replace_range(self.at..after, "");
            }
            KeyPress::Left => self.at = self.previous_boundary(),
            KeyPress::Right => self.at = self.next_boundary(),
            KeyPress::Home | KeyPress::Ctrl('a') => self.at = self.line_start(),
            KeyPress::End | KeyPress::Ctrl('e') => self.at = self.line_end(),
            KeyPress::Ctrl('w') => {
                let word_start = self.text[..self.at].trim_end().rfind([' ', '\n']).map_or(0, |at| at + 1);
                self.text.replace_range(word_start..self.at, "");
                self.at = word_start;
            }
            KeyPress::Ctrl('u') => {
                let start = self.line_start();
                self.text.replace_range(start..self.at, "");
                self.at = start;
            }
            KeyPress::Ctrl('k') => {
                let end = self.line_end();
                self.text.replace_range(self.at..end, "");
            }
            KeyPress::Up if self.lines == LineMode::Several => self.move_line(MoveDirection::Start),
            KeyPress::Down if self.lines == LineMode::Several => self.move_line(MoveDirection::End),
            KeyPress::PageUp if self.lines == LineMode::Several => {
                (0..10).for_each(|_| self.move_line(MoveDirection::Start))
            }
            KeyPress::PageDown if self.lines == LineMode::Several => {
                (0..10).for_each(|_| self.move_line(MoveDirection::End))
            }
            _ => return false,
        }
        true
    }

    /// Inserts text at the cursor. In a single line, line breaks become spaces.
    pub(crate) fn insert_text(&mut self, text: &str) {
        let text = match self.lines {
            LineMode::One => Cow::Owned(text.replace(['\n', '\r'], " ")),
            LineMode::Several => Cow::Borrowed(text),
        };
        self.text.insert_str(self.at, &text);
        self.at += text.len();
    }

    /// Returns the part of a single line that fits into the given columns, and the column of the
    /// cursor.
    pub(crate) fn visible_line(&self, columns: usize) -> (String, usize) {
        visible_window(&self.text, self.at, columns)
    }

    /// Returns the line of the cursor and its byte offset in that line.
    pub(crate) fn cursor_position(&self) -> (usize, usize) {
        (self.text[..self.at].matches('\n').count(), self.at - self.line_start())
    }

    fn previous_boundary(&self) -> usize {
        self.text[..self.at].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn next_boundary(&self) -> usize {
        self.text[self.at..].chars().next().map_or(self.at, |c| self.at + c.len_utf8())
    }

    fn line_start(&self) -> usize {
        self.text[..self.at].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.at..].find('\n').map_or(self.text.len(), |at| self.at + at)
    }

    fn move_line(&mut self, towards: MoveDirection) {
        let start = self.line_start();
        let column = text::width(&self.text[start..self.at]);
        let other = match towards {
            MoveDirection::Start if start == 0 => return,
            MoveDirection::Start => self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1),
            MoveDirection::End if self.line_end() == self.text.len() => return,
            MoveDirection::End => self.line_end() + 1,
        };
        let end = self.text[other..].find('\n').map_or(self.text.len(), |at| other + at);
        self.at = other + text::fitting_len(&self.text[other..end], column);
    }
}

#[derive(Debug, Clone, Copy)]
enum MoveDirection {
    Start,
    End,
}

/// Returns the part of a line around a byte offset that fits into the given columns, sanitized for
/// display, and the column of that byte.
pub(crate) fn visible_window(line: &str, at: usize, columns: usize) -> (String, usize) {
    let columns = columns.max(2);
    // Scans backwards from the cursor, which needs a column of its own, because the line may be
    // very long.
    let mut start = at;
    let mut used = 1;
    for (before, c) in line[..at].char_indices().rev() {
        used += text::width(&text::clean(c.encode_utf8(&mut [0; 4])));
        if used > columns {
            break;
        }
        start = before;
    }
    let column = text::width(&text::clean(&line[start..at]));
    let end = text::floor_char_boundary(line, (start + 8 * columns).max(at));
    let shown = text::clean(&line[start..end]);
    (shown[..text::fitting_len(&shown, columns)].to_owned(), column)
}

#[cfg(test)]
mod tests {
    use super::Editor;
    use crate::key::KeyPress;

    fn typed(mut editor: Editor, keys: &[KeyPress]) -> (String, usize) {
        for key in keys {
            editor.press(*key);
        }
        (editor.text.clone(), editor.at)
    }

    #[test]
    fn a_line_is_edited_by_characters_not_bytes() {
        let line = Editor::single_line("añ日");
        assert_eq!(
            typed(line.clone(), &[KeyPress::Backspace, KeyPress::Left, KeyPress::Delete]),
            ("a".to_owned(), 1)
        );
        assert_eq!(typed(line.clone(), &[KeyPress::Home, KeyPress::Char('x')]), ("xañ日".to_owned(), 1));
        assert_eq!(typed(Editor::single_line("two words"), &[KeyPress::Ctrl('w')]), ("two ".to_owned(), 4));
        assert_eq!(typed(line.clone(), &[KeyPress::Ctrl('u')]), (String::new(), 0));
        let mut pasted = line;
        pasted.insert_text("\nb");
        assert_eq!(pasted.text(), "añ日 b");
        assert!(!pasted.press(KeyPress::Enter));
    }

    #[test]
    fn a_page_is_edited_line_by_line() {
        let page = Editor::multi_line("one\ntwo\nlonger");
        assert_eq!(
            typed(page.clone(), &[KeyPress::End, KeyPress::Down, KeyPress::Down]),
            ("one\ntwo\nlonger".to_owned(), 11)
        );
        assert_eq!(
            typed(page.clone(), &[KeyPress::Down, KeyPress::Enter]),
            ("one\n\ntwo\nlonger".to_owned(), 5)
        );
        assert_eq!(
            typed(page, &[KeyPress::Up, KeyPress::Down, KeyPress::Ctrl('k')]),
            ("one\n\nlonger".to_owned(), 4)
        );
    }

    #[test]
    fn the_cursor_is_always_in_sight() {
        let line = Editor::single_line("0123456789");
        assert_eq!(line.visible_line(5), ("6789".to_owned(), 4));
        assert_eq!(line.visible_line(20), ("0123456789".to_owned(), 10));
        assert_eq!(Editor::single_line("日本語").visible_line(5), ("本語".to_owned(), 4));
    }
}
