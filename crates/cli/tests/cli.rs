//! The `toolyard` command from outside: how it starts, refuses to start, and stops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod cli {
    mod access;
    mod audit;
    mod gateway;
    mod hooks;
    mod keeping;
    mod load;
    mod rest;
    mod starting;
    mod stopping;
    mod tester;

    const TOOLYARD: &str = env!("CARGO_BIN_EXE_toolyard");
    const SERVE: [&str; 4] = ["serve", "--listen", "127.0.0.1:0", "--json"];
}
