//! What clients see of a server on the wire, whatever they send and however they disconnect: the
//! real binary over stdio and HTTP, in every version of the protocol. The harness validates every
//! server message against the protocol's own schema.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod wire {
    mod announcements;
    mod asking;
    mod bad_lines;
    mod bad_params;
    mod bad_posts;
    mod batches;
    mod cancelling;
    mod crowds;
    mod lossless;
    mod never_reading;
    mod pages;
    mod progress;
    mod resuming;
    mod sessions;
    mod start;
    mod stopping;
}
