//! One server of the remote yard, as a source. Its offer and status are the latest that the yard
//! reported.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;
use toolyard_hub::{
    BoxFuture, HubError, MANAGE, ManageError, Outcome, Prefix, PromptOffer, Raw, ResourceOffer, Source,
    SourceCall, SourceCommand, SourceName, SourceNotifier, SourceOffer, SourceState, SourceStatus,
    TemplateOffer, TranscriptEntry,
};

use super::call::call;
use super::decode::{RemoteToolInfo, request_fields};
use super::link::RemoteLink;
use super::notice::RemoteNotice;

/// The number of lines of standard error that are kept for each server.
const LINES: usize = 50;
/// The number of messages that are kept for each server.
const MESSAGES: usize = 500;

pub(super) struct RemoteServer {
    name: SourceName,
    pub(super) link: Arc<RemoteLink>,
    notifier: OnceLock<SourceNotifier>,
    state: Mutex<RemoteServerState>,
}

struct RemoteServerState {
    status: SourceStatus,
    /// Set while the yard cannot be reached: the reason, since when, and when the next retry is.
    unreachable: Option<(String, Instant, Option<Instant>)>,
    offer: Arc<SourceOffer>,
    /// The full names of tools on the yard, by raw name.
    tools: HashMap<String, String>,
    /// The full names of prompts on the yard, by raw name.
    prompts: HashMap<String, String>,
    prefix: Prefix,
    stderr: VecDeque<String>,
    transcript: VecDeque<TranscriptEntry>,
    /// The sequence number of the last message on the yard.
    last_seq: Option<u64>,
    next: u64,
    /// Whether the transcript was requested.
    transcript_wanted: bool,
}

impl RemoteServer {
    pub(super) fn new(name: &str, link: Arc<RemoteLink>, status: SourceStatus) -> Arc<Self> {
        let state = RemoteServerState {
            status,
            unreachable: None,
            offer: Arc::default(),
            tools: HashMap::new(),
            prompts: HashMap::new(),
            prefix: Prefix::Source,
            stderr: VecDeque::new(),
            transcript: VecDeque::new(),
            last_seq: None,
            next: 0,
            transcript_wanted: false,
        };
        Arc::new(Self {
            name: SourceName::new(name),
            link,
            notifier: OnceLock::new(),
            state: Mutex::new(state),
        })
    }

    pub(super) fn set_status(&self, status: SourceStatus) {
        {
            let mut state = self.lock();
            (state.status, state.unreachable) = (status, None);
        }
        self.notify(SourceNotifier::status_changed);
    }

    pub(super) fn set_unreachable(&self, why: &str, retry_at: Option<Instant>) {
        {
            let mut state = self.lock();
            let since = state.unreachable.as_ref().map_or_else(Instant::now, |(_, since, _)| *since);
            state.unreachable = Some((why.to_owned(), since, retry_at));
        }
        self.notify(SourceNotifier::status_changed);
    }

    pub(super) fn set_tools(&self, tools: Vec<RemoteToolInfo>) {
        let mut state = self.lock();
        let names = tools.iter().map(|tool| (tool.name.clone(), tool.full_name.clone())).collect();
        let prefix = self.name.prefix();
        let start = prefix.get(..48).unwrap_or(&prefix);
        state.prefix = match tools.iter().all(|tool| tool.full_name.starts_with(start)) {
            true => Prefix::Source,
            false => Prefix::Plain,
        };
        state.tools = names;
        let tools: Vec<_> = tools.into_iter().map(RemoteToolInfo::into_offer).collect();
        let is_same = |(new, old): (&toolyard_hub::ToolOffer, &toolyard_hub::ToolOffer)| {
            new.definition.get() == old.definition.get()
                && new.permissions == old.permissions
                && new.metadata == old.metadata
        };
        let before = &state.offer.tools;
        if before.len() != tools.len() || !tools.iter().zip(before).all(is_same) {
            state.change(|offer| offer.tools = tools);
        }
    }

    pub(super) fn set_resources(&self, resources: Vec<Raw>, templates: Vec<Raw>) {
        let mut state = self.lock();
        let before = &state.offer;
        let is_unchanged = same(&resources, before.resources.iter().map(|old| &old.definition))
            && same(&templates, before.templates.iter().map(|old| &old.definition));
        if !is_unchanged {
            let permissions = Vec::new;
            state.change(|offer| {
                let resource = |definition| ResourceOffer { definition, permissions: permissions() };
                let template = |definition| TemplateOffer { definition, permissions: permissions() };
                offer.resources = resources.into_iter().map(resource).collect();
                offer.templates = templates.into_iter().map(template).collect();
            });
        }
    }

    /// Sets the prompts, each with raw name, full name and definition.
    pub(super) fn set_prompts(&self, prompts: Vec<(String, String, Raw)>) {
        let mut state = self.lock();
        state.prompts = prompts.iter().map(|(name, full, _)| (name.clone(), full.clone())).collect();
        let prompts: Vec<Raw> = prompts.into_iter().map(|(_, _, definition)| definition).collect();
        if !same(&prompts, state.offer.prompts.iter().map(|old| &old.definition)) {
            let prompt = |definition| PromptOffer { definition, permissions: Vec::new() };
            state.change(|offer| offer.prompts = prompts.into_iter().map(prompt).collect());
        }
    }

    pub(super) fn set_stderr(&self, lines: Vec<String>) {
        self.lock().stderr = lines.into_iter().collect();
    }

    pub(super) fn add_stderr(&self, line: &str) {
        let mut state = self.lock();
        state.stderr.push_back(line.to_owned());
        while state.stderr.len() > LINES {
            state.stderr.pop_front();
        }
    }

    /// Returns the sequence number of the last state message, if the transcript was requested.
    pub(super) fn transcript_cursor(&self) -> Option<Option<u64>> {
        let state = self.lock();
        state.transcript_wanted.then_some(state.last_seq)
    }

    /// Adds messages, which have the sequence numbers of the yard.
    pub(super) fn add_messages(&self, messages: Vec<TranscriptEntry>) {
        let mut state = self.lock();
        let latest = state.transcript.back().map(|entry| entry.at);
        let is_first_read = state.last_seq.is_none();
        for entry in messages {
            state.last_seq = Some(entry.number);
            // After a reconnect, the first messages are already state.
            if is_first_read && latest.is_some_and(|latest| entry.at <= latest) {
                continue;
            }
            let number = state.next;
            state.next += 1;
            state.transcript.push_back(TranscriptEntry { number, ..entry });
            if state.transcript.len() > MESSAGES {
                state.transcript.pop_front();
            }
        }
    }

    /// Forgets the sequence number, because a restarted yard numbers its messages from the start.
    pub(super) fn reset_transcript_cursor(&self) {
        self.lock().last_seq = None;
    }

    /// Returns the full name of a tool on the yard.
    pub(super) fn full_tool_name(&self, raw: &str) -> Option<String> {
        self.lock().tools.get(raw).cloned()
    }

    pub(super) fn full_prompt_name(&self, raw: &str) -> Option<String> {
        self.lock().prompts.get(raw).cloned()
    }

    pub(super) fn notify(&self, send: impl FnOnce(&SourceNotifier)) {
        if let Some(notifier) = self.notifier.get() {
            send(notifier);
        }
    }

    fn lock(&self) -> MutexGuard<'_, RemoteServerState> {
        self.state.lock()
    }
}

impl RemoteServerState {
    /// Replaces the offer with a changed copy, because the old one may be in use.
    fn change(&mut self, change: impl FnOnce(&mut SourceOffer)) {
        let current = &self.offer;
        let mut offer = SourceOffer {
            tools: current.tools.clone(),
            resources: current.resources.clone(),
            templates: current.templates.clone(),
            prompts: current.prompts.clone(),
            supports_completion: true,
            reserved: None,
        };
        change(&mut offer);
        self.offer = Arc::new(offer);
    }
}

fn same<'a>(new: &[Raw], old: impl ExactSizeIterator<Item = &'a Raw>) -> bool {
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| new.get() == old.get())
}

impl Source for RemoteServer {
    fn name(&self) -> &SourceName {
        &self.name
    }

    fn prefix(&self) -> Prefix {
        self.lock().prefix
    }

    fn offer(&self) -> Arc<SourceOffer> {
        Arc::clone(&self.lock().offer)
    }

    fn status(&self) -> SourceStatus {
        let state = self.lock();
        let stderr = state.stderr.iter().cloned().collect();
        let status = SourceStatus { stderr, ..state.status.clone() };
        match &state.unreachable {
            None => status,
            Some((why, since, retry_at)) => SourceStatus {
                state: if retry_at.is_some() { SourceState::Retrying } else { SourceState::Failed },
                reason: Some(format!("the yard at {} cannot be reached: {why}", self.link.address)),
                since: *since,
                retry_at: *retry_at,
                ..status
            },
        }
    }

    fn attach(&self, notifier: SourceNotifier) {
        let _ = self.notifier.set(notifier);
    }

    fn manage(&self, command: SourceCommand) -> Result<(), ManageError> {
        if let Some(why) = self.link.disconnect_reason() {
            return match command {
                SourceCommand::Reconnect => {
                    self.link.retry_now.notify_one();
                    Ok(())
                }
                SourceCommand::Enable | SourceCommand::Disable => Err(ManageError::Unreachable(why)),
            };
        }
        if !self.link.permissions().manage {
            return Err(ManageError::Forbidden(MANAGE));
        }
        let subtype = match command {
            SourceCommand::Reconnect => "mcp_reconnect",
            SourceCommand::Enable => "mcp_enable",
            SourceCommand::Disable => "mcp_disable",
        };
        let (link, name) = (Arc::clone(&self.link), self.name.to_string());
        self.link.tasks.spawn(async move {
            let params = request_fields([("server_name", name.as_str().into())]);
            if let Err(error) = link.request(subtype, params).await {
                link.notify(RemoteNotice::CommandFailed(format!(
                    "{name}: {}",
                    error.message_with_suggestion()
                )))
                .await;
            }
        });
        Ok(())
    }

    fn transcript(&self, after: Option<u64>) -> Vec<TranscriptEntry> {
        let mut state = self.lock();
        state.transcript_wanted = true;
        state
            .transcript
            .iter()
            .filter(|entry| after.is_none_or(|after| entry.number > after))
            .cloned()
            .collect()
    }

    fn call<'a>(&'a self, request: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(call(self, request))
    }
}
