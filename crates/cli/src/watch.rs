//! `toolyard watch`: what happens in a yard that runs, line by line, for as long as somebody looks. The yard may go away and
//! come back meanwhile; what was missed is told then.

mod attach;
mod events;

use std::io::{IsTerminal, Write};
use std::time::Duration;

use serde_json::{Value, json};

use self::attach::{Attached, Lost, attach};
use self::events::{Look, Seen, without_control};
use crate::Exit;
use crate::args::WatchArgs;

const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// The yard says something at least every 20 seconds; one that does not is gone.
const SILENCE: Duration = Duration::from_secs(60);
const CALLS: [&str; 3] = ["call_started", "call_progress", "call_ended"];
const OTHERS: [&str; 3] = ["server", "changed", "resource"];
/// Only for who may observe.
const OBSERVED: [&str; 2] = ["log", "stderr"];

pub(crate) async fn run(args: WatchArgs) -> anyhow::Result<Exit> {
    tokio::select! {
        exit = watch(&args) => exit,
        stopped = tokio::signal::ctrl_c() => stopped.map(|()| Exit::Fine).map_err(Into::into),
    }
}

/// What goes on from one connection to the next.
struct Watcher<'a> {
    args: &'a WatchArgs,
    /// The number of the last event.
    seq: Option<u64>,
    seen: Seen,
    look: Look,
}

/// Why a connection is over.
enum Over {
    /// Nobody reads what is printed any more.
    Unread,
    Refused(String),
    Lost(String),
}

async fn watch(args: &WatchArgs) -> anyhow::Result<Exit> {
    let plain =
        !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|no| !no.is_empty());
    let look = if plain { Look::Plain } else { Look::Coloured };
    let mut watcher = Watcher { args, seq: None, seen: Seen::new(args.server.clone()), look };
    let mut wait = FIRST_WAIT;
    let mut before = false;
    loop {
        let why = match attach(&args.url, args.token.as_deref()).await {
            Ok(attached) => {
                if before {
                    eprintln!("toolyard: connected again");
                }
                (before, wait) = (true, FIRST_WAIT);
                match watcher.follow(attached).await {
                    Over::Unread => return Ok(Exit::Fine),
                    Over::Refused(why) => return Ok(refused(&why)),
                    Over::Lost(why) => why,
                }
            }
            Err(Lost::Refused(why)) => return Ok(refused(&why)),
            Err(Lost::Unreachable(why)) if !before => {
                eprintln!("toolyard: cannot watch {}: {why}", shown(&args.url));
                eprintln!("  is a yard served there? toolyard serve");
                return Ok(Exit::Unreachable);
            }
            Err(Lost::Unreachable(why)) => why,
        };
        eprintln!("toolyard: not connected: {}; trying again", without_control(&why));
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

fn refused(why: &str) -> Exit {
    eprintln!("toolyard: the yard does not let us in: {}", without_control(why));
    eprintln!("  say its token with --token, or in TOOLYARD_TOKEN");
    Exit::Unauthorised
}

/// An address without the token that may be in it.
fn shown(url: &reqwest::Url) -> String {
    let mut url = url.clone();
    url.set_fragment(None);
    url.to_string()
}

impl Watcher<'_> {
    /// Prints events until the connection is over.
    async fn follow(&mut self, mut attached: Attached) -> Over {
        loop {
            let text = match tokio::time::timeout(SILENCE, attached.next()).await {
                Ok(Ok(text)) => text,
                Ok(Err(Lost::Refused(why))) => return Over::Refused(why),
                Ok(Err(Lost::Unreachable(why))) => return Over::Lost(why),
                Err(_) => return Over::Lost("it says nothing any more".to_owned()),
            };
            let Ok(message) = serde_json::from_str::<Value>(&text) else { continue };
            match message["type"].as_str() {
                Some("welcome") => {
                    let subscribe = self.subscribe(message["principal"]["observe"] == true);
                    if let Err(why) = attached.send(&subscribe.to_string()).await {
                        return Over::Lost(why);
                    }
                }
                Some("response") if message["response"]["missed"] == true => {
                    eprintln!("toolyard: some of what happened meanwhile is not known any more");
                }
                Some("error") => {
                    let why = message["error"]["message"].as_str().unwrap_or_default().to_owned();
                    return Over::Refused(why);
                }
                Some("event") => {
                    self.seq = message["seq"].as_u64().or(self.seq);
                    if self.print(&message, &text).is_err() {
                        return Over::Unread;
                    }
                }
                _ => {}
            }
        }
    }

    fn subscribe(&self, observes: bool) -> Value {
        let mut events = CALLS.to_vec();
        if !self.args.calls {
            events.extend(OTHERS);
            events.extend(OBSERVED.iter().filter(|_| observes));
        }
        let mut request = json!({"id": 1, "subtype": "subscribe", "events": events});
        if let Some(seq) = self.seq {
            request["after"] = seq.into();
        }
        request
    }

    fn print(&mut self, event: &Value, text: &str) -> std::io::Result<()> {
        if !self.seen.is_wanted(event) {
            return Ok(());
        }
        let line = match self.args.json {
            true => events::as_json(text),
            false => events::in_words(event, self.look),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    }
}
