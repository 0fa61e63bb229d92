//! Draws a form.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::node::{FormNode, FormNodeKind};
use super::rows::{FormRow, FormRowKind};
use super::{FieldProblem, SchemaForm};
use crate::canvas::{Canvas, inset, split_bottom, split_top};
use crate::editor;
use crate::text::{cell, clean, clip, format_count, width, wrap};

/// How many lines the description and the problems of the selected field take.
const FOOT: u16 = 5;

impl SchemaForm {
    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let (body, foot) = split_bottom(area, FOOT.min(area.height / 3));
        match self.raw.is_some() {
            true => self.draw_raw(canvas, body),
            false => self.draw_fields(canvas, body),
        }
        self.draw_footer(canvas, foot);
        if self.picking.is_some() {
            self.draw_choices(canvas, area);
        }
    }

    /// The key hints for the bottom line.
    pub(crate) fn keys(&self) -> Vec<(&'static str, &'static str)> {
        if self.picking.is_some() {
            return vec![("↑↓", "move"), ("Enter", "choose"), ("type", "filter"), ("Esc", "close")];
        }
        if self.raw.is_some() {
            let mut keys = vec![("Ctrl-S", self.button)];
            if self.no_fields.is_none() {
                keys.push(("Ctrl-R", "form"));
            }
            keys.push(("Esc", "back"));
            return keys;
        }
        let mut keys = vec![("Ctrl-S", self.button), ("↑↓", "field")];
        match self.selected().map(|node| &node.kind) {
            Some(FormNodeKind::Choice { .. }) => keys.extend([("←→", "change"), ("Enter", "pick")]),
            Some(FormNodeKind::Flag(_)) => keys.push(("Space", "change")),
            Some(FormNodeKind::Items { .. }) => keys.push(("Enter", "add item")),
            _ => {}
        }
        if self.rows.get(self.pick.at).is_some_and(|row| self.is_item(row)) {
            keys.push(("Ctrl-D", "remove item"));
        }
        keys.extend([("Ctrl-T", "set or omit"), ("Ctrl-R", "JSON"), ("Esc", "back")]);
        keys
    }

    fn is_item(&self, row: &FormRow) -> bool {
        let parent = row.path.split_last().and_then(|(_, parent)| self.root.at(parent));
        row.role == FormRowKind::Field
            && parent.is_some_and(|parent| matches!(parent.kind, FormNodeKind::Items { .. }))
    }

    fn draw_fields(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let longest = self
            .rows
            .iter()
            .filter_map(|row| Some(2 * row.path.len() + width(&clean(&self.root.at(&row.path)?.name))));
        let label = longest.max().unwrap_or(8).clamp(8, usize::from(area.width) / 3) + 2;
        let mut pick = self.pick;
        let window = pick.window(self.rows.len(), usize::from(area.height));
        self.pick = pick;
        if self.rows.len() == 1 {
            canvas.text(
                inset(area, 1),
                0,
                "No parameters. Press Ctrl-R to send arguments as JSON anyway.",
                canvas.theme.dim(),
            );
            self.draw_button(canvas, inset(area, 1), 2, RowSelection::Yes);
            return;
        }
        for (line, at) in window.clone().enumerate() {
            let chosen = if at == self.pick.at { RowSelection::Yes } else { RowSelection::No };
            let row = &self.rows[at];
            if chosen == RowSelection::Yes && row.role != FormRowKind::Button {
                canvas.select(area, line);
            }
            match row.role {
                FormRowKind::Button => self.draw_button(canvas, inset(area, 1), line, chosen),
                FormRowKind::Add => {
                    let indent = "  ".repeat(row.path.len() + 1);
                    canvas.text(inset(area, 1), line, &format!("{indent}+ add item"), canvas.theme.dim());
                }
                FormRowKind::Field => self.draw_field(canvas, area, (line, row, label), chosen),
            }
        }
        canvas.scrollbar(area, window.start, self.rows.len());
    }

    fn draw_field(
        &self,
        canvas: &mut Canvas<'_>,
        area: Rect,
        (line, row, label): (usize, &FormRow, usize),
        chosen: RowSelection,
    ) {
        let Some(node) = self.root.at(&row.path) else { return };
        let theme = canvas.theme;
        let problem = self.problem(row, node);
        let indent = "  ".repeat(row.path.len() - 1);
        let mark = if node.required { "*" } else { " " };
        let name = cell(&format!("{indent}{}{mark}", clean(&node.name)), label);
        let room = usize::from(area.width).saturating_sub(label + 4);
        let tail = match problem {
            Some(problem) => (format!("✗ {}", problem.text), theme.bad()),
            None => (clean(&node.word).into_owned(), theme.dim()),
        };
        let tail_width = width(&tail.0).min(room / 2);
        let value_width = room.saturating_sub(tail_width + 2);
        let (value, style) = self.shown_value(canvas, node, value_width, chosen);
        let pointer =
            if chosen == RowSelection::Yes { Span::styled("▌", theme.accent()) } else { Span::raw(" ") };
        let name_style = if chosen == RowSelection::Yes { theme.accent() } else { theme.plain() };
        let spans = vec![
            pointer,
            Span::styled(name, name_style),
            Span::styled(cell(&value, value_width), style),
            Span::raw("  "),
            Span::styled(clip(&tail.0, tail_width).into_owned(), tail.1),
        ];
        canvas.line(area, line, &Line::from(spans));
        if chosen == RowSelection::Yes
            && let FormNodeKind::Text(editor) | FormNodeKind::Number(editor) | FormNodeKind::Json(editor) =
                &node.kind
        {
            let (_, column) = editor.visible_line(value_width);
            canvas.set_cursor(area, line, 1 + label + column);
        }
    }

    fn shown_value(
        &self,
        canvas: &Canvas<'_>,
        node: &FormNode,
        room: usize,
        chosen: RowSelection,
    ) -> (String, Style) {
        let theme = canvas.theme;
        match &node.kind {
            FormNodeKind::Text(editor) | FormNodeKind::Number(editor) | FormNodeKind::Json(editor)
                if chosen == RowSelection::Yes && (node.given || editor.is_empty()) && !editor.is_empty() =>
            {
                (editor.visible_line(room).0, theme.plain())
            }
            FormNodeKind::Choice { .. } if node.given => {
                (format!("‹ {} ›", node.display_value()), theme.plain())
            }
            FormNodeKind::Choice { .. } => ("‹ not set ›".to_owned(), theme.dim()),
            FormNodeKind::Flag(_) if node.given => (format!("‹ {} ›", node.display_value()), theme.plain()),
            FormNodeKind::Flag(_) => ("‹ not set ›".to_owned(), theme.dim()),
            FormNodeKind::Members(_) if !node.given => {
                ("not set; press Space to add".to_owned(), theme.dim())
            }
            FormNodeKind::Items { .. } if !node.given => {
                ("not set; press Enter to add an item".to_owned(), theme.dim())
            }
            _ if !node.given && chosen == RowSelection::No => ("·".to_owned(), theme.dim()),
            _ => (node.display_value(), theme.plain()),
        }
    }

    fn draw_button(&self, canvas: &mut Canvas<'_>, area: Rect, line: usize, chosen: RowSelection) {
        let theme = canvas.theme;
        let style = if chosen == RowSelection::Yes { theme.hit() } else { theme.strong() };
        let state = match self.problems.len() {
            0 => Span::styled("  valid", theme.good()),
            many => Span::styled(format!("  {}", format_count(many, "error")), theme.warn()),
        };
        canvas.line(
            area,
            line,
            &Line::from(vec![Span::styled(format!("[ {} ]", self.button), style), state]),
        );
    }

    fn draw_raw(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let Some(editor) = &self.raw else { return };
        let (head, body) = split_top(area, 1);
        let why = self.no_fields.as_ref().map(|why| format!("No form available: {}. ", clean(why)));
        let heading = format!("{}Arguments as JSON:", why.unwrap_or_default());
        canvas.text(inset(head, 1), 0, &heading, canvas.theme.dim());
        let body = inset(body, 1);
        let (row, column) = editor.cursor_position();
        let height = usize::from(body.height);
        let first = row.saturating_sub(height.saturating_sub(2));
        for (at, line) in editor.text().split('\n').enumerate().skip(first).take(height) {
            let room = usize::from(body.width);
            let is_current = at == row;
            let (shown, place) = editor::visible_window(line, if is_current { column } else { 0 }, room);
            canvas.text(body, at - first, &shown, canvas.theme.plain());
            if is_current {
                canvas.set_cursor(body, at - first, place);
            }
        }
    }

    fn draw_footer(&self, canvas: &mut Canvas<'_>, area: Rect) {
        canvas.rule(area, 0);
        let (_, area) = split_top(inset(area, 1), 1);
        let theme = canvas.theme;
        let mut lines: Vec<(String, Style)> = Vec::new();
        let columns = usize::from(area.width);
        if self.raw.is_some() {
            match self.problems.as_slice() {
                [] => lines.push(("✓ valid".to_owned(), theme.good())),
                problems => lines
                    .extend(problems.iter().map(|problem| (format!("✗ {}", problem.message()), theme.bad()))),
            }
        } else if let (Some(node), Some(row)) = (self.selected(), self.rows.get(self.pick.at)) {
            if let Some(problem) = self.problem(row, node) {
                lines.extend(
                    wrap(&format!("✗ {}", problem.text), columns).into_iter().map(|line| (line, theme.bad())),
                );
            }
            if let Some(about) = &node.about {
                lines.extend(wrap(&clean(about), columns).into_iter().map(|line| (line, theme.plain())));
            }
            let need = if node.required { "required" } else { "optional" };
            let kind = format!("{need}: {} {}", clean(&node.word), clean(&node.remarks));
            lines.extend(wrap(&kind, columns).into_iter().map(|line| (line, theme.dim())));
        } else if self.submit_attempted {
            lines.extend(
                self.problems.iter().map(|problem| (format!("✗ {}", problem.message()), theme.bad())),
            );
        }
        for (row, (line, style)) in lines.iter().take(usize::from(area.height)).enumerate() {
            canvas.text(area, row, line, *style);
        }
    }

    /// Returns the problem of a field. A missing value is only reported after an attempt to submit
    /// the form.
    fn problem(&self, row: &FormRow, node: &FormNode) -> Option<&FieldProblem> {
        let is_reported = node.given || self.submit_attempted;
        self.problems.iter().find(|problem| is_reported && problem.pointer == row.pointer)
    }

    fn draw_choices(&mut self, canvas: &mut Canvas<'_>, area: Rect) {
        let Some(mut picking) = self.picking.take() else { return };
        let shown = self.shown_choices(&picking);
        if let Some(FormNode { name, kind: FormNodeKind::Choice { labels, .. }, .. }) = self.selected() {
            let longest = labels.iter().map(|label| width(&clean(label))).max().unwrap_or(0).max(24);
            let rows = u16::try_from(labels.len() + 1).unwrap_or(u16::MAX).min(area.height.saturating_sub(2));
            let columns = u16::try_from(longest + 2).unwrap_or(u16::MAX);
            let inside = canvas.dialog(area, &clean(name), columns, rows);
            let (head, list) = split_top(inside, 1);
            let (typed, column) = picking.filter.visible_line(usize::from(head.width).saturating_sub(2));
            canvas.text(head, 0, &format!("/ {typed}"), canvas.theme.dim());
            canvas.set_cursor(head, 0, 2 + column);
            let window = picking.pick.window(shown.len(), usize::from(list.height));
            for (line, at) in window.clone().enumerate() {
                if at == picking.pick.at {
                    canvas.select(list, line);
                }
                canvas.text(list, line, &clean(&labels[shown[at]]), canvas.theme.plain());
            }
            canvas.scrollbar(list, window.start, shown.len());
        }
        self.picking = Some(picking);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowSelection {
    Yes,
    No,
}
