//! Tools of one source with the same name and different versions. The newest has the name; older
//! ones can be requested by version.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::source_entries::{duplicate_name_message, parse_definition};
use crate::json::Object;
use crate::source::ToolOffer;
use crate::version;

/// All tools of a source with one name, newest first.
pub(super) struct ToolVersions<'a> {
    pub(super) name: String,
    pub(super) versions: Vec<(&'a ToolOffer, Object)>,
}

impl ToolOffer {
    pub(super) fn metadata_text(&self, key: &str) -> Option<&str> {
        self.metadata.get(key)?.as_str()
    }
}

/// Groups the tools of an offer in order, and returns those that had to be skipped. Only tools that
/// each declare a distinct version can share a name; otherwise the name would be ambiguous.
pub(super) fn group_versions(offers: &[ToolOffer]) -> (Vec<ToolVersions<'_>>, Vec<String>) {
    let mut families: Vec<ToolVersions<'_>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut problems = Vec::new();
    for offer in offers {
        let definition: &RawValue = &offer.definition;
        let (members, name) = match parse_definition(definition) {
            Ok(named) => named,
            Err(problem) => {
                problems.push(problem);
                continue;
            }
        };
        match places.get(&name).map(|place| &mut families[*place]) {
            None => {
                places.insert(name.clone(), families.len());
                families.push(ToolVersions { name, versions: vec![(offer, members)] });
            }
            Some(family) if family.accepts(offer) => family.versions.push((offer, members)),
            Some(family) => problems.push(duplicate_name_message(&family.name)),
        }
    }
    for family in &mut families {
        family.versions.sort_by(|(a, _), (b, _)| {
            let version = |offer: &ToolOffer| offer.metadata_text("version").unwrap_or_default().to_owned();
            version::compare(&version(b), &version(a))
        });
    }
    (families, problems)
}

impl ToolVersions<'_> {
    fn accepts(&self, offer: &ToolOffer) -> bool {
        let Some(version) = offer.metadata_text("version") else { return false };
        let other = |known: &str| version::compare(known, version).is_ne();
        self.versions.iter().all(|(known, _)| known.metadata_text("version").is_some_and(other))
    }

    /// Returns the version that declares that it replaces the one at this index.
    pub(super) fn deprecated_by(&self, index: usize) -> Option<String> {
        let version = self.versions[index].0.metadata_text("version")?;
        let newer = self.versions[..index].iter().map(|(offer, _)| offer);
        let by = newer
            .filter(|offer| offer.metadata_text("deprecates") == Some(version))
            .find_map(|o| o.metadata_text("version"));
        by.map(ToOwned::to_owned)
    }
}
