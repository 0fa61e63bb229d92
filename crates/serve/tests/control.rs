//! The fronts from outside, over a yard of made-up servers: who sees what, and how many subscriptions a client may have. What
//! needs real servers or processes is in `crates/testkit/tests/control`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod control {
    mod subscribing;
    mod visibility;
}
