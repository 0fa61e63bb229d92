//! `toolyard login` and `toolyard logout`

use std::io::BufRead;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use toolyard_config::{Config, ServerEntry};
use toolyard_upstream::{AuthError, LoginPrompt, LoginPrompter, ServerSettings, login, logout};

use crate::args::{LoginArgs, LogoutArgs};
use crate::configuration::load_or_report;
use crate::terminal::{print_error, print_hint};
use crate::upstream_setup::SharedUpstream;
use crate::{Exit, terminal};

pub(crate) async fn log_in(args: LoginArgs) -> anyhow::Result<Exit> {
    let Some((config, settings)) = find_server(&args.config, &args.server) else { return Ok(Exit::Usage) };
    let shared = SharedUpstream::new(&config)?;
    let person = terminal_prompter(if args.no_browser { Browser::Remote } else { Browser::Local });
    let done = login(&settings, &shared.context, &person).await;
    shared.close().await;
    match done {
        Ok(()) => terminal::print(&format!("logged in to {}\n", settings.name))?,
        Err(AuthError::NothingToDo(why)) => {
            terminal::print(&format!("{} needs no login: {why}\n", settings.name))?;
        }
        Err(error) => return Ok(report_failure("log in to", &settings, &error)),
    }
    Ok(Exit::Success)
}

pub(crate) async fn log_out(args: LogoutArgs) -> anyhow::Result<Exit> {
    let Some((config, settings)) = find_server(&args.config, &args.server) else { return Ok(Exit::Usage) };
    let shared = SharedUpstream::new(&config)?;
    let done = logout(&settings, &shared.context).await;
    shared.close().await;
    match done {
        Ok(true) => terminal::print(&format!("logged out of {}\n", settings.name))?,
        Ok(false) => terminal::print(&format!("no stored credentials for {}\n", settings.name))?,
        Err(error) => return Ok(report_failure("log out of", &settings, &error)),
    }
    Ok(Exit::Success)
}

fn report_failure(action: &str, settings: &ServerSettings, error: &AuthError) -> Exit {
    print_error(&format!("cannot {action} `{}`: {error}", settings.name));
    error.suggestion(settings.name.as_str()).iter().for_each(|suggestion| print_hint(suggestion));
    match error {
        AuthError::Unreachable(_) => Exit::Unreachable,
        _ => Exit::Unauthorized,
    }
}

/// The configuration and the settings of a server. Prints an error and returns `None` if it has none.
fn find_server(files: &[PathBuf], name: &str) -> Option<(Config, Box<ServerSettings>)> {
    let config = load_or_report(files)?;
    let entry = config.servers().iter().find(|entry| entry.name().as_str() == name);
    match entry {
        Some(ServerEntry::Ready(settings)) => {
            let settings = settings.clone();
            Some((config, settings))
        }
        Some(ServerEntry::Document(_)) => {
            print_error(&format!("`{name}` is an OpenAPI document and has no login"));
            print_hint("set its credentials with `auth` in the configuration");
            None
        }
        Some(ServerEntry::Broken(broken)) => {
            print_error(&format!("server `{name}` cannot be used: {}", broken.reason()));
            None
        }
        None => {
            let names: Vec<&str> = config.servers().iter().map(|entry| entry.name().as_str()).collect();
            print_error(&format!("unknown server `{name}`"));
            match names.is_empty() {
                true => print_hint("no servers are configured; run `toolyard add` to add one"),
                false => print_hint(&format!("configured servers: {}", names.join(", "))),
            }
            None
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Browser {
    Local,
    Remote,
}

/// Asks the user at the terminal: prints the address, opens a browser if possible and accepts the
/// pasted redirect address.
fn terminal_prompter(browser: Browser) -> LoginPrompter {
    Arc::new(move |visit: LoginPrompt| {
        eprintln!("To log in to {}, open this address:\n\n  {}\n", visit.server, visit.address);
        eprintln!("If the browser runs on another machine, it cannot open the last page of the login.");
        eprintln!("In this case, paste the address of that page here and press Enter.");
        if browser == Browser::Local {
            open_browser(&visit.address);
        }
        // The thread ends with the process, because a read of standard input cannot be canceled.
        std::thread::spawn(move || {
            let mut line = String::new();
            if std::io::stdin().lock().read_line(&mut line).is_ok_and(|read| read > 1) {
                let _ = visit.pasted.blocking_send(line.trim().to_owned());
            }
        });
    })
}

/// Opens an http(s) address. If no browser can be opened, the printed address is enough.
fn open_browser(address: &str) {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if cfg!(target_os = "macos") || has_screen {
        let quiet = || Stdio::null();
        let _ = Command::new(program).arg(address).stdin(quiet()).stdout(quiet()).stderr(quiet()).spawn();
    }
}
