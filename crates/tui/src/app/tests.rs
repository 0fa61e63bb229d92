//! Tests of the UI as users see it: snapshots of the screens, and key sequences that lead from one
//! to the next.

mod elsewhere;
mod keys;
mod odd;
mod screens;
mod stage;
