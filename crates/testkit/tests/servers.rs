//! Servers as processes: how supervised servers end, whatever happens to them or to Toolyard, and
//! that each misbehaving server misbehaves as documented.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]
#![allow(clippy::disallowed_methods, reason = "the tests start programs from their own build folder")]

mod servers {
    mod ending;
    mod eras;
    mod killed;
    mod many;
    mod odd;
    mod patience;
    mod raw_http;
    mod redirects;
    mod sessions;
    mod start;
    mod subscriptions;
    mod tester_access;
    mod too_much;
    mod tree;
    mod yard;

    const KEPT: &str = env!("CARGO_BIN_EXE_toolyard-kept");
    const ODD: &str = env!("CARGO_BIN_EXE_toolyard-odd");
}
