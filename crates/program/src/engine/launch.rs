//! The launcher: a small process of one thread that builds the sandbox around Python and then only waits. It is this very
//! binary with a hidden verb; its standard input is the control socket, on which it says what went wrong.

mod identity;
mod python;
mod root;
mod seccomp;

use std::ffi::OsString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open, setsid};
use serde_json::json;

use super::layer::SandboxLayer;
use crate::program::SandboxUnavailable;

/// What the launcher is asked to build.
#[derive(Debug, Clone, Default)]
pub struct LaunchSettings {
    /// The Python to run; `python3` from the search path if there is none.
    pub python: Option<PathBuf>,
}

/// Builds the sandbox, starts Python in it, and waits for the end of either side. Standard input is the control socket.
pub fn launch(launch: &LaunchSettings) -> ExitCode {
    launch_without_layers(launch, &[])
}

/// As [`launch`], but without some layers. Only the kit for tests calls this; the product has no way to.
pub fn launch_without_layers(launch: &LaunchSettings, without: &[SandboxLayer]) -> ExitCode {
    // What is typed at the yard's terminal is not for programs. It fails only where this leads a session already.
    let _ = setsid();
    let stdin = rustix::stdio::stdin();
    match build_and_run(launch, without, stdin) {
        Ok(()) => ExitCode::SUCCESS,
        Err(unavailable) => {
            let SandboxUnavailable { reason, suggestion } = unavailable;
            let words = json!({ "unavailable": { "reason": reason, "suggestion": suggestion } }).to_string();
            // If nobody listens, nobody wanted a sandbox.
            let _ = rustix::io::write(stdin, words.as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// The modules that scripts use most. They are loaded once and are there in every program.
const PRELOAD: &[&str] = &[
    "abc",
    "argparse",
    "array",
    "ast",
    "asyncio",
    "base64",
    "bisect",
    "calendar",
    "collections",
    "collections.abc",
    "contextlib",
    "copy",
    "csv",
    "dataclasses",
    "datetime",
    "decimal",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "heapq",
    "html",
    "inspect",
    "io",
    "itertools",
    "json",
    "logging",
    "math",
    "operator",
    "pathlib",
    "pprint",
    "random",
    "re",
    "statistics",
    "string",
    "textwrap",
    "time",
    "traceback",
    "typing",
    "unicodedata",
    "urllib.parse",
    "uuid",
    "zoneinfo",
];

fn build_and_run(
    launch: &LaunchSettings,
    without: &[SandboxLayer],
    control: BorrowedFd<'static>,
) -> Result<(), SandboxUnavailable> {
    let python = python::find(launch.python.as_deref())?;
    let filters = seccomp::compile_filters()?;
    let rights = identity::LauncherPrivileges::current()?;
    let proc = identity::Proc::open()?;
    rights.unshare(&proc, without)?;
    let left_out: Vec<_> = without.iter().map(|layer| layer.name()).collect();
    let settings = json!({ "preload": PRELOAD, "filters": filters, "without": left_out });
    let root = root::build(&python, without, settings)?;
    rights.drop_privileges(&proc, without)?;
    drop(proc);
    let mut command = Command::new(root.resolve(root::PYTHON));
    // Isolated, without site-packages, without writing bytecode, and UTF-8 whatever the locale is.
    command.args(["-I", "-S", "-B", "-X", "utf8"]).arg(root.resolve(root::ZYGOTE));
    if !without.contains(&SandboxLayer::Environment) {
        command.env_clear();
    }
    command.current_dir(root.resolve("/"));
    let copy = |fd: BorrowedFd<'_>| -> io::Result<OwnedFd> { fd.try_clone_to_owned() };
    let streams = copy(control).and_then(|stdin| {
        let stderr = rustix::stdio::stderr();
        Ok((stdin, copy(stderr)?, copy(stderr)?))
    });
    let (stdin, stdout, stderr) = streams.map_err(|error| build_failed("pass the descriptors on", &error))?;
    command.stdin(stdin).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let mut child = command.spawn().map_err(|error| SandboxUnavailable {
        reason: format!("cannot start {} in the sandbox: {error}", python.executable.display()),
        suggestion: Some("check that its files can be read and executed by everybody on this machine".into()),
    })?;
    let born = json!({ "born": { "pid": child.id() } }).to_string();
    if let Err(error) = rustix::io::write(control, born.as_bytes()) {
        let _ = child.kill();
        return Err(build_failed("say that Python runs", &error.into()));
    }
    wait(child, control)
}

/// Until Python ends, or the one who wanted it is gone.
fn wait(mut child: Child, control: BorrowedFd<'_>) -> Result<(), SandboxUnavailable> {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let handle = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let handle = match handle {
        Some(Ok(handle)) => handle,
        _ => return Err(kernel_too_old()),
    };
    loop {
        let mut watched = [PollFd::new(&handle, PollFlags::IN), PollFd::new(&control, PollFlags::empty())];
        match poll(&mut watched, None) {
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(build_failed("wait for Python", &error.into())),
            Ok(_) if watched.iter().all(|fd| fd.revents().is_empty()) => continue,
            Ok(_) => break,
        }
    }
    // Either it has ended, or nobody wants it any more.
    let _ = child.kill();
    let _ = child.wait();
    Ok(())
}

fn build_failed(what: &str, error: &io::Error) -> SandboxUnavailable {
    SandboxUnavailable {
        reason: format!("the sandbox for programs cannot be built: cannot {what}: {error}"),
        suggestion: None,
    }
}

fn kernel_too_old() -> SandboxUnavailable {
    SandboxUnavailable {
        reason: "this kernel cannot watch processes by descriptor".into(),
        suggestion: Some("programs need Linux 5.3 or newer".into()),
    }
}

/// Names a Python by path, or by the search path.
fn python_command(python: Option<&Path>) -> OsString {
    python.map_or_else(|| "python3".into(), |path| path.as_os_str().to_owned())
}
