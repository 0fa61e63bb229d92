//! Tools that take time: until they are canceled, until a gate opens, or for a given duration.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::sync::Semaphore;
use toolyard_sdk::{Context, LogLevel, Tool, ToolError, tool};

pub(super) fn tools() -> Vec<Tool> {
    let gates = Arc::new(Gates::default());
    let opened = Arc::clone(&gates);
    vec![
        wait_until_cancelled(),
        slow(),
        flood(),
        Tool::new("steps", move |params: Steps, ctx: Context| steps(Arc::clone(&gates), params, ctx))
            .description("Reports each step, and takes the next one when the gate lets it."),
        Tool::new("open", move |params: Steps| open(Arc::clone(&opened), params))
            .description("Lets a number of steps through a gate."),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct Traces {
    /// Prefix of the trace files: `FILE.started` and `FILE.cancelled`.
    file: PathBuf,
}

/// Leaves a trace file when it starts, and another when the call is canceled. Never answers.
#[tool]
async fn wait_until_cancelled(params: Traces, ctx: Context) -> Result<(), ToolError> {
    let _trace = CancelledTrace(params.file.with_extension("cancelled"));
    std::fs::write(params.file.with_extension("started"), "")?;
    ctx.report(1, 2, "waiting");
    std::future::pending().await
}

struct CancelledTrace(PathBuf);

impl Drop for CancelledTrace {
    fn drop(&mut self) {
        // A test that waits for the file reports when it is missing.
        let _ = std::fs::write(&self.0, "");
    }
}

#[derive(Deserialize, JsonSchema)]
struct Pause {
    /// How many milliseconds to take.
    ms: u64,
    /// Prefix of the trace file written at the start: `FILE.started`.
    file: Option<PathBuf>,
}

/// Answers late.
#[tool]
async fn slow(params: Pause) -> Result<&'static str, ToolError> {
    if let Some(file) = params.file {
        std::fs::write(file.with_extension("started"), "")?;
    }
    tokio::time::sleep(Duration::from_millis(params.ms)).await;
    Ok("at last")
}

#[derive(Deserialize, JsonSchema)]
struct Flood {
    /// How many times to report progress and to log.
    n: u32,
}

/// Sends many notifications quickly.
#[tool]
async fn flood(params: Flood, ctx: Context) -> Result<&'static str, ToolError> {
    for at in 1..=params.n {
        ctx.report(at, params.n, "flooding");
        ctx.log(LogLevel::Info, format!("line {at}"));
        tokio::task::yield_now().await;
    }
    Ok("dry again")
}

#[derive(Deserialize, JsonSchema)]
struct Steps {
    /// The gate.
    gate: String,
    /// How many steps.
    n: u32,
}

/// Gates by name. Each lets as many steps through as it was opened for.
#[derive(Default)]
struct Gates(Mutex<HashMap<String, Arc<Semaphore>>>);

impl Gates {
    fn get(&self, name: &str) -> Arc<Semaphore> {
        let mut gates = self.0.lock();
        Arc::clone(gates.entry(name.to_owned()).or_insert_with(|| Arc::new(Semaphore::new(0))))
    }
}

async fn steps(gates: Arc<Gates>, params: Steps, ctx: Context) -> Result<&'static str, ToolError> {
    let gate = gates.get(&params.gate);
    for at in 1..=params.n {
        ctx.report(at, params.n, format!("step {at}"));
        gate.acquire().await?.forget();
    }
    Ok("arrived")
}

async fn open(gates: Arc<Gates>, params: Steps) -> Result<(), ToolError> {
    gates.get(&params.gate).add_permits(params.n as usize);
    Ok(())
}
