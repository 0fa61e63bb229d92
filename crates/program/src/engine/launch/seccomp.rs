//! The system calls that a program may make. All others fail with `EPERM`, so that a script gets a
//! readable exception. Calls that only an attack would make kill the process.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seccompiler::{BpfProgram, TargetArch, compile_from_json};
use serde_json::{Value, json};

use crate::program::SandboxUnavailable;

/// Reading, memory, time, its own signals, and exit.
const ALLOWED: &[&str] = &[
    "brk",
    "chdir",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "close_range",
    "dup",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "exit",
    "exit_group",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fchdir",
    "fstat",
    "futex",
    "getcwd",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getitimer",
    "getpid",
    "getppid",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrusage",
    "gettid",
    "gettimeofday",
    "getuid",
    "lseek",
    "madvise",
    "mmap",
    "mprotect",
    "mremap",
    "munmap",
    "nanosleep",
    "newfstatat",
    "ppoll",
    "pread64",
    "pselect6",
    "read",
    "readlinkat",
    "readv",
    "restart_syscall",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "sched_getaffinity",
    "sched_yield",
    "set_robust_list",
    "setitimer",
    "sigaltstack",
    "statx",
    "sysinfo",
    "times",
    "umask",
    "uname",
    "write",
    "writev",
];

/// Equivalents that exist only on this architecture.
const ALLOWED_X86_64: &[&str] = &[
    "access",
    "alarm",
    "epoll_wait",
    "getdents",
    "getpgrp",
    "lstat",
    "pause",
    "poll",
    "readlink",
    "select",
    "stat",
    "time",
];

/// Calls that kill the process.
const DEADLY: &[&str] = &[
    "acct",
    "add_key",
    "bpf",
    "chroot",
    "clock_settime",
    "delete_module",
    "finit_module",
    "fsconfig",
    "fsmount",
    "fsopen",
    "fspick",
    "init_module",
    "io_uring_enter",
    "io_uring_register",
    "io_uring_setup",
    "kcmp",
    "kexec_load",
    "keyctl",
    "mount",
    "mount_setattr",
    "move_mount",
    "name_to_handle_at",
    "open_by_handle_at",
    "open_tree",
    "perf_event_open",
    "pidfd_getfd",
    "pidfd_send_signal",
    "pivot_root",
    "process_madvise",
    "process_vm_readv",
    "process_vm_writev",
    "ptrace",
    "quotactl",
    "reboot",
    "request_key",
    "seccomp",
    "setns",
    "settimeofday",
    "swapoff",
    "swapon",
    "umount2",
    "unshare",
    "userfaultfd",
];

const DEADLY_X86_64: &[&str] = &["ioperm", "iopl", "kexec_file_load", "modify_ldt"];

/// The flags of `open` for writing: `O_WRONLY`, `O_RDWR`, `O_CREAT`, `O_TRUNC`, `O_TMPFILE`.
const WRITING: u64 = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20_000_000;
/// `TCGETS`, `TIOCGWINSZ`, `FIONREAD`, `FIONBIO`, `FIONCLEX`, `FIOCLEX`.
const IOCTLS: [u64; 6] = [0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451];
/// `F_DUPFD`, `F_GETFD`, `F_SETFD`, `F_GETFL`, `F_SETFL`, `F_DUPFD_CLOEXEC`. Operations that send
/// signals are excluded.
const FCNTLS: [u64; 6] = [0, 1, 2, 3, 4, 1030];
/// Read-only operations: dumpable, name, seccomp, bounding set, no new privileges.
const PRCTLS: [u64; 5] = [3, 16, 21, 23, 39];
const EPERM: u32 = 1;

/// Compiles the filters for the architecture of this machine. Returns them as Base64 for the worker.
pub(super) fn compile_filters() -> Result<[String; 2], SandboxUnavailable> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| SandboxUnavailable {
        reason: format!("the sandbox does not support the architecture {}", std::env::consts::ARCH),
        suggestion: Some("run programs on x86_64 or aarch64".into()),
    })?;
    compile_for_arch(arch).map_err(|error| SandboxUnavailable {
        reason: format!("failed to compile the seccomp filters: {error}"),
        suggestion: None,
    })
}

fn compile_for_arch(arch: TargetArch) -> Result<[String; 2], String> {
    let x86 = arch == TargetArch::x86_64;
    let rules = |common: &[&str], x86_only: &[&str]| -> Vec<Value> {
        let x86_only = if x86 { x86_only } else { &[] };
        common.iter().chain(x86_only).map(|name| json!({ "syscall": name })).collect()
    };
    let mut allowed = rules(ALLOWED, ALLOWED_X86_64);
    let read_only = |name: &str, index: u8| json!({ "syscall": name, "args": [argument(index, &json!({ "masked_eq": WRITING }), 0)] });
    allowed.push(read_only("openat", 2));
    if x86 {
        allowed.push(read_only("open", 1));
    }
    for (name, values) in [("ioctl", &IOCTLS[..]), ("fcntl", &FCNTLS[..])] {
        allowed.extend(
            values
                .iter()
                .map(|value| json!({ "syscall": name, "args": [argument(1, &json!("eq"), *value)] })),
        );
    }
    allowed.extend(
        PRCTLS.map(|value| json!({ "syscall": "prctl", "args": [argument(0, &json!("eq"), value)] })),
    );
    // A program may read its own limits, but not set them.
    let (own_pid, no_new_limit) =
        (argument(0, &json!("eq"), 0), json!({ "index": 2, "type": "qword", "op": "eq", "val": 0 }));
    allowed.push(json!({ "syscall": "prlimit64", "args": [own_pid, no_new_limit] }));
    let deadly = rules(DEADLY, DEADLY_X86_64);
    let source = json!({
        "deadly": { "mismatch_action": "allow", "match_action": "kill_process", "filter": deadly },
        "allowed": { "mismatch_action": { "errno": EPERM }, "match_action": "allow", "filter": allowed },
    });
    let mut programs =
        compile_from_json(source.to_string().as_bytes(), arch).map_err(|error| error.to_string())?;
    // The filter of allowed calls forbids installing further filters, so it must come last.
    let mut take =
        |name: &str| programs.remove(name).map(|program| encode_filter(&program)).unwrap_or_default();
    Ok([take("deadly"), take("allowed")])
}

fn argument(index: u8, op: &Value, value: u64) -> Value {
    json!({ "index": index, "type": "dword", "op": op, "val": value })
}

fn encode_filter(program: &BpfProgram) -> String {
    let mut bytes = Vec::with_capacity(program.len() * 8);
    for step in program {
        bytes.extend(step.code.to_ne_bytes());
        bytes.extend([step.jt, step.jf]);
        bytes.extend(step.k.to_ne_bytes());
    }
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_compile_for_every_supported_architecture() {
        for arch in [TargetArch::x86_64, TargetArch::aarch64] {
            let [deadly, allowed] = compile_for_arch(arch).unwrap();
            assert!(
                deadly.len() > 500 && allowed.len() > 500,
                "{arch:?}: {} {}",
                deadly.len(),
                allowed.len()
            );
        }
    }

    #[test]
    fn no_call_is_both_allowed_and_deadly() {
        let allowed = ALLOWED.iter().chain(ALLOWED_X86_64);
        let both: Vec<_> =
            allowed.filter(|name| DEADLY.contains(name) || DEADLY_X86_64.contains(name)).collect();
        assert_eq!(both, Vec::<&&str>::new());
    }
}
