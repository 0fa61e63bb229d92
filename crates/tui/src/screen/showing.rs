//! One thing in full: its details, its schema, and its definition as the server sent it.

use std::sync::Arc;

use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use toolyard_hub::What;
use toolyard_hub::json::empty_object;

use super::{Filling, Keys, Plan, Screen, Step};
use crate::calls::Subject;
use crate::canvas::{Canvas, inset, top};
use crate::details::{Told, details};
use crate::key::Key;
use crate::message::Effect;
use crate::pick::Scroll;
use crate::result::Document;
use crate::text::{clean, short, width, wrap};
use crate::thing::Thing;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Showing {
    thing: Thing,
    tab: usize,
    scroll: Scroll,
    told: Vec<Told>,
    schema: Option<Document>,
    definition: Document,
    edition: Option<u64>,
}

impl Showing {
    pub(crate) fn new(thing: Thing) -> Self {
        let schema = thing.input_schema().map(|schema| Document::of_json(Arc::from(schema.get())));
        let definition = Document::of_json(Arc::from(thing.raw_definition().get()));
        let told = details(&thing);
        Self { thing, tab: 0, scroll: Scroll::default(), told, schema, definition, edition: None }
    }

    pub(crate) fn title(&self) -> String {
        clean(&short(self.thing.raw_name(), 200)).into_owned()
    }

    fn tabs(&self) -> &'static [&'static str] {
        if self.schema.is_some() { &["Details", "Schema", "Definition"] } else { &["Details", "Definition"] }
    }

    /// The document of the tab, if it has one.
    fn document(&mut self) -> Option<&mut Document> {
        match (self.tab, &mut self.schema) {
            (0, _) => None,
            (1, Some(schema)) => Some(schema),
            _ => Some(&mut self.definition),
        }
    }

    pub(crate) fn update(&mut self, key: Key, world: &World) -> Step {
        let many = self.tabs().len();
        match key {
            Key::Tab => self.tab = (self.tab + 1) % many,
            Key::BackTab => self.tab = (self.tab + many - 1) % many,
            Key::Right | Key::Char('l') if self.tab == 0 => self.tab = 1,
            Key::Char('c') => return begin(&self.thing, world),
            Key::Enter if self.tab == 0 => return begin(&self.thing, world),
            Key::Char('y') => {
                return Step::Do(Effect::Copy(self.thing.raw_definition().get().to_owned()));
            }
            key => {
                if let Some(document) = self.document() {
                    return super::calling::read(document.press(key));
                }
                return if self.scroll.press(key) { Step::Stay } else { Step::Ignored };
            }
        }
        Step::Stay
    }

    pub(crate) fn keys(&self) -> Keys {
        let verb = match self.thing {
            Thing::Tool(_) => "call",
            Thing::Prompt(_) => "get",
            Thing::Resource(_) | Thing::Template(_) => "read",
        };
        let mut keys = vec![("c", verb), ("Tab", "next view"), ("↑↓", "scroll")];
        if self.tab > 0 {
            keys.extend([("Enter", "fold"), ("/", "search")]);
        }
        keys.extend([("y", "copy definition"), ("Esc", "back"), ("?", "help")]);
        keys
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &World) {
        if self.edition != Some(world.edition) {
            self.edition = Some(world.edition);
            // Another version of the same thing takes its place; one that is gone stays as it was.
            if let Some(now) = self.thing.now(&world.yard.view)
                && now.raw_definition().get() != self.thing.raw_definition().get()
            {
                *self = Self { tab: self.tab, edition: self.edition, ..Self::new(now) };
            }
        }
        let (head, body) = top(area, 2);
        draw_tabs(canvas, head, self.tabs(), self.tab);
        match world.trouble(&self.thing) {
            Some(trouble) => canvas.text(inset(head, 1), 1, &format!("! {trouble}"), canvas.theme.warn()),
            None => canvas.rule(head, 1),
        }
        let body = inset(body, 1);
        match self.tab {
            0 => {
                let told = std::mem::take(&mut self.told);
                draw_told(canvas, body, &told, &mut self.scroll);
                self.told = told;
            }
            _ => {
                if let Some(document) = self.document() {
                    document.draw(canvas, body);
                }
            }
        }
    }
}

/// The names of views, with the one that is seen underlined.
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

/// Details, wrapped, with labels told apart.
pub(super) fn draw_told(canvas: &mut Canvas<'_>, area: Rect, told: &[Told], scroll: &mut Scroll) {
    let columns = usize::from(area.width).saturating_sub(1);
    let theme = canvas.theme;
    let mut lines: Vec<Line<'static>> = Vec::new();
    for one in told {
        let indent = " ".repeat(one.hang.min(columns / 2));
        let label_width = width(&one.label);
        // The first line has the label before it, the others are indented.
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

/// Uses a thing: a form where it wants to know something, else at once.
pub(super) fn begin(thing: &Thing, world: &World) -> Step {
    let thing = thing.now(&world.yard.view).unwrap_or_else(|| thing.clone());
    let wants = match &thing {
        Thing::Resource(_) => false,
        Thing::Tool(_) | Thing::Template(_) => true,
        Thing::Prompt(_) => thing.definition().get("arguments").is_some_and(|list| list.get(0).is_some()),
    };
    if wants {
        return Step::Go(Box::new(Screen::Filling(Filling::new(thing))));
    }
    let what = match &thing {
        Thing::Resource(resource) => What::Resource { uri: resource.uri.clone() },
        _ => What::Prompt { name: thing.key().to_owned(), arguments: Some(empty_object()) },
    };
    let subject = Subject { source: thing.source().clone(), raw_name: thing.raw_name().to_owned(), what };
    Step::Call(Box::new(Plan { thing: Some(thing), subject }))
}
