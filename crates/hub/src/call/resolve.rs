//! From the names that a caller used to a source and its own names, and what to say when they lead nowhere.
//! Nobody is told a name that they may not see.

use std::sync::Arc;

use crate::catalog::{Catalog, Lookup, NamedEntry, PromptEntry, ToolEntry};
use crate::error::{ErrorKind, HubError};
use crate::json;
use crate::name::SourceName;
use crate::nearest::nearest;
use crate::principal::Principal;
use crate::request::{CallContext, CallTarget, CompletionReference};
use crate::scope::YardScope;
use crate::source::{Source, SourceTarget};
use crate::status::SourceState;
use crate::visibility::{CatalogEntry, Visibility};
use crate::yard::Yard;

pub(super) struct ResolvedCall {
    pub(super) source: Arc<dyn Source>,
    pub(super) target: SourceTarget,
    /// What messages and events call the thing: its full name, or the raw one where the source is served alone.
    pub(super) subject: String,
    pub(super) permissions: Vec<String>,
    pub(super) tool: Option<Arc<ToolEntry>>,
}

/// Who looks, and where: in the whole catalog, or in a part of it.
struct Resolver<'a> {
    catalog: &'a Arc<Catalog>,
    principal: &'a Principal,
    reach: &'a YardScope,
}

impl Yard {
    /// The tool that this name leads to for this principal, or why it leads nowhere. Whether they may use it is
    /// asked when they do.
    pub fn find_tool(&self, name: &str, principal: &Principal) -> Result<Arc<ToolEntry>, HubError> {
        Resolver { catalog: &self.catalog(), principal, reach: &YardScope::All }.tool(name)
    }
}

pub(super) fn resolve(
    catalog: &Arc<Catalog>,
    what: CallTarget,
    principal: &Principal,
    context: &CallContext,
) -> Result<ResolvedCall, HubError> {
    let looking = Resolver { catalog, principal, reach: &context.reach };
    match what {
        CallTarget::Tool { name, arguments } => {
            let tool = of_version(looking.tool(&name)?, context.version.as_deref())?;
            let arguments = arguments.unwrap_or_else(json::empty_object);
            Ok(ResolvedCall {
                source: looking.source(&tool.source)?,
                target: SourceTarget::Tool { name: tool.raw_name.clone(), arguments },
                subject: looking.subject(&*tool),
                permissions: tool.permissions.clone(),
                tool: Some(tool),
            })
        }
        CallTarget::Prompt { name, arguments } => {
            let prompt = looking.prompt(&name)?;
            let arguments = arguments.unwrap_or_else(json::empty_object);
            looking.for_prompt(&prompt, |name| SourceTarget::Prompt { name, arguments })
        }
        CallTarget::Resource { uri } => looking.for_uri(uri, |uri| SourceTarget::Resource { uri }),
        CallTarget::Completion { reference: CompletionReference::Prompt(name), argument, value, context } => {
            let prompt = looking.prompt(&name)?;
            looking.for_prompt(&prompt, |name| SourceTarget::PromptCompletion {
                name,
                argument,
                value,
                context,
            })
        }
        CallTarget::Completion {
            reference: CompletionReference::Template(uri),
            argument,
            value,
            context,
        } => looking.for_uri(uri, |uri| SourceTarget::TemplateCompletion { uri, argument, value, context }),
    }
}

impl Resolver<'_> {
    fn tool(&self, name: &str) -> Result<Arc<ToolEntry>, HubError> {
        let found = match self.reach.single_source() {
            Some(only) => self.catalog.tool_of(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.tool(name),
        };
        self.found_or(&found, ErrorKind::UnknownTool, name, self.catalog.tools())
    }

    fn prompt(&self, name: &str) -> Result<Arc<PromptEntry>, HubError> {
        let found = match self.reach.single_source() {
            Some(only) => self.catalog.prompt_of(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.prompt(name),
        };
        self.found_or(&found, ErrorKind::UnknownPrompt, name, self.catalog.prompts())
    }

    fn for_prompt(
        &self,
        prompt: &PromptEntry,
        target: impl FnOnce(String) -> SourceTarget,
    ) -> Result<ResolvedCall, HubError> {
        Ok(ResolvedCall {
            source: self.source(&prompt.source)?,
            target: target(prompt.raw_name.clone()),
            subject: self.subject(prompt),
            permissions: prompt.permissions.clone(),
            tool: None,
        })
    }

    fn for_uri(
        &self,
        uri: String,
        target: impl FnOnce(String) -> SourceTarget,
    ) -> Result<ResolvedCall, HubError> {
        let (source, permissions) = self.holder(&uri)?;
        Ok(ResolvedCall {
            source: self.source(source)?,
            subject: json::truncate_for_message(&uri).into_owned(),
            target: target(uri),
            permissions: permissions.to_vec(),
            tool: None,
        })
    }

    /// The source that answers for this URI.
    fn holder(&self, uri: &str) -> Result<(&SourceName, &[String]), HubError> {
        if let Some(holder) = self.catalog.match_uri(uri, self.principal, self.reach) {
            return Ok((holder.source(), holder.permissions()));
        }
        let error = unknown(ErrorKind::UnknownResource, uri).with_details(serde_json::json!({"uri": uri}));
        let seen = self.catalog.resources().iter().filter(|r| self.sees(&r.source, &***r));
        Err(did_you_mean(error, uri, seen.map(|resource| resource.uri.as_str())))
    }

    fn source(&self, name: &SourceName) -> Result<Arc<dyn Source>, HubError> {
        let gone = || HubError::new(ErrorKind::NotConnected, format!("source {name} is gone"));
        self.catalog.source(name).cloned().ok_or_else(gone)
    }

    fn subject(&self, thing: &impl NamedEntry) -> String {
        match self.reach.single_source() {
            Some(_) => json::truncate_for_message(thing.raw_name()).into_owned(),
            None => thing.full_name().to_string(),
        }
    }

    fn knows(&self, source: &SourceName, thing: &impl CatalogEntry) -> bool {
        self.reach.covers(source) && thing.is_inside_lists_of(self.principal)
    }

    fn sees(&self, source: &SourceName, thing: &impl CatalogEntry) -> bool {
        self.reach.covers(source) && thing.is_visible_to(self.principal)
    }

    /// Why nobody can know whether there is such a thing: by its name it is of a source that has not told what it offers.
    fn not_there_yet(&self, name: &str) -> Option<HubError> {
        let source = match self.reach.single_source() {
            Some(only) => self.catalog.source(only)?,
            None => self.catalog.source_of_prefix(name)?,
        };
        let (permissions, status) = (source.permissions(), source.status());
        let source = source.name();
        let told = status.state == SourceState::Ready || self.catalog.has_anything_of(source);
        let visibility = Visibility::new(Arc::clone(self.catalog), self.principal.clone());
        if told || !self.reach.covers(source) || !visibility.knows_source(source) {
            return None;
        }
        if !visibility.sees_source(source) {
            let missing = self.principal.first_missing(permissions).unwrap_or_default();
            return Some(HubError::forbidden(&json::truncate_for_message(name), missing));
        }
        let reason = status.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let is = if status.state == SourceState::NeedsAuthorization { "" } else { "is " };
        let message = format!("{source} {is}{}{reason}", status.state.label());
        let error = HubError::new(ErrorKind::CannotConnect, message)
            .with_details(serde_json::json!({ "server": source.as_str() }));
        Some(match status.state {
            SourceState::Disabled => error.suggest("enable it in the configuration"),
            SourceState::Starting | SourceState::Retrying => error.suggest("try again in a while"),
            // The reason says what to do.
            SourceState::Ready | SourceState::NeedsAuthorization | SourceState::Failed => error,
        })
    }

    fn found_or<T: NamedEntry + CatalogEntry>(
        &self,
        found: &Lookup<T>,
        kind: ErrorKind,
        name: &str,
        all: &[Arc<T>],
    ) -> Result<Arc<T>, HubError> {
        let seen = all.iter().filter(|thing| self.sees(thing.source(), &***thing));
        if let Lookup::Found(thing) = found
            && self.knows(thing.source(), &**thing)
        {
            return Ok(Arc::clone(thing));
        }
        if let Some(error) = self.not_there_yet(name) {
            return Err(error);
        }
        if self.reach.single_source().is_some() {
            return Err(did_you_mean(unknown(kind, name), name, seen.map(|thing| thing.raw_name())));
        }
        if let Lookup::Found(_) | Lookup::Ambiguous(_) = found {
            // Of all that have this bare name, those that are there for this caller count.
            let several: Vec<_> = seen.clone().filter(|thing| thing.raw_name() == name).collect();
            match several.as_slice() {
                [only] => return Ok(Arc::clone(only)),
                [] => {}
                several => {
                    let names: Vec<_> = several.iter().map(|thing| thing.full_name().as_str()).collect();
                    return Err(HubError::new(
                        kind,
                        format!("{} stands for several", json::truncate_for_message(name)),
                    )
                    .suggest(format!("say one of {}", names.join(", "))));
                }
            }
        }
        let names = seen.flat_map(|thing| [thing.full_name().as_str(), thing.raw_name()]);
        Err(did_you_mean(unknown(kind, name), name, names))
    }
}

/// The version of this tool that was asked for.
fn of_version(tool: Arc<ToolEntry>, asked: Option<&str>) -> Result<Arc<ToolEntry>, HubError> {
    let Some(asked) = asked else { return Ok(tool) };
    let mut all = std::iter::once(&tool).chain(&tool.older);
    if let Some(found) = all.find(|tool| tool.version() == Some(asked)) {
        return Ok(Arc::clone(found));
    }
    let known: Vec<&str> =
        std::iter::once(&tool).chain(&tool.older).filter_map(|tool| tool.version()).collect();
    let message = format!("unknown tool {} in version {}", tool.full_name, json::truncate_for_message(asked));
    Err(HubError::new(ErrorKind::UnknownTool, message).suggest(match known.as_slice() {
        [] => "it has no versions: call it without one".to_owned(),
        [only] => format!("there is version {only}"),
        several => format!("there are the versions {}", several.join(", ")),
    }))
}

fn unknown(kind: ErrorKind, name: &str) -> HubError {
    HubError::new(kind, format!("{} {}", kind.as_str(), json::truncate_for_message(name)))
}

/// Adds the nearest of these names, if one is near enough to be meant.
fn did_you_mean<'a>(error: HubError, name: &str, all: impl Iterator<Item = &'a str>) -> HubError {
    match nearest(name, all) {
        Some(close) => error.suggest(format!("did you mean {close}?")),
        None => error,
    }
}
