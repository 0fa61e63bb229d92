//! Plain text, wrapped only as far as it has been viewed.

use std::sync::Arc;

use memchr::memchr;

use super::search::find;
use super::{SearchDirection, SearchStart};
use crate::text::fitting_len;

#[derive(Debug)]
pub(crate) struct TextPage {
    text: Arc<str>,
    /// The start and end of every line that is laid out.
    lines: Vec<(usize, usize)>,
    /// The byte up to which the text is laid out.
    laid: usize,
    columns: usize,
    whole: bool,
}

impl TextPage {
    pub(crate) fn new(text: Arc<str>) -> Self {
        Self { text, lines: Vec::new(), laid: 0, columns: 0, whole: false }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn len(&self) -> usize {
        self.lines.len()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.whole
    }

    pub(super) fn line(&self, at: usize) -> &str {
        self.lines.get(at).map_or("", |(start, end)| &self.text[*start..*end])
    }

    /// Lays out the text until there are this many lines. A different width starts over.
    pub(super) fn lay_out(&mut self, columns: usize, lines: usize) {
        let columns = columns.max(1);
        if columns != self.columns {
            self.columns = columns;
            self.lines.clear();
            self.laid = 0;
            self.whole = false;
        }
        while self.lines.len() < lines && !self.whole {
            self.lay_out_line();
        }
    }

    fn lay_out_line(&mut self) {
        let start = self.laid;
        // Only the part that could fit is inspected: a line may be megabytes long.
        let mut most = self.text.len().min(start + 8 * self.columns);
        while !self.text.is_char_boundary(most) {
            most += 1;
        }
        let line_end = memchr(b'\n', &self.text.as_bytes()[start..most]).map(|at| start + at);
        let part = &self.text[start..line_end.unwrap_or(most)];
        let fits = fitting_len(part, self.columns).max(part.chars().next().map_or(0, char::len_utf8));
        if fits == part.len() && (line_end.is_some() || most == self.text.len()) {
            self.lines.push((start, start + fits));
            self.laid = start + fits + 1;
            self.whole = line_end.is_none();
            return;
        }
        // Breaks between words if possible.
        let cut = match part[..fits].rfind(' ') {
            Some(space) if space > 0 && !part[fits..].starts_with(' ') => space + 1,
            _ => fits,
        };
        self.lines.push((start, start + cut));
        self.laid = start + cut;
    }

    /// Returns the line of the next match, and lays out everything up to it.
    pub(super) fn find(
        &mut self,
        needle: &str,
        line: Option<usize>,
        way: SearchDirection,
        start: SearchStart,
    ) -> Option<usize> {
        let from = match (line.and_then(|line| self.lines.get(line)), way, start) {
            (Some((_, end)), SearchDirection::Down, SearchStart::After) => *end,
            (Some((start, _)), _, _) => *start,
            (None, SearchDirection::Down, _) => 0,
            (None, SearchDirection::Up, _) => self.text.len(),
        };
        let found = find(&self.text, needle, from, way)?;
        while self.laid <= found && !self.whole {
            self.lay_out_line();
        }
        Some(self.lines.partition_point(|(start, _)| *start <= found).saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SearchDirection, SearchStart};
    use super::TextPage;

    fn lines(text: &str, columns: usize) -> Vec<String> {
        let mut page = TextPage::new(text.into());
        page.lay_out(columns, usize::MAX);
        (0..page.len()).map(|at| page.line(at).to_owned()).collect()
    }

    #[test]
    fn text_is_broken_where_words_end_and_nothing_is_lost() {
        assert_eq!(lines("one two three", 8), ["one two ", "three"]);
        assert_eq!(lines("a\n\nb\n", 8), ["a", "", "b", ""]);
        assert_eq!(lines("abcdef", 4), ["abcd", "ef"]);
        assert_eq!(lines("日本語", 4), ["日本", "語"]);
        assert_eq!(lines("日", 1), ["日"]);
        assert_eq!(lines("", 4), [""]);
    }

    #[test]
    fn only_what_is_looked_at_is_laid_out() {
        let mut page = TextPage::new("x".repeat(50_000_000).into());
        page.lay_out(80, 100);
        assert_eq!(page.len(), 100);
        assert!(!page.is_complete());
    }

    #[test]
    fn what_is_found_further_down_is_laid_out() {
        let mut page = TextPage::new(format!("{}needle here", "line\n".repeat(1000)).into());
        page.lay_out(80, 10);
        assert_eq!(page.find("needle", Some(0), SearchDirection::Down, SearchStart::Here), Some(1000));
        assert_eq!(page.find("needle", Some(1000), SearchDirection::Down, SearchStart::After), None);
        assert_eq!(page.find("line", Some(1000), SearchDirection::Up, SearchStart::After), Some(999));
    }
}
