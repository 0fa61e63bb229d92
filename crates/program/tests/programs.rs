//! Tests of programs in the sandbox. Their launcher differs from that of the product only in that it
//! can omit layers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]
#![allow(clippy::disallowed_methods, reason = "an environment variable sets the length of the long test")]

mod programs {
    mod attacked;
    mod desk;
    mod details;
    mod fixture;
    mod hints;
    mod living;
    mod refused;
    mod running;
    mod scripts;
    mod shop;
    mod unfinished;
    mod words;
}
