//! The launcher: a small single-threaded process that builds the sandbox around Python and then only
//! waits. It is this binary with a hidden subcommand. Its standard input is the control socket, on
//! which it reports errors.

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

/// The settings of the launcher.
#[derive(Debug, Clone, Default)]
pub struct LaunchSettings {
    /// The Python to run. Default: `python3` from the search path.
    pub python: Option<PathBuf>,
}

/// Builds the sandbox, starts Python in it, and waits until Python ends or the control socket on
/// standard input closes.
pub fn launch(launch: &LaunchSettings) -> ExitCode {
    launch_without_layers(launch, &[])
}

/// Like [`launch`], but omits some layers. Only the launcher for tests calls this.
pub fn launch_without_layers(launch: &LaunchSettings, without: &[SandboxLayer]) -> ExitCode {
    // Detaches from the terminal of the yard. Fails only if this process already leads a session.
    let _ = setsid();
    let stdin = rustix::stdio::stdin();
    match build_and_run(launch, without, stdin) {
        Ok(()) => ExitCode::SUCCESS,
        Err(unavailable) => {
            let SandboxUnavailable { reason, suggestion } = unavailable;
            let message =
                json!({ "unavailable": { "reason": reason, "suggestion": suggestion } }).to_string();
            // If the other end is closed, the sandbox is no longer needed.
            let _ = rustix::io::write(stdin, message.as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// The most commonly used modules. They are loaded once and available in every program.
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
    let privileges = identity::LauncherPrivileges::current()?;
    let proc = identity::Proc::open()?;
    privileges.unshare(&proc, without)?;
    let omitted: Vec<_> = without.iter().map(|layer| layer.name()).collect();
    let settings = json!({ "preload": PRELOAD, "filters": filters, "without": omitted });
    let root = root::build(&python, without, settings)?;
    privileges.drop_privileges(&proc, without)?;
    drop(proc);
    let mut command = Command::new(root.resolve(root::PYTHON));
    // Isolated mode, no site-packages, no bytecode files, and UTF-8 regardless of the locale.
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
    let (stdin, stdout, stderr) = streams.map_err(|error| build_failed("pass on the descriptors", &error))?;
    command.stdin(stdin).stdout(Stdio::from(stdout)).stderr(Stdio::from(stderr));
    let mut child = command.spawn().map_err(|error| SandboxUnavailable {
        reason: format!("cannot start `{}` in the sandbox: {error}", python.executable.display()),
        suggestion: Some("make its files readable and executable for all users of this machine".into()),
    })?;
    let message = json!({ "born": { "pid": child.id() } }).to_string();
    if let Err(error) = rustix::io::write(control, message.as_bytes()) {
        let _ = child.kill();
        return Err(build_failed("report the process of Python", &error.into()));
    }
    wait(child, control)
}

/// Waits until Python ends or the control socket closes.
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
    // Python may still run if the control socket closed.
    let _ = child.kill();
    let _ = child.wait();
    Ok(())
}

fn build_failed(step: &str, error: &io::Error) -> SandboxUnavailable {
    SandboxUnavailable {
        reason: format!("failed to build the sandbox: cannot {step}: {error}"),
        suggestion: None,
    }
}

fn kernel_too_old() -> SandboxUnavailable {
    SandboxUnavailable {
        reason: "this kernel does not support `pidfd_open`".into(),
        suggestion: Some("programs need Linux 5.3 or newer".into()),
    }
}

/// Returns the command that runs Python.
fn python_command(python: Option<&Path>) -> OsString {
    python.map_or_else(|| "python3".into(), |path| path.as_os_str().to_owned())
}
