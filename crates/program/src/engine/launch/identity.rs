//! Namespaces, and whose rights the process has in them. An ordinary user makes a user namespace first and builds the rest
//! inside of it. Root builds the rest with its own rights, becomes nobody, and makes the user namespace then: so what runs
//! in the sandbox is never root, neither inside nor outside.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::process::{DumpableBehavior, Gid, Uid};
use rustix::thread::{CapabilitySet, UnshareFlags};

use crate::engine::layer::SandboxLayer;
use crate::program::SandboxUnavailable;

/// Who a program is inside.
const INSIDE: u32 = 1000;
/// Who it is outside, where root started it.
const NOBODY: u32 = 65534;
const HOST_NAME: &[u8] = b"program";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LauncherPrivileges {
    Root,
    Ordinary,
}

/// `/proc` as it was before the root folder changed: the kernel wants to hear there who is who.
#[derive(Debug)]
pub(super) struct Proc(OwnedFd);

impl Proc {
    pub(super) fn open() -> Result<Self, SandboxUnavailable> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(CWD, "/proc", flags, Mode::empty()).map(Self).map_err(|error| SandboxUnavailable {
            reason: format!("the sandbox for programs cannot be built: /proc is not there: {error}"),
            suggestion: None,
        })
    }

    fn write(&self, path: &str, text: &str) -> Result<(), SandboxUnavailable> {
        let file = openat(&self.0, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        let written = file.and_then(|file| rustix::io::write(file, text.as_bytes()));
        written.map(drop).map_err(|error| namespace_error("say who is who in it", error))
    }

    /// One user and one group of the outside are known inside.
    fn write_id_maps(&self, uid: u32, gid: u32) -> Result<(), SandboxUnavailable> {
        self.write("self/setgroups", "deny")?;
        self.write("self/uid_map", &format!("{INSIDE} {uid} 1"))?;
        self.write("self/gid_map", &format!("{INSIDE} {gid} 1"))
    }
}

impl LauncherPrivileges {
    pub(super) fn current() -> Result<Self, SandboxUnavailable> {
        let sets = rustix::thread::capabilities(None);
        let sets = sets.map_err(|error| super::build_failed("find out its own rights", &error.into()))?;
        let mighty = rustix::process::geteuid().is_root()
            && sets
                .effective
                .contains(CapabilitySet::SYS_ADMIN | CapabilitySet::SETUID | CapabilitySet::SETGID)
            && ["uid_map", "gid_map"].iter().all(|map| is_nobody_user_mapped(map));
        Ok(if mighty { Self::Root } else { Self::Ordinary })
    }

    pub(super) fn unshare(self, proc: &Proc, without: &[SandboxLayer]) -> Result<(), SandboxUnavailable> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mut flags = UnshareFlags::NEWNS;
        let spaces = [
            (SandboxLayer::Network, UnshareFlags::NEWNET),
            (SandboxLayer::Processes, UnshareFlags::NEWPID),
            (SandboxLayer::Ipc, UnshareFlags::NEWIPC),
            (SandboxLayer::Uts, UnshareFlags::NEWUTS),
        ];
        for (layer, flag) in spaces {
            if !without.contains(&layer) {
                flags |= flag;
            }
        }
        if self == Self::Ordinary {
            flags |= UnshareFlags::NEWUSER;
        }
        unshare(flags).map_err(|error| namespace_error("make one", error))?;
        if self == Self::Ordinary {
            proc.write_id_maps(uid, gid)?;
        }
        if !without.contains(&SandboxLayer::Uts) {
            let named = rustix::system::sethostname(HOST_NAME);
            named.map_err(|error| namespace_error("name the host in it", error))?;
        }
        Ok(())
    }

    /// After this nothing can be built any more.
    pub(super) fn drop_privileges(
        self,
        proc: &Proc,
        without: &[SandboxLayer],
    ) -> Result<(), SandboxUnavailable> {
        if self == Self::Ordinary || without.contains(&SandboxLayer::User) {
            return Ok(());
        }
        switch_to_nobody_user().map_err(|error| super::build_failed("become nobody", &error))?;
        unshare(UnshareFlags::NEWUSER).map_err(|error| namespace_error("make one", error))?;
        proc.write_id_maps(NOBODY, NOBODY)
    }
}

/// Root of a user namespace can only become those whom that namespace knows.
fn is_nobody_user_mapped(map: &str) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/self/{map}")) else { return false };
    let mut ranges = text.lines().filter_map(|line| {
        let mut numbers = line.split_ascii_whitespace().map_while(|number| number.parse::<u64>().ok());
        let (first, _, count) = (numbers.next()?, numbers.next()?, numbers.next()?);
        Some(first..first.saturating_add(count))
    });
    ranges.any(|range| range.contains(&u64::from(NOBODY)))
}

/// The launcher has one thread, so that its thread is the process.
fn switch_to_nobody_user() -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(gid, gid, gid)?;
    rustix::thread::set_thread_res_uid(uid, uid, uid)?;
    // Who changes identity loses the right to write its own entries in /proc.
    Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}

fn unshare(flags: UnshareFlags) -> rustix::io::Result<()> {
    // What is deprecated is that the flag for the table of descriptors is among the flags of a safe function. It is not
    // among ours, and there is one thread.
    #[allow(deprecated, reason = "the replacement is unsafe for the sake of a flag that is not used here")]
    rustix::thread::unshare(flags)
}

fn namespace_error(what: &str, error: rustix::io::Errno) -> SandboxUnavailable {
    let error = io::Error::from(error);
    SandboxUnavailable {
        reason: format!("the sandbox for programs needs namespaces, and this process cannot {what}: {error}"),
        suggestion: Some(
            "allow user namespaces: sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0, and on \
             Ubuntu kernel.apparmor_restrict_unprivileged_userns=0 or a profile that has `userns`; in a container, \
             run it with a seccomp profile that allows unshare and mount"
                .into(),
        ),
    }
}
