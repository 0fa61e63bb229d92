//! The layers of the sandbox, by name, so that a test can leave one out and see which attack gets through.

/// One layer. `attacks.rs` has the table of which attack proves which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxLayer {
    /// A user namespace, and nobody's identity in it.
    User,
    /// A network namespace with nothing in it.
    Network,
    /// A process namespace, so that no other process has a number.
    Processes,
    /// A root folder of its own with the standard library in it.
    Root,
    Ipc,
    Uts,
    /// No `/proc`.
    NoProc,
    /// Every mount is read-only.
    ReadOnly,
    /// An empty environment.
    Environment,
    /// No descriptor but the program's own.
    Descriptors,
    NoNewPrivs,
    /// Not dumpable: no other program may read this one's memory.
    Dumpable,
    Landlock,
    Seccomp,
    AddressSpace,
    CpuTime,
    FileSize,
    OpenFiles,
    Core,
    /// No further process, by rlimit.
    ProcessCount,
    /// The kill from outside.
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

    /// The name by which launcher and worker know it.
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
