//! Memory use of the process, and the mark above which it should not grow: three quarters of the
//! limit of its control group, or 512 MB without a limit.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toolyard_hub::Yard;

/// Interval between two measurements.
const INTERVAL: Duration = Duration::from_millis(250);
/// The mark if the process has no memory limit.
const USUAL_MARK: u64 = 512 * 1024 * 1024;
/// Version 1 of control groups reports about this much if there is no limit.
const UNLIMITED: u64 = 1 << 60;

/// Reports the memory in use to the yard, for as long as the future is polled.
pub(crate) async fn watch(yard: Arc<Yard>) {
    let usual = default_mark(Path::new("/"));
    let mut interval = tokio::time::interval(INTERVAL);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        // Without this file the memory in use is unknown, and no call is refused for it.
        let Some(resident) =
            std::fs::read_to_string("/proc/self/statm").ok().and_then(|text| resident(&text))
        else {
            return;
        };
        yard.quotas().observe_memory(resident, yard.limits().memory_mark.unwrap_or(usual));
    }
}

/// Parses the resident memory in bytes from `/proc/self/statm`.
fn resident(statm: &str) -> Option<u64> {
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

/// Returns three quarters of the limit of the control group (version 1 or 2), or the usual mark.
fn default_mark(root: &Path) -> u64 {
    let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limit = limit_files(root, &groups).into_iter().filter_map(|path| {
        let text = std::fs::read_to_string(path).ok()?;
        text.trim().parse::<u64>().ok().filter(|limit| *limit < UNLIMITED)
    });
    limit.min().map_or(USUAL_MARK, |limit| limit / 4 * 3)
}

/// Returns the files that may contain a limit: those of the group and of all its parents.
fn limit_files(root: &Path, groups: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let (mount, name) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            list if list.split(',').any(|controller| controller == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let group = Path::new(path.trim_start_matches('/'));
        files.extend(group.ancestors().map(|group| root.join(mount).join(group).join(name)));
    }
    files
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{USUAL_MARK, default_mark, limit_files, resident};

    #[test]
    fn the_memory_of_the_process_is_read_in_bytes() {
        let page = rustix::param::page_size() as u64;
        assert_eq!(resident("1000 25 3 4 5 6 7\n"), Some(25 * page));
        for wrong in ["", "1", "a b", "1 -2"] {
            assert_eq!(resident(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn a_control_group_and_those_around_it_may_limit_the_memory() {
        let root = Path::new("/r");
        let files = |groups: &str| -> Vec<String> {
            limit_files(root, groups).iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(
            files("0::/a/b\n"),
            [
                "/r/sys/fs/cgroup/a/b/memory.max",
                "/r/sys/fs/cgroup/a/memory.max",
                "/r/sys/fs/cgroup/memory.max"
            ]
        );
        assert_eq!(
            files("5:cpu:/x\n4:hugetlb,memory:/\nnonsense\n"),
            ["/r/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        );
    }

    #[test]
    fn the_mark_is_three_quarters_of_the_tightest_limit() {
        let root = std::env::temp_dir().join(format!("toolyard-memory-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert_eq!(default_mark(&root), USUAL_MARK);
        write("proc/self/cgroup", "0::/a\n");
        write("sys/fs/cgroup/a/memory.max", "max\n");
        assert_eq!(default_mark(&root), USUAL_MARK);
        write("sys/fs/cgroup/memory.max", "1000000\n");
        assert_eq!(default_mark(&root), 750_000);
        write("sys/fs/cgroup/a/memory.max", "400000\n");
        assert_eq!(default_mark(&root), 300_000);
        write("proc/self/cgroup", "4:memory:/\n");
        write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(default_mark(&root), USUAL_MARK);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
