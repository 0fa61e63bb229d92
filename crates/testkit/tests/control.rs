//! Tests the control socket from outside: every message against its schema, and misbehaving clients
//! and yards.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]
#![allow(clippy::disallowed_methods, reason = "the tests start programs from their own build folder")]

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
