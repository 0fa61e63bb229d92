//! Servers as processes: how those that we start ourselves end, whatever happens to us and to them, and that the odd
//! ones are as odd as they say.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]
#![allow(clippy::disallowed_methods, reason = "programs are looked for where the tests themselves would be")]

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
