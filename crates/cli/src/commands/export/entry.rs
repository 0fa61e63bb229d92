//! A server as it is written in toolyard.toml, with its variables not expanded, and the variable
//! syntax of other applications.

use std::path::Path;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

use crate::error::CommandError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum ExportEntry {
    Command { command: String, args: Vec<String>, env: Vec<(String, String)>, cwd: Option<String> },
    Url { url: String, headers: Vec<(String, String)>, sse: bool },
}

/// How an application refers to the variable `NAME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableSyntax {
    /// `${NAME}`
    Plain,
    /// `${env:NAME}`
    WithEnv,
}

impl VariableSyntax {
    /// Converts a value of toolyard.toml to the syntax of this application. A default value is lost
    /// if the application does not support it.
    pub(super) fn convert(self, text: &str) -> String {
        if self == Self::Plain {
            return text.replace("${env:", "${");
        }
        let mut written = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            written.push_str(before);
            let Some((name, behind)) = after.split_once('}') else {
                written.push_str("${");
                rest = after;
                continue;
            };
            let name = name.strip_prefix("env:").unwrap_or(name);
            let name = name.split(":-").next().unwrap_or(name);
            written.push_str(&format!("${{env:{name}}}"));
            rest = behind;
        }
        written + rest
    }
}

/// Returns the enabled servers of a file.
pub(super) fn read_entries(path: &Path) -> Result<Vec<(String, ExportEntry)>, CommandError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CommandError::usage(format!("cannot read {}: {error}", path.display())))?;
    parse_entries(&text).map_err(|why| CommandError::usage(format!("{}: {why}", path.display())))
}

pub(super) fn parse_entries(text: &str) -> Result<Vec<(String, ExportEntry)>, String> {
    let document: DocumentMut =
        text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    let servers = document.get("servers").and_then(Item::as_table_like);
    let servers = servers.into_iter().flat_map(|servers| servers.iter());
    let on = |server: &dyn TableLike| server.get("enabled").and_then(Item::as_bool) != Some(false);
    let tables = servers.filter_map(|(name, item)| Some((name, item.as_table_like()?)));
    Ok(tables
        .filter(|(_, server)| on(*server))
        .filter_map(|(name, server)| Some((name.to_owned(), parse_entry(server)?)))
        .collect())
}

fn parse_entry(server: &dyn TableLike) -> Option<ExportEntry> {
    let text = |key: &str| server.get(key).and_then(scalar_text);
    if let Some(url) = text("url") {
        let mut headers = pairs(server, "headers");
        if let Some(variable) = text("bearer_token_env_var") {
            headers.push(("Authorization".to_owned(), format!("Bearer ${{{variable}}}")));
        }
        return Some(ExportEntry::Url { url, headers, sse: text("type").as_deref() == Some("sse") });
    }
    let args = server.get("args").and_then(Item::as_array).into_iter().flatten();
    let args = args.filter_map(|arg| scalar_text(&Item::Value(arg.clone()))).collect();
    Some(ExportEntry::Command {
        command: text("command")?,
        args,
        env: pairs(server, "env"),
        cwd: text("cwd"),
    })
}

fn pairs(server: &dyn TableLike, key: &str) -> Vec<(String, String)> {
    let table = server.get(key).and_then(Item::as_table_like).into_iter().flat_map(|table| table.iter());
    table.filter_map(|(name, item)| Some((name.to_owned(), scalar_text(item)?))).collect()
}

/// Returns a string as it is, and a number or a boolean as text.
fn scalar_text(item: &Item) -> Option<String> {
    let text = item.as_str().map(ToOwned::to_owned);
    let number = || item.as_integer().map(|number| number.to_string());
    text.or_else(number).or_else(|| item.as_bool().map(|flag| flag.to_string()))
}

/// Renders the configuration of Codex, which does not expand variables but accepts the names of
/// some.
pub(super) fn render_codex(entries: &[(String, ExportEntry)]) -> String {
    let mut servers = Table::new();
    servers.set_implicit(true);
    for (name, entry) in entries {
        servers.insert(name, Item::Table(codex_entry(entry)));
    }
    let mut document = DocumentMut::new();
    document.insert("mcp_servers", Item::Table(servers));
    document.to_string()
}

fn codex_entry(entry: &ExportEntry) -> Table {
    let mut table = Table::new();
    let put = |table: &mut Table, key: &str, pairs: Vec<(String, String)>| {
        if !pairs.is_empty() {
            table.insert(key, value(pairs.into_iter().collect::<InlineTable>()));
        }
    };
    match entry {
        ExportEntry::Command { command, args, env, cwd } => {
            table.insert("command", value(command));
            table.insert("args", value(args.iter().collect::<Array>()));
            // A variable that is only passed on is listed by name. Others are written literally.
            let (named, literal): (Vec<_>, Vec<_>) =
                env.iter().cloned().partition(|(name, value)| variable(value) == Some(name));
            put(&mut table, "env", literal);
            if !named.is_empty() {
                table.insert("env_vars", value(named.iter().map(|(name, _)| name).collect::<Array>()));
            }
            if let Some(cwd) = cwd {
                table.insert("cwd", value(cwd));
            }
        }
        ExportEntry::Url { url, headers, .. } => {
            table.insert("url", value(url));
            let (mut literal, mut named) = (Vec::new(), Vec::new());
            for (name, text) in headers {
                match (text.strip_prefix("Bearer ").and_then(variable), variable(text)) {
                    (Some(bearer), _) if name.eq_ignore_ascii_case("authorization") => {
                        table.insert("bearer_token_env_var", value(bearer));
                    }
                    (_, Some(variable)) => named.push((name.clone(), variable.to_owned())),
                    _ => literal.push((name.clone(), text.clone())),
                }
            }
            put(&mut table, "http_headers", literal);
            put(&mut table, "env_http_headers", named);
        }
    }
    table
}

/// Returns the name of the variable if the text consists of exactly one.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    let name = name.strip_prefix("env:").unwrap_or(name);
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_').then_some(name)
}
