//! The calls of this session, newest first, and the calls that the yard recorded from all callers.

mod past_calls;

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use self::past_calls::PastCallList;
use super::call::{edit, outcome_label, repeat};
use super::{CallScreen, KeyHints, Screen, ScreenAction};
use crate::calls::CallState;
use crate::canvas::{Canvas, inset, split_top};
use crate::key::KeyPress;
use crate::list_cursor::ListCursor;
use crate::message::Effect;
use crate::popup::Popup;
use crate::text::{cell, clean, clip, format_duration, truncate};
use crate::ui_state::UiState;

#[derive(Debug, Default)]
pub(crate) struct HistoryScreen {
    pick: ListCursor,
    past_calls: PastCallList,
    view: HistoryTab,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HistoryTab {
    #[default]
    Session,
    /// The recorded calls of the yard.
    Yard,
}

impl HistoryScreen {
    pub(crate) fn shows_yard_history(&self) -> bool {
        self.view == HistoryTab::Yard
    }

    pub(crate) fn keys(&self, world: &UiState) -> KeyHints {
        let mut keys = vec![("↑↓", "move")];
        if self.view == HistoryTab::Session {
            keys.extend([
                ("Enter", "result"),
                ("r", "repeat"),
                ("e", "edit"),
                ("y", "copy"),
                ("x", "cancel"),
            ]);
        }
        if world.past.is_some() {
            keys.push(("Tab", if self.view == HistoryTab::Session { "all calls" } else { "this session" }));
        }
        keys.extend([("Esc", "back"), ("?", "help")]);
        keys
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        if let (KeyPress::Tab | KeyPress::BackTab, Some(_)) = (key, &world.past) {
            self.view = if self.view == HistoryTab::Session { HistoryTab::Yard } else { HistoryTab::Session };
            return ScreenAction::Stay;
        }
        if self.view == HistoryTab::Yard {
            return self.past_calls.update(key, world);
        }
        let len = world.calls.newest_first().len();
        if self.pick.press(key, len) {
            return ScreenAction::Stay;
        }
        let Some(call) = world.calls.newest_first().nth(self.pick.at) else { return ScreenAction::Ignored };
        match key {
            KeyPress::Enter | KeyPress::Right | KeyPress::Char('l') => {
                ScreenAction::Open(Box::new(Screen::Call(CallScreen::new(call.id))))
            }
            KeyPress::Char('r') => repeat(call, world),
            KeyPress::Char('e') => edit(call, world),
            KeyPress::Char('y') => ScreenAction::Popup(Box::new(Popup::copy_menu(call))),
            KeyPress::Char('x') if call.is_running() => ScreenAction::Run(Effect::Cancel(call.id)),
            _ => ScreenAction::Ignored,
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        let mut area = area;
        if world.past.is_some() {
            let (head, rest) = split_top(area, 1);
            let theme = canvas.theme;
            let tab = |view: HistoryTab, text: &'static str| {
                Span::styled(text, if self.view == view { theme.strong() } else { theme.dim() })
            };
            let tabs = [tab(HistoryTab::Session, " This session "), tab(HistoryTab::Yard, " All calls ")];
            canvas.line(head, 0, &Line::from(tabs.to_vec()));
            area = rest;
        }
        match self.view {
            HistoryTab::Session => self.draw_session(canvas, area, world),
            HistoryTab::Yard => self.past_calls.draw(canvas, area, world),
        }
    }

    fn draw_session(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        let theme = canvas.theme;
        let len = world.calls.newest_first().len();
        if len == 0 {
            canvas.text(inset(area, 2), 1, "No calls yet in this session.", theme.dim());
            return;
        }
        let window = self.pick.window(len, usize::from(area.height));
        for (line, call) in world.calls.newest_first().skip(window.start).take(window.len()).enumerate() {
            let chosen = window.start + line == self.pick.at;
            if chosen {
                canvas.select(area, line);
            }
            let (mark, words) = outcome_label(call);
            let style = match &call.state {
                CallState::Running => theme.warn(),
                CallState::Answered(outcome, _) if !outcome.failed => theme.good(),
                CallState::Evicted(..) => theme.dim(),
                _ => theme.bad(),
            };
            let ago = world.now.instant.saturating_duration_since(call.began.instant);
            let ago = format!("{} ago", format_duration(std::time::Duration::from_secs(ago.as_secs())));
            let arguments = call.subject.arguments().map(|raw| raw.get()).unwrap_or_default();
            let arguments = truncate(arguments, 400);
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
