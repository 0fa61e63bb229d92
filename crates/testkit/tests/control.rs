//! The control socket from outside: every message against its schema, and what happens when a client, or the yard, does
//! not do what it should.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]
#![allow(clippy::disallowed_methods, reason = "programs are looked for where the tests themselves would be")]

mod control {
    mod bad_input;
    mod calls;
    mod events;
    mod house;
    mod letting_in;
    mod lists;
    mod session;

    const KEPT: &str = env!("CARGO_BIN_EXE_toolyard-kept");
    const ODD: &str = env!("CARGO_BIN_EXE_toolyard-odd");
}
