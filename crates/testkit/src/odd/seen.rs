//! What a server has received so far: requests, sessions, starts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::{Kind, Options};

pub(super) struct Seen {
    /// How often a server with this file was started, including this start.
    pub(super) starts: u64,
    inner: Mutex<Inner>,
    log: Option<PathBuf>,
}

#[derive(Default)]
struct Inner {
    methods: BTreeMap<String, u64>,
    /// Open HTTP sessions and the number of calls in each.
    open: HashMap<String, u64>,
    named: u64,
    opened: u64,
    /// The resources that the client is subscribed to.
    subscribed: BTreeSet<String>,
    /// Answers that clients must poll for, by the id of the event to resume after.
    polled: HashMap<String, String>,
}

impl Seen {
    pub(super) fn new(options: &Options) -> io::Result<Self> {
        let counts = options.kind == Kind::Changes;
        let starts = options.file.as_deref().filter(|_| counts).map_or(Ok(1), count_start)?;
        let log = options.file.clone().filter(|_| options.kind == Kind::CountsSessions);
        Ok(Self { starts, inner: Mutex::default(), log })
    }

    pub(super) fn count_request(&self, method: &str) {
        *self.inner().methods.entry(method.to_owned()).or_default() += 1;
    }

    /// Returns the number of requests so far, in total and by method.
    pub(super) fn requests(&self) -> (u64, Value) {
        let inner = self.inner();
        (inner.methods.values().sum(), json!(inner.methods))
    }

    /// Adds or removes a subscription of a legacy client.
    pub(super) fn subscribe(&self, uri: &str, is_subscribed: bool) {
        let mut inner = self.inner();
        if is_subscribed {
            inner.subscribed.insert(uri.to_owned());
        } else {
            inner.subscribed.remove(uri);
        }
    }

    /// Replaces the subscriptions of a modern client.
    pub(super) fn set_subscriptions(&self, uris: Vec<String>) {
        self.inner().subscribed = uris.into_iter().collect();
    }

    pub(super) fn subscribed(&self) -> Value {
        json!({"uris": self.inner().subscribed})
    }

    pub(super) fn count_session(&self) {
        self.inner().opened += 1;
        if let Some(log) = &self.log {
            // The reader of the file notices a missing line.
            let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
            let _ = file.and_then(|mut file| writeln!(file, "{}", std::process::id()));
        }
    }

    /// Returns the number of sessions opened, and of HTTP sessions still open.
    pub(super) fn sessions(&self) -> Value {
        let inner = self.inner();
        json!({"opened": inner.opened, "open": inner.open.len(), "pid": std::process::id()})
    }

    /// Stores an answer until its client reconnects. Returns the id of the event to resume after.
    pub(super) fn keep_polled(&self, answer: String) -> String {
        let mut inner = self.inner();
        inner.named += 1;
        let event = format!("poll-{}", inner.named);
        inner.polled.insert(event.clone(), answer);
        event
    }

    pub(super) fn take_polled(&self, event: &str) -> Option<String> {
        self.inner().polled.remove(event)
    }

    /// Opens a session over HTTP.
    pub(super) fn open(&self) -> String {
        let mut inner = self.inner();
        inner.named += 1;
        let name = format!("session-{}", inner.named);
        inner.open.insert(name.clone(), 0);
        name
    }

    pub(super) fn is_open(&self, session: &str) -> bool {
        self.inner().open.contains_key(session)
    }

    /// Counts a call in a session. Returns the number of calls so far.
    pub(super) fn count_call(&self, session: &str) -> u64 {
        let mut inner = self.inner();
        let calls = inner.open.entry(session.to_owned()).or_default();
        *calls += 1;
        *calls
    }

    /// Closes a session. Returns whether it was open.
    pub(super) fn close(&self, session: &str) -> bool {
        self.inner().open.remove(session).is_some()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }
}

/// Counts one more start in a file.
fn count_start(file: &Path) -> io::Result<u64> {
    let before = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    std::fs::write(file, (before + 1).to_string())?;
    Ok(before + 1)
}
