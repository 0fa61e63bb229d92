//! A client for the client mode of the conformance suite. It drives the product's own upstream
//! through each scenario. The suite passes the server's address as the last argument and the
//! scenario in the environment.
#![allow(clippy::print_stderr, reason = "the suite shows the output of a client that failed")]
#![allow(clippy::disallowed_methods, reason = "the suite passes the scenario in the environment")]

use std::env;
use std::process::ExitCode;

use toolyard_testkit::conformance_client::{Failure, Scenario, run};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run_scenario().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("toolyard-conformance-client: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run_scenario() -> Result<(), Failure> {
    let name = env::var("MCP_CONFORMANCE_SCENARIO")?;
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let url = env::args().next_back().unwrap_or_default();
    run(&Scenario::new(name, &context, url)?).await
}
