//! Other applications that use MCP servers, and where each stores its configuration. The config
//! crate knows the formats.

use std::path::PathBuf;

use crate::args::ClientApp;
use toolyard_config::Environment;

impl ClientApp {
    pub(crate) const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Codex,
        Self::Gemini,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
        }
    }

    /// The files that list its servers: those of the user first, then those of the current
    /// directory.
    pub(crate) fn files(self, around: &Environment) -> Vec<PathBuf> {
        let home = |file: &str| around.home().map(|home| home.join(file));
        let config = |file: &str| around.config_home().map(|home| home.join(file));
        let in_project = |file: &str| Some(around.folder().join(file));
        let mac = |file: &str| home(&format!("Library/Application Support/{file}"));
        let files = match self {
            Self::ClaudeCode => vec![home(".claude.json"), in_project(".mcp.json")],
            Self::ClaudeDesktop => {
                vec![config("Claude/claude_desktop_config.json"), mac("Claude/claude_desktop_config.json")]
            }
            Self::Cursor => vec![home(".cursor/mcp.json"), in_project(".cursor/mcp.json")],
            Self::VsCode => {
                vec![config("Code/User/mcp.json"), mac("Code/User/mcp.json"), in_project(".vscode/mcp.json")]
            }
            Self::Windsurf => vec![home(".codeium/windsurf/mcp_config.json")],
            Self::Codex => {
                let moved = around.variable("CODEX_HOME").filter(|home| !home.is_empty());
                let moved = moved.map(|home| PathBuf::from(home).join("config.toml"));
                vec![moved.or_else(|| home(".codex/config.toml")), in_project(".codex/config.toml")]
            }
            Self::Gemini => vec![home(".gemini/settings.json"), in_project(".gemini/settings.json")],
        };
        let mut known: Vec<PathBuf> = Vec::new();
        for file in files.into_iter().flatten() {
            // In the home directory, both lists contain the same file.
            if !known.contains(&file) {
                known.push(file);
            }
        }
        known
    }

    /// Where exported text goes, as users write the path.
    pub(crate) fn export_file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".mcp.json",
            Self::ClaudeDesktop => "claude_desktop_config.json",
            Self::Cursor => "~/.cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Windsurf => "~/.codeium/windsurf/mcp_config.json",
            Self::Codex => "~/.codex/config.toml",
            Self::Gemini => "~/.gemini/settings.json",
        }
    }
}
