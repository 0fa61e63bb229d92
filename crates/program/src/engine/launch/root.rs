//! The root folder of programs. It contains only Python, its standard library and shared libraries,
//! time zones, and the worker, all on read-only mounts.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, mount_remount, unmount,
};

use serde_json::{Value, json};

use super::python::Python;
use crate::engine::layer::SandboxLayer;
use crate::program::SandboxUnavailable;

pub(super) const PYTHON: &str = "/python/bin/python3";
const HOME: &str = "/toolyard";
pub(super) const ZYGOTE: &str = "/toolyard/zygote.py";
const SETTINGS: &str = "/toolyard/settings.json";
const ZONES: &str = "/usr/share/zoneinfo";
/// The folder of all shared libraries.
const NATIVE: &str = "/python/native";
/// The default search path of the loader.
const LOADER_PATH: [&str; 2] = ["/usr/lib", "/usr/lib64"];
/// Path prefixes that reveal nothing about the owner of the machine.
const NEUTRAL: [&str; 5] = ["/usr/", "/lib", "/nix/", "/gnu/", "/opt/"];

const SOURCES: [(&str, &str); 10] = [
    ("zygote.py", include_str!("../worker/zygote.py")),
    ("_program/__init__.py", ""),
    ("_program/asking.py", include_str!("../worker/asking.py")),
    ("_program/channel.py", include_str!("../worker/channel.py")),
    ("_program/confine.py", include_str!("../worker/confine.py")),
    ("_program/ending.py", include_str!("../worker/ending.py")),
    ("_program/faces.py", include_str!("../worker/faces.py")),
    ("_program/hints.py", include_str!("../worker/hints.py")),
    ("_program/loop.py", include_str!("../worker/loop.py")),
    ("_program/run.py", include_str!("../worker/run.py")),
];

#[derive(Debug)]
pub(super) struct SandboxRoot {
    /// The path of the root: `/`, unless the layer was omitted.
    base: PathBuf,
}

impl SandboxRoot {
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        join_absolute(&self.base, Path::new(path))
    }
}

fn join_absolute(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

/// Builds the root and writes the settings of the worker into it, together with the readable paths.
pub(super) fn build(
    python: &Python,
    without: &[SandboxLayer],
    settings: Value,
) -> Result<SandboxRoot, SandboxUnavailable> {
    mount_root(python, without, settings).map_err(|error| SandboxUnavailable {
        reason: format!("failed to build the root folder of the sandbox: {error}"),
        suggestion: Some(
            "if user namespaces are allowed, a security module may forbid mounts in them; see the documentation of \
             the sandbox"
                .into(),
        ),
    })
}

fn mount_root(python: &Python, without: &[SandboxLayer], mut settings: Value) -> io::Result<SandboxRoot> {
    // Mounts after this are visible only in this namespace.
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).map_err(with_path("/"))?;
    let target = ["/tmp", "/run", "/mnt", "/var"].into_iter().find(|path| Path::new(path).is_dir());
    let target = Path::new(target.ok_or_else(|| io::Error::other("no folder to mount it on"))?);
    let mode =
        if without.contains(&SandboxLayer::ReadOnly) { c"mode=1777,size=8m" } else { c"mode=755,size=8m" };
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    mount("program", target, "tmpfs", flags, mode).map_err(with_path(target))?;
    let (old, base) = if without.contains(&SandboxLayer::Root) {
        (PathBuf::from("/"), target.to_owned())
    } else {
        // The old root stays mounted until everything is bound from it. Paths under the mount point
        // are also visible there.
        fs::create_dir(target.join("old"))?;
        rustix::process::pivot_root(target, target.join("old")).map_err(with_path(target))?;
        rustix::process::chdir("/")?;
        (PathBuf::from("/old"), PathBuf::from("/"))
    };
    let builder = RootBuilder { old, base, without };
    let readable = builder.populate(python)?;
    settings["readable"] =
        readable.iter().map(|path| json!(join_absolute(&builder.base, Path::new(path)))).collect();
    fs::write(join_absolute(&builder.base, Path::new(SETTINGS)), settings.to_string())?;
    if !without.contains(&SandboxLayer::Root) {
        unmount("/old", UnmountFlags::DETACH).map_err(with_path("/old"))?;
        fs::remove_dir("/old")?;
    }
    if !without.contains(&SandboxLayer::ReadOnly) {
        let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
        mount_remount(&builder.base, flags, c"").map_err(with_path(&builder.base))?;
    }
    Ok(SandboxRoot { base: builder.base })
}

struct RootBuilder<'a> {
    old: PathBuf,
    base: PathBuf,
    without: &'a [SandboxLayer],
}

impl RootBuilder<'_> {
    fn populate(&self, python: &Python) -> io::Result<Vec<&'static str>> {
        let mut readable = vec!["/python"];
        self.bind(&python.executable, Path::new(PYTHON))?;
        let library = Path::new("/python").join(&python.folder);
        self.bind(&python.library, &library)?;
        for packages in ["site-packages", "dist-packages"] {
            self.hide(&library.join(packages))?;
        }
        self.link_libraries(python)?;
        if join_absolute(&self.old, Path::new(ZONES)).is_dir() {
            self.bind(Path::new(ZONES), Path::new(ZONES))?;
            readable.push(ZONES);
        }
        for (name, text) in SOURCES {
            let path = join_absolute(&self.base, &Path::new(HOME).join(name));
            create_parent_dir(&path)?;
            fs::write(path, text)?;
        }
        if self.without.contains(&SandboxLayer::NoProc) {
            let proc = join_absolute(&self.base, Path::new("/proc"));
            fs::create_dir_all(&proc)?;
            rustix::mount::mount_bind_recursive(self.old.join("proc"), &proc).map_err(with_path(&proc))?;
        }
        Ok(readable)
    }

    /// Binds all shared libraries into one folder and links to them from the paths that the loader
    /// searches.
    fn link_libraries(&self, python: &Python) -> io::Result<()> {
        let mut created = BTreeSet::new();
        for file in &python.libraries {
            let Some(name) = file.file_name() else { continue };
            let real = Path::new(NATIVE).join(name);
            self.bind(file, &real)?;
            let names =
                python.links.iter().filter(|(_, target)| target == file).map(|(link, _)| link.as_path());
            for path in names.chain([file.as_path()]) {
                let Some(name) = path.file_name() else { continue };
                let searched = LOADER_PATH.iter().map(|folder| Path::new(folder).join(name));
                let is_neutral =
                    NEUTRAL.iter().any(|start| path.as_os_str().as_bytes().starts_with(start.as_bytes()));
                let original = is_neutral.then(|| path.to_owned());
                for link in searched.chain(original).filter(|link| created.insert(link.clone())) {
                    let link = join_absolute(&self.base, &link);
                    create_parent_dir(&link)?;
                    symlink(&real, link)?;
                }
            }
        }
        Ok(())
    }

    fn bind(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (join_absolute(&self.old, from), join_absolute(&self.base, to));
        create_parent_dir(&to)?;
        if from.is_dir() {
            fs::create_dir_all(&to)?;
        } else {
            fs::write(&to, "")?;
        }
        mount_bind(&from, &to).map_err(with_path(&from))?;
        let read_only = !self.without.contains(&SandboxLayer::ReadOnly);
        // The kernel refuses to remove restrictions that the mount already has.
        let mut flags =
            MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV | inherited_mount_flags(&to)?;
        if read_only {
            flags |= MountFlags::RDONLY;
        }
        mount_remount(&to, flags, c"").map_err(with_path(&to))
    }

    /// Covers a folder with an empty one.
    fn hide(&self, folder: &Path) -> io::Result<()> {
        let folder = join_absolute(&self.base, folder);
        if !folder.is_dir() {
            return Ok(());
        }
        let flags = MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("program", &folder, "tmpfs", flags, c"mode=755,size=4k").map_err(with_path(&folder))
    }
}

fn inherited_mount_flags(path: &Path) -> io::Result<MountFlags> {
    let current = statvfs(path)?.f_flag;
    let pairs = [
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
        (StatVfsMountFlags::RDONLY, MountFlags::RDONLY),
    ];
    let set = pairs.into_iter().filter(|(flag, _)| current.contains(*flag));
    Ok(set.fold(MountFlags::empty(), |all, (_, flag)| all | flag))
}

fn create_parent_dir(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Adds the path to an error.
fn with_path(path: impl AsRef<Path>) -> impl FnOnce(rustix::io::Errno) -> io::Error {
    move |error| {
        let error = io::Error::from(error);
        io::Error::new(error.kind(), format!("{}: {error}", path.as_ref().display()))
    }
}
