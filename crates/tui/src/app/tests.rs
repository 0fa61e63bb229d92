//! The UI as people see it: screens as snapshots, and keys that lead from one to the next.

mod elsewhere;
mod keys;
mod odd;
mod screens;
mod stage;
