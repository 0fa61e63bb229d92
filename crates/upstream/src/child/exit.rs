//! How a process ended, in words that follow its name.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use crate::process_supervisor::CANNOT_START;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessExit {
    /// In words that follow its name.
    pub description: String,
    /// The code that it exited with, if it did that by itself.
    pub code: Option<i32>,
}

impl ProcessExit {
    pub(super) fn unknown(words: impl Into<String>) -> Self {
        Self { description: words.into(), code: None }
    }
}

/// What the keeper's end says about the server's, and the last line on standard error where that explains it.
pub(super) fn describe_exit(status: io::Result<ExitStatus>, last: Option<&String>) -> ProcessExit {
    let status = match status {
        Ok(status) => status,
        Err(error) => return ProcessExit::unknown(format!("was lost: {error}")),
    };
    let words = describe_status(status, last);
    // Beyond this, the keeper says that a signal did it.
    ProcessExit { code: status.code().filter(|code| !(129..=192).contains(code)), description: words }
}

fn describe_status(status: ExitStatus, last: Option<&String>) -> String {
    match (status.code(), status.signal()) {
        (Some(126 | 127), _) if let Some(at) = last.and_then(|line| line.find(CANNOT_START)) => {
            let why = last.map_or("", |line| &line[at + CANNOT_START.len()..]);
            format!("could not be started: {why}")
        }
        // What a shell makes of a signal, and so does the keeper.
        (Some(code @ 129..=192), _) => format!("was killed by signal {}", code - 128),
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(signal)) => format!("lost its keeper to signal {signal}"),
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
    fn says_what_happened() {
        check(0, "", "exited with code 0");
        check(1 << 8, "Traceback", "exited with code 1");
        check(137 << 8, "", "was killed by signal 9");
        check(9, "", "lost its keeper to signal 9");
        check(255 << 8, "", "exited with code 255");
        check(127 << 8, "sh: nosuch: not found", "exited with code 127");
        let line = "toolyard: cannot start ./server: Exec format error (os error 8)";
        check(126 << 8, line, "could not be started: ./server: Exec format error (os error 8)");
    }
}
