//! Which processes there are and who started whom, as the system tells it. What to do with them is not decided here.

use std::fs;

use rustix::process::Pid;

/// One process, as far as it matters to whoever must end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    session: i32,
}

/// Everything below a process, however deep, and whatever group or session it made for itself.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
    descendants_in(&processes(), of.as_raw_nonzero().get())
}

/// Everything in a session.
pub(crate) fn session_members(session: Pid) -> Vec<Pid> {
    let session = session.as_raw_nonzero().get();
    let members = processes().into_iter().filter(|process| process.session == session);
    members.filter_map(|process| Pid::from_raw(process.pid)).collect()
}

fn processes() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbered =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit));
    // A process that is gone by now has nothing to read, and need not be ended.
    numbered.filter_map(|entry| parse(&fs::read(entry.path().join("stat")).ok()?)).collect()
}

/// `pid (name) state parent group session …`, where the name may hold anything, brackets and spaces included.
fn parse(stat: &[u8]) -> Option<Process> {
    let stat = String::from_utf8_lossy(stat);
    let (head, tail) = stat.rsplit_once(')')?;
    let pid = head.split_once(' ')?.0.parse().ok()?;
    let mut fields = tail.split_ascii_whitespace().skip(1).map(str::parse);
    let (parent, _group, session) = (fields.next()?.ok()?, fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Process { pid, parent, session })
}

fn descendants_in(all: &[Process], top: i32) -> Vec<Pid> {
    let mut found = vec![top];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        next += 1;
        let children = all.iter().filter(|process| process.parent == parent).map(|process| process.pid);
        let new: Vec<_> = children.filter(|pid| !found.contains(pid)).collect();
        found.extend(new);
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use rustix::process::Pid;

    use super::{Process, descendants_in, parse};

    #[test]
    fn reads_a_process_whatever_it_is_called() {
        let plain = parse(b"12 (sleep) S 7 12 5 0 -1 4194304 100");
        assert_eq!(plain, Some(Process { pid: 12, parent: 7, session: 5 }));
        let odd = parse(b"12 (a) R 1 (b\xff) S 7 12 5 0 -1");
        assert_eq!(odd, Some(Process { pid: 12, parent: 7, session: 5 }));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"12 (sleep) S 7"), None);
    }

    #[test]
    fn finds_everything_below_and_nothing_else() {
        let process = |pid, parent| Process { pid, parent, session: 1 };
        let all = [process(4, 3), process(3, 2), process(2, 1), process(5, 1), process(6, 2), process(1, 0)];
        let found: Vec<_> =
            descendants_in(&all, 2).into_iter().map(|pid: Pid| pid.as_raw_nonzero().get()).collect();
        assert_eq!(found, [3, 6, 4]);
        // What was read while processes came and went may be a circle.
        assert_eq!(descendants_in(&[process(8, 9), process(9, 8)], 8).len(), 1);
    }
}
