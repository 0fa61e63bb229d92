//! `toolyard watch`: prints the events of a running yard line by line. Reconnects if the yard goes
//! away, and then prints the events that were missed.

mod events;

use std::io::{IsTerminal, Write};

use serde_json::{Value, json};
use toolyard_remote::{
    ReconnectBackoff, RemoteConnection, RemoteError, WelcomeMessage, connect, strip_token,
};

use self::events::{EventFilter, LineStyle};
use crate::Exit;
use crate::args::WatchArgs;
use crate::clean::clean_line;
use crate::error::CommandError;
use crate::terminal::{print_note, print_warning};

const CALLS: [&str; 3] = ["call_started", "call_progress", "call_ended"];
const OTHERS: [&str; 3] = ["server", "changed", "resource"];
/// Only for principals with the permission to observe.
const OBSERVED: [&str; 2] = ["log", "stderr"];
/// Like these, and only for yards with several replicas. Other yards may not know the event.
const REPLICAS: &str = "replicas";

pub(crate) async fn run(args: WatchArgs) -> anyhow::Result<Exit> {
    tokio::select! {
        exit = watch(&args) => exit,
        stopped = tokio::signal::ctrl_c() => stopped.map(|()| Exit::Success).map_err(Into::into),
    }
}

/// State that is kept across connections.
struct Watcher<'a> {
    args: &'a WatchArgs,
    /// The sequence number of the last event.
    seq: Option<u64>,
    filter: EventFilter,
    style: LineStyle,
}

/// Why a connection ended.
enum WatchEnd {
    /// The reader of the output is gone.
    OutputClosed,
    Lost(RemoteError),
}

impl From<RemoteError> for WatchEnd {
    fn from(lost: RemoteError) -> Self {
        Self::Lost(lost)
    }
}

async fn watch(args: &WatchArgs) -> anyhow::Result<Exit> {
    let plain =
        !std::io::stdout().is_terminal() || std::env::var_os("NO_COLOR").is_some_and(|no| !no.is_empty());
    let look = if plain { LineStyle::Plain } else { LineStyle::Colored };
    let mut watcher = Watcher { args, seq: None, filter: EventFilter::new(args.server.clone()), style: look };
    let mut patience = ReconnectBackoff::default();
    let mut before = false;
    loop {
        let lost = match connect(&args.url, args.token.as_deref()).await {
            Ok(attached) => {
                match before {
                    true => print_note("reconnected"),
                    // It may take long until the first event.
                    false => {
                        let replica = attached.welcome.replica.as_deref();
                        let replica = replica.map(|name| format!(" at replica `{}`", clean_line(name)));
                        print_note(&format!(
                            "watching {} as `{}`{}; press Ctrl-C to stop",
                            clean_line(&strip_token(&args.url)),
                            clean_line(&attached.welcome.principal),
                            replica.unwrap_or_default()
                        ));
                    }
                }
                (before, patience) = (true, ReconnectBackoff::default());
                match watcher.follow(attached).await {
                    WatchEnd::OutputClosed => return Ok(Exit::Success),
                    WatchEnd::Lost(lost) => lost,
                }
            }
            Err(lost) if !before => {
                return Ok(CommandError::connect_failed("watch", &args.url, &lost).report());
            }
            Err(lost) => lost,
        };
        let RemoteError::Unreachable(why) = lost else {
            return Ok(CommandError::connect_failed("watch", &args.url, &lost).report());
        };
        print_warning(&format!("connection lost: {}; retrying", clean_line(&why)));
        tokio::time::sleep(patience.next_delay()).await;
    }
}

impl Watcher<'_> {
    /// Prints events until the connection ends.
    async fn follow(&mut self, mut attached: RemoteConnection) -> WatchEnd {
        let subscribe = self.subscribe_request(&attached.welcome);
        if let Err(lost) = attached.send(&subscribe.to_string()).await {
            return lost.into();
        }
        loop {
            let text = match attached.next().await {
                Ok(text) => text,
                Err(lost) => return lost.into(),
            };
            let Ok(message) = serde_json::from_str::<Value>(&text) else { continue };
            match message["type"].as_str() {
                Some("response") if message["response"]["missed"] == true => {
                    print_warning("some events were missed while disconnected");
                }
                Some("error") => {
                    let why = message["error"]["message"].as_str().unwrap_or_default().to_owned();
                    return RemoteError::Refused(why).into();
                }
                Some("event") => {
                    self.seq = message["seq"].as_u64().or(self.seq);
                    if self.print(&message, &text).is_err() {
                        return WatchEnd::OutputClosed;
                    }
                }
                _ => {}
            }
        }
    }

    fn subscribe_request(&self, welcome: &WelcomeMessage) -> Value {
        let mut events = CALLS.to_vec();
        if !self.args.calls {
            events.extend(OTHERS);
            events.extend(OBSERVED.iter().filter(|_| welcome.observe));
            events.extend((welcome.observe && welcome.replica.is_some()).then_some(REPLICAS));
        }
        let mut request = json!({"id": 1, "subtype": "subscribe", "events": events});
        if let Some(seq) = self.seq {
            request["after"] = seq.into();
        }
        request
    }

    fn print(&mut self, event: &Value, text: &str) -> std::io::Result<()> {
        if !self.filter.is_wanted(event) {
            return Ok(());
        }
        let line = match self.args.json {
            true => events::sanitize_json(text).into_owned(),
            false => events::format_line(event, self.style),
        };
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}")?;
        out.flush()
    }
}
