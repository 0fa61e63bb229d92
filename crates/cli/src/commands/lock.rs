//! `toolyard lock`: writes down what the servers offer.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use toolyard_config::{default_config_file, lock_folder, write_atomically};
use toolyard_definitions::ServerOffer;
use toolyard_definitions::lock::LockFile;
use toolyard_upstream::ServerListKind;

use crate::Exit;
use crate::args::LockArgs;
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection, UnavailableServer};
use crate::terminal::{format_count, print_hint, print_note};

const FILE: &str = "toolyard.lock";

pub(crate) async fn run(args: LockArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let path = lock_path(args.lock_file.as_deref(), &args.which.config);
    let wish = OneShotOptions::new(ServerSelection::All, &ServerListKind::ALL);
    let visit = OneShotYard::open(&args.which, wish, &stop).await?;
    let offers = visit.offers();
    for server in &visit.unavailable {
        match args.keep_unreachable {
            true => server.report_warning(),
            false => server.report_error(),
        }
    }
    let unavailable: Vec<String> = visit.unavailable.iter().map(|server| server.server.to_string()).collect();
    let failure = visit.unavailable.first().map(UnavailableServer::exit);
    visit.close().await;
    if let Some(exit) = failure.filter(|_| !args.keep_unreachable) {
        print_hint("nothing was written; pass --keep-unreachable to keep the old entries of such servers");
        return Err(CommandError::AlreadyReported(exit));
    }
    let is_partial = args.which.server.is_some() || !args.which.other.is_empty();
    let kept = if is_partial { KeptEntries::All } else { KeptEntries::Only(unavailable) };
    let written = write(&path, offers, &kept)?;
    print_note(&written);
    Ok(Exit::Success)
}

/// Which entries of the old file stay if they are not replaced.
enum KeptEntries {
    All,
    /// Those of these servers.
    Only(Vec<String>),
}

/// Changes the file while no other process changes it. Returns what was done.
fn write(path: &Path, offers: Vec<ServerOffer>, kept: &KeptEntries) -> Result<String, CommandError> {
    let shown = path.display();
    let cannot = |action: &str| format!("cannot {action} {shown}");
    let _lock = lock_folder(path).with_context(|| cannot("write"))?;
    let before = match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(anyhow::Error::new(error).context(cannot("read")).into()),
    };
    let mut lock = LockFile::default();
    let needs_old = !matches!(kept, KeptEntries::Only(names) if names.is_empty());
    if let Some(text) = before.as_deref().filter(|_| needs_old) {
        let old = LockFile::parse(text).map_err(|error| {
            CommandError::usage(format!("cannot use {shown}: {error}"))
                .suggest("run `toolyard lock` without --server and --keep-unreachable to write it again")
        })?;
        for offer in old.into_offers() {
            if matches!(kept, KeptEntries::All)
                || matches!(kept, KeptEntries::Only(names) if names.contains(&offer.name))
            {
                lock.set(offer);
            }
        }
    }
    offers.into_iter().for_each(|offer| lock.set(offer));
    let text = lock.render();
    if before.as_ref() == Some(&text) {
        return Ok(format!("{shown} is up to date"));
    }
    write_atomically(path, text.as_bytes()).with_context(|| cannot("write"))?;
    Ok(format!("wrote {shown} with {}", format_count(lock.servers().count(), "server")))
}

/// Reads the lock file.
pub(super) fn read(path: &Path) -> Result<LockFile, CommandError> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        let failure = CommandError::usage(format!("cannot read {shown}: {error}"));
        match error.kind() {
            io::ErrorKind::NotFound => failure.suggest("run `toolyard lock` to write it"),
            _ => failure,
        }
    })?;
    LockFile::parse(&text).map_err(|error| {
        CommandError::usage(format!("cannot use {shown}: {error}"))
            .suggest("run `toolyard lock` to write it again, and review the changes")
    })
}

/// The lock file is beside the configuration.
pub(super) fn lock_path(given: Option<&Path>, config: &[PathBuf]) -> PathBuf {
    if let Some(path) = given {
        return path.to_owned();
    }
    let default = || default_config_file(&process_environment());
    match config.last().cloned().or_else(default).as_deref().and_then(Path::parent) {
        Some(folder) if is_current(folder) => PathBuf::from(FILE),
        Some(folder) => folder.join(FILE),
        None => PathBuf::from(FILE),
    }
}

fn is_current(folder: &Path) -> bool {
    folder.as_os_str().is_empty() || std::env::current_dir().is_ok_and(|current| current == folder)
}
