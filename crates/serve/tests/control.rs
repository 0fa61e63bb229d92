//! The fronts from outside, over a yard of stub servers: visibility and subscription limits. Tests
//! that need real servers or processes are in `crates/testkit/tests/control`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod control {
    mod subscribing;
    mod visibility;
}
