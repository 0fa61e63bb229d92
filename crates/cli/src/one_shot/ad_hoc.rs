//! A server that is not in a configuration: a URL or a command from the command line.

use toolyard_upstream::{CommandSettings, EnvInheritance};

use super::{
    AdHocServerArgs, BTreeMap, CommandError, Secret, ServerSettings, SourceName, TransportSettings, UrlKind,
    UrlSettings,
};

impl AdHocServerArgs {
    pub(crate) fn is_empty(&self) -> bool {
        self.url.is_none() && self.command.is_empty()
    }
}

/// Returns the server given on the command line, if any.
pub(crate) fn server_settings(other: &AdHocServerArgs) -> Result<Option<ServerSettings>, CommandError> {
    if let Some(url) = &other.url {
        if !toolyard_config::is_http_url(url) {
            return Err(CommandError::usage(format!("`{url}` is not an http:// or https:// URL")));
        }
        let mut headers = BTreeMap::new();
        for header in &other.header {
            let (name, value) = toolyard_config::parse_header(header).map_err(CommandError::usage)?;
            headers.insert(name, Secret::new(value));
        }
        let name = SourceName::new(name_from_url(url));
        let transport = TransportSettings::Url(UrlSettings { url: url.clone(), headers, kind: UrlKind::Any });
        return Ok(Some(ServerSettings::new(name, transport)));
    }
    if other.command.is_empty() {
        return Ok(None);
    }
    let name = SourceName::new(name_from_command(&other.command));
    let mut words = other.command.iter().peekable();
    let mut env = BTreeMap::new();
    while let Some((name, value)) = words.peek().and_then(|word| parse_assignment(word)) {
        env.insert(name.to_owned(), Secret::new(value));
        words.next();
    }
    let Some(program) = words.next().cloned() else {
        return Err(CommandError::usage("no command after the environment variables"));
    };
    let (args, inherit) = (words.cloned().collect(), EnvInheritance::AllowList);
    let command = CommandSettings { program, args, env, cwd: None, inherit };
    Ok(Some(ServerSettings::new(name, TransportSettings::Command(command))))
}

/// Parses `NAME=value` before a command, like a shell.
fn parse_assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let is_name = starts && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some((name, value))
}

fn name_from_url(url: &str) -> String {
    let host = reqwest::Url::parse(url).ok().and_then(|url| url.host_str().map(ToOwned::to_owned));
    host.unwrap_or_else(|| "server".to_owned())
}

/// Programs that start other programs. The server is named after the program that they start.
pub(crate) const LAUNCHERS: [&str; 14] = [
    "npx", "uvx", "bunx", "pnpx", "node", "bun", "deno", "python", "python3", "uv", "env", "docker", "sh",
    "run",
];

/// Names of files and directories that do not describe their content.
const GENERIC: [&str; 7] = ["index", "main", "dist", "build", "src", "bin", ""];

fn name_from_command(words: &[String]) -> String {
    let mut named =
        words.iter().filter(|word| !word.starts_with('-') && !word.contains(['=', ' '])).filter_map(|word| {
            let mut parts = word.rsplit('/').map(|part| {
                // A scope, a version or an extension is not part of the name.
                let name = part.split('@').find(|part| !part.is_empty()).unwrap_or(part);
                name.split('.').next().unwrap_or(name)
            });
            parts.find(|name| !GENERIC.contains(name)).filter(|name| !LAUNCHERS.contains(name))
        });
    named.next().unwrap_or("server").to_owned()
}

#[cfg(test)]
mod tests {
    use super::{name_from_command, name_from_url};

    #[test]
    fn a_server_is_named_after_what_is_started() {
        for (command, name) in [
            ("npx -y @modelcontextprotocol/server-everything", "server-everything"),
            ("npx -y @scope/thing@1.2.3 --flag", "thing"),
            ("uvx mcp-server-time --local-timezone UTC", "mcp-server-time"),
            ("/usr/bin/python3 -m server.py", "server"),
            ("env A=b ./target/debug/my-server stdio", "my-server"),
            ("node", "server"),
            ("node /a/server-everything/dist/index.js stdio", "server-everything"),
        ] {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_from_command(&words), name, "{command}");
        }
        assert_eq!(name_from_url("https://mcp.example.com:8443/mcp?x=1"), "mcp.example.com");
    }
}
