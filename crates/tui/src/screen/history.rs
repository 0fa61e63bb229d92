//! The calls of this session, newest first; beside them those that the yard remembers, whoever made them.

mod kept;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use self::kept::Kept;
use super::calling::{edit, repeat, verdict};
use super::{Calling, Keys, Screen, Step};
use crate::calls::CallState;
use crate::canvas::{Canvas, inset, top};
use crate::key::Key;
use crate::message::Effect;
use crate::pick::Pick;
use crate::popup::Popup;
use crate::text::{cell, clean, clip, short, span};
use crate::world::World;

#[derive(Debug, Default)]
pub(crate) struct HistoryScreen {
    pick: Pick,
    kept: Kept,
    view: View,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum View {
    #[default]
    Session,
    /// What the yard remembers.
    Yard,
}

impl HistoryScreen {
    pub(crate) fn looks_back(&self) -> bool {
        self.view == View::Yard
    }

    pub(crate) fn keys(&self, world: &World) -> Keys {
        let mut keys = vec![("↑↓", "move")];
        if self.view == View::Session {
            keys.extend([
                ("Enter", "result"),
                ("r", "repeat"),
                ("e", "edit"),
                ("y", "copy"),
                ("x", "cancel"),
            ]);
        }
        if world.past.is_some() {
            keys.push(("Tab", if self.view == View::Session { "all calls" } else { "this session" }));
        }
        keys.extend([("Esc", "back"), ("?", "help")]);
        keys
    }

    pub(crate) fn update(&mut self, key: Key, world: &World) -> Step {
        if let (Key::Tab | Key::BackTab, Some(_)) = (key, &world.past) {
            self.view = if self.view == View::Session { View::Yard } else { View::Session };
            return Step::Stay;
        }
        if self.view == View::Yard {
            return self.kept.update(key, world);
        }
        let len = world.calls.newest().len();
        if self.pick.press(key, len) {
            return Step::Stay;
        }
        let Some(call) = world.calls.newest().nth(self.pick.at) else { return Step::Ignored };
        match key {
            Key::Enter | Key::Right | Key::Char('l') => {
                Step::Go(Box::new(Screen::Calling(Calling::new(call.id))))
            }
            Key::Char('r') => repeat(call, world),
            Key::Char('e') => edit(call, world),
            Key::Char('y') => Step::Popup(Box::new(Popup::copy(call))),
            Key::Char('x') if call.is_running() => Step::Do(Effect::Cancel(call.id)),
            _ => Step::Ignored,
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &World) {
        let mut area = area;
        if world.past.is_some() {
            let (head, rest) = top(area, 1);
            let theme = canvas.theme;
            let tab = |view: View, text: &'static str| {
                Span::styled(text, if self.view == view { theme.strong() } else { theme.dim() })
            };
            let tabs = [tab(View::Session, " This session "), tab(View::Yard, " All calls of the yard ")];
            canvas.line(head, 0, &Line::from(tabs.to_vec()));
            area = rest;
        }
        match self.view {
            View::Session => self.draw_session(canvas, area, world),
            View::Yard => self.kept.draw(canvas, area, world),
        }
    }

    fn draw_session(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &World) {
        let theme = canvas.theme;
        let len = world.calls.newest().len();
        if len == 0 {
            canvas.text(inset(area, 2), 1, "Nothing was called yet in this session.", theme.dim());
            return;
        }
        let window = self.pick.window(len, usize::from(area.height));
        for (line, call) in world.calls.newest().skip(window.start).take(window.len()).enumerate() {
            let chosen = window.start + line == self.pick.at;
            if chosen {
                canvas.select(area, line);
            }
            let (mark, words) = verdict(call);
            let style = match &call.state {
                CallState::Running => theme.warn(),
                CallState::Answered(outcome, _) if !outcome.failed => theme.good(),
                CallState::Forgotten(_) => theme.dim(),
                _ => theme.bad(),
            };
            let ago = world.now.instant.saturating_duration_since(call.began.instant);
            let ago = format!("{} ago", span(std::time::Duration::from_secs(ago.as_secs())));
            let arguments = call.subject.arguments().map(|raw| raw.get()).unwrap_or_default();
            let arguments = short(arguments, 400);
            let room = usize::from(area.width).saturating_sub(56);
            let pointer = if chosen { Span::styled("▌", theme.accent()) } else { Span::raw(" ") };
            canvas.line(
                area,
                line,
                &Line::from(vec![
                    pointer,
                    Span::styled(format!("{mark} "), style),
                    Span::raw(cell(&clean(&call.subject.raw_name), 24)),
                    Span::raw(" "),
                    Span::styled(cell(&words, 26 + room / 4), style),
                    Span::raw(" "),
                    Span::styled(clip(&clean(&arguments), room * 3 / 4).into_owned(), theme.dim()),
                ]),
            );
            let width = u16::try_from(crate::text::width(&ago) + 1).unwrap_or(0);
            if area.width > 100 {
                canvas.text(Rect { x: area.right().saturating_sub(width), ..area }, line, &ago, theme.dim());
            }
        }
        canvas.scrollbar(area, window.start, len);
    }
}
