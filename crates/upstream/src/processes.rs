//! The processes of the system and their parents, read from `/proc`. Ending them belongs elsewhere.

use std::fs;

use rustix::process::Pid;

/// The fields of a process that are needed to end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    session: i32,
}

/// Returns all descendants of a process, in whatever group or session they are.
pub(crate) fn descendants(root: Pid) -> Vec<Pid> {
    descendants_in(&processes(), root.as_raw_nonzero().get())
}

/// Returns all processes of a session.
pub(crate) fn session_members(session: Pid) -> Vec<Pid> {
    let session = session.as_raw_nonzero().get();
    let members = processes().into_iter().filter(|process| process.session == session);
    members.filter_map(|process| Pid::from_raw(process.pid)).collect()
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    // A process that has exited in the meantime cannot be read and need not be ended.
    numbered.filter_map(|entry| parse(&fs::read(entry.path().join("stat")).ok()?)).collect()
}

/// Parses `pid (name) state parent group session …`. The name may contain any character, including
/// parentheses and spaces.
fn parse(stat: &[u8]) -> Option<Process> {
    let stat = String::from_utf8_lossy(stat);
    let (head, tail) = stat.rsplit_once(')')?;
    let pid = head.split_once(' ')?.0.parse().ok()?;
    let mut fields = tail.split_ascii_whitespace().skip(1).map(str::parse);
    let (parent, _group, session) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Process { pid, parent, session })
}

fn descendants_in(all: &[Process], root: i32) -> Vec<Pid> {
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(parent) = tree.get(next).copied() {
        next += 1;
        let children = all.iter().filter(|process| process.parent == parent).map(|process| process.pid);
        let new: Vec<_> = children.filter(|pid| !tree.contains(pid)).collect();
        tree.extend(new);
    }
    tree.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::{Process, descendants_in, parse};

    #[test]
    fn parses_a_process_with_any_name() {
        let plain = parse(b"12 (sleep) S 7 12 5 0 -1 4194304 100");
        assert_eq!(plain, Some(Process { pid: 12, parent: 7, session: 5 }));
        let unusual = parse(b"12 (a) R 1 (b\xff) S 7 12 5 0 -1");
        assert_eq!(unusual, Some(Process { pid: 12, parent: 7, session: 5 }));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"12 (sleep) S 7"), None);
    }

    #[test]
    fn finds_all_descendants_and_nothing_else() {
        let process = |pid, parent| Process { pid, parent, session: 1 };
        let all = [process(4, 3), process(3, 2), process(2, 1), process(5, 1), process(6, 2), process(1, 0)];
        let tree: Vec<_> =
            descendants_in(&all, 2).into_iter().map(|pid: Pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(tree, [3, 6, 4]);
        // Processes that start and exit during the read can appear as a cycle.
        assert_eq!(descendants_in(&[process(8, 9), process(9, 8)], 8).len(), 1);
    }
}
