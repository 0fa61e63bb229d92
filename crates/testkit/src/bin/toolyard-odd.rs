//! Runs a misbehaving server: `toolyard-odd NAME [stdio|http] [SECONDS]`. Over HTTP, the default,
//! it prints its address on standard output. `SECONDS` is the delay of `slow-start`. The
//! environment variable `ODD_FILE` names the file in which `changes` counts its starts and to which
//! `counts-sessions` appends a line per session.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the caller waits for the address")]
#![allow(clippy::disallowed_methods, reason = "a separate process, configured by its environment")]

use std::process::ExitCode;
use std::time::Duration;

use toolyard_testkit::odd::{Kind, Options, Over, serve};

fn main() -> ExitCode {
    match start() {
        Ok(code) => code.into(),
        Err(error) => {
            eprintln!("toolyard-odd: {error}");
            ExitCode::from(2)
        }
    }
}

fn start() -> Result<u8, Box<dyn std::error::Error>> {
    let options = read(std::env::args().skip(1)).ok_or_else(usage)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(serve(options, |address| println!("http://{address}/mcp")));
    // A pending read of standard input must not keep the process alive.
    runtime.shutdown_background();
    Ok(served?)
}

fn read(arguments: impl Iterator<Item = String>) -> Option<Options> {
    let (mut kind, mut over, mut delay) = (None, Over::Http, Duration::from_secs(2));
    for argument in arguments {
        match argument.as_str() {
            "stdio" => over = Over::Stdio,
            "http" => over = Over::Http,
            other => match other.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) {
                Some(seconds) => delay = seconds,
                None => kind = Some(Kind::parse(other)?),
            },
        }
    }
    Some(Options { kind: kind?, over, delay, file: std::env::var_os("ODD_FILE").map(Into::into) })
}

fn usage() -> String {
    let names: Vec<_> = Kind::ALL.iter().map(|(name, _)| *name).collect();
    format!("toolyard-odd NAME [stdio|http] [SECONDS], where NAME is one of {}", names.join(", "))
}
