//! The log, all of it or one kind of entries.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::item::draw_tabs;
use super::{KeyHints, Screen, ScreenAction};
use crate::canvas::{Canvas, inset, split_top};
use crate::filter::{FilterAction, ListFilter};
use crate::form::pretty_json;
use crate::key::KeyPress;
use crate::list_cursor::ListCursor;
use crate::log::{UiLogEntry, UiLogKind, format_time};
use crate::result::ResultDocument;
use crate::text::{cell, clean, clip, truncate};
use crate::theme::Theme;
use crate::ui_state::UiState;

const TABS: [&str; 4] = ["All", "Events", "Standard error", "Messages"];

#[derive(Debug)]
pub(crate) struct LogScreen {
    tab: usize,
    filter: ListFilter,
    pick: ListCursor,
    /// Whether the newest line stays selected as more arrive.
    following: bool,
}

impl LogScreen {
    pub(crate) fn new() -> Self {
        Self { tab: 0, filter: ListFilter::default(), pick: ListCursor::default(), following: true }
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.filter.typing
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if self.filter.typing {
            self.filter.paste(text);
        }
    }

    /// The numbers of the entries that are shown.
    fn visible_entries(&self, world: &UiState) -> Vec<usize> {
        let query = self.filter.text().to_lowercase();
        let of_kind = |entry: &UiLogEntry| match self.tab {
            1 => matches!(entry.kind, UiLogKind::Event | UiLogKind::Own),
            2 => entry.kind == UiLogKind::Stderr,
            3 => matches!(entry.kind, UiLogKind::Sent | UiLogKind::Received),
            _ => true,
        };
        let fits = |entry: &UiLogEntry| {
            query.is_empty()
                || entry.text.to_lowercase().contains(&query)
                || entry.source.as_ref().is_some_and(|source| source.to_lowercase().contains(&query))
        };
        let first = world.log.first_number();
        let entries = world.log.entries().iter().enumerate();
        entries.filter(|(_, entry)| of_kind(entry) && fits(entry)).map(|(at, _)| first + at).collect()
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        match self.filter.press(key) {
            FilterAction::Changed | FilterAction::Same => return ScreenAction::Stay,
            FilterAction::Ignored => {}
        }
        let shown = self.visible_entries(world);
        if self.following {
            self.pick.at = shown.len().saturating_sub(1);
        }
        if self.pick.press(key, shown.len()) {
            self.following = self.pick.at + 1 >= shown.len();
            return ScreenAction::Stay;
        }
        match key {
            KeyPress::Tab | KeyPress::Right | KeyPress::Char('l') => self.tab = (self.tab + 1) % TABS.len(),
            KeyPress::BackTab | KeyPress::Left | KeyPress::Char('h') => {
                self.tab = (self.tab + TABS.len() - 1) % TABS.len()
            }
            KeyPress::Enter => {
                let Some(entry) = shown.get(self.pick.at).and_then(|number| world.log.get(*number)) else {
                    return ScreenAction::Stay;
                };
                let document = match entry.kind {
                    UiLogKind::Sent | UiLogKind::Received if is_json(&entry.text) => {
                        ResultDocument::from_json(pretty_json(&entry.text))
                    }
                    _ => ResultDocument::from_text(entry.text.clone()),
                };
                let title = format!("{} {}", format_time(entry.at), entry.kind.label());
                return ScreenAction::Open(Box::new(Screen::Text(title, document)));
            }
            _ => return ScreenAction::Ignored,
        }
        self.following = true;
        ScreenAction::Stay
    }

    pub(crate) fn keys(&self) -> KeyHints {
        if self.filter.typing {
            return vec![("type", "filter"), ("Enter", "keep"), ("Esc", "clear")];
        }
        vec![
            ("↑↓", "move"),
            ("Tab", "next kind"),
            ("Enter", "full line"),
            ("/", "filter"),
            ("G", "follow"),
            ("T", "log tail"),
            ("Esc", "back"),
            ("?", "help"),
        ]
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        let shown = self.visible_entries(world);
        if self.following {
            self.pick.at = shown.len().saturating_sub(1);
        }
        let (head, body) = split_top(area, 2);
        draw_tabs(canvas, head, &TABS, self.tab);
        if self.filter.typing || !self.filter.is_empty() {
            let (typed, column) = self.filter.visible_line(usize::from(head.width).saturating_sub(6));
            canvas.text(head, 1, &format!(" / {typed}"), canvas.theme.accent());
            if self.filter.typing {
                canvas.set_cursor(head, 1, 3 + column);
            }
        } else {
            canvas.rule(head, 1);
        }
        if shown.is_empty() {
            canvas.text(inset(body, 2), 0, "no entries yet", canvas.theme.dim());
        }
        let window = self.pick.window(shown.len(), usize::from(body.height));
        for (line, at) in window.clone().enumerate() {
            if at == self.pick.at {
                canvas.select(body, line);
            }
            if let Some(entry) = world.log.get(shown[at]) {
                canvas.line(body, line, &self::line(entry, usize::from(body.width), canvas.theme));
            }
        }
        canvas.scrollbar(body, window.start, shown.len());
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

/// Formats one entry as one line.
pub(crate) fn line(entry: &UiLogEntry, columns: usize, theme: Theme) -> Line<'static> {
    let style = match entry.kind {
        UiLogKind::Event => theme.plain(),
        UiLogKind::Stderr => theme.warn(),
        UiLogKind::Sent => theme.name(),
        UiLogKind::Received => theme.good(),
        UiLogKind::Own => theme.dim(),
    };
    let source = entry.source.as_deref().map(|source| clean(source).into_owned()).unwrap_or_default();
    let text = truncate(&entry.text, 1_000);
    Line::from(vec![
        Span::styled(format!(" {} ", format_time(entry.at)), theme.dim()),
        Span::styled(cell(entry.kind.label(), 7), style),
        Span::styled(format!("{} ", cell(&source, 12)), theme.dim()),
        Span::raw(clip(&clean(&text), columns.saturating_sub(31)).into_owned()),
    ])
}
