//! The log, whole or one kind of it.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::showing::draw_tabs;
use super::{Keys, Screen, Step};
use crate::canvas::{Canvas, inset, top};
use crate::filter::{Filter, Filtered};
use crate::form::pretty;
use crate::key::Key;
use crate::log::{Entry, EntryKind, clock};
use crate::pick::Pick;
use crate::result::Document;
use crate::text::{cell, clean, clip, short};
use crate::theme::Theme;
use crate::world::World;

const TABS: [&str; 4] = ["All", "Events", "Stderr", "Messages"];

#[derive(Debug)]
pub(crate) struct LogScreen {
    tab: usize,
    filter: Filter,
    pick: Pick,
    /// Whether the newest line stays selected as more come.
    following: bool,
}

impl LogScreen {
    pub(crate) fn new() -> Self {
        Self { tab: 0, filter: Filter::default(), pick: Pick::default(), following: true }
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
    fn shown(&self, world: &World) -> Vec<usize> {
        let wanted = self.filter.text().to_lowercase();
        let of_kind = |entry: &Entry| match self.tab {
            1 => matches!(entry.kind, EntryKind::Event | EntryKind::Own),
            2 => entry.kind == EntryKind::Stderr,
            3 => matches!(entry.kind, EntryKind::Sent | EntryKind::Received),
            _ => true,
        };
        let fits = |entry: &Entry| {
            wanted.is_empty()
                || entry.text.to_lowercase().contains(&wanted)
                || entry.source.as_ref().is_some_and(|source| source.to_lowercase().contains(&wanted))
        };
        let first = world.log.first();
        let entries = world.log.entries().iter().enumerate();
        entries.filter(|(_, entry)| of_kind(entry) && fits(entry)).map(|(at, _)| first + at).collect()
    }

    pub(crate) fn update(&mut self, key: Key, world: &World) -> Step {
        match self.filter.press(key) {
            Filtered::Changed | Filtered::Same => return Step::Stay,
            Filtered::Ignored => {}
        }
        let shown = self.shown(world);
        if self.following {
            self.pick.at = shown.len().saturating_sub(1);
        }
        if self.pick.press(key, shown.len()) {
            self.following = self.pick.at + 1 >= shown.len();
            return Step::Stay;
        }
        match key {
            Key::Tab | Key::Right | Key::Char('l') => self.tab = (self.tab + 1) % TABS.len(),
            Key::BackTab | Key::Left | Key::Char('h') => self.tab = (self.tab + TABS.len() - 1) % TABS.len(),
            Key::Enter => {
                let Some(entry) = shown.get(self.pick.at).and_then(|number| world.log.get(*number)) else {
                    return Step::Stay;
                };
                let document = match entry.kind {
                    EntryKind::Sent | EntryKind::Received if is_json(&entry.text) => {
                        Document::of_json(pretty(&entry.text))
                    }
                    _ => Document::of_text(entry.text.clone()),
                };
                let title = format!("{} {}", clock(entry.at), entry.kind.word());
                return Step::Go(Box::new(Screen::Text(title, document)));
            }
            _ => return Step::Ignored,
        }
        self.following = true;
        Step::Stay
    }

    pub(crate) fn keys(&self) -> Keys {
        if self.filter.typing {
            return vec![("type", "filter"), ("Enter", "keep"), ("Esc", "clear")];
        }
        vec![
            ("↑↓", "move"),
            ("Tab", "next kind"),
            ("Enter", "whole line"),
            ("/", "filter"),
            ("G", "follow"),
            ("T", "tail below"),
            ("Esc", "back"),
            ("?", "help"),
        ]
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &World) {
        let shown = self.shown(world);
        if self.following {
            self.pick.at = shown.len().saturating_sub(1);
        }
        let (head, body) = top(area, 2);
        draw_tabs(canvas, head, &TABS, self.tab);
        if self.filter.typing || !self.filter.is_empty() {
            let (typed, column) = self.filter.seen(usize::from(head.width).saturating_sub(6));
            canvas.text(head, 1, &format!(" / {typed}"), canvas.theme.accent());
            if self.filter.typing {
                canvas.cursor_at(head, 1, 3 + column);
            }
        } else {
            canvas.rule(head, 1);
        }
        if shown.is_empty() {
            canvas.text(inset(body, 2), 0, "nothing yet", canvas.theme.dim());
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

/// One entry in one line.
pub(crate) fn line(entry: &Entry, columns: usize, theme: Theme) -> Line<'static> {
    let style = match entry.kind {
        EntryKind::Event => theme.plain(),
        EntryKind::Stderr => theme.warn(),
        EntryKind::Sent => theme.name(),
        EntryKind::Received => theme.good(),
        EntryKind::Own => theme.dim(),
    };
    let source = entry.source.as_deref().map(|source| clean(source).into_owned()).unwrap_or_default();
    let text = short(&entry.text, 1_000);
    Line::from(vec![
        Span::styled(format!(" {} ", clock(entry.at)), theme.dim()),
        Span::styled(cell(entry.kind.word(), 7), style),
        Span::styled(format!("{} ", cell(&source, 12)), theme.dim()),
        Span::raw(clip(&clean(&text), columns.saturating_sub(31)).into_owned()),
    ])
}
