//! What can be said about the definitions of servers without calling anything: how two versions
//! differ, what a lock file contains, and what is wrong with a definition.
//!
//! Definitions stay the JSON text in which they arrived. This crate has no network, reads no files
//! and no environment, and prints nothing.

mod canonical;
pub mod compare;
pub mod lint;
pub mod lock;
mod offer;
mod saved_list;

pub use offer::{ItemKind, OfferProfile, ServerOffer};
pub use saved_list::{SavedListError, parse_saved_definitions};
