//! The catalog of one server or of all servers: tools, resources, templates and prompts, each as a
//! list that can be filtered.

use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use serde_json::Value;
use toolyard_hub::{SourceName, YardScope};

use super::item::{draw_details, open_or_call};
use super::{ItemScreen, KeyHints, Screen, ScreenAction};
use crate::canvas::{Canvas, inset, split_left, split_top};
use crate::catalog_item::CatalogItem;
use crate::details::details;
use crate::filter::{FilterAction, FilterHits, ListFilter};
use crate::key::KeyPress;
use crate::list_cursor::ListCursor;
use crate::text::{cell, clean, clip, truncate, width};
use crate::ui_state::UiState;

/// The minimum width at which the details of the selected item are shown beside the list.
const BESIDE: u16 = 110;
/// How much of a description is shown in the list and searched.
const ABOUT: usize = 300;
/// Eight letters of a server's name and the ellipsis.
const SERVER: usize = 9;

#[derive(Debug)]
pub(crate) struct CatalogScreen {
    /// The server, or `None` for all servers.
    scope: Option<SourceName>,
    tab: usize,
    filter: ListFilter,
    lists: [ItemList; 4],
    edition: u64,
}

const TABS: [&str; 4] = ["Tools", "Resources", "Templates", "Prompts"];

#[derive(Debug, Default)]
struct ItemList {
    rows: Vec<ItemRow>,
    hits: FilterHits,
    pick: ListCursor,
}

#[derive(Debug)]
struct ItemRow {
    thing: CatalogItem,
    name: String,
    server: String,
    about: String,
    /// The lowercase text that the filter searches: the names, then the rest.
    hay: String,
    name_len: usize,
}

impl CatalogScreen {
    pub(crate) fn new(scope: Option<SourceName>, world: &UiState) -> Self {
        let mut offers = Self {
            scope,
            tab: 0,
            filter: ListFilter::default(),
            lists: Default::default(),
            edition: world.edition,
        };
        offers.load(world);
        let first = offers.lists.iter().position(|list| !list.rows.is_empty());
        offers.tab = first.unwrap_or(0);
        offers
    }

    pub(crate) fn title(&self) -> String {
        self.scope.as_ref().map_or_else(|| "All servers".to_owned(), |name| clean(name.as_str()).into_owned())
    }

    pub(crate) fn is_typing(&self) -> bool {
        self.filter.typing
    }

    pub(crate) fn paste(&mut self, text: &str, world: &UiState) {
        if self.filter.typing {
            self.filter.paste(text);
            self.refresh(world);
        }
    }

    /// Reads the lists from the catalog. The selected item stays selected if it still exists.
    fn load(&mut self, world: &UiState) {
        let view = match &self.scope {
            Some(name) => world.yard.view.clone().with_scope(YardScope::Source(name.clone())),
            None => world.yard.view.clone(),
        };
        let things: [Vec<CatalogItem>; 4] = [
            view.tools().cloned().map(CatalogItem::Tool).collect(),
            view.resources().cloned().map(CatalogItem::Resource).collect(),
            view.templates().cloned().map(CatalogItem::Template).collect(),
            view.prompts().cloned().map(CatalogItem::Prompt).collect(),
        ];
        for (list, things) in self.lists.iter_mut().zip(things) {
            let before = list.selected().map(|row| row.thing.key().to_owned());
            list.rows = things.into_iter().map(|thing| ItemRow::new(thing, self.scope.is_none())).collect();
            list.hits.invalidate();
            list.narrow(self.filter.text());
            let again = before.and_then(|key| list.rows.iter().position(|row| row.thing.key() == key));
            if let Some(at) = again.and_then(|index| list.hits.position(index)) {
                list.pick.at = at;
            }
            list.pick.clamp(list.hits.len());
        }
        self.edition = world.edition;
    }

    fn refresh(&mut self, world: &UiState) {
        if self.edition != world.edition {
            self.load(world);
        }
        for list in &mut self.lists {
            list.narrow(self.filter.text());
        }
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        self.refresh(world);
        match self.filter.press(key) {
            FilterAction::Changed => {
                for list in &mut self.lists {
                    list.pick = ListCursor::default();
                    list.narrow(self.filter.text());
                }
                return ScreenAction::Stay;
            }
            FilterAction::Same => return ScreenAction::Stay,
            FilterAction::Ignored => {}
        }
        match key {
            KeyPress::Tab | KeyPress::Right | KeyPress::Char('l') => self.tab = (self.tab + 1) % TABS.len(),
            KeyPress::BackTab | KeyPress::Left | KeyPress::Char('h') => {
                self.tab = (self.tab + TABS.len() - 1) % TABS.len()
            }
            KeyPress::Enter | KeyPress::Char('c') => {
                let Some(row) = self.lists[self.tab].selected() else { return ScreenAction::Stay };
                let thing = row.thing.clone();
                return match key {
                    KeyPress::Enter => ScreenAction::Open(Box::new(Screen::Item(ItemScreen::new(thing)))),
                    _ => open_or_call(&thing, world),
                };
            }
            key => {
                let list = &mut self.lists[self.tab];
                return if list.pick.press(key, list.hits.len()) {
                    ScreenAction::Stay
                } else {
                    ScreenAction::Ignored
                };
            }
        }
        ScreenAction::Stay
    }

    pub(crate) fn keys(&self) -> KeyHints {
        if self.filter.typing {
            return vec![("type", "filter"), ("↑↓", "move"), ("Enter", "keep"), ("Esc", "clear")];
        }
        let use_it = match self.tab {
            0 => "call",
            3 => "get",
            _ => "read",
        };
        vec![
            ("↑↓", "move"),
            ("Tab", "next list"),
            ("Enter", "details"),
            ("c", use_it),
            ("/", "filter"),
            ("Esc", "back"),
            ("?", "help"),
        ]
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        self.refresh(world);
        let theme = canvas.theme;
        let (head, body) = split_top(area, 2);
        let mut tabs = vec![Span::raw(" ")];
        for (at, name) in TABS.iter().enumerate() {
            let list = &self.lists[at];
            let number = match self.filter.is_empty() {
                true => list.rows.len().to_string(),
                false => format!("{}/{}", list.hits.len(), list.rows.len()),
            };
            let style = if at == self.tab {
                theme.accent().add_modifier(ratatui::style::Modifier::UNDERLINED)
            } else {
                theme.dim()
            };
            tabs.push(Span::styled(format!("{name} {number}"), style));
            tabs.push(Span::raw("   "));
        }
        canvas.line(head, 0, &Line::from(tabs));
        if self.filter.typing || !self.filter.is_empty() {
            let (typed, column) = self.filter.visible_line(usize::from(head.width).saturating_sub(6));
            canvas.text(head, 1, &format!(" / {typed}"), theme.accent());
            if self.filter.typing {
                canvas.set_cursor(head, 1, 3 + column);
            }
        } else {
            canvas.rule(head, 1);
        }
        let (list_area, beside) = match area.width >= BESIDE {
            true => split_left(body, area.width * 2 / 5),
            false => (body, Rect::default()),
        };
        let everywhere = self.scope.is_none();
        let list = &mut self.lists[self.tab];
        let names = if beside.width > 0 { NameWidth::First } else { NameWidth::Some };
        list.draw(canvas, list_area, everywhere, names);
        if list.hits.len() == 0 {
            let message =
                match (self.filter.is_empty(), self.scope.as_ref().and_then(|name| world.status(name))) {
                    (false, _) => "no matches; press Esc to clear the filter".to_owned(),
                    (true, Some(status)) if status.state != toolyard_hub::SourceState::Ready => {
                        format!("the server is {}", status.state.label())
                    }
                    (true, _) => "none".to_owned(),
                };
            canvas.text(inset(list_area, 2), 0, &message, theme.dim());
        }
        if beside.width > 0
            && let Some(row) = list.selected()
        {
            for line in 0..usize::from(beside.height) {
                canvas.text(beside, line, "│", theme.dim());
            }
            draw_details(canvas, inset(beside, 2), &details(&row.thing), &mut Default::default());
        }
    }
}

/// How much of a line the names take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameWidth {
    /// As much as they need: the details are shown beside the list.
    First,
    Some,
}

impl ItemList {
    fn selected(&self) -> Option<&ItemRow> {
        self.hits.get(self.pick.at).and_then(|index| self.rows.get(index))
    }

    fn narrow(&mut self, text: &str) {
        let rows = &self.rows;
        self.hits.narrow(text, rows.len(), |index| {
            let row = &rows[index];
            (row.name_len, &row.hay)
        });
    }

    fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, everywhere: bool, names: NameWidth) {
        let theme = canvas.theme;
        let len = self.hits.len();
        let window = self.pick.window(len, usize::from(area.height));
        let seen = || window.clone().filter_map(|at| self.hits.get(at)).map(|index| &self.rows[index]);
        let room = usize::from(area.width).saturating_sub(3);
        let longest = seen().map(|row| width(&row.name)).max().unwrap_or(0);
        // Even if everything else is cut, the servers stay distinguishable.
        let server_room = match everywhere {
            true => seen().map(|row| width(&row.server)).max().unwrap_or(0).min(SERVER.max(room / 4)) + 2,
            false => 0,
        };
        let most = match names {
            NameWidth::First => room.saturating_sub(1 + server_room),
            NameWidth::Some => room * 2 / 5,
        };
        let name_room = longest.clamp(10, most.max(10)) + 1;
        for (line, row) in seen().enumerate() {
            let chosen = window.start + line == self.pick.at;
            if chosen {
                canvas.select(area, line);
            }
            let pointer = if chosen { Span::styled("▌", theme.accent()) } else { Span::raw(" ") };
            let source = match everywhere {
                true => cell(&clip(&row.server, server_room - 2), server_room),
                false => String::new(),
            };
            let rest = room.saturating_sub(name_room + 1);
            let about = clip(&row.about, rest.saturating_sub(width(&source))).into_owned();
            canvas.line(
                area,
                line,
                &Line::from(vec![
                    pointer,
                    Span::raw(" "),
                    Span::raw(cell(&clip(&row.name, name_room - 1), name_room)),
                    Span::styled(source, theme.name()),
                    Span::styled(about, theme.dim()),
                ]),
            );
        }
        canvas.scrollbar(area, self.pick.top(), len);
    }
}

impl ItemRow {
    /// Where all servers are listed, the filter also searches their names.
    fn new(thing: CatalogItem, everywhere: bool) -> Self {
        let (title, about) = match &thing {
            CatalogItem::Tool(tool) => {
                let title = if tool.title == tool.raw_name { "" } else { &tool.title };
                (title.to_owned(), tool.description.clone().unwrap_or_default())
            }
            CatalogItem::Resource(_) | CatalogItem::Template(_) | CatalogItem::Prompt(_) => {
                let definition = thing.definition();
                let text_of =
                    |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                let about = match &thing {
                    CatalogItem::Prompt(_) => text_of("description"),
                    _ => [text_of("name"), text_of("description")].join("  "),
                };
                (text_of("title"), about)
            }
        };
        let about = match (title.trim(), about.trim()) {
            ("", about) => about.to_owned(),
            (title, "") => title.to_owned(),
            (title, about) => format!("{title}: {about}"),
        };
        let about = clean(truncate(about.trim(), ABOUT).as_ref()).into_owned();
        let name = clean(&truncate(thing.raw_name(), ABOUT)).into_owned();
        let server = clean(thing.source().as_str()).into_owned();
        let mut hay = name.to_lowercase();
        if !title.is_empty() {
            hay.push(' ');
            hay.push_str(&clean(&truncate(&title, ABOUT)).to_lowercase());
        }
        if everywhere {
            hay.push(' ');
            hay.push_str(&thing.source().as_str().to_lowercase());
        }
        let name_len = hay.len();
        hay.push(' ');
        hay.push_str(&about.to_lowercase());
        Self { thing, name, server, about, hay, name_len }
    }
}
