//! Tests the `toolyard` command from outside: how it starts, refuses to start, and stops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a failing test panics")]

mod cli {
    mod access;
    mod audit;
    /// The authorization server of the upstream crate's own login tests.
    #[allow(dead_code, reason = "those tests use more of it")]
    #[path = "../../../upstream/tests/upstream/authority.rs"]
    mod authority;
    mod authorization;
    mod cases;
    mod corpus;
    mod definitions;
    mod environment;
    mod eras;
    mod gateway;
    mod hooks;
    mod hostile_servers;
    mod interrupting;
    mod keeping;
    mod limits;
    mod load;
    mod login;
    mod openapi;
    mod programs;
    mod recipe;
    mod rest;
    mod sessions;
    mod starting;
    mod stopping;
    mod suite;
    mod tester;
    mod tokens;
    mod waiting;
    mod watch;

    const TOOLYARD: &str = env!("CARGO_BIN_EXE_toolyard");
    /// Returns how many processes name this file: a server and its keeper.
    fn processes(file: &str) -> usize {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(file)).count()
    }

    const SERVE: [&str; 4] = ["serve", "--listen", "127.0.0.1:0", "--json"];
}
