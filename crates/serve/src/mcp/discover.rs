//! `server/discover`: identity and capabilities of the server.

use serde_json::json;
use toolyard_hub::json::{from_text, to_raw};
use toolyard_wire::{Era, RawJson, Version};

use super::response::{CachePolicy, cacheable};
use super::{Identity, McpFront};

pub(super) fn info(identity: &Identity) -> RawJson {
    let mut info = json!({"name": identity.name});
    if let Some(title) = &identity.title {
        info["title"] = title.clone().into();
    }
    info["version"] = identity.version.clone().into();
    to_raw(&info)
}

/// Returns the capabilities. A source added later may offer any of them, so all are declared from
/// the start.
pub(super) fn capabilities(version: Version) -> RawJson {
    let mut capabilities = json!({
        "tools": {"listChanged": true},
        "resources": {"subscribe": true, "listChanged": true},
        "prompts": {"listChanged": true},
        "logging": {},
    });
    if version >= Version::V2025_03_26 {
        capabilities["completions"] = json!({});
    }
    to_raw(&capabilities)
}

impl McpFront {
    pub(super) fn discover(&self) -> RawJson {
        let versions: Vec<&str> = Version::ALL
            .into_iter()
            .rev()
            .filter(|version| version.era() == Era::Modern)
            .map(Version::as_str)
            .collect();
        let mut text = format!(
            r#"{{"supportedVersions":{},"capabilities":{}"#,
            to_raw(&versions),
            capabilities(Version::V2026_07_28)
        );
        if let Some(instructions) = &self.settings.identity.instructions {
            text.push_str(&format!(r#","instructions":{}"#, to_raw(instructions)));
        }
        text.push('}');
        cacheable(&self.info, &from_text(text), CachePolicy::public(self.settings.list_ttl))
    }
}
