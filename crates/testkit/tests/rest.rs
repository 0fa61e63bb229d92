//! The REST front from outside: the real listener with tools of every kind behind it, spoken to in plain HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests may")]

mod rest {
    mod bad_input;
    mod context;
    mod errors;
    mod executions;
    mod keys;
    mod lists;
    mod results;
    mod service;
    mod spec;
    mod streams;
    mod words;

    use std::sync::Arc;

    use toolyard_testkit::harness::Server;

    /// A workbench with these options.
    async fn workbench(options: &[&str]) -> Arc<Server> {
        Server::start(env!("CARGO_BIN_EXE_toolyard-workbench"), options).await
    }
}
