//! One server of the yard that is mirrored, as a source. What it offers and how it is doing is what the yard said last.

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

/// How many lines of standard error, and how many messages, are kept of each server.
const LINES: usize = 50;
const MESSAGES: usize = 500;

pub(super) struct RemoteServer {
    name: SourceName,
    pub(super) link: Arc<RemoteLink>,
    notifier: OnceLock<SourceNotifier>,
    state: Mutex<RemoteServerState>,
}

struct RemoteServerState {
    status: SourceStatus,
    /// The yard cannot be reached: why, since when, and when it is tried again.
    unreachable: Option<(String, Instant, Option<Instant>)>,
    offer: Arc<SourceOffer>,
    /// What the yard calls each tool and prompt, by raw name.
    tools: HashMap<String, String>,
    prompts: HashMap<String, String>,
    prefix: Prefix,
    stderr: VecDeque<String>,
    transcript: VecDeque<TranscriptEntry>,
    /// The number of the last message, as the yard counts them.
    last_seq: Option<u64>,
    next: u64,
    /// Whether anybody has asked for messages.
    transcript_wanted: bool,
}

impl RemoteServer {
    pub(super) fn new(name: &str, way: Arc<RemoteLink>, status: SourceStatus) -> Arc<Self> {
        let known = RemoteServerState {
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
            link: way,
            notifier: OnceLock::new(),
            state: Mutex::new(known),
        })
    }

    pub(super) fn set_status(&self, status: SourceStatus) {
        {
            let mut known = self.lock();
            (known.status, known.unreachable) = (status, None);
        }
        self.notify(SourceNotifier::status_changed);
    }

    pub(super) fn set_unreachable(&self, why: &str, retry_at: Option<Instant>) {
        {
            let mut known = self.lock();
            let since = known.unreachable.as_ref().map_or_else(Instant::now, |(_, since, _)| *since);
            known.unreachable = Some((why.to_owned(), since, retry_at));
        }
        self.notify(SourceNotifier::status_changed);
    }

    pub(super) fn set_tools(&self, tools: Vec<RemoteToolInfo>) {
        let mut known = self.lock();
        let names = tools.iter().map(|tool| (tool.name.clone(), tool.full_name.clone())).collect();
        let prefixed = self.name.prefix();
        let cut = prefixed.get(..48).unwrap_or(&prefixed);
        known.prefix = match tools.iter().all(|tool| tool.full_name.starts_with(cut)) {
            true => Prefix::Source,
            false => Prefix::Plain,
        };
        known.tools = names;
        let tools: Vec<_> = tools.into_iter().map(RemoteToolInfo::into_offer).collect();
        let same = |(new, old): (&toolyard_hub::ToolOffer, &toolyard_hub::ToolOffer)| {
            new.definition.get() == old.definition.get()
                && new.permissions == old.permissions
                && new.metadata == old.metadata
        };
        let before = &known.offer.tools;
        if before.len() != tools.len() || !tools.iter().zip(before).all(same) {
            known.change(|offer| offer.tools = tools);
        }
    }

    pub(super) fn set_resources(&self, resources: Vec<Raw>, templates: Vec<Raw>) {
        let mut known = self.lock();
        let before = &known.offer;
        let same = same(&resources, before.resources.iter().map(|old| &old.definition))
            && same(&templates, before.templates.iter().map(|old| &old.definition));
        if !same {
            let permissions = Vec::new;
            known.change(|offer| {
                let resource = |definition| ResourceOffer { definition, permissions: permissions() };
                let template = |definition| TemplateOffer { definition, permissions: permissions() };
                offer.resources = resources.into_iter().map(resource).collect();
                offer.templates = templates.into_iter().map(template).collect();
            });
        }
    }

    /// Prompts by raw name, full name and definition.
    pub(super) fn set_prompts(&self, prompts: Vec<(String, String, Raw)>) {
        let mut known = self.lock();
        known.prompts = prompts.iter().map(|(name, full, _)| (name.clone(), full.clone())).collect();
        let prompts: Vec<Raw> = prompts.into_iter().map(|(_, _, definition)| definition).collect();
        if !same(&prompts, known.offer.prompts.iter().map(|old| &old.definition)) {
            let prompt = |definition| PromptOffer { definition, permissions: Vec::new() };
            known.change(|offer| offer.prompts = prompts.into_iter().map(prompt).collect());
        }
    }

    pub(super) fn set_stderr(&self, lines: Vec<String>) {
        self.lock().stderr = lines.into_iter().collect();
    }

    pub(super) fn add_stderr(&self, line: &str) {
        let mut known = self.lock();
        known.stderr.push_back(line.to_owned());
        while known.stderr.len() > LINES {
            known.stderr.pop_front();
        }
    }

    /// The number of the last message that is known, if messages are wanted and the yard is there.
    pub(super) fn transcript_cursor(&self) -> Option<Option<u64>> {
        let known = self.lock();
        known.transcript_wanted.then_some(known.last_seq)
    }

    /// Takes in messages with the numbers that the yard gave them.
    pub(super) fn add_messages(&self, messages: Vec<TranscriptEntry>) {
        let mut known = self.lock();
        let latest = known.transcript.back().map(|said| said.at);
        let fresh = known.last_seq.is_none();
        for said in messages {
            known.last_seq = Some(said.number);
            // After a break it begins with what is known already.
            if fresh && latest.is_some_and(|latest| said.at <= latest) {
                continue;
            }
            let number = known.next;
            known.next += 1;
            known.transcript.push_back(TranscriptEntry { number, ..said });
            if known.transcript.len() > MESSAGES {
                known.transcript.pop_front();
            }
        }
    }

    /// The yard may be another process now, which counts its messages anew.
    pub(super) fn reset_transcript_cursor(&self) {
        self.lock().last_seq = None;
    }

    /// What the yard calls a tool.
    pub(super) fn full_tool_name(&self, raw: &str) -> Option<String> {
        self.lock().tools.get(raw).cloned()
    }

    pub(super) fn full_prompt_name(&self, raw: &str) -> Option<String> {
        self.lock().prompts.get(raw).cloned()
    }

    pub(super) fn notify(&self, what: impl FnOnce(&SourceNotifier)) {
        if let Some(feed) = self.notifier.get() {
            what(feed);
        }
    }

    fn lock(&self) -> MutexGuard<'_, RemoteServerState> {
        self.state.lock()
    }
}

impl RemoteServerState {
    /// Another offer: the old one may be in use.
    fn change(&mut self, change: impl FnOnce(&mut SourceOffer)) {
        let now = &self.offer;
        let mut offer = SourceOffer {
            tools: now.tools.clone(),
            resources: now.resources.clone(),
            templates: now.templates.clone(),
            prompts: now.prompts.clone(),
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
        let known = self.lock();
        let stderr = known.stderr.iter().cloned().collect();
        let status = SourceStatus { stderr, ..known.status.clone() };
        match &known.unreachable {
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

    fn attach(&self, feed: SourceNotifier) {
        let _ = self.notifier.set(feed);
    }

    fn manage(&self, order: SourceCommand) -> Result<(), ManageError> {
        if let Some(why) = self.link.disconnect_reason() {
            return match order {
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
        let subtype = match order {
            SourceCommand::Reconnect => "mcp_reconnect",
            SourceCommand::Enable => "mcp_enable",
            SourceCommand::Disable => "mcp_disable",
        };
        let (way, name) = (Arc::clone(&self.link), self.name.to_string());
        self.link.tasks.spawn(async move {
            let words = request_fields([("server_name", name.as_str().into())]);
            if let Err(error) = way.request(subtype, words).await {
                way.notify(RemoteNotice::CommandFailed(format!(
                    "{name}: {}",
                    error.message_with_suggestion()
                )))
                .await;
            }
        });
        Ok(())
    }

    fn transcript(&self, after: Option<u64>) -> Vec<TranscriptEntry> {
        let mut known = self.lock();
        known.transcript_wanted = true;
        known
            .transcript
            .iter()
            .filter(|said| after.is_none_or(|after| said.number > after))
            .cloned()
            .collect()
    }

    fn call<'a>(&'a self, wanted: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
        Box::pin(call(self, wanted))
    }
}
