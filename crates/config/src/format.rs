//! Configuration formats: Toolyard's own and those of other programs. A format is detected by the
//! content of the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::document::Syntax;
use super::expand::ExpansionRule;
use super::keys::ServerKeys;
use super::tree::decode::{DecodeReport, decode};
use super::tree::{ConfigKey, ConfigNode};

mod codex;
mod json;

/// The format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigFormat {
    Toolyard,
    /// Codex: `[mcp_servers.NAME]`.
    Codex,
    /// `mcpServers`: Claude, Cursor, Windsurf, Gemini and most other clients.
    McpServers,
    /// VS Code: `servers`, with `inputs`.
    VsCode,
}

/// Detects the syntax of a file by its extension, or else by its first character.
pub(super) fn detect_syntax(path: &Path, text: &str) -> Syntax {
    let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
    match extension.as_deref() {
        Some("toml") => Syntax::Toml,
        Some("json" | "jsonc" | "json5") => Syntax::Json,
        _ if text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '/']) => Syntax::Json,
        _ => Syntax::Toml,
    }
}

/// Detects the format of a file. Returns `None` for JSON without servers.
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
    /// Returns the server tables of a file in ascending order of precedence.
    pub(super) fn tables<'a>(self, root: &'a ConfigNode, folder: &Path) -> Vec<&'a ConfigNode> {
        let table = match self {
            Self::Toolyard => root.get("servers"),
            Self::Codex => root.get("mcp_servers"),
            Self::McpServers => root.get("mcpServers"),
            Self::VsCode => vs_code(root).get("servers"),
        };
        // `~/.claude.json` also contains the servers of individual projects.
        let project = || root.get("projects")?.get(folder.to_str()?)?.get("mcpServers");
        let own = if self == Self::McpServers { project() } else { None };
        table.into_iter().chain(own).collect()
    }

    /// Returns which references are expanded in this format.
    pub(super) fn rule(self) -> ExpansionRule {
        match self {
            Self::Toolyard => ExpansionRule::Variables,
            Self::Codex => ExpansionRule::Literal,
            Self::McpServers | Self::VsCode => ExpansionRule::Editor,
        }
    }

    /// Returns the inputs that the file declares, with their defaults.
    pub(super) fn inputs(self, root: &ConfigNode) -> BTreeMap<String, Option<String>> {
        match self {
            Self::VsCode => vs_code(root).get("inputs").map(json::inputs).unwrap_or_default(),
            _ => BTreeMap::new(),
        }
    }

    /// Decodes one server into Toolyard's own keys.
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

    /// Whether a key is valid in this format and irrelevant to Toolyard.
    fn is_ignored_key(self, key: &ConfigKey) -> bool {
        let known: &[&str] = match self {
            Self::Toolyard => &[],
            Self::Codex => &codex::PASSED_OVER,
            Self::McpServers | Self::VsCode => &json::PASSED_OVER,
        };
        known.contains(&key.name.as_str())
    }
}

/// Returns the project directory of a file: the directory that contains it, or the parent of an
/// editor's directory such as `.vscode`.
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

/// Returns the table with `servers`: the root of `mcp.json`, or the key `mcp` of VS Code's
/// settings.
fn vs_code(root: &ConfigNode) -> &ConfigNode {
    match root.get("mcp") {
        Some(below) if below.is_table() && root.get("servers").is_none() => below,
        _ => root,
    }
}
