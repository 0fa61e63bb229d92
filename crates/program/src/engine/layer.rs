//! The layers of the sandbox. Tests omit one to check which attack then succeeds.

/// One layer of the sandbox. The table in `attacks.rs` lists the attack that proves each layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxLayer {
    /// A user namespace, without the privileges of root.
    User,
    /// An empty network namespace.
    Network,
    /// A process namespace, which hides all other processes.
    Processes,
    /// A separate root folder that contains the standard library.
    Root,
    Ipc,
    Uts,
    /// No `/proc`.
    NoProc,
    /// Every mount is read-only.
    ReadOnly,
    /// An empty environment.
    Environment,
    /// No open descriptors except the pipe of the program.
    Descriptors,
    NoNewPrivs,
    /// Not dumpable: other programs cannot read the memory of the process.
    Dumpable,
    Landlock,
    Seccomp,
    AddressSpace,
    CpuTime,
    FileSize,
    OpenFiles,
    Core,
    /// No further processes, enforced by an rlimit.
    ProcessCount,
    /// The time limit that the engine enforces from outside.
    WallClock,
}

impl SandboxLayer {
    pub const ALL: [Self; 21] = [
        Self::User,
        Self::Network,
        Self::Processes,
        Self::Root,
        Self::Ipc,
        Self::Uts,
        Self::NoProc,
        Self::ReadOnly,
        Self::Environment,
        Self::Descriptors,
        Self::NoNewPrivs,
        Self::Dumpable,
        Self::Landlock,
        Self::Seccomp,
        Self::AddressSpace,
        Self::CpuTime,
        Self::FileSize,
        Self::OpenFiles,
        Self::Core,
        Self::ProcessCount,
        Self::WallClock,
    ];

    /// Returns the name that the launcher and the worker use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Network => "network",
            Self::Processes => "pids",
            Self::Root => "root",
            Self::Ipc => "ipc",
            Self::Uts => "uts",
            Self::NoProc => "no-proc",
            Self::ReadOnly => "read-only",
            Self::Environment => "environment",
            Self::Descriptors => "descriptors",
            Self::NoNewPrivs => "no-new-privs",
            Self::Dumpable => "dumpable",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::AddressSpace => "address-space",
            Self::CpuTime => "cpu-time",
            Self::FileSize => "file-size",
            Self::OpenFiles => "open-files",
            Self::Core => "core",
            Self::ProcessCount => "processes",
            Self::WallClock => "wall-clock",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|layer| layer.name() == name)
    }
}
