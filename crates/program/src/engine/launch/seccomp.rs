//! The system calls that a program may make. Whatever is not on the list fails as forbidden, so that a script gets an
//! exception that it can read; what no script has any business with ends the process.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use seccompiler::{BpfProgram, TargetArch, compile_from_json};
use serde_json::{Value, json};

use crate::program::SandboxUnavailable;

/// Reading, memory, time, signals of its own, and the end.
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

/// The same under names that only this architecture has.
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

/// What ends the process at once.
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

/// Flags of `open` that write: `O_WRONLY`, `O_RDWR`, `O_CREAT`, `O_TRUNC`, `O_TMPFILE`.
const WRITING: u64 = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20_000_000;
/// What a terminal is asked, and what descriptors are told about themselves.
const IOCTLS: [u64; 6] = [0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451];
/// `F_DUPFD`, `F_GETFD`, `F_SETFD`, `F_GETFL`, `F_SETFL`, `F_DUPFD_CLOEXEC`; not those that send signals.
const FCNTLS: [u64; 6] = [0, 1, 2, 3, 4, 1030];
/// Those that only ask: dumpable, name, seccomp, bounding set, no new privileges.
const PRCTLS: [u64; 5] = [3, 16, 21, 23, 39];
const EPERM: u32 = 1;

/// The filters of this machine's architecture, as text that the worker turns back into bytes.
pub(super) fn compile_filters() -> Result<[String; 2], SandboxUnavailable> {
    let arch = TargetArch::try_from(std::env::consts::ARCH).map_err(|_| SandboxUnavailable {
        reason: format!(
            "the sandbox for programs does not know the system calls of {}",
            std::env::consts::ARCH
        ),
        suggestion: Some("programs run on x86_64 and aarch64".into()),
    })?;
    compile_for_arch(arch).map_err(|error| SandboxUnavailable {
        reason: format!("the list of system calls does not compile: {error}"),
        suggestion: None,
    })
}

fn compile_for_arch(arch: TargetArch) -> Result<[String; 2], String> {
    let x86 = arch == TargetArch::x86_64;
    let more = |always: &[&str], only: &[&str]| -> Vec<Value> {
        let only = if x86 { only } else { &[] };
        always.iter().chain(only).map(|name| json!({ "syscall": name })).collect()
    };
    let mut allowed = more(ALLOWED, ALLOWED_X86_64);
    let reading = |name: &str, index: u8| json!({ "syscall": name, "args": [argument(index, &json!({ "masked_eq": WRITING }), 0)] });
    allowed.push(reading("openat", 2));
    if x86 {
        allowed.push(reading("open", 1));
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
    // One's own limits may be read, not set.
    let (own, unset) =
        (argument(0, &json!("eq"), 0), json!({ "index": 2, "type": "qword", "op": "eq", "val": 0 }));
    allowed.push(json!({ "syscall": "prlimit64", "args": [own, unset] }));
    let deadly = more(DEADLY, DEADLY_X86_64);
    let source = json!({
        "deadly": { "mismatch_action": "allow", "match_action": "kill_process", "filter": deadly },
        "allowed": { "mismatch_action": { "errno": EPERM }, "match_action": "allow", "filter": allowed },
    });
    let mut programs =
        compile_from_json(source.to_string().as_bytes(), arch).map_err(|error| error.to_string())?;
    // The last one decides about installing nothing more, so the deadly ones come first.
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
    fn the_filters_compile_on_every_architecture_that_is_promised() {
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
    fn nothing_is_allowed_and_deadly_at_once() {
        let allowed = ALLOWED.iter().chain(ALLOWED_X86_64);
        let both: Vec<_> =
            allowed.filter(|name| DEADLY.contains(name) || DEADLY_X86_64.contains(name)).collect();
        assert_eq!(both, Vec::<&&str>::new());
    }
}
