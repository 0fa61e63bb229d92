//! Resolves the names that a caller used to a source and its own names, and creates the errors for
//! unknown names. Errors never reveal a name that the caller may not see.

use std::sync::Arc;

use crate::catalog::{Catalog, Lookup, NamedEntry, PromptEntry, ToolEntry};
use crate::error::{ErrorKind, HubError};
use crate::json;
use crate::name::SourceName;
use crate::nearest::nearest;
use crate::outcome::Outcome;
use crate::principal::Principal;
use crate::record::CallRecord;
use crate::request::{CallRequest, CallTarget, ClientEra, CompletionReference};
use crate::scope::YardScope;
use crate::source::{Source, SourceTarget};
use crate::status::SourceState;
use crate::visibility::{CatalogEntry, Visibility};
use crate::yard::Yard;

/// The destination of a call.
pub(super) struct CallRoute {
    pub(super) source: Arc<dyn Source>,
    /// The full name or URI, or the raw name if the source is served alone.
    pub(super) subject: Arc<str>,
    pub(super) permissions: Vec<String>,
    pub(super) tool: Option<Arc<ToolEntry>>,
    /// The source's own name of a prompt.
    prompt: Option<String>,
}

impl CallRoute {
    /// Renders the error of a call in the format of its source.
    pub(super) fn render_error(&self, error: HubError, record: &CallRecord) -> Result<Outcome, HubError> {
        match &self.tool {
            Some(tool) if self.source.renders_errors() => {
                self.source.render_error(&tool.raw_name, &error, record).ok_or(error)
            }
            _ => Err(error),
        }
    }
}

impl CallTarget {
    /// Converts the target to the source's own names.
    pub(super) fn into_source_target(self, route: &CallRoute) -> SourceTarget {
        let raw_name = |name: String| match (&route.tool, &route.prompt) {
            (Some(tool), _) => tool.raw_name.clone(),
            (None, Some(prompt)) => prompt.clone(),
            (None, None) => name,
        };
        match self {
            Self::Tool { name, arguments } => SourceTarget::Tool {
                name: raw_name(name),
                arguments: arguments.unwrap_or_else(json::empty_object),
            },
            Self::Prompt { name, arguments } => SourceTarget::Prompt {
                name: raw_name(name),
                arguments: arguments.unwrap_or_else(json::empty_object),
            },
            Self::Resource { uri } => SourceTarget::Resource { uri },
            Self::Completion { reference, argument, value, context } => match reference {
                CompletionReference::Prompt(name) => {
                    SourceTarget::PromptCompletion { name: raw_name(name), argument, value, context }
                }
                CompletionReference::Template(uri) => {
                    SourceTarget::TemplateCompletion { uri, argument, value, context }
                }
            },
        }
    }
}

/// The caller and the part of the catalog to search.
struct Resolver<'a> {
    catalog: &'a Arc<Catalog>,
    principal: &'a Principal,
    scope: &'a YardScope,
}

impl Yard {
    /// Resolves a tool name for this principal. Permissions are checked when the tool is called.
    pub fn find_tool(&self, name: &str, principal: &Principal) -> Result<Arc<ToolEntry>, HubError> {
        Resolver { catalog: &self.catalog(), principal, scope: &YardScope::All }.tool(name)
    }

    /// Resolves a tool name in an era and a part of the yard. A front that has resolved a tool
    /// passes it along with the call.
    pub fn look_up_tool(
        &self,
        name: &str,
        principal: &Principal,
        era: ClientEra,
        reach: &YardScope,
    ) -> Option<Arc<ToolEntry>> {
        let resolver = Resolver { catalog: &self.catalog_for_era(era), principal, scope: reach };
        resolver.pick(&resolver.look_up_tool(name), name, resolver.catalog.tools())
    }
}

/// Resolves the destination of a request.
pub(super) fn resolve(catalog: &Arc<Catalog>, request: &CallRequest) -> Result<CallRoute, HubError> {
    let resolver = Resolver { catalog, principal: &request.principal, scope: &request.context.scope };
    match &request.target {
        CallTarget::Tool { name, .. } => {
            let known = request.tool.as_ref().filter(|tool| resolver.can_access(&tool.source, &***tool));
            let tool = known.map_or_else(|| resolver.tool(name), |tool| Ok(Arc::clone(tool)))?;
            let tool = select_version(tool, request.context.version.as_deref())?;
            Ok(CallRoute {
                source: resolver.source(&tool.source)?,
                subject: resolver.subject(&*tool),
                permissions: tool.permissions.clone(),
                tool: Some(tool),
                prompt: None,
            })
        }
        CallTarget::Prompt { name, .. }
        | CallTarget::Completion { reference: CompletionReference::Prompt(name), .. } => {
            let prompt = resolver.prompt(name)?;
            Ok(CallRoute {
                source: resolver.source(&prompt.source)?,
                subject: resolver.subject(&*prompt),
                permissions: prompt.permissions.clone(),
                tool: None,
                prompt: Some(prompt.raw_name.clone()),
            })
        }
        CallTarget::Resource { uri }
        | CallTarget::Completion { reference: CompletionReference::Template(uri), .. } => {
            let (source, permissions) = resolver.resolve_uri(uri)?;
            Ok(CallRoute {
                source: resolver.source(source)?,
                subject: json::truncate_for_message(uri).into(),
                permissions: permissions.to_vec(),
                tool: None,
                prompt: None,
            })
        }
    }
}

impl Resolver<'_> {
    fn tool(&self, name: &str) -> Result<Arc<ToolEntry>, HubError> {
        self.resolve_lookup(&self.look_up_tool(name), ErrorKind::UnknownTool, name, self.catalog.tools())
    }

    fn look_up_tool(&self, name: &str) -> Lookup<ToolEntry> {
        match self.scope.single_source() {
            Some(only) => self.catalog.tool_in_source(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.tool(name),
        }
    }

    fn prompt(&self, name: &str) -> Result<Arc<PromptEntry>, HubError> {
        let found = match self.scope.single_source() {
            Some(only) => self.catalog.prompt_in_source(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.prompt(name),
        };
        self.resolve_lookup(&found, ErrorKind::UnknownPrompt, name, self.catalog.prompts())
    }

    /// Returns the source that serves this URI.
    fn resolve_uri(&self, uri: &str) -> Result<(&SourceName, &[String]), HubError> {
        if let Some(holder) = self.catalog.match_uri(uri, self.principal, self.scope) {
            return Ok((holder.source(), holder.permissions()));
        }
        let error = unknown(ErrorKind::UnknownResource, uri).with_details(serde_json::json!({"uri": uri}));
        let seen = self.catalog.resources().iter().filter(|r| self.sees(&r.source, &***r));
        Err(did_you_mean(error, uri, seen.map(|resource| resource.uri.as_str())))
    }

    fn source(&self, name: &SourceName) -> Result<Arc<dyn Source>, HubError> {
        let gone = || HubError::new(ErrorKind::NotConnected, format!("source {name} was removed"));
        self.catalog.source(name).cloned().ok_or_else(gone)
    }

    fn subject(&self, thing: &impl NamedEntry) -> Arc<str> {
        match self.scope.single_source() {
            Some(_) => json::truncate_for_message(thing.raw_name()).into(),
            None => thing.full_name().shared(),
        }
    }

    fn can_access(&self, source: &SourceName, thing: &impl CatalogEntry) -> bool {
        self.scope.covers(source) && thing.is_accessible_to(self.principal)
    }

    fn sees(&self, source: &SourceName, thing: &impl CatalogEntry) -> bool {
        self.scope.covers(source) && thing.is_visible_to(self.principal)
    }

    /// Returns the error for a name whose prefix belongs to a source that has not listed its
    /// entries yet.
    fn source_not_ready_error(&self, name: &str) -> Option<HubError> {
        let source = match self.scope.single_source() {
            Some(only) => self.catalog.source(only)?,
            None => self.catalog.source_by_prefix(name)?,
        };
        let (permissions, status) = (source.permissions(), source.status());
        let source = source.name();
        let has_listed = status.state == SourceState::Ready || self.catalog.has_entries_from(source);
        let visibility = Visibility::new(Arc::clone(self.catalog), self.principal.clone());
        if has_listed || !self.scope.covers(source) || !visibility.can_access_source(source) {
            return None;
        }
        if !visibility.sees_source(source) {
            let missing = self.principal.first_missing_permission(permissions).unwrap_or_default();
            return Some(HubError::forbidden(&json::truncate_for_message(name), missing));
        }
        let reason = status.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let is = match status.state {
            SourceState::NeedsAuthorization | SourceState::Failed => "",
            _ => "is ",
        };
        let message = format!("server `{source}` {is}{}{reason}", status.state.label());
        let error = HubError::new(ErrorKind::CannotConnect, message)
            .with_details(serde_json::json!({ "server": source.as_str() }));
        Some(match status.state {
            SourceState::Disabled => error.with_suggestion("enable the server first"),
            SourceState::Starting => error.with_suggestion("repeat the call in a few seconds"),
            SourceState::Retrying => {
                error.with_suggestion("retry later; Toolyard reconnects to the server automatically")
            }
            // The reason already says what to do.
            SourceState::Ready | SourceState::NeedsAuthorization | SourceState::Failed => error,
        })
    }

    /// Returns the result of a lookup, if it is visible to this caller. If a bare name is ambiguous
    /// but only one candidate is visible to the caller, that one is used.
    fn pick<T: NamedEntry + CatalogEntry>(
        &self,
        found: &Lookup<T>,
        name: &str,
        all: &[Arc<T>],
    ) -> Option<Arc<T>> {
        match found {
            Lookup::Unknown => None,
            Lookup::Found(entry) if self.can_access(entry.source(), &**entry) => Some(Arc::clone(entry)),
            _ if self.scope.single_source().is_some() || self.source_not_ready_error(name).is_some() => None,
            Lookup::Found(_) | Lookup::Ambiguous(_) => {
                let mut bare = self.visible(all).filter(|entry| entry.raw_name() == name);
                bare.next().filter(|_| bare.next().is_none()).cloned()
            }
        }
    }

    fn visible<'b, T: NamedEntry + CatalogEntry>(
        &'b self,
        all: &'b [Arc<T>],
    ) -> impl Iterator<Item = &'b Arc<T>> + Clone {
        all.iter().filter(|entry| self.sees(entry.source(), &***entry))
    }

    fn resolve_lookup<T: NamedEntry + CatalogEntry>(
        &self,
        found: &Lookup<T>,
        kind: ErrorKind,
        name: &str,
        all: &[Arc<T>],
    ) -> Result<Arc<T>, HubError> {
        if let Some(entry) = self.pick(found, name, all) {
            return Ok(entry);
        }
        if let Some(error) = self.source_not_ready_error(name) {
            return Err(error);
        }
        let visible = self.visible(all);
        if self.scope.single_source().is_some() {
            return Err(did_you_mean(unknown(kind, name), name, visible.map(|entry| entry.raw_name())));
        }
        if let Lookup::Found(_) | Lookup::Ambiguous(_) = found {
            let several = visible.clone().filter(|entry| entry.raw_name() == name);
            let names: Vec<_> = several.map(|entry| entry.full_name().as_str()).collect();
            if !names.is_empty() {
                let message = format!("`{}` is ambiguous", json::truncate_for_message(name));
                return Err(
                    HubError::new(kind, message).with_suggestion(format!("use one of {}", names.join(", ")))
                );
            }
        }
        let names = visible.flat_map(|entry| [entry.full_name().as_str(), entry.raw_name()]);
        Err(did_you_mean(unknown(kind, name), name, names))
    }
}

/// Returns the requested version of this tool.
fn select_version(tool: Arc<ToolEntry>, asked: Option<&str>) -> Result<Arc<ToolEntry>, HubError> {
    let Some(asked) = asked else { return Ok(tool) };
    let mut all = std::iter::once(&tool).chain(&tool.older);
    if let Some(found) = all.find(|tool| tool.version() == Some(asked)) {
        return Ok(Arc::clone(found));
    }
    let known: Vec<&str> =
        std::iter::once(&tool).chain(&tool.older).filter_map(|tool| tool.version()).collect();
    let message = format!("tool `{}` has no version `{}`", tool.full_name, json::truncate_for_message(asked));
    Err(HubError::new(ErrorKind::UnknownTool, message).with_suggestion(match known.as_slice() {
        [] => "omit the version, because this tool has none".to_owned(),
        [only] => format!("use version {only}"),
        several => format!("use one of the versions {}", several.join(", ")),
    }))
}

fn unknown(kind: ErrorKind, name: &str) -> HubError {
    HubError::new(kind, format!("{} `{}`", kind.as_str(), json::truncate_for_message(name)))
}

/// Adds the most similar of these names as a suggestion, if one is similar enough.
fn did_you_mean<'a>(error: HubError, name: &str, all: impl Iterator<Item = &'a str>) -> HubError {
    match nearest(name, all) {
        Some(close) => error.with_suggestion(format!("did you mean `{close}`?")),
        None => error,
    }
}
