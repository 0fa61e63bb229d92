//! Drives real servers from outside: starts the binary, talks raw JSON-RPC to it in both eras and over both
//! transports, and checks every message that comes back against the protocol's own schema. A test that cannot
//! go on panics here. What is tested is the tests' business.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on panics")]
#![allow(missing_debug_implementations, reason = "nothing here is ever printed")]

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
pub use control::{Proof, Socket, every_server_message};
pub use http::{Event, Events, Reply, Server};
pub use message::Message;
pub use process::{Process, Signal};
pub use rest::{Answer, Coming, Telling, Told};
pub use schema::Checker;
pub use scratch::{Scratch, Traces};
pub use stdio::Line;
pub use version::Version;

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// Longer than anything here should take, also on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until something has a value, which it must have soon, and says how long that took.
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
        Err(_) => panic!("waited in vain for {what}"),
    }
}
