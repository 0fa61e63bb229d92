//! The real command with its own configuration, and tokens for it.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::http::Server;
use super::process::Process;
use super::scratch::Scratch;

/// Creates a token with `toolyard token new`. Returns the secret and the lines for the
/// configuration.
pub async fn new_token(program: &str, arguments: &[&str]) -> (String, String) {
    let all: Vec<&str> = ["token", "new", "--json"].iter().chain(arguments).copied().collect();
    let (mut process, _stdin, mut stdout) = Process::start(program, &all);
    let mut printed = String::new();
    stdout.read_to_string(&mut printed).await.unwrap();
    assert_eq!(process.exit().await, Some(0), "{}", process.stderr());
    let printed: Value = serde_json::from_str(&printed).unwrap();
    (printed["token"].as_str().unwrap().to_owned(), printed["config"].as_str().unwrap().to_owned())
}

impl Server {
    /// Starts `toolyard serve` with this configuration on a free port.
    pub async fn configured(program: &str, scratch: &Scratch, config: &str) -> Arc<Self> {
        let file = scratch.path("toolyard.toml");
        std::fs::write(&file, config).unwrap();
        let listen = ["serve", "--json", "--listen", "127.0.0.1:0", "--config"];
        let arguments: Vec<&str> = listen.into_iter().chain([file.to_str().unwrap()]).collect();
        Self::start(program, &arguments).await
    }
}
