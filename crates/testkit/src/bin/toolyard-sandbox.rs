//! For tests of programs: builds the sandbox as the product does, and with `--without LAYER` a weaker one, to show what
//! each layer is good for. The product itself has no such argument.
#![allow(clippy::print_stderr, reason = "the caller waits for it")]
#![allow(clippy::disallowed_methods, reason = "what is the front door of a process reads its arguments")]

use std::process::ExitCode;

use toolyard_program::{Launch, Layer, launch_without};

const USAGE: &str = "toolyard-sandbox [--python FILE] [--without LAYER]...";

fn main() -> ExitCode {
    let (mut sandbox, mut without) = (Launch::default(), Vec::new());
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next();
        match (argument.to_str(), value) {
            (Some("--python"), Some(python)) => sandbox.python = Some(python.into()),
            (Some("--without"), Some(layer)) => match layer.to_str().and_then(Layer::named) {
                Some(layer) => without.push(layer),
                None => return usage(),
            },
            _ => return usage(),
        }
    }
    launch_without(&sandbox, &without)
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
