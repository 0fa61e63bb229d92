//! One catalog item in full: its details, its schema, and its definition as the server sent it.

use std::sync::Arc;

use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use toolyard_hub::CallTarget;
use toolyard_hub::json::empty_object;

use super::{ArgumentsScreen, CallPlan, KeyHints, Screen, ScreenAction};
use crate::calls::CallSpec;
use crate::canvas::{Canvas, inset, split_top};
use crate::catalog_item::CatalogItem;
use crate::details::{DetailLine, details};
use crate::key::KeyPress;
use crate::list_cursor::ScrollWindow;
use crate::message::Effect;
use crate::result::ResultDocument;
use crate::text::{clean, truncate, width, wrap};
use crate::ui_state::UiState;

#[derive(Debug)]
pub(crate) struct ItemScreen {
    thing: CatalogItem,
    tab: usize,
    scroll: ScrollWindow,
    detail_lines: Vec<DetailLine>,
    schema: Option<ResultDocument>,
    definition: ResultDocument,
    edition: Option<u64>,
}

impl ItemScreen {
    pub(crate) fn new(thing: CatalogItem) -> Self {
        let schema = thing.input_schema().map(|schema| ResultDocument::from_json(Arc::from(schema.get())));
        let definition = ResultDocument::from_json(Arc::from(thing.raw_definition().get()));
        let detail_lines = details(&thing);
        Self {
            thing,
            tab: 0,
            scroll: ScrollWindow::default(),
            detail_lines,
            schema,
            definition,
            edition: None,
        }
    }

    pub(crate) fn title(&self) -> String {
        clean(&truncate(self.thing.raw_name(), 200)).into_owned()
    }

    fn tabs(&self) -> &'static [&'static str] {
        if self.schema.is_some() { &["Details", "Schema", "Definition"] } else { &["Details", "Definition"] }
    }

    /// The document of the tab, if it has one.
    fn document(&mut self) -> Option<&mut ResultDocument> {
        match (self.tab, &mut self.schema) {
            (0, _) => None,
            (1, Some(schema)) => Some(schema),
            _ => Some(&mut self.definition),
        }
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        let many = self.tabs().len();
        match key {
            KeyPress::Tab => self.tab = (self.tab + 1) % many,
            KeyPress::BackTab => self.tab = (self.tab + many - 1) % many,
            KeyPress::Right | KeyPress::Char('l') if self.tab == 0 => self.tab = 1,
            KeyPress::Char('c') => return open_or_call(&self.thing, world),
            KeyPress::Enter if self.tab == 0 => return open_or_call(&self.thing, world),
            KeyPress::Char('y') => {
                return ScreenAction::Run(Effect::Copy(self.thing.raw_definition().get().to_owned()));
            }
            key => {
                if let Some(document) = self.document() {
                    return super::call::result_action_to_screen(document.press(key));
                }
                return if self.scroll.press(key) { ScreenAction::Stay } else { ScreenAction::Ignored };
            }
        }
        ScreenAction::Stay
    }

    pub(crate) fn keys(&self) -> KeyHints {
        let verb = match self.thing {
            CatalogItem::Tool(_) => "call",
            CatalogItem::Prompt(_) => "get",
            CatalogItem::Resource(_) | CatalogItem::Template(_) => "read",
        };
        let mut keys = vec![("c", verb), ("Tab", "next view"), ("↑↓", "scroll")];
        if self.tab > 0 {
            keys.extend([("Enter", "fold"), ("/", "search")]);
        }
        keys.extend([("y", "copy definition"), ("Esc", "back"), ("?", "help")]);
        keys
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        if self.edition != Some(world.edition) {
            self.edition = Some(world.edition);
            // A new version of the item replaces it; an item that is gone stays as it was.
            if let Some(now) = self.thing.current(&world.yard.view)
                && now.raw_definition().get() != self.thing.raw_definition().get()
            {
                *self = Self { tab: self.tab, edition: self.edition, ..Self::new(now) };
            }
        }
        let (head, body) = split_top(area, 2);
        draw_tabs(canvas, head, self.tabs(), self.tab);
        match world.unavailable_reason(&self.thing) {
            Some(trouble) => canvas.text(inset(head, 1), 1, &format!("! {trouble}"), canvas.theme.warn()),
            None => canvas.rule(head, 1),
        }
        let body = inset(body, 1);
        match self.tab {
            0 => {
                let detail_lines = std::mem::take(&mut self.detail_lines);
                draw_details(canvas, body, &detail_lines, &mut self.scroll);
                self.detail_lines = detail_lines;
            }
            _ => {
                if let Some(document) = self.document() {
                    document.draw(canvas, body);
                }
            }
        }
    }
}

/// Draws the names of the views, with the current one underlined.
pub(super) fn draw_tabs(canvas: &mut Canvas<'_>, area: Rect, tabs: &[&str], chosen: usize) {
    let theme = canvas.theme;
    let mut spans = vec![Span::raw(" ")];
    for (at, name) in tabs.iter().enumerate() {
        let style =
            if at == chosen { theme.accent().add_modifier(Modifier::UNDERLINED) } else { theme.dim() };
        spans.extend([Span::styled((*name).to_owned(), style), Span::raw("   ")]);
    }
    canvas.line(area, 0, &Line::from(spans));
}

/// Draws the details, wrapped, with highlighted labels.
pub(super) fn draw_details(
    canvas: &mut Canvas<'_>,
    area: Rect,
    detail_lines: &[DetailLine],
    scroll: &mut ScrollWindow,
) {
    let columns = usize::from(area.width).saturating_sub(1);
    let theme = canvas.theme;
    let mut lines: Vec<Line<'static>> = Vec::new();
    for one in detail_lines {
        let indent = " ".repeat(one.hang.min(columns / 2));
        let label_width = width(&one.label);
        // The first line follows the label, the others are indented.
        let whole = format!("{}{}", "x".repeat(label_width), one.text);
        let first = wrap(&whole, columns.max(label_width + 1)).into_iter().next().unwrap_or_default();
        let beginning = first.get(label_width..).unwrap_or_default().to_owned();
        let rest = one.text.get(beginning.len()..).unwrap_or_default().trim_start();
        let label = Span::styled(
            one.label.clone(),
            if one.text.is_empty() { theme.accent() } else { theme.strong() },
        );
        lines.push(Line::from(vec![label, Span::raw(beginning)]));
        if !rest.is_empty() {
            let room = columns.saturating_sub(indent.len()).max(1);
            lines.extend(wrap(rest, room).into_iter().map(|line| Line::from(format!("{indent}{line}"))));
        }
    }
    let window = scroll.window(lines.len(), usize::from(area.height));
    for (row, at) in window.clone().enumerate() {
        canvas.line(area, row, &lines[at]);
    }
    canvas.scrollbar(area, window.start, lines.len());
}

/// Uses an item: opens a form if it takes arguments, otherwise calls it immediately.
pub(super) fn open_or_call(thing: &CatalogItem, world: &UiState) -> ScreenAction {
    let thing = thing.current(&world.yard.view).unwrap_or_else(|| thing.clone());
    let wants = match &thing {
        CatalogItem::Resource(_) => false,
        CatalogItem::Tool(_) | CatalogItem::Template(_) => true,
        CatalogItem::Prompt(_) => {
            thing.definition().get("arguments").is_some_and(|list| list.get(0).is_some())
        }
    };
    if wants {
        return ScreenAction::Open(Box::new(Screen::Arguments(ArgumentsScreen::new(thing))));
    }
    let what = match &thing {
        CatalogItem::Resource(resource) => CallTarget::Resource { uri: resource.uri.clone() },
        _ => CallTarget::Prompt { name: thing.key().to_owned(), arguments: Some(empty_object()) },
    };
    let subject =
        CallSpec { source: thing.source().clone(), raw_name: thing.raw_name().to_owned(), target: what };
    ScreenAction::Call(Box::new(CallPlan { thing: Some(thing), subject }))
}
