//! The screens, and the results of key presses on them.

mod arguments;
mod call;
mod catalog;
mod history;
mod item;
mod log;
mod servers;

use ratatui::layout::Rect;

pub(crate) use self::arguments::ArgumentsScreen;
pub(crate) use self::call::CallScreen;
pub(crate) use self::catalog::CatalogScreen;
pub(crate) use self::history::HistoryScreen;
pub(crate) use self::item::ItemScreen;
pub(crate) use self::log::LogScreen;
pub(crate) use self::log::line as log_line;
pub(crate) use self::servers::ServersScreen;

use crate::calls::CallSpec;
use crate::canvas::Canvas;
use crate::catalog_item::CatalogItem;
use crate::key::KeyPress;
use crate::message::Effect;
use crate::popup::Popup;
use crate::text::clean;
use crate::ui_state::UiState;

#[derive(Debug)]
pub(crate) enum Screen {
    Servers(ServersScreen),
    Catalog(CatalogScreen),
    Item(ItemScreen),
    Arguments(ArgumentsScreen),
    Call(CallScreen),
    History(HistoryScreen),
    Log(LogScreen),
    /// A long text on a screen of its own.
    Text(String, crate::result::ResultDocument),
}

/// The result of a key press on a screen.
#[derive(Debug)]
pub(crate) enum ScreenAction {
    Stay,
    /// The screen does not handle this key.
    Ignored,
    Back,
    Open(Box<Screen>),
    Run(Effect),
    Notify(String),
    Warn(String),
    Popup(Box<Popup>),
    /// Make this call, after a confirmation if one is required.
    Call(Box<CallPlan>),
}

/// A call to make.
#[derive(Debug, Clone)]
pub(crate) struct CallPlan {
    /// The item to call, if it is still in the catalog.
    pub(crate) thing: Option<CatalogItem>,
    pub(crate) subject: CallSpec,
}

pub(crate) type KeyHints = Vec<(&'static str, &'static str)>;

impl Screen {
    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        match self {
            Self::Servers(screen) => screen.update(key, world),
            Self::Catalog(screen) => screen.update(key, world),
            Self::Item(screen) => screen.update(key, world),
            Self::Arguments(screen) => screen.update(key, world),
            Self::Call(screen) => screen.update(key, world),
            Self::History(screen) => screen.update(key, world),
            Self::Log(screen) => screen.update(key, world),
            Self::Text(_, document) => call::result_action_to_screen(document.press(key)),
        }
    }

    pub(crate) fn paste(&mut self, text: &str, world: &UiState) {
        match self {
            Self::Servers(screen) => screen.paste(text),
            Self::Catalog(screen) => screen.paste(text, world),
            Self::Arguments(screen) => screen.form.paste(text),
            Self::Call(screen) => screen.paste(text),
            Self::Log(screen) => screen.paste(text),
            Self::Text(_, document) => document.paste(text),
            Self::Item(_) | Self::History(_) => {}
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        match self {
            Self::Servers(screen) => screen.draw(canvas, area, world),
            Self::Catalog(screen) => screen.draw(canvas, area, world),
            Self::Item(screen) => screen.draw(canvas, area, world),
            Self::Arguments(screen) => screen.draw(canvas, area, world),
            Self::Call(screen) => screen.draw(canvas, area, world),
            Self::History(screen) => screen.draw(canvas, area, world),
            Self::Log(screen) => screen.draw(canvas, area, world),
            Self::Text(_, document) => document.draw(canvas, area),
        }
    }

    /// The name of the screen in the breadcrumb line.
    pub(crate) fn title(&self, world: &UiState) -> String {
        match self {
            Self::Servers(_) => match &world.settings.yard {
                Some(address) => format!("Toolyard at {}", clean(address)),
                None => "Toolyard".to_owned(),
            },
            Self::Catalog(screen) => screen.title(),
            Self::Item(screen) => screen.title(),
            Self::Arguments(screen) => screen.title(),
            Self::Call(screen) => screen.title(world),
            Self::History(_) => "History".to_owned(),
            Self::Log(_) => "Log".to_owned(),
            Self::Text(name, _) => name.clone(),
        }
    }

    pub(crate) fn keys(&self, world: &UiState) -> KeyHints {
        match self {
            Self::Servers(screen) => screen.keys(world),
            Self::Catalog(screen) => screen.keys(),
            Self::Item(screen) => screen.keys(),
            Self::Arguments(screen) => screen.form.keys(),
            Self::Call(screen) => screen.keys(world),
            Self::History(screen) => screen.keys(world),
            Self::Log(screen) => screen.keys(),
            Self::Text(..) => vec![("↑↓", "move"), ("/", "search"), ("Esc", "back")],
        }
    }

    /// Whether letters are text input here, not commands.
    pub(crate) fn is_typing(&self) -> bool {
        match self {
            Self::Servers(screen) => screen.is_typing(),
            Self::Catalog(screen) => screen.is_typing(),
            Self::Arguments(_) => true,
            Self::Call(screen) => screen.is_typing(),
            Self::Log(screen) => screen.is_typing(),
            Self::Text(_, document) => document.is_typing(),
            Self::Item(_) | Self::History(_) => false,
        }
    }
}
