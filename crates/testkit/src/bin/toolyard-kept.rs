//! For tests of supervised processes. `keeper …` is the supervisor. `parent -- PROGRAM ARGS…`
//! starts a program the way the product does, prints its process id and waits to be killed. `crowd
//! N -- PROGRAM ARGS…` starts N processes concurrently, waits for a line from each, ends them all,
//! and prints the number of open descriptors before and after.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the caller reads it")]
#![allow(clippy::disallowed_methods, reason = "the entry point of a process reads its environment")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::task::JoinSet;
use toolyard_upstream::{
    Child, CommandSettings, EnvInheritance, ProcessEnvironment, SupervisedCommand, SupervisorCommand,
    supervise_process,
};

const USAGE: &str = "toolyard-kept keeper --watch PID|parent|crowd N -- PROGRAM ARGS...";

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let done = match arguments.next().as_deref().and_then(|verb| verb.to_str()) {
        Some("keeper") => run_supervisor(arguments),
        Some("parent") => parent(arguments),
        Some("crowd") => run_many(arguments),
        _ => Err(USAGE.into()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("toolyard-kept: {error}");
        ExitCode::FAILURE
    })
}

fn run_supervisor(mut arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, Failure> {
    let (watch, pid, dashes) = (arguments.next(), arguments.next(), arguments.next());
    if watch != Some("--watch".into()) || dashes != Some("--".into()) {
        return Err(USAGE.into());
    }
    let watch = pid.as_ref().and_then(|pid| pid.to_str()).ok_or(USAGE)?.parse()?;
    let program = arguments.next().ok_or(USAGE)?;
    Ok(
        match supervise_process(&SupervisedCommand { parent_pid: watch, program, args: arguments.collect() })
        {
            Ok(code) => code.into(),
            Err(error) => {
                eprintln!("toolyard-kept: {error}");
                error.code().into()
            }
        },
    )
}

#[tokio::main(flavor = "current_thread")]
async fn parent(arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, Failure> {
    let (settings, keeper) = command(arguments)?;
    let child = Child::spawn(&settings, &keeper)?;
    println!("{}", child.id());
    println!("{}", child.wait().await.description);
    Ok(ExitCode::SUCCESS)
}

#[tokio::main(flavor = "current_thread")]
async fn run_many(mut arguments: impl Iterator<Item = OsString>) -> Result<ExitCode, Failure> {
    let number: usize = arguments.next().as_ref().and_then(|number| number.to_str()).ok_or(USAGE)?.parse()?;
    let (settings, keeper) = command(arguments)?;
    // The first process makes the runtime open descriptors that it never closes.
    wait_and_end(Child::spawn(&settings, &keeper)?).await?;
    let before = descriptors()?;
    let mut running = JoinSet::new();
    for _ in 0..number {
        running.spawn(wait_and_end(Child::spawn(&settings, &keeper)?));
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    println!("{before} {}", descriptors()?);
    Ok(ExitCode::SUCCESS)
}

/// Waits for a line and ends the process.
async fn wait_and_end(mut child: Child) -> std::io::Result<()> {
    let Some((_stdin, stdout)) = child.take_streams() else { return Ok(()) };
    BufReader::new(stdout).read_line(&mut String::new()).await?;
    child.stop(Duration::from_secs(10)).await;
    Ok(())
}

fn descriptors() -> std::io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/fd")?.count())
}

fn command(
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<(CommandSettings, SupervisorCommand), Failure> {
    if arguments.next() != Some("--".into()) {
        return Err(USAGE.into());
    }
    let mut words = arguments.map(|word| word.into_string().map_err(|_| USAGE));
    let program = words.next().ok_or(USAGE)??;
    let args = words.collect::<Result<_, _>>()?;
    let settings = CommandSettings {
        program,
        args,
        env: BTreeMap::new(),
        cwd: None,
        inherit: EnvInheritance::AllowList,
    };
    let environment = ProcessEnvironment::new(std::env::vars_os());
    let keeper =
        SupervisorCommand { program: std::env::current_exe()?, args: vec!["keeper".into()], environment };
    Ok((settings, keeper))
}
