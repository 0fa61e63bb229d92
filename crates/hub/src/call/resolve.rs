//! From the names that a caller used to a source and its own names, and what to say when they lead nowhere.
//! Nobody is told a name that they may not see.

use std::sync::Arc;

use crate::catalog::{Bare, Catalog, Lookup, Prompt, Tool};
use crate::error::{Error, Kind};
use crate::json;
use crate::name::SourceName;
use crate::principal::Principal;
use crate::request::{CallContext, Reference, What};
use crate::source::{Source, Target};
use crate::yard::Yard;

pub(super) struct Resolved {
    pub(super) source: Arc<dyn Source>,
    pub(super) target: Target,
    /// What messages and events call the thing: its full name, or the raw one where the source is served alone.
    pub(super) subject: String,
    pub(super) permissions: Vec<String>,
    pub(super) tool: Option<Arc<Tool>>,
}

/// Who looks, and where: in the whole catalog, or among what one source offers.
struct Looking<'a> {
    catalog: &'a Catalog,
    principal: &'a Principal,
    only: Option<&'a SourceName>,
}

impl Yard {
    /// The tool that this name leads to for this principal, or why it leads nowhere. Whether they may use it is
    /// asked when they do.
    pub fn find_tool(&self, name: &str, principal: &Principal) -> Result<Arc<Tool>, Error> {
        Looking { catalog: &self.catalog(), principal, only: None }.tool(name)
    }
}

pub(super) fn resolve(
    catalog: &Catalog,
    what: What,
    principal: &Principal,
    context: &CallContext,
) -> Result<Resolved, Error> {
    let looking = Looking { catalog, principal, only: context.only_source.as_ref() };
    match what {
        What::Tool { name, arguments } => {
            let tool = looking.tool(&name)?;
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
        let found = match self.only {
            Some(only) => self.catalog.tool_of(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.tool(name),
        };
        self.found_or(found, Kind::UnknownTool, name, self.catalog.tools())
    }

    fn prompt(&self, name: &str) -> Result<Arc<Prompt>, Error> {
        let found = match self.only {
            Some(only) => self.catalog.prompt_of(only, name).map_or(Lookup::Unknown, Lookup::Found),
            None => self.catalog.prompt(name),
        };
        self.found_or(found, Kind::UnknownPrompt, name, self.catalog.prompts())
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
        let resource = match self.only {
            Some(only) => self.catalog.resource_of(only, uri),
            None => self.catalog.resource(uri),
        };
        if let Some(resource) = resource {
            return Ok((&resource.source, &resource.permissions));
        }
        let template = match self.only {
            Some(only) => self.catalog.template_of(only, uri),
            None => self.catalog.template_for(uri),
        };
        if let Some(template) = template {
            return Ok((&template.source, &template.permissions));
        }
        let error = unknown(Kind::UnknownResource, uri).with_details(serde_json::json!({"uri": uri}));
        let seen = self.catalog.resources().iter().filter(|r| self.sees(&r.source, &r.permissions));
        Err(did_you_mean(error, uri, seen.map(|resource| resource.uri.as_str())))
    }

    fn source(&self, name: &SourceName) -> Result<Arc<dyn Source>, Error> {
        let gone = || Error::new(Kind::NotConnected, format!("source {name} is gone"));
        self.catalog.source(name).cloned().ok_or_else(gone)
    }

    fn subject(&self, thing: &impl Bare) -> String {
        match self.only {
            Some(_) => json::short(thing.raw_name()).into_owned(),
            None => thing.full_name().to_string(),
        }
    }

    fn sees(&self, source: &SourceName, permissions: &[String]) -> bool {
        self.only.is_none_or(|only| only == source) && self.principal.lacks(permissions).is_none()
    }

    fn found_or<T: Bare>(
        &self,
        found: Lookup<T>,
        kind: Kind,
        name: &str,
        all: &[Arc<T>],
    ) -> Result<Arc<T>, Error> {
        let seen = all.iter().filter(|thing| self.sees(thing.source(), thing.permissions()));
        match found {
            Lookup::Found(thing) => Ok(thing),
            Lookup::Ambiguous(_) => {
                let several: Vec<_> = seen.filter(|thing| thing.raw_name() == name).collect();
                match several.as_slice() {
                    [only] => Ok(Arc::clone(only)),
                    [] => Err(unknown(kind, name)),
                    several => {
                        let names: Vec<_> = several.iter().map(|thing| thing.full_name().as_str()).collect();
                        Err(Error::new(kind, format!("{} stands for several", json::short(name)))
                            .suggest(format!("say one of {}", names.join(", "))))
                    }
                }
            }
            Lookup::Unknown if self.only.is_some() => {
                Err(did_you_mean(unknown(kind, name), name, seen.map(|thing| thing.raw_name())))
            }
            Lookup::Unknown => {
                let names = seen.flat_map(|thing| [thing.full_name().as_str(), thing.raw_name()]);
                Err(did_you_mean(unknown(kind, name), name, names))
            }
        }
    }
}

fn unknown(kind: Kind, name: &str) -> Error {
    Error::new(kind, format!("{} {}", kind.as_str(), json::short(name)))
}

/// Adds the nearest of these names, if one is near enough to be meant.
fn did_you_mean<'a>(error: Error, name: &str, all: impl Iterator<Item = &'a str>) -> Error {
    // Comparing costs the product of the lengths, for every tool of the yard: a hostile name of a megabyte has no
    // near one, and a name of quite another length is no slip of the pen.
    if name.len() > LONGEST_COMPARED {
        return error;
    }
    let slack = 3 + name.len() / 4;
    let scored = all
        .filter(|candidate| candidate.len().abs_diff(name.len()) <= slack)
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate));
    match scored.max_by(|a, b| a.0.total_cmp(&b.0)) {
        Some((score, close)) if score > 0.8 => error.suggest(format!("did you mean {close}?")),
        _ => error,
    }
}

const LONGEST_COMPARED: usize = 256;
