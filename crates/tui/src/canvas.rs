//! The drawing surface of the screens: lines of a buffer, a few shapes, and the cursor position.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::text;
use crate::theme::Theme;

pub(crate) struct Canvas<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) theme: Theme,
    pub(crate) cursor: Option<Position>,
}

impl Canvas<'_> {
    /// Draws a line of text into an area at a row counted from its top; rows below its bottom are
    /// ignored.
    pub(crate) fn line(&mut self, area: Rect, row: usize, line: &Line<'_>) {
        if let Some(y) = row_y(area, row) {
            self.buffer.set_line(area.x, y, line, area.width);
        }
    }

    pub(crate) fn text(&mut self, area: Rect, row: usize, text: &str, style: Style) {
        let text = text::clip(text, usize::from(area.width));
        self.line(area, row, &Line::from(Span::styled(text, style)));
    }

    /// Highlights the selected line over the whole width.
    pub(crate) fn select(&mut self, area: Rect, row: usize) {
        if let Some(y) = row_y(area, row) {
            let style = self.theme.selected();
            self.buffer.set_style(Rect { y, height: 1, ..area }, style);
        }
    }

    pub(crate) fn rule(&mut self, area: Rect, row: usize) {
        let style = self.theme.dim();
        self.text(area, row, &"─".repeat(usize::from(area.width)), style);
    }

    /// Draws a scroll bar at the right edge that shows the visible part of a long list.
    pub(crate) fn scrollbar(&mut self, area: Rect, top: usize, len: usize) {
        let height = usize::from(area.height);
        if len <= height || height < 3 || area.width < 2 {
            return;
        }
        let size = (height * height / len).clamp(1, height);
        let start = (top * (height - size)).div_ceil((len - height).max(1)).min(height - size);
        let column = Rect { x: area.right() - 1, width: 1, ..area };
        let style = self.theme.dim();
        for row in 0..height {
            let mark = if (start..start + size).contains(&row) { "┃" } else { "│" };
            self.text(column, row, mark, style);
        }
    }

    /// Draws a centered dialog box over the screen and returns its inner area.
    pub(crate) fn dialog(&mut self, area: Rect, title: &str, columns: u16, rows: u16) -> Rect {
        let width = columns.saturating_add(4).min(area.width);
        let height = rows.saturating_add(2).min(area.height);
        let x = area.x + (area.width - width) / 2;
        let y = area.y + (area.height - height) / 2;
        let outer = Rect { x, y, width, height };
        for position in outer.positions() {
            if let Some(cell) = self.buffer.cell_mut(position) {
                cell.reset();
            }
        }
        let across = usize::from(width.saturating_sub(2));
        let style = self.theme.accent();
        let named = text::clip(title, across.saturating_sub(4)).into_owned();
        let rest = "─".repeat(across.saturating_sub(text::width(&named) + 3));
        self.text(outer, 0, &format!("╭─ {named} {rest}╮"), style);
        for row in 1..usize::from(height.saturating_sub(1)) {
            self.text(outer, row, "│", style);
            self.text(Rect { x: outer.right() - 1, width: 1, ..outer }, row, "│", style);
        }
        self.text(outer, usize::from(height.saturating_sub(1)), &format!("╰{}╯", "─".repeat(across)), style);
        Rect {
            x: outer.x + 2,
            y: outer.y + 1,
            width: width.saturating_sub(4),
            height: height.saturating_sub(2),
        }
    }

    pub(crate) fn set_cursor(&mut self, area: Rect, row: usize, column: usize) {
        if let (Some(y), Ok(column)) = (row_y(area, row), u16::try_from(column)) {
            let x = area.x.saturating_add(column).min(area.right().saturating_sub(1));
            self.cursor = Some(Position { x, y });
        }
    }
}

fn row_y(area: Rect, row: usize) -> Option<u16> {
    let row = u16::try_from(row).ok().filter(|row| *row < area.height)?;
    Some(area.y + row)
}

/// Splits the given number of lines off the top.
pub(crate) fn split_top(area: Rect, lines: u16) -> (Rect, Rect) {
    let lines = lines.min(area.height);
    let upper = Rect { height: lines, ..area };
    (upper, Rect { y: area.y + lines, height: area.height - lines, ..area })
}

/// Splits the given number of lines off the bottom.
pub(crate) fn split_bottom(area: Rect, lines: u16) -> (Rect, Rect) {
    let lines = lines.min(area.height);
    (Rect { height: area.height - lines, ..area }, Rect { y: area.bottom() - lines, height: lines, ..area })
}

/// Splits the given number of columns off the left.
pub(crate) fn split_left(area: Rect, columns: u16) -> (Rect, Rect) {
    let columns = columns.min(area.width);
    let rest = Rect { x: area.x + columns, width: area.width - columns, ..area };
    (Rect { width: columns, ..area }, rest)
}

/// Removes the given number of columns from both sides.
pub(crate) fn inset(area: Rect, columns: u16) -> Rect {
    let columns = columns.min(area.width / 2);
    Rect { x: area.x + columns, width: area.width - 2 * columns, ..area }
}
