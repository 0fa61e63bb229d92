//! Drives real servers from outside: starts the binary, speaks raw JSON-RPC to it in both eras and
//! over both transports, and validates every message against the protocol's own schema. Helpers
//! panic when a test cannot continue. Assertions about behavior belong in the tests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot continue panics"
)]
#![allow(missing_debug_implementations, reason = "these types are never printed")]

mod call;
mod client;
mod configured;
mod control;
mod http;
mod message;
mod process;
mod rest;
mod schema;
mod scratch;
mod stdio;
mod version;

pub use call::{Call, Exchange};
pub use client::{Client, Over};
pub use configured::new_token;
pub use control::{Proof, Socket, assert_server_message, every_server_message};
pub use http::{Event, Events, Reply, Server};
pub use message::Message;
pub use process::{Process, Signal};
pub use rest::{Answer, PendingResponse, RestEvent, RestEventStream};
pub use schema::Checker;
pub use scratch::{Scratch, Traces};
pub use stdio::Line;
pub use version::Version;

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Longer than any step should take, even on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until `read` returns the expected value. Returns how long that took.
pub async fn until_equal<T: PartialEq + Debug>(what: &str, expected: T, read: impl Fn() -> T) -> Duration {
    let began = Instant::now();
    within_timeout(&format!("{expected:?} {what}"), async {
        while read() != expected {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
    began.elapsed()
}

/// Waits for something that must happen soon.
pub async fn within_timeout<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(done) => done,
        Err(_) => panic!("timed out waiting for {what}"),
    }
}
