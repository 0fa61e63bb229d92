//! The recorded calls of the yard: caller, tool, start, duration and status. Results are not
//! recorded.

use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use toolyard_hub::{CallStatus, PastCall};

use super::ScreenAction;
use crate::canvas::{Canvas, inset, split_bottom, split_top};
use crate::key::KeyPress;
use crate::list_cursor::ListCursor;
use crate::log::format_time;
use crate::text::{cell, clean, clip, format_duration, wrap};
use crate::theme::Theme;
use crate::ui_state::UiState;

/// The height of the area below the list.
const FOOT: u16 = 5;

#[derive(Debug, Default)]
pub(super) struct PastCallList {
    pick: ListCursor,
}

impl PastCallList {
    pub(super) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        let len = world.past.as_ref().map_or(0, Vec::len);
        if self.pick.press(key, len) { ScreenAction::Stay } else { ScreenAction::Ignored }
    }

    pub(super) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        let theme = canvas.theme;
        let calls = world.past.as_deref().unwrap_or_default();
        if calls.is_empty() {
            canvas.text(inset(area, 2), 1, "No recorded calls that you have permission to see.", theme.dim());
            return;
        }
        let (list, foot) = split_bottom(area, FOOT);
        let window = self.pick.window(calls.len(), usize::from(list.height));
        for (line, call) in calls[window.clone()].iter().enumerate() {
            let chosen = window.start + line == self.pick.at;
            if chosen {
                canvas.select(list, line);
            }
            canvas.line(list, line, &row(call, usize::from(list.width), chosen, theme));
        }
        canvas.scrollbar(list, window.start, calls.len());
        canvas.rule(foot, 0);
        let (_, foot) = split_top(inset(foot, 1), 1);
        if let Some(call) = calls.get(self.pick.at) {
            for (line, text) in detail_lines(call, usize::from(foot.width)).iter().enumerate() {
                canvas.text(foot, line, text, theme.plain());
            }
        }
    }
}

fn row(call: &PastCall, width: usize, chosen: bool, theme: Theme) -> Line<'static> {
    let (mark, word, style) = status_label(call, theme);
    let pointer = if chosen { Span::styled("▌", theme.accent()) } else { Span::raw(" ") };
    let replica = call.replica.as_ref().map(|name| format!(" at {name}")).unwrap_or_default();
    let caller = format!("{}{replica}", call.principal);
    // The marks, the clock, the status and the duration.
    let room = width.saturating_sub(2 + 9 + 11 + 12 + 2);
    // Eight letters of a server's name after `mcp__`, and the ellipsis.
    let subject = (room * 2 / 3).max(14);
    Line::from(vec![
        pointer,
        Span::styled(format!("{mark} "), style),
        Span::styled(format!("{} ", format_time(call.at)), theme.dim()),
        Span::raw(cell(&clean(&call.subject), subject)),
        Span::raw(" "),
        Span::styled(cell(word, 10), style),
        Span::raw(" "),
        Span::styled(cell(&format_duration(truncate_to_millis(call.duration)), 12), theme.dim()),
        Span::styled(clip(&clean(&caller), room.saturating_sub(subject)).into_owned(), theme.dim()),
    ])
}

fn status_label(call: &PastCall, theme: Theme) -> (&'static str, &'static str, Style) {
    let status = CallStatus::from(call.ended);
    let (mark, style) = match status {
        CallStatus::Running => ("◌", theme.warn()),
        CallStatus::Succeeded => ("✓", theme.good()),
        CallStatus::Failed => ("✗", theme.bad()),
        CallStatus::Cancelled => ("○", theme.warn()),
    };
    (mark, status.as_str(), style)
}

/// Durations are truncated to milliseconds, because not every history stores finer ones.
fn truncate_to_millis(duration: Duration) -> Duration {
    Duration::from_millis(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

fn detail_lines(call: &PastCall, columns: usize) -> Vec<String> {
    let source = call.source.as_ref().map(|source| format!(", server {}", clean(source))).unwrap_or_default();
    let mut lines = wrap(&format!("{} {}{source}", call.kind.as_str(), clean(&call.subject)), columns);
    let ids = [("replica", &call.replica), ("session", &call.session_id), ("user", &call.user_id)];
    let ids = ids.into_iter().filter_map(|(word, id)| Some(format!(", {word} {}", clean(id.as_ref()?))));
    lines.push(format!("by {}{}", clean(&call.principal), ids.collect::<String>()));
    if let Some(error) = &call.error {
        lines.extend(wrap(&clean(error), columns));
    }
    lines
}
