//! Tests the REST front from outside: the real listener with tools of every kind, over plain HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

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

    /// Starts a workbench with these options.
    async fn workbench(options: &[&str]) -> Arc<Server> {
        Server::start(env!("CARGO_BIN_EXE_toolyard-workbench"), options).await
    }
}
