//! What a converted document offers to the yard, and the warnings about it.

use std::collections::BTreeSet;

use reqwest::Url;
use serde_json::Map;
use toolyard_hub::{Glob, SourceOffer, ToolOffer};

use crate::base_url::{NAME_IT, SAY_WHERE, resolve_base_url};
use crate::convert::Conversion;
use crate::document::DocumentLocation;
use crate::host_policy::AllowedHosts;
use crate::operation::{DiagnosticSeverity, Operation};
use crate::settings::DocumentSettings;

/// Maximum number of warnings; the rest are only counted. `toolyard openapi` shows all of them.
const MOST: usize = 20;
/// Prefix of the warning about tools that cannot be called.
pub(super) const UNCALLABLE: &str = "some tools cannot be called";

/// Returns the hosts that the operator has named: in the configuration, or as the document's own
/// URL.
pub(super) fn allowed_hosts(settings: &DocumentSettings) -> AllowedHosts {
    let document = match &settings.location {
        DocumentLocation::Url(url) => Url::parse(url).ok(),
        DocumentLocation::File(_) | DocumentLocation::Text { .. } => None,
    };
    let base = settings.base_url.as_deref().and_then(|base| Url::parse(base).ok());
    let credentials = settings.auth.schemes.values();
    let tokens: Vec<Url> = credentials
        .filter_map(|credential| match credential {
            crate::settings::ApiCredential::Client(client) => client.token_url.as_deref(),
            _ => None,
        })
        .filter_map(|url| Url::parse(url).ok())
        .collect();
    AllowedHosts::new(document.iter().chain(&base).chain(&tokens), &settings.allow_hosts)
}

/// Returns the tools that the configuration selects, with their permissions.
pub(super) fn build_offer(operations: &[Operation], settings: &DocumentSettings) -> SourceOffer {
    let tools = operations.iter().filter_map(|operation| {
        let name = operation.name.as_str();
        let any = |globs: &[String]| globs.iter().any(|pattern| Glob::from(pattern.as_str()).matches(name));
        let is_enabled = settings.enabled_tools.as_deref().is_none_or(any);
        if !is_enabled || any(&settings.disabled_tools) {
            return None;
        }
        let more = settings
            .tool_permissions
            .iter()
            .filter(|(pattern, _)| Glob::from(pattern.as_str()).matches(name));
        let more = more.flat_map(|(_, permissions)| permissions.iter());
        Some(ToolOffer {
            definition: operation.definition.clone(),
            permissions: settings.permissions.iter().chain(more).cloned().collect(),
            metadata: Map::new(),
            hooks: Vec::new(),
            listing: settings.listing,
        })
    });
    SourceOffer { tools: tools.collect(), ..SourceOffer::default() }
}

/// Returns the warnings for the status of the source.
pub(super) fn served_warnings(
    conversion: &Conversion,
    settings: &DocumentSettings,
    document: Option<&Url>,
    named: &AllowedHosts,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let known: BTreeSet<&str> = conversion.schemes.iter().map(|scheme| scheme.name.as_str()).collect();
    for name in settings.auth.schemes.keys().filter(|name| !known.contains(name.as_str())) {
        let there: Vec<&str> = known.iter().copied().collect();
        let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
        warnings.push(format!("auth.{name} matches no security scheme of the document (available: {there})"));
    }
    let mut places = BTreeSet::new();
    for operation in &conversion.operations {
        let problem = match resolve_base_url(operation, settings, document) {
            Ok(url) => named.check_access(&url).err().map(|error| format!("{error}; {NAME_IT}")),
            Err(nowhere) => Some(format!("{nowhere}; {SAY_WHERE}")),
        };
        places.extend(problem);
    }
    warnings.extend(places.into_iter().map(|problem| format!("{UNCALLABLE}: {problem}")));
    let mut found: Vec<_> =
        conversion.diagnostics.iter().filter(|found| found.severity >= DiagnosticSeverity::Warning).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.severity));
    warnings.extend(found.iter().map(|found| match &found.operation {
        Some(operation) => format!("{operation}: {}", found.message),
        None => found.message.clone(),
    }));
    if warnings.len() > MOST {
        let more = warnings.len() - MOST;
        warnings.truncate(MOST);
        warnings.push(format!("{more} more warnings; run `toolyard openapi` to see all of them"));
    }
    warnings
}
