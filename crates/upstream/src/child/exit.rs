//! Descriptions of how a process ended.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::process_supervisor::CANNOT_START;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessExit {
    /// A predicate that follows the name of the process, such as `exited with code 1`.
    pub description: String,
    /// The exit code, if the process was not killed by a signal.
    pub code: Option<i32>,
}

impl ProcessExit {
    pub(super) fn unknown(description: impl Into<String>) -> Self {
        Self { description: description.into(), code: None }
    }
}

/// Derives the exit of the server from that of its supervisor, and from the last line on standard
/// error if that explains it.
pub(super) fn describe_exit(status: io::Result<ExitStatus>, last: Option<&String>) -> ProcessExit {
    let status = match status {
        Ok(status) => status,
        Err(error) => return ProcessExit::unknown(format!("was lost: {error}")),
    };
    let description = describe_status(status, last);
    // With these codes, the supervisor reports a signal.
    ProcessExit { code: status.code().filter(|code| !(129..=192).contains(code)), description }
}

fn describe_status(status: ExitStatus, last: Option<&String>) -> String {
    match (status.code(), status.signal()) {
        (Some(126 | 127), _) if let Some(at) = last.and_then(|line| line.find(CANNOT_START)) => {
            let reason = last.map_or("", |line| &line[at + CANNOT_START.len()..]);
            format!("could not be started: {reason}")
        }
        // The supervisor reports a signal as shells do.
        (Some(code @ 129..=192), _) => format!("was killed by signal {}", code - 128),
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("ended because its supervisor was killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::describe_exit;

    #[track_caller]
    fn check(raw: i32, last: &str, expect: &str) {
        assert_eq!(describe_exit(Ok(ExitStatus::from_raw(raw)), Some(&last.to_owned())).description, expect);
    }

    #[test]
    fn describes_how_a_process_ended() {
        check(0, "", "exited with code 0");
        check(1 << 8, "Traceback", "exited with code 1");
        check(137 << 8, "", "was killed by signal 9");
        check(9, "", "ended because its supervisor was killed by signal 9");
        check(255 << 8, "", "exited with code 255");
        check(127 << 8, "sh: nosuch: not found", "exited with code 127");
        let line = "toolyard: cannot start ./server: Exec format error (os error 8)";
        check(126 << 8, line, "could not be started: ./server: Exec format error (os error 8)");
    }
}
