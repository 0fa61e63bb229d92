//! What a server has seen so far: requests, sessions, starts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use super::{Kind, Options};

pub(super) struct Seen {
    /// How often a server with this file was started, this time included.
    pub(super) starts: u64,
    inner: Mutex<Inner>,
    log: Option<PathBuf>,
}

#[derive(Default)]
struct Inner {
    methods: BTreeMap<String, u64>,
    /// Sessions over HTTP that are open, and the calls in each.
    open: HashMap<String, u64>,
    named: u64,
    opened: u64,
    /// The resources that the client is subscribed to.
    subscribed: BTreeSet<String>,
    /// Answers that their clients have to come back for, by the event after which they come.
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

    /// All requests so far, and by method.
    pub(super) fn requests(&self) -> (u64, Value) {
        let inner = self.inner();
        (inner.methods.values().sum(), json!(inner.methods))
    }

    /// A legacy client subscribes to a resource, or does not want it any more.
    pub(super) fn subscribe(&self, uri: &str, wanted: bool) {
        let mut inner = self.inner();
        if wanted {
            inner.subscribed.insert(uri.to_owned());
        } else {
            inner.subscribed.remove(uri);
        }
    }

    /// A modern client listens to these from now on.
    pub(super) fn set_subscriptions(&self, uris: Vec<String>) {
        self.inner().subscribed = uris.into_iter().collect();
    }

    pub(super) fn subscribed(&self) -> Value {
        json!({"uris": self.inner().subscribed})
    }

    pub(super) fn count_session(&self) {
        self.inner().opened += 1;
        if let Some(log) = &self.log {
            // Whoever reads the file sees that a line is missing.
            let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
            let _ = file.and_then(|mut file| writeln!(file, "{}", std::process::id()));
        }
    }

    /// How many sessions there were, and how many of those over HTTP are open.
    pub(super) fn sessions(&self) -> Value {
        let inner = self.inner();
        json!({"opened": inner.opened, "open": inner.open.len(), "pid": std::process::id()})
    }

    /// Keeps an answer until its client comes back; the id of the event that it comes back with.
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

    /// Counts a call in a session.
    pub(super) fn count_call(&self, session: &str) -> u64 {
        let mut inner = self.inner();
        let calls = inner.open.entry(session.to_owned()).or_default();
        *calls += 1;
        *calls
    }

    /// Whether there was such a session to close.
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
