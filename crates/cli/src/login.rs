//! `toolyard login` and `toolyard logout`

use std::io::BufRead;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use toolyard_config::ServerEntry;
use toolyard_upstream::{AuthError, LoginPrompt, LoginPrompter, ServerSettings, login, logout};

use crate::args::{LoginArgs, LogoutArgs};
use crate::configuration::load_or_report;
use crate::{Exit, terminal, upstream_setup};

pub(crate) async fn log_in(args: LoginArgs) -> anyhow::Result<Exit> {
    let Some(settings) = find_server(&args.config, &args.server) else { return Ok(Exit::Usage) };
    let person = terminal_prompter(if args.no_browser { Browser::Remote } else { Browser::Local });
    match login(&settings, &upstream_setup::build_context()?, &person).await {
        Ok(()) => terminal::print(&format!("logged in to {}\n", settings.name))?,
        Err(AuthError::NothingToDo(why)) => {
            terminal::print(&format!("there is nothing to log in to at {}: {why}\n", settings.name))?;
        }
        Err(error) => return Ok(report_failure(&settings, &error)),
    }
    Ok(Exit::Success)
}

pub(crate) async fn log_out(args: LogoutArgs) -> anyhow::Result<Exit> {
    let Some(settings) = find_server(&args.config, &args.server) else { return Ok(Exit::Usage) };
    match logout(&settings, &upstream_setup::build_context()?).await {
        Ok(true) => terminal::print(&format!("logged out of {}\n", settings.name))?,
        Ok(false) => terminal::print(&format!("there was no login to {}\n", settings.name))?,
        Err(error) => return Ok(report_failure(&settings, &error)),
    }
    Ok(Exit::Success)
}

fn report_failure(settings: &ServerSettings, error: &AuthError) -> Exit {
    eprintln!("toolyard: cannot log in to {}: {error}", settings.name);
    if let Some(suggestion) = error.suggestion(settings.name.as_str()) {
        eprintln!("  {suggestion}");
    }
    match error {
        AuthError::Unreachable(_) => Exit::Unreachable,
        _ => Exit::Unauthorized,
    }
}

/// The settings of a server; if there are none to be had, the person has been told why.
fn find_server(files: &[PathBuf], name: &str) -> Option<Box<ServerSettings>> {
    let config = load_or_report(files)?;
    let entry = config.servers().iter().find(|entry| entry.name().as_str() == name);
    match entry {
        Some(ServerEntry::Ready(settings)) => Some(settings.clone()),
        Some(ServerEntry::Document(_)) => {
            eprintln!(
                "toolyard: {name} is an OpenAPI document: what it needs is said with `auth` in the configuration"
            );
            None
        }
        Some(ServerEntry::Broken(broken)) => {
            eprintln!("toolyard: the server {name} cannot be used: {}", broken.reason());
            None
        }
        None => {
            let names: Vec<&str> = config.servers().iter().map(|entry| entry.name().as_str()).collect();
            let there = if names.is_empty() { "none is configured".to_owned() } else { names.join(", ") };
            eprintln!("toolyard: there is no server {name}; servers are: {there}");
            None
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Browser {
    Local,
    Remote,
}

/// The person who started us: is shown the address, gets a browser if there is one, and may paste what it ends at.
fn terminal_prompter(browser: Browser) -> LoginPrompter {
    Arc::new(move |visit: LoginPrompt| {
        eprintln!("To log in to {}, open this address:\n\n  {}\n", visit.server, visit.address);
        eprintln!("If that browser is on another machine, it will end at a page that it cannot open:");
        eprintln!("paste the address of that page here and press Enter.");
        if browser == Browser::Local {
            open_browser(&visit.address);
        }
        // Ends with the process: nobody can take back a read of standard input.
        std::thread::spawn(move || {
            let mut line = String::new();
            if std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 1) {
                let _ = visit.pasted.blocking_send(line.trim().to_owned());
            }
        });
    })
}

/// Opens an address that is known to be one of the web. Where nothing can, the printed one is enough.
fn open_browser(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "macos") || has_screen {
        let quiet = || Stdio::null();
        let _ = Command::new(program).arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    }
}
