//! The screens, and what a key on one of them leads to.

mod calling;
mod filling;
mod history;
mod log;
mod offers;
mod servers;
mod showing;

use ratatui::layout::Rect;

pub(crate) use self::calling::Calling;
pub(crate) use self::filling::Filling;
pub(crate) use self::history::HistoryScreen;
pub(crate) use self::log::LogScreen;
pub(crate) use self::log::line as log_line;
pub(crate) use self::offers::Offers;
pub(crate) use self::servers::Servers;
pub(crate) use self::showing::Showing;

use crate::calls::Subject;
use crate::canvas::Canvas;
use crate::key::Key;
use crate::message::Effect;
use crate::popup::Popup;
use crate::text::clean;
use crate::thing::Thing;
use crate::world::World;

#[derive(Debug)]
pub(crate) enum Screen {
    Servers(Servers),
    Offers(Offers),
    Showing(Showing),
    Filling(Filling),
    Calling(Calling),
    History(HistoryScreen),
    Log(LogScreen),
    /// A long text by itself.
    Text(String, crate::result::Document),
}

/// What a key on a screen leads to.
#[derive(Debug)]
pub(crate) enum Step {
    Stay,
    /// The screen has no use for this key.
    Ignored,
    Back,
    Go(Box<Screen>),
    Do(Effect),
    Say(String),
    Warn(String),
    Popup(Box<Popup>),
    /// Make this call, after asking where that is called for.
    Call(Box<Plan>),
}

/// A call that is to be made.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// What is called, where it is still known.
    pub(crate) thing: Option<Thing>,
    pub(crate) subject: Subject,
}

pub(crate) type Keys = Vec<(&'static str, &'static str)>;

impl Screen {
    pub(crate) fn update(&mut self, key: Key, world: &World) -> Step {
        match self {
            Self::Servers(screen) => screen.update(key, world),
            Self::Offers(screen) => screen.update(key, world),
            Self::Showing(screen) => screen.update(key, world),
            Self::Filling(screen) => screen.update(key, world),
            Self::Calling(screen) => screen.update(key, world),
            Self::History(screen) => screen.update(key, world),
            Self::Log(screen) => screen.update(key, world),
            Self::Text(_, document) => calling::read(document.press(key)),
        }
    }

    pub(crate) fn paste(&mut self, text: &str, world: &World) {
        match self {
            Self::Servers(screen) => screen.paste(text),
            Self::Offers(screen) => screen.paste(text, world),
            Self::Filling(screen) => screen.form.paste(text),
            Self::Calling(screen) => screen.paste(text),
            Self::Log(screen) => screen.paste(text),
            Self::Text(_, document) => document.paste(text),
            Self::Showing(_) | Self::History(_) => {}
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &World) {
        match self {
            Self::Servers(screen) => screen.draw(canvas, area, world),
            Self::Offers(screen) => screen.draw(canvas, area, world),
            Self::Showing(screen) => screen.draw(canvas, area, world),
            Self::Filling(screen) => screen.draw(canvas, area, world),
            Self::Calling(screen) => screen.draw(canvas, area, world),
            Self::History(screen) => screen.draw(canvas, area, world),
            Self::Log(screen) => screen.draw(canvas, area, world),
            Self::Text(_, document) => document.draw(canvas, area),
        }
    }

    /// Its name in the line of where one is.
    pub(crate) fn title(&self, world: &World) -> String {
        match self {
            Self::Servers(_) => match &world.settings.yard {
                Some(address) => format!("Toolyard at {}", clean(address)),
                None => "Toolyard".to_owned(),
            },
            Self::Offers(screen) => screen.title(),
            Self::Showing(screen) => screen.title(),
            Self::Filling(screen) => screen.title(),
            Self::Calling(screen) => screen.title(world),
            Self::History(_) => "History".to_owned(),
            Self::Log(_) => "Log".to_owned(),
            Self::Text(name, _) => name.clone(),
        }
    }

    pub(crate) fn keys(&self, world: &World) -> Keys {
        match self {
            Self::Servers(screen) => screen.keys(world),
            Self::Offers(screen) => screen.keys(),
            Self::Showing(screen) => screen.keys(),
            Self::Filling(screen) => screen.form.keys(),
            Self::Calling(screen) => screen.keys(world),
            Self::History(screen) => screen.keys(world),
            Self::Log(screen) => screen.keys(),
            Self::Text(..) => vec![("↑↓", "move"), ("/", "search"), ("Esc", "back")],
        }
    }

    /// Whether letters are text here, not commands.
    pub(crate) fn is_typing(&self) -> bool {
        match self {
            Self::Servers(screen) => screen.is_typing(),
            Self::Offers(screen) => screen.is_typing(),
            Self::Filling(_) => true,
            Self::Calling(screen) => screen.is_typing(),
            Self::Log(screen) => screen.is_typing(),
            Self::Text(_, document) => document.is_typing(),
            Self::Showing(_) | Self::History(_) => false,
        }
    }
}
