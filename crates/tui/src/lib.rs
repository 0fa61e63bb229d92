//! The terminal UI: servers, what they offer, forms, calls, results. State changes by messages and asks for effects, which
//! are carried out elsewhere; drawing only looks. Only this crate knows the terminal; of the yard it knows the hub.

mod app;
mod asking;
mod calls;
mod canvas;
mod details;
mod edit;
mod filter;
mod form;
mod help;
mod key;
mod log;
mod message;
mod pick;
mod popup;
mod repeat;
mod result;
mod run;
mod screen;
mod terminal;
mod text;
mod theme;
mod thing;
mod uri;
mod watch;
mod world;

pub use app::App;
pub use key::Key;
pub use log::{Entry, EntryKind};
pub use message::{AskId, CallId, Colour, Contents, Effect, Message, News, Now, Settings, Snapshot};
pub use run::{UiError, abilities, run};
pub use terminal::{restore, restore_before_panics};
