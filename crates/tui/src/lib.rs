//! The terminal UI: servers, their catalog, forms, calls and results. Messages change the state and
//! request effects, which are executed elsewhere; drawing only reads the state. Only this crate
//! knows the terminal, and it reaches the yard only through the hub.

mod app;
mod calls;
mod canvas;
mod catalog_item;
mod copy_formats;
mod details;
mod editor;
mod filter;
mod form;
mod help;
mod key;
mod list_cursor;
mod log;
mod message;
mod popup;
mod question_dialog;
mod result;
mod run;
mod screen;
mod terminal;
mod text;
mod theme;
mod ui_state;
mod uri;
mod watch;

pub use app::App;
pub use key::KeyPress;
pub use log::{UiLogEntry, UiLogKind};
pub use message::{
    CallId, ClockTime, ColorMode, Effect, QuestionId, SaveContents, UiCallUpdate, UiMessage, UiReplicas,
    UiSettings, UiTestCall, UiTestWriter, YardSnapshot,
};
pub use run::{UiError, client_capabilities, run};
pub use terminal::{restore, restore_on_panic};
