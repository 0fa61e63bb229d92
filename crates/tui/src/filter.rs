//! Incremental filtering of a long list. A longer text only searches the matches of the shorter
//! one.

use crate::editor::Editor;
use crate::key::KeyPress;

#[derive(Debug, Default)]
pub(crate) struct ListFilter {
    typed: Editor,
    pub(crate) typing: bool,
}

/// The result of a key press on the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FilterAction {
    /// The filter text changed.
    Changed,
    Same,
    /// The filter does not handle this key; the list may.
    Ignored,
}

impl ListFilter {
    pub(crate) fn text(&self) -> &str {
        self.typed.text()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.typed.is_empty()
    }

    /// Handles a key before the list does.
    pub(crate) fn press(&mut self, key: KeyPress) -> FilterAction {
        match key {
            KeyPress::Char('/') if !self.typing => {
                self.typing = true;
                FilterAction::Same
            }
            KeyPress::Esc if self.typing || !self.typed.is_empty() => {
                self.typing = false;
                let changed = !self.typed.is_empty();
                self.typed = Editor::single_line("");
                if changed { FilterAction::Changed } else { FilterAction::Same }
            }
            KeyPress::Enter | KeyPress::Tab | KeyPress::BackTab if self.typing => {
                self.typing = false;
                if key == KeyPress::Enter { FilterAction::Same } else { FilterAction::Ignored }
            }
            KeyPress::Up | KeyPress::Down | KeyPress::PageUp | KeyPress::PageDown => FilterAction::Ignored,
            key if self.typing => {
                let before = self.typed.text().len();
                match self.typed.press(key) {
                    true if self.typed.text().len() != before => FilterAction::Changed,
                    true => FilterAction::Same,
                    false => FilterAction::Ignored,
                }
            }
            _ => FilterAction::Ignored,
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.typed.insert_text(text);
    }

    /// Returns the visible text and the column of the cursor.
    pub(crate) fn visible_line(&self, columns: usize) -> (String, usize) {
        self.typed.visible_line(columns)
    }
}

/// The indices of the list items that match a filter.
#[derive(Debug, Default)]
pub(crate) struct FilterHits {
    hits: Vec<usize>,
    query: String,
    built: bool,
}

impl FilterHits {
    pub(crate) fn len(&self) -> usize {
        self.hits.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<usize> {
        self.hits.get(at).copied()
    }

    pub(crate) fn position(&self, index: usize) -> Option<usize> {
        self.hits.iter().position(|hit| *hit == index)
    }

    /// Resets the matches because the list changed.
    pub(crate) fn invalidate(&mut self) {
        self.built = false;
    }

    /// Narrows the matches to the rows that contain every word. `hay` returns the lowercase text of
    /// a row; matches before the length returned with it rank higher.
    pub(crate) fn narrow<'a>(&mut self, text: &str, len: usize, hay: impl Fn(usize) -> (usize, &'a str)) {
        let query = text.to_lowercase();
        if self.built && query == self.query {
            return;
        }
        let words: Vec<&str> = query.split_whitespace().collect();
        // A longer text matches a subset of what the shorter one matched.
        let grown = self.built && query.starts_with(&self.query) && !self.query.is_empty();
        let mut candidates: Vec<usize> =
            if grown { std::mem::take(&mut self.hits) } else { (0..len).collect() };
        if words.is_empty() {
            self.hits = candidates;
        } else {
            candidates.sort_unstable();
            let (mut by_name, mut by_rest) = (Vec::new(), Vec::new());
            for index in candidates {
                let (name_len, text) = hay(index);
                let place = |word: &&str| text.find(*word);
                let Some(places) = words.iter().map(place).collect::<Option<Vec<usize>>>() else { continue };
                if places.iter().all(|at| *at < name_len) { by_name.push(index) } else { by_rest.push(index) }
            }
            by_name.append(&mut by_rest);
            self.hits = by_name;
        }
        self.query = query;
        self.built = true;
    }
}

#[cfg(test)]
mod tests {
    use super::{FilterAction, FilterHits, ListFilter};
    use crate::key::KeyPress;

    #[test]
    fn typing_narrows_and_escape_shows_everything_again() {
        let mut filter = ListFilter::default();
        assert_eq!(filter.press(KeyPress::Char('j')), FilterAction::Ignored);
        assert_eq!(filter.press(KeyPress::Char('/')), FilterAction::Same);
        assert_eq!(filter.press(KeyPress::Char('j')), FilterAction::Changed);
        assert_eq!(filter.press(KeyPress::Down), FilterAction::Ignored);
        assert_eq!(filter.press(KeyPress::Enter), FilterAction::Same);
        assert_eq!((filter.text(), filter.typing), ("j", false));
        assert_eq!(filter.press(KeyPress::Esc), FilterAction::Changed);
        assert_eq!(filter.press(KeyPress::Esc), FilterAction::Ignored);
    }

    #[test]
    fn every_word_must_be_there_and_names_come_first() {
        let rows = ["read file", "write", "list: reads a folder", "read"];
        let hay = |at: usize| (rows[at].find(':').unwrap_or(rows[at].len()), rows[at]);
        let mut hits = FilterHits::default();
        hits.narrow("", 4, hay);
        assert_eq!(hits.hits, [0, 1, 2, 3]);
        hits.narrow("r", 4, hay);
        hits.narrow("read", 4, hay);
        assert_eq!(hits.hits, [0, 3, 2]);
        hits.narrow("read fi", 4, hay);
        assert_eq!(hits.hits, [0]);
        hits.narrow("re", 4, hay);
        assert_eq!(hits.hits, [0, 3, 2]);
    }
}
