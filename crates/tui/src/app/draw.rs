//! The frame around every screen: breadcrumbs, notices, and key hints.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};
use toolyard_hub::SourceState;

use super::{App, NoticeLevel};
use crate::canvas::{Canvas, inset, split_bottom, split_top};
use crate::screen::{KeyHints, Screen, log_line};
use crate::text::{clean, clip, format_count, width};

/// How much of a problem with a replica the header shows.
const LONGEST_PROBLEM: usize = 32;

/// The minimum size of the terminal.
const LEAST: (u16, u16) = (40, 10);
/// The height of the log tail below a screen.
const TAIL: u16 = 6;

impl App {
    /// Draws the whole UI.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        let area = frame.area();
        if let Some(cursor) = self.paint(area, frame.buffer_mut()) {
            frame.set_cursor_position(cursor);
        }
    }

    /// Draws the UI into any buffer; returns the cursor position if the cursor is visible.
    fn paint(&mut self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        let mut canvas = Canvas { buffer, theme: self.world.theme, cursor: None };
        if area.width < LEAST.0 || area.height < LEAST.1 {
            draw_too_small(&mut canvas, area);
            return None;
        }
        let (head, rest) = split_top(area, 1);
        let (rest, keys) = split_bottom(rest, 1);
        let (mut body, notice) = split_bottom(rest, 1);
        self.draw_header(&mut canvas, head);
        let over_log = matches!(self.screens.last(), Some(Screen::Log(_)));
        if self.tail && !over_log && body.height > 2 * TAIL {
            let (upper, tail) = split_bottom(body, TAIL);
            body = upper;
            self.draw_log_tail(&mut canvas, tail);
        }
        if let Some(screen) = self.screens.last_mut() {
            screen.draw(&mut canvas, body, &self.world);
        }
        if let Some(popup) = &mut self.popup {
            canvas.cursor = None;
            popup.draw(&mut canvas, body, &self.world);
        }
        if let Some(asking) = self.questions.first_mut() {
            canvas.cursor = None;
            asking.draw(&mut canvas, body);
        }
        if let Some(notice_line) = &self.notice {
            let (mark, style) = match notice_line.tone {
                NoticeLevel::Good => ("✓", canvas.theme.good()),
                NoticeLevel::Bad => ("!", canvas.theme.bad()),
            };
            canvas.text(inset(notice, 1), 0, &format!("{mark} {}", notice_line.text), style);
        }
        draw_keys(&mut canvas, keys, &self.keys());
        canvas.cursor
    }

    fn keys(&self) -> KeyHints {
        match (self.questions.first(), &self.popup, self.screens.last()) {
            (Some(asking), _, _) => asking.keys(),
            (None, Some(popup), _) => popup.keys(),
            (None, None, Some(screen)) => screen.keys(&self.world),
            (None, None, None) => Vec::new(),
        }
    }

    fn draw_header(&self, canvas: &mut Canvas<'_>, area: Rect) {
        let theme = canvas.theme;
        let sources = &self.world.yard.sources;
        let ready = sources.iter().filter(|(_, status)| status.state == SourceState::Ready).count();
        let running = self.world.calls.running_count();
        let mut state = match self.world.disconnected {
            Some(_) => "not connected".to_owned(),
            None => format!("{ready}/{} ready", sources.len()),
        };
        let replicas = self.world.replicas.as_ref().filter(|_| self.world.disconnected.is_none());
        let problem = replicas.and_then(|replicas| replicas.problems.first());
        if let Some(replicas) = replicas {
            let problem = problem.map(|problem| format!(", {}", clip(&clean(problem), LONGEST_PROBLEM)));
            let count = format_count(replicas.count, "replica");
            state = format!("{count}{} · {state}", problem.unwrap_or_default());
        }
        if running > 0 {
            state = format!("{} running · {state}", format_count(running, "call"));
        }
        let state_width = width(&state) + 1;
        let room = usize::from(area.width).saturating_sub(state_width + 2);
        let titles: Vec<String> = self.screens.iter().map(|screen| screen.title(&self.world)).collect();
        // If the breadcrumbs do not fit, the first ones are omitted.
        let mut first = 0;
        let length = |from: usize| titles[from..].iter().map(|title| width(title) + 3).sum::<usize>();
        while first + 1 < titles.len() && length(first) > room {
            first += 1;
        }
        let mut spans = vec![Span::raw(" ")];
        if first > 0 {
            spans.push(Span::styled("… › ", theme.dim()));
        }
        for (at, title) in titles.iter().enumerate().skip(first) {
            let last = at + 1 == titles.len();
            let style = if last { theme.accent() } else { theme.dim() };
            spans.push(Span::styled(clip(title, room.saturating_sub(6)).into_owned(), style));
            if !last {
                spans.push(Span::styled(" › ", theme.dim()));
            }
        }
        canvas.line(area, 0, &Line::from(spans));
        let right = u16::try_from(state_width).unwrap_or(0);
        let style = match self.world.disconnected {
            Some(_) => theme.bad(),
            None if ready == sources.len() && problem.is_none() => theme.dim(),
            None => theme.warn(),
        };
        let corner = Rect { x: area.right().saturating_sub(right), width: right, ..area };
        canvas.text(corner, 0, &state, style);
    }

    fn draw_log_tail(&self, canvas: &mut Canvas<'_>, area: Rect) {
        canvas.rule(area, 0);
        let (_, area) = split_top(area, 1);
        let entries = self.world.log.entries();
        let skipped = entries.len().saturating_sub(usize::from(area.height));
        for (row, entry) in entries.iter().skip(skipped).enumerate() {
            let line = log_line(entry, usize::from(area.width), canvas.theme);
            canvas.line(area, row, &line);
        }
    }
}

/// Draws as many key hints as fit; the last two always stay.
fn draw_keys(canvas: &mut Canvas<'_>, area: Rect, keys: &KeyHints) {
    let theme = canvas.theme;
    let room = usize::from(area.width);
    let taken =
        |keys: &[(&str, &str)]| keys.iter().map(|(key, what)| width(key) + width(what) + 3).sum::<usize>();
    let mut shown: Vec<(&str, &str)> = keys.clone();
    while shown.len() > 2 && taken(&shown) > room {
        // The keys for going back and for help are at the end and matter most.
        shown.remove(shown.len().saturating_sub(3));
    }
    let mut spans = Vec::new();
    for (key, what) in shown {
        spans.push(Span::styled(format!(" {key}"), theme.accent()));
        spans.push(Span::styled(format!(" {what} "), theme.dim()));
    }
    canvas.line(area, 0, &Line::from(spans));
}

/// Shows the required size, however small the terminal is.
fn draw_too_small(canvas: &mut Canvas<'_>, area: Rect) {
    let message =
        format!("Terminal too small: needs {}x{}, is {}x{}", LEAST.0, LEAST.1, area.width, area.height);
    for (row, line) in crate::text::wrap(&message, usize::from(area.width)).iter().enumerate() {
        canvas.text(area, row, line, canvas.theme.plain());
    }
}
