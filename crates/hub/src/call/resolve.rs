//! From the names that a caller used to a source and its own names, and what to say when they lead nowhere.
//! Nobody is told a name that they may not see.

use std::sync::Arc;

use crate::catalog::{Bare, Catalog, Lookup, Prompt, Tool};
use crate::error::{Error, Kind};
use crate::json;
use crate::name::SourceName;
use crate::nearest::nearest;
use crate::principal::Principal;
use crate::reach::Reach;
use crate::request::{CallContext, Reference, What};
use crate::source::{Source, Target};
use crate::status::State;
use crate::visibility::{Offered, Visibility};
use crate::yard::Yard;

pub(super) struct Resolved {
    pub(super) source: Arc<dyn Source>,
    pub(super) target: Target,
    /// What messages and events call the thing: its full name, or the raw one where the source is served alone.
    pub(super) subject: String,
    pub(super) permissions: Vec<String>,
    pub(super) tool: Option<Arc<Tool>>,
}

/// Who looks, and where: in the whole catalog, or in a part of it.
struct Looking<'a> {
    catalog: &'a Arc<Catalog>,
    principal: &'a Principal,
    reach: &'a Reach,
}

impl Yard {
    /// The tool that this name leads to for this principal, or why it leads nowhere. Whether they may use it is
    /// asked when they do.
    pub fn find_tool(&self, name: &str, principal: &Principal) -> Result<Arc<Tool>, Error> {
        Looking { catalog: &self.catalog(), principal, reach: &Reach::All }.tool(name)
    }
}

pub(super) fn resolve(
    catalog: &Arc<Catalog>,
    what: What,
    principal: &Principal,
    context: &CallContext,
) -> Result<Resolved, Error> {
    let looking = Looking { catalog, principal, reach: &context.reach };
    match what {
        What::Tool { name, arguments } => {
            let tool = of_version(looking.tool(&name)?, context.version.as_deref())?;
            let arguments = arguments.unwrap_or_else(json::empty_object);
            Ok(Resolved {
                source: looking.source(&tool.source)?,
                target: Target::Tool { name: tool.raw_name.clone(), arguments },
                subject: looking.subject(&*tool),
                permissions: tool.permissions.clone(),
                tool: Some(tool),
            })
        }
        What::Prompt { name, arguments } => {
            let prompt = looking.prompt(&name)?;
            let arguments = arguments.unwrap_or_else(json::empty_object);
            looking.for_prompt(&prompt, |name| Target::Prompt { name, arguments })
        }
        What::Resource { uri } => looking.for_uri(uri, |uri| Target::Resource { uri }),
        What::Completion { reference: Reference::Prompt(name), argument, value, context } => {
            let prompt = looking.prompt(&name)?;
            looking.for_prompt(&prompt, |name| Target::PromptCompletion { name, argument, value, context })
        }
        What::Completion { reference: Reference::Template(uri), argument, value, context } => {
            looking.for_uri(uri, |uri| Target::TemplateCompletion { uri, argument, value, context })
        }
    }
}

impl Looking<'_> {
    fn tool(&self, name: &str) -> Result<Arc<Tool>, Error> {
        let found = match self.reach.alone() {
            Some(only) => self.catalog.tool_of(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.tool(name),
        };
        self.found_or(&found, Kind::UnknownTool, name, self.catalog.tools())
    }

    fn prompt(&self, name: &str) -> Result<Arc<Prompt>, Error> {
        let found = match self.reach.alone() {
            Some(only) => self.catalog.prompt_of(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.prompt(name),
        };
        self.found_or(&found, Kind::UnknownPrompt, name, self.catalog.prompts())
    }

    fn for_prompt(&self, prompt: &Prompt, target: impl FnOnce(String) -> Target) -> Result<Resolved, Error> {
        Ok(Resolved {
            source: self.source(&prompt.source)?,
            target: target(prompt.raw_name.clone()),
            subject: self.subject(prompt),
            permissions: prompt.permissions.clone(),
            tool: None,
        })
    }

    fn for_uri(&self, uri: String, target: impl FnOnce(String) -> Target) -> Result<Resolved, Error> {
        let (source, permissions) = self.holder(&uri)?;
        Ok(Resolved {
            source: self.source(source)?,
            subject: json::short(&uri).into_owned(),
            target: target(uri),
            permissions: permissions.to_vec(),
            tool: None,
        })
    }

    /// The source that answers for this URI.
    fn holder(&self, uri: &str) -> Result<(&SourceName, &[String]), Error> {
        if let Some(holder) = self.catalog.holder(uri, self.principal, self.reach) {
            return Ok((holder.source(), holder.permissions()));
        }
        let error = unknown(Kind::UnknownResource, uri).with_details(serde_json::json!({"uri": uri}));
        let seen = self.catalog.resources().iter().filter(|r| self.sees(&r.source, &***r));
        Err(did_you_mean(error, uri, seen.map(|resource| resource.uri.as_str())))
    }

    fn source(&self, name: &SourceName) -> Result<Arc<dyn Source>, Error> {
        let gone = || Error::new(Kind::NotConnected, format!("source {name} is gone"));
        self.catalog.source(name).cloned().ok_or_else(gone)
    }

    fn subject(&self, thing: &impl Bare) -> String {
        match self.reach.alone() {
            Some(_) => json::short(thing.raw_name()).into_owned(),
            None => thing.full_name().to_string(),
        }
    }

    fn knows(&self, source: &SourceName, thing: &impl Offered) -> bool {
        self.reach.covers(source) && thing.is_inside_lists_of(self.principal)
    }

    fn sees(&self, source: &SourceName, thing: &impl Offered) -> bool {
        self.reach.covers(source) && thing.is_visible_to(self.principal)
    }

    /// Why nobody can know whether there is such a thing: by its name it is of a source that has not told what it offers.
    fn not_there_yet(&self, name: &str) -> Option<Error> {
        let source = match self.reach.alone() {
            Some(only) => self.catalog.source(only)?,
            None => self.catalog.source_of_prefix(name)?,
        };
        let (permissions, status) = (source.permissions(), source.status());
        let source = source.name();
        let told = status.state == State::Ready || self.catalog.has_anything_of(source);
        let visibility = Visibility::new(Arc::clone(self.catalog), self.principal.clone());
        if told || !self.reach.covers(source) || !visibility.knows_source(source) {
            return None;
        }
        if !visibility.sees_source(source) {
            let missing = self.principal.lacks(permissions).unwrap_or_default();
            return Some(Error::forbidden(&json::short(name), missing));
        }
        let reason = status.reason.map_or_else(String::new, |reason| format!(": {reason}"));
        let is = if status.state == State::NeedsAuthorization { "" } else { "is " };
        let message = format!("{source} {is}{}{reason}", status.state.as_str());
        let error = Error::new(Kind::CannotConnect, message)
            .with_details(serde_json::json!({ "server": source.as_str() }));
        Some(match status.state {
            State::Disabled => error.suggest("enable it in the configuration"),
            State::Starting | State::BackingOff => error.suggest("try again in a while"),
            // The reason says what to do.
            State::Ready | State::NeedsAuthorization | State::Failed => error,
        })
    }

    fn found_or<T: Bare + Offered>(
        &self,
        found: &Lookup<T>,
        kind: Kind,
        name: &str,
        all: &[Arc<T>],
    ) -> Result<Arc<T>, Error> {
        let seen = all.iter().filter(|thing| self.sees(thing.source(), &***thing));
        if let Lookup::Found(thing) = found
            && self.knows(thing.source(), &**thing)
        {
            return Ok(Arc::clone(thing));
        }
        if let Some(error) = self.not_there_yet(name) {
            return Err(error);
        }
        if self.reach.alone().is_some() {
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
                    return Err(Error::new(kind, format!("{} stands for several", json::short(name)))
                        .suggest(format!("say one of {}", names.join(", "))));
                }
            }
        }
        let names = seen.flat_map(|thing| [thing.full_name().as_str(), thing.raw_name()]);
        Err(did_you_mean(unknown(kind, name), name, names))
    }
}

/// The version of this tool that was asked for.
fn of_version(tool: Arc<Tool>, asked: Option<&str>) -> Result<Arc<Tool>, Error> {
    let Some(asked) = asked else { return Ok(tool) };
    let mut all = std::iter::once(&tool).chain(&tool.older);
    if let Some(found) = all.find(|tool| tool.version() == Some(asked)) {
        return Ok(Arc::clone(found));
    }
    let known: Vec<&str> =
        std::iter::once(&tool).chain(&tool.older).filter_map(|tool| tool.version()).collect();
    let message = format!("unknown tool {} in version {}", tool.full_name, json::short(asked));
    Err(Error::new(Kind::UnknownTool, message).suggest(match known.as_slice() {
        [] => "it has no versions: call it without one".to_owned(),
        [only] => format!("there is version {only}"),
        several => format!("there are the versions {}", several.join(", ")),
    }))
}

fn unknown(kind: Kind, name: &str) -> Error {
    Error::new(kind, format!("{} {}", kind.as_str(), json::short(name)))
}

/// Adds the nearest of these names, if one is near enough to be meant.
fn did_you_mean<'a>(error: Error, name: &str, all: impl Iterator<Item = &'a str>) -> Error {
    match nearest(name, all) {
        Some(close) => error.suggest(format!("did you mean {close}?")),
        None => error,
    }
}
