//! The forms in which servers are written down, ours and other people's: told apart by what is in the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::document::Syntax;
use super::expand::ExpansionRule;
use super::keys::ServerKeys;
use super::tree::decode::{DecodeReport, decode};
use super::tree::{ConfigKey, ConfigNode};

mod codex;
mod json;

/// Who wrote the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigFormat {
    Toolyard,
    /// Codex: `[mcp_servers.NAME]`.
    Codex,
    /// `mcpServers`: Claude, Cursor, Windsurf, Gemini and most others.
    McpServers,
    /// VS Code: `servers`, with `inputs`.
    VsCode,
}

/// What a file is written in, by its name, else by how it begins.
pub(super) fn detect_syntax(path: &Path, text: &str) -> Syntax {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("toml") => Syntax::Toml,
        Some("json" | "jsonc" | "json5") => Syntax::Json,
        _ if text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '/']) => Syntax::Json,
        _ => Syntax::Toml,
    }
}

/// The form of a file; nothing if it is JSON that names no servers.
pub(super) fn detect_format(syntax: Syntax, root: &ConfigNode) -> Option<ConfigFormat> {
    match syntax {
        Syntax::Toml if root.get("mcp_servers").is_some() && root.get("servers").is_none() => {
            Some(ConfigFormat::Codex)
        }
        Syntax::Toml => Some(ConfigFormat::Toolyard),
        Syntax::Json if root.get("mcpServers").is_some() => Some(ConfigFormat::McpServers),
        Syntax::Json if vs_code(root).get("servers").is_some() => Some(ConfigFormat::VsCode),
        Syntax::Json => None,
    }
}

impl ConfigFormat {
    /// The tables of servers in a file, the ones that win last.
    pub(super) fn tables<'a>(self, root: &'a ConfigNode, folder: &Path) -> Vec<&'a ConfigNode> {
        let table = match self {
            Self::Toolyard => root.get("servers"),
            Self::Codex => root.get("mcp_servers"),
            Self::McpServers => root.get("mcpServers"),
            Self::VsCode => vs_code(root).get("servers"),
        };
        // Claude keeps the servers of single projects in the file for all of them.
        let project = || root.get("projects")?.get(folder.to_str()?)?.get("mcpServers");
        let own = if self == Self::McpServers { project() } else { None };
        table.into_iter().chain(own).collect()
    }

    /// What texts may refer to.
    pub(super) fn rule(self) -> ExpansionRule {
        match self {
            Self::Toolyard => ExpansionRule::Variables,
            Self::Codex => ExpansionRule::Literal,
            Self::McpServers | Self::VsCode => ExpansionRule::Editor,
        }
    }

    /// Inputs that the file declares, with the default of those that have one.
    pub(super) fn inputs(self, root: &ConfigNode) -> BTreeMap<String, Option<String>> {
        match self {
            Self::VsCode => vs_code(root).get("inputs").map(json::inputs).unwrap_or_default(),
            _ => BTreeMap::new(),
        }
    }

    /// The keys of one server, in our words.
    pub(super) fn decode_server(self, node: &ConfigNode) -> (ServerKeys, DecodeReport) {
        let (keys, mut findings) = match self {
            Self::Toolyard => decode(node, &[]),
            Self::Codex => {
                let (keys, findings) = decode(node, &[]);
                (keys.map(codex::CodexKeys::into_server_keys), findings)
            }
            Self::McpServers | Self::VsCode => {
                let (keys, findings) = decode(node, &[]);
                (keys.map(json::JsonKeys::into_server_keys), findings)
            }
        };
        findings.unknown.retain(|unknown| !self.is_ignored_key(&unknown.key));
        (keys.unwrap_or_default(), findings)
    }

    /// Keys that are right where they are and that we have no use for.
    fn is_ignored_key(self, key: &ConfigKey) -> bool {
        let known: &[&str] = match self {
            Self::Toolyard => &[],
            Self::Codex => &codex::PASSED_OVER,
            Self::McpServers | Self::VsCode => &json::PASSED_OVER,
        };
        known.contains(&key.name.as_str())
    }
}

/// The folder that a file is about: the one it is in, or the one around an editor's own folder.
pub(super) fn project_folder(path: &Path, started_in: &Path) -> PathBuf {
    let path = started_in.join(path);
    let folder = path.parent().unwrap_or(started_in);
    let editors = [".vscode", ".cursor", ".gemini", ".windsurf", ".codex", ".claude"];
    let inner = folder.file_name().and_then(|name| name.to_str()).is_some_and(|name| editors.contains(&name));
    match folder.parent() {
        Some(outer) if inner => outer.to_owned(),
        _ => folder.to_owned(),
    }
}

/// VS Code's own file, or its settings, where the same is one level down.
fn vs_code(root: &ConfigNode) -> &ConfigNode {
    match root.get("mcp") {
        Some(below) if below.is_table() && root.get("servers").is_none() => below,
        _ => root,
    }
}
