//! Namespaces, and the privileges of the process in them. An ordinary user first creates a user
//! namespace and builds the rest inside it. Root builds the rest with its own privileges, switches
//! to the user `nobody`, and then creates the user namespace. Programs therefore never run as root,
//! neither inside nor outside the sandbox.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{DumpableBehavior, Gid, Uid};
use rustix::thread::{CapabilitySet, UnshareFlags};

use crate::engine::layer::SandboxLayer;
use crate::program::SandboxUnavailable;

/// The user and group ID of programs inside the sandbox.
const INSIDE: u32 = 1000;
/// The user and group ID outside the sandbox if root started it: `nobody`.
const NOBODY: u32 = 65534;
const HOST_NAME: &[u8] = b"program";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LauncherPrivileges {
    Root,
    Ordinary,
}

/// The original `/proc`, opened before the root changes. The ID maps are written there.
#[derive(Debug)]
pub(super) struct Proc(OwnedFd);

impl Proc {
    pub(super) fn open() -> Result<Self, SandboxUnavailable> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, "/proc", flags, Mode::empty()).map(Self).map_err(|error| SandboxUnavailable {
            reason: format!("failed to build the sandbox: cannot open `/proc`: {error}"),
            suggestion: None,
        })
    }

    fn write(&self, path: &str, text: &str) -> Result<(), SandboxUnavailable> {
        let file = openat(&self.0, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        let result = file.and_then(|file| rustix::io::write(file, text.as_bytes()));
        result.map(drop).map_err(|error| namespace_error("map users into one", error))
    }

    /// Maps one user and one group into the sandbox.
    fn write_id_maps(&self, uid: u32, gid: u32) -> Result<(), SandboxUnavailable> {
        self.write("self/setgroups", "deny")?;
        self.write("self/uid_map", &format!("{INSIDE} {uid} 1"))?;
        self.write("self/gid_map", &format!("{INSIDE} {gid} 1"))
    }
}

impl LauncherPrivileges {
    pub(super) fn current() -> Result<Self, SandboxUnavailable> {
        let sets = rustix::thread::capabilities(None);
        let sets = sets.map_err(|error| super::build_failed("read its capabilities", &error.into()))?;
        let is_privileged = rustix::process::geteuid().is_root()
            && sets
                .effective
                .contains(CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID | CapabilitySet::SETGID)
            && ["uid_map", "gid_map"].iter().all(|map| is_nobody_user_mapped(map));
        Ok(if is_privileged { Self::Root } else { Self::Ordinary })
    }

    pub(super) fn unshare(self, proc: &Proc, without: &[SandboxLayer]) -> Result<(), SandboxUnavailable> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mut flags = UnshareFlags::NEWNS;
        let namespaces = [
            (SandboxLayer::Network, UnshareFlags::NEWNET),
            (SandboxLayer::Processes, UnshareFlags::NEWPID),
            (SandboxLayer::Ipc, UnshareFlags::NEWIPC),
            (SandboxLayer::Uts, UnshareFlags::NEWUTS),
        ];
        for (layer, flag) in namespaces {
            if !without.contains(&layer) {
                flags |= flag;
            }
        }
        if self == Self::Ordinary {
            flags |= UnshareFlags::NEWUSER;
        }
        unshare(flags).map_err(|error| namespace_error("create one", error))?;
        if self == Self::Ordinary {
            proc.write_id_maps(uid, gid)?;
        }
        if !without.contains(&SandboxLayer::Uts) {
            let result = rustix::system::sethostname(HOST_NAME);
            result.map_err(|error| namespace_error("set the host name in one", error))?;
        }
        Ok(())
    }

    /// Gives up the privileges of root. Nothing can be built after this.
    pub(super) fn drop_privileges(
        self,
        proc: &Proc,
        without: &[SandboxLayer],
    ) -> Result<(), SandboxUnavailable> {
        if self == Self::Ordinary || without.contains(&SandboxLayer::User) {
            return Ok(());
        }
        switch_to_nobody_user()
            .map_err(|error| super::build_failed("switch to the user `nobody`", &error))?;
        unshare(UnshareFlags::NEWUSER).map_err(|error| namespace_error("create one", error))?;
        proc.write_id_maps(NOBODY, NOBODY)
    }
}

/// Returns whether `nobody` is mapped. Root in a user namespace can switch only to mapped users.
fn is_nobody_user_mapped(map: &str) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/self/{map}")) else { return false };
    let mut ranges = text.lines().filter_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map_while(|number| number.parse::<u64>().ok());
        let (first, _, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some(first..first.saturating_add(count))
    });
    ranges.any(|range| range.contains(&u64::from(NOBODY)))
}

/// Switches the thread to the user `nobody`. The launcher has only one thread.
fn switch_to_nobody_user() -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    // Changing the user makes a process non-dumpable, and then it cannot write its ID maps.
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}

fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // Deprecated because unsharing the descriptor table is unsafe. That flag is not used here, and
    // the launcher has only one thread.
    #[allow(deprecated, reason = "the replacement is unsafe because of a flag that is not used here")]
    rustix::thread::unshare(flags)
}

fn namespace_error(step: &str, error: rustix::io::Errno) -> SandboxUnavailable {
    let error = io::Error::from(error);
    SandboxUnavailable {
        reason: format!("the sandbox needs namespaces, but this process cannot {step}: {error}"),
        suggestion: Some(
            "allow user namespaces: set sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, and \
             on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile with `userns`; in a \
             container, use a seccomp profile that allows unshare and mount"
                .into(),
        ),
    }
}
