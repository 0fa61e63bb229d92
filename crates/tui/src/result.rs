//! The view of a result: text, JSON that folds, and binary content that can be saved to a file.

mod json_scan;
mod search;
mod sections;
mod text_page;
mod tree;

pub(crate) use self::sections::{ResultSection, error_text, is_large, sections};
pub(crate) use self::text_page::TextPage;
pub(crate) use self::tree::ResultTree;

use std::sync::Arc;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use self::tree::TreeRowKind;
use crate::canvas::Canvas;
use crate::editor::Editor;
use crate::key::KeyPress;
use crate::list_cursor::ListCursor;
use crate::message::SaveContents;
use crate::text::{clean, clip};

/// Sections below each other, with one cursor over all of their lines.
#[derive(Debug)]
pub(crate) struct ResultDocument {
    sections: Vec<ResultSection>,
    pick: ListCursor,
    columns: usize,
    search: Option<SearchInput>,
    /// The last search text.
    query: String,
}

#[derive(Debug)]
pub(crate) enum SectionBody {
    Text(TextPage),
    Tree(ResultTree),
    /// A description of content that cannot be shown.
    Note(String),
}

#[derive(Debug)]
struct SearchInput {
    typed: Editor,
    from: usize,
}

/// The result of a key press.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ResultAction {
    Stay,
    Ignored,
    Save(String, SaveContents),
    /// Open a long text on a screen of its own.
    Open(String, Arc<str>),
    Notify(String),
}

/// A line of the document.
enum DocumentLine {
    Title(usize),
    Body(usize, usize),
    Blank,
}

impl ResultDocument {
    pub(crate) fn new(sections: Vec<ResultSection>) -> Self {
        Self { sections, pick: ListCursor::default(), columns: 80, search: None, query: String::new() }
    }

    /// One text.
    pub(crate) fn from_text(text: impl Into<Arc<str>>) -> Self {
        let body = SectionBody::Text(TextPage::new(text.into()));
        Self::new(vec![ResultSection { title: None, body, save: None }])
    }

    /// One value.
    pub(crate) fn from_json(text: impl Into<Arc<str>>) -> Self {
        let text: Arc<str> = text.into();
        let save = Some(("result.json".to_owned(), SaveContents::Text(Arc::clone(&text))));
        Self::new(vec![ResultSection { title: None, body: SectionBody::Tree(ResultTree::new(text)), save }])
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.search.is_some()
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            search.typed.insert_text(text);
        }
    }

    pub(crate) fn press(&mut self, key: KeyPress) -> ResultAction {
        if self.search.is_some() {
            return self.press_search(key);
        }
        self.lay_out(self.pick.at + 200);
        match key {
            KeyPress::End | KeyPress::Char('G') => self.lay_out(self.pick.at + 100_000),
            KeyPress::Char('/') => {
                self.search = Some(SearchInput { typed: Editor::single_line(""), from: self.pick.at });
                return ResultAction::Stay;
            }
            KeyPress::Char('n') => return self.repeat_search(SearchDirection::Down),
            KeyPress::Char('N') => return self.repeat_search(SearchDirection::Up),
            KeyPress::Char('s') => return self.save(),
            KeyPress::Enter => return self.enter(),
            KeyPress::Char(' ')
            | KeyPress::Right
            | KeyPress::Char('l')
            | KeyPress::Left
            | KeyPress::Char('h')
            | KeyPress::Char('z') => {
                return self.fold(key);
            }
            _ => {}
        }
        if self.pick.press(key, self.len()) { ResultAction::Stay } else { ResultAction::Ignored }
    }

    fn press_search(&mut self, key: KeyPress) -> ResultAction {
        let Some(mut search) = self.search.take() else { return ResultAction::Ignored };
        match key {
            KeyPress::Esc => {
                self.pick.at = search.from;
                return ResultAction::Stay;
            }
            KeyPress::Enter => {
                search.typed.text().clone_into(&mut self.query);
                return self.find(search.from, SearchDirection::Down, SearchStart::Here);
            }
            key => {
                search.typed.press(key);
            }
        }
        // Documents that are small enough are searched on every letter.
        if self.byte_size() < 1_000_000 {
            search.typed.text().clone_into(&mut self.query);
            let from = search.from;
            if let ResultAction::Notify(_) = self.find(from, SearchDirection::Down, SearchStart::Here) {
                self.pick.at = from;
            }
        }
        self.search = Some(search);
        ResultAction::Stay
    }

    fn repeat_search(&mut self, way: SearchDirection) -> ResultAction {
        match self.query.is_empty() {
            true => ResultAction::Notify("no search yet; press / to search".to_owned()),
            false => self.find(self.pick.at, way, SearchStart::After),
        }
    }

    /// Moves to the next match, wrapping around at the end.
    fn find(&mut self, from: usize, way: SearchDirection, start: SearchStart) -> ResultAction {
        if self.query.is_empty() {
            return ResultAction::Stay;
        }
        let needle = self.query.clone();
        let current = match self.line_at(from) {
            Some(DocumentLine::Title(section) | DocumentLine::Body(section, _)) => section,
            Some(DocumentLine::Blank) | None => 0,
        };
        let many = self.sections.len();
        for step in 0..=many {
            let section = match way {
                SearchDirection::Down => (current + step) % many.max(1),
                SearchDirection::Up => (current + many * 2 - step) % many.max(1),
            };
            let offset = self.section_start(section) + self.title_lines(section);
            // The current section is searched only after the cursor; after wrapping around, all of
            // it is searched.
            let line = (step == 0).then(|| from.saturating_sub(offset));
            let Some(one) = self.sections.get_mut(section) else { continue };
            if let Some(line) = one.body.find(&needle, line, way, start) {
                self.pick.at = self.section_start(section) + self.title_lines(section) + line;
                return ResultAction::Stay;
            }
        }
        ResultAction::Notify(format!("no match for {}", clean(&needle)))
    }

    fn save(&self) -> ResultAction {
        let current = match self.line_at(self.pick.at) {
            Some(DocumentLine::Title(section) | DocumentLine::Body(section, _)) => section,
            Some(DocumentLine::Blank) | None => 0,
        };
        let save = self.sections.get(current).and_then(|section| section.save.clone());
        match save {
            Some((name, contents)) => ResultAction::Save(name, contents),
            None => ResultAction::Notify("nothing to save here".to_owned()),
        }
    }

    fn enter(&mut self) -> ResultAction {
        let Some(DocumentLine::Body(section, line)) = self.line_at(self.pick.at) else {
            return ResultAction::Stay;
        };
        match self.sections.get_mut(section).map(|section| &mut section.body) {
            Some(SectionBody::Tree(tree)) => match tree.long_text(line) {
                Some((name, text)) => return ResultAction::Open(name, text),
                None => tree.toggle(line),
            },
            Some(SectionBody::Text(_) | SectionBody::Note(_)) | None => {}
        }
        ResultAction::Stay
    }

    fn fold(&mut self, key: KeyPress) -> ResultAction {
        let Some(DocumentLine::Body(section, line)) = self.line_at(self.pick.at) else {
            return ResultAction::Ignored;
        };
        let start = self.section_start(section) + self.title_lines(section);
        let Some(SectionBody::Tree(tree)) = self.sections.get_mut(section).map(|section| &mut section.body)
        else {
            return ResultAction::Ignored;
        };
        match key {
            KeyPress::Left | KeyPress::Char('h') => self.pick.at = start + tree.close(line),
            KeyPress::Right | KeyPress::Char('l') => tree.open(line),
            KeyPress::Char('z') => {
                tree.fold_all();
                self.pick.at = start;
            }
            _ => tree.toggle(line),
        }
        ResultAction::Stay
    }

    fn byte_size(&self) -> usize {
        self.sections.iter().map(|section| section.body.byte_size()).sum()
    }

    /// The number of lines, as far as they are laid out.
    fn len(&self) -> usize {
        (0..self.sections.len()).map(|section| self.section_lines(section)).sum()
    }

    fn title_lines(&self, section: usize) -> usize {
        usize::from(self.sections.get(section).is_some_and(|section| section.title.is_some()))
    }

    fn section_lines(&self, section: usize) -> usize {
        let Some(one) = self.sections.get(section) else { return 0 };
        let gap = usize::from(section + 1 < self.sections.len());
        self.title_lines(section) + one.body.len() + gap
    }

    fn section_start(&self, section: usize) -> usize {
        (0..section).map(|section| self.section_lines(section)).sum()
    }

    fn line_at(&self, line: usize) -> Option<DocumentLine> {
        let mut rest = line;
        for (at, section) in self.sections.iter().enumerate() {
            let title = self.title_lines(at);
            if rest < title {
                return Some(DocumentLine::Title(at));
            }
            rest -= title;
            if rest < section.body.len() {
                return Some(DocumentLine::Body(at, rest));
            }
            rest -= section.body.len();
            if at + 1 < self.sections.len() {
                if rest == 0 {
                    return Some(DocumentLine::Blank);
                }
                rest -= 1;
            }
        }
        None
    }

    /// Lays out text until there are this many lines or the text ends.
    fn lay_out(&mut self, lines: usize) {
        let columns = self.columns;
        let mut missing = lines;
        for section in &mut self.sections {
            if let SectionBody::Text(page) = &mut section.body {
                page.lay_out(columns, missing);
            }
            missing = missing.saturating_sub(section.body.len());
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        self.columns = usize::from(area.width).saturating_sub(2);
        let height = usize::from(area.height);
        self.lay_out(self.pick.at + 2 * height);
        let len = self.len();
        let window = self.pick.window(len, height);
        for (row, line) in window.clone().enumerate() {
            let chosen = line == self.pick.at;
            if chosen {
                canvas.select(area, row);
            }
            let shown = match self.line_at(line) {
                Some(DocumentLine::Title(section)) => {
                    let title = self.sections[section].title.as_deref().unwrap_or_default();
                    Line::from(Span::styled(format!("── {title} "), canvas.theme.dim()))
                }
                Some(DocumentLine::Body(section, line)) => {
                    self.sections[section].body.line(line, self.columns, canvas)
                }
                Some(DocumentLine::Blank) | None => Line::default(),
            };
            canvas.line(area, row, &shown);
        }
        canvas.scrollbar(area, window.start, len);
        if let Some(search) = &self.search {
            let last = height.saturating_sub(1);
            let (typed, column) = search.typed.visible_line(self.columns.saturating_sub(10));
            let line = format!("search: {typed}");
            let row = Rect { y: area.bottom().saturating_sub(1), height: 1, ..area };
            canvas.buffer.set_style(row, ratatui::style::Style::reset());
            canvas.text(
                area,
                last,
                &crate::text::cell(&line, usize::from(area.width)),
                canvas.theme.accent(),
            );
            canvas.set_cursor(area, last, 8 + column);
        }
    }

    /// The position of the cursor, for the title line.
    pub(crate) fn position_label(&self) -> String {
        let more = self
            .sections
            .iter()
            .any(|section| matches!(&section.body, SectionBody::Text(page) if !page.is_complete()));
        format!("{}/{}{}", self.pick.at + 1, self.len(), if more { "+" } else { "" })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchDirection {
    Down,
    Up,
}

/// Whether a search includes the current line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchStart {
    Here,
    After,
}

impl SectionBody {
    fn len(&self) -> usize {
        match self {
            Self::Text(page) => page.len(),
            Self::Tree(tree) => tree.len(),
            Self::Note(_) => 1,
        }
    }

    fn byte_size(&self) -> usize {
        match self {
            Self::Text(page) => page.text().len(),
            Self::Tree(tree) => tree.text().len(),
            Self::Note(_) => 0,
        }
    }

    fn line(&self, at: usize, columns: usize, canvas: &Canvas<'_>) -> Line<'static> {
        match self {
            Self::Text(page) => {
                let shown = clean(page.line(at));
                Line::from(clip(&shown, columns).into_owned())
            }
            Self::Tree(tree) => tree_line(tree, at, columns, canvas),
            Self::Note(text) => {
                Line::from(Span::styled(clip(text, columns).into_owned(), canvas.theme.dim()))
            }
        }
    }

    fn find(
        &mut self,
        needle: &str,
        line: Option<usize>,
        way: SearchDirection,
        start: SearchStart,
    ) -> Option<usize> {
        match self {
            Self::Text(page) => page.find(needle, line, way, start),
            Self::Tree(tree) => tree.find(needle, line, way, start),
            Self::Note(_) => None,
        }
    }
}

fn tree_line(tree: &ResultTree, at: usize, columns: usize, canvas: &Canvas<'_>) -> Line<'static> {
    let theme = canvas.theme;
    let Some(row) = tree.row(at) else { return Line::default() };
    let indent = 2 * row.depth.min(columns / 4);
    let mut spans = vec![Span::raw(" ".repeat(indent))];
    let mark = match row.kind {
        TreeRowKind::Open => "▾ ",
        TreeRowKind::Folded => "▸ ",
        TreeRowKind::Scalar | TreeRowKind::Close | TreeRowKind::More => "  ",
    };
    spans.push(Span::styled(mark, theme.dim()));
    let mut room = columns.saturating_sub(indent + 2);
    if let Some(name) = &row.name {
        let name = clip(name, room / 2).into_owned();
        room = room.saturating_sub(crate::text::width(&name) + 2);
        spans.extend([Span::styled(name, theme.name()), Span::raw(": ")]);
    }
    let style = match (row.kind, row.value.as_bytes().first()) {
        (TreeRowKind::Scalar, Some(b'"')) => theme.text(),
        (TreeRowKind::Scalar, Some(b'0'..=b'9' | b'-' | b't' | b'f' | b'n')) => theme.number(),
        (TreeRowKind::Folded | TreeRowKind::More, _) => theme.dim(),
        _ => theme.plain(),
    };
    spans.push(Span::styled(clip(&row.value, room).into_owned(), style));
    Line::from(spans)
}

#[cfg(test)]
mod tests;
