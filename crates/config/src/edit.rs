//! Edits `toolyard.toml` and preserves comments, order and blank lines.

use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, Value, value};
use toolyard_hub::printable::clean_name;

use super::atomic::{lock_folder, write_atomically};

/// Why a file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigEditError {
    #[error("cannot {action} {}: {error}", path.display())]
    Io { action: &'static str, path: PathBuf, error: io::Error },
    #[error("{} is not valid TOML: {message}", path.display())]
    Syntax { path: PathBuf, message: String },
    #[error("`servers` is not a table in this file")]
    ServersNotTable,
    #[error("`imports` is not a list in this file")]
    ImportsNotList,
    #[error("server `{name}` already exists in {}", path.display())]
    ServerExists { name: String, path: PathBuf },
    #[error("server `{}` does not exist in {}", clean_name(name), path.display())]
    UnknownServer {
        name: String,
        path: PathBuf,
        /// The servers in the file.
        known: Vec<String>,
    },
}

/// A server to be written to a file. Variable references are not expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewServer {
    Url {
        url: String,
        /// Value of the key `type`.
        transport: Option<String>,
        headers: Vec<(String, String)>,
    },
    Command {
        program: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
        cwd: Option<String>,
    },
}

impl NewServer {
    /// Makes a program with a relative path independent of the current directory. If `file` is in
    /// `folder`, this sets `cwd`, so that the directory can be moved and shared. Otherwise the path
    /// becomes absolute.
    pub fn pin_program(&mut self, file: &Path, folder: &Path) {
        let Self::Command { program, cwd, .. } = self else { return };
        let here = folder.join(&*program);
        let is_relative_file = program.contains('/') && Path::new(program).is_relative() && here.is_file();
        if cwd.is_some() || !is_relative_file || program.contains("${") {
            return;
        }
        if file.parent() == Some(folder) {
            *cwd = Some(".".to_owned());
        } else if let Some(whole) = std::path::absolute(&here).ok().as_deref().and_then(Path::to_str) {
            *program = whole.to_owned();
        }
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        let inline = |pairs: &[(String, String)]| value(pairs.iter().cloned().collect::<InlineTable>());
        match self {
            Self::Url { url, transport, headers } => {
                table.insert("url", value(url));
                if let Some(transport) = transport {
                    table.insert("type", value(transport));
                }
                if !headers.is_empty() {
                    table.insert("headers", inline(headers));
                }
            }
            Self::Command { program, args, env, cwd } => {
                table.insert("command", value(program));
                if !args.is_empty() {
                    table.insert("args", value(args.iter().collect::<Array>()));
                }
                if !env.is_empty() {
                    table.insert("env", inline(env));
                }
                if let Some(cwd) = cwd {
                    table.insert("cwd", value(cwd));
                }
            }
        }
        table
    }
}

/// Adds a server to the file, and creates the file if it does not exist.
pub fn add_server(path: &Path, name: &str, server: &NewServer) -> Result<(), ConfigEditError> {
    edit(path, |document| {
        let servers = servers(document)?;
        if servers.contains_key(name) {
            return Err(ConfigEditError::ServerExists { name: name.to_owned(), path: path.to_owned() });
        }
        servers.insert(name, Item::Table(server.table()));
        Ok(())
    })
}

/// Removes a server.
pub fn remove_server(path: &Path, name: &str) -> Result<(), ConfigEditError> {
    edit(path, |document| {
        let servers = servers(document)?;
        servers.remove(name).map(drop).ok_or_else(|| unknown(name, servers, path))
    })
}

/// Sets the key `enabled` of a server.
pub fn set_server_enabled(path: &Path, name: &str, enabled: bool) -> Result<(), ConfigEditError> {
    edit(path, |document| {
        let servers = servers(document)?;
        match servers.get_mut(name).and_then(Item::as_table_like_mut) {
            Some(server) => {
                set(server, "enabled", enabled);
                Ok(())
            }
            None => Err(unknown(name, servers, path)),
        }
    })
}

/// Adds files to `imports`.
pub fn add_imports(path: &Path, imports: &[String]) -> Result<(), ConfigEditError> {
    edit(path, |document| {
        let list = document.entry("imports").or_insert_with(|| value(Array::new()));
        let list = list.as_array_mut().ok_or(ConfigEditError::ImportsNotList)?;
        list.extend(imports);
        Ok(())
    })
}

/// Returns the entries of `imports` as written in the file. The list is empty if the file cannot be
/// read.
pub fn read_imports(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let document: DocumentMut = text.parse().unwrap_or_default();
    let list = document.get("imports").and_then(Item::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Changes a file while holding the lock of its directory.
fn edit(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), ConfigEditError>,
) -> Result<(), ConfigEditError> {
    let cannot = |action: &'static str| {
        move |error: io::Error| ConfigEditError::Io { action, path: path.to_owned(), error }
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(cannot("create the directory of"))?;
    }
    let _lock = lock_folder(path).map_err(cannot("change"))?;
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(cannot("read")(error)),
    };
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        ConfigEditError::Syntax { path: path.to_owned(), message: error.message().to_owned() }
    })?;
    change(&mut document)?;
    write_atomically(path, document.to_string().as_bytes()).map_err(cannot("write"))
}

fn servers(document: &mut DocumentMut) -> Result<&mut dyn TableLike, ConfigEditError> {
    let item = document.entry("servers").or_insert_with(|| {
        let mut table = Table::new();
        // Only `[servers.name]` is written, without a `[servers]` header.
        table.set_implicit(true);
        Item::Table(table)
    });
    item.as_table_like_mut().ok_or(ConfigEditError::ServersNotTable)
}

/// Sets a key and keeps the comment after its value.
fn set(table: &mut dyn TableLike, key: &str, to: bool) {
    let mut new = Value::from(to);
    if let Some(old) = table.get(key).and_then(Item::as_value) {
        *new.decor_mut() = old.decor().clone();
    }
    table.insert(key, Item::Value(new));
}

fn unknown(name: &str, servers: &dyn TableLike, path: &Path) -> ConfigEditError {
    let known = servers.iter().map(|(name, _)| name.to_owned()).collect();
    ConfigEditError::UnknownServer { name: name.to_owned(), path: path.to_owned(), known }
}

#[cfg(test)]
mod tests {
    use toolyard_testkit::harness::Scratch;

    use super::{NewServer, add_server, remove_server, set_server_enabled};

    #[test]
    fn comments_order_and_blanks_stay() {
        let text = "# mine\nlisten = \"127.0.0.1:1\"  # here\n\n[servers.a] # the first\ncommand = \"x\"\nenabled = true # for now\n\n# the end\n";
        let scratch = Scratch::new();
        let path = scratch.path("toolyard.toml");
        std::fs::write(&path, text).unwrap();
        set_server_enabled(&path, "a", false).unwrap();
        let new = NewServer::Url { url: "http://b".to_owned(), transport: None, headers: Vec::new() };
        add_server(&path, "b", &new).unwrap();
        let expected = text
            .replace("enabled = true", "enabled = false")
            .replace("\n# the end\n", "\n[servers.b]\nurl = \"http://b\"\n\n# the end\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), expected);
    }

    #[test]
    fn a_change_that_fails_leaves_the_file_alone() {
        let scratch = Scratch::new();
        let path = scratch.path("toolyard.toml");
        // The first change is refused in a file without a `servers` table, the second in a file
        // with invalid TOML.
        for text in ["a = 1\n", "a = \n"] {
            std::fs::write(&path, text).unwrap();
            remove_server(&path, "b").unwrap_err();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }
}
