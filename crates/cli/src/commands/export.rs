//! `toolyard export`: prints configuration for other applications, so that they use this yard or
//! its servers.

use serde_json::{Map, Value, json};

use self::entry::{ExportEntry, VariableSyntax};
use crate::Exit;
use crate::args::{ClientApp, ExportArgs};
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::terminal::{StdoutWriter, print_note};
use toolyard_config::Environment;

mod entry;

pub(crate) fn run(args: &ExportArgs) -> Result<Exit, CommandError> {
    let around = process_environment();
    let file = match &args.config {
        Some(file) => Some(around.folder().join(file)),
        None => toolyard_config::default_config_file(&around),
    };
    let entries: Vec<(String, ExportEntry)> = match (args.servers, &args.http) {
        (true, _) => {
            let file =
                file.ok_or_else(|| CommandError::usage("no toolyard.toml found to export servers from"))?;
            entry::read_entries(&file)?
        }
        (false, Some(url)) => {
            if !toolyard_config::is_http_url(url) {
                return Err(CommandError::usage(format!("`{url}` is not an http:// or https:// URL")));
            }
            let headers = vec![("Authorization".to_owned(), "Bearer ${TOOLYARD_TOKEN}".to_owned())];
            vec![("toolyard".to_owned(), ExportEntry::Url { url: url.clone(), headers, sse: false })]
        }
        (false, None) => vec![("toolyard".to_owned(), yard_entry(file.as_deref(), &around))],
    };
    if entries.is_empty() {
        print_note("no servers to export");
        return Ok(Exit::Success);
    }
    let programs = args.program.map_or_else(|| ClientApp::ALL.to_vec(), |program| vec![program]);
    let texts: Vec<(ClientApp, String)> =
        programs.into_iter().map(|program| (program, render_for_app(program, &entries))).collect();
    let mut out = StdoutWriter::new();
    if args.json {
        let one = |(program, text): &(ClientApp, String)| json!({"program": program.as_str(), "file": program.export_file(), "text": text});
        let all: Vec<Value> = texts.iter().map(one).collect();
        out.write_line(&json!(all).to_string())?;
    } else if let [(program, text)] = texts.as_slice() {
        // Standard output contains only what belongs in the file, so that it can be redirected
        // there.
        print_note(&format!("configuration for {}: add it to {}", program.as_str(), program.export_file()));
        out.write_bytes(text.as_bytes())?;
    } else {
        for (program, text) in &texts {
            out.write_line(&format!("# {}: {}", program.as_str(), program.export_file()))?;
            out.write_line(text)?;
        }
    }
    out.flush()?;
    Ok(Exit::Success)
}

/// Returns this yard as a server that other applications start.
fn yard_entry(file: Option<&std::path::Path>, around: &Environment) -> ExportEntry {
    let mut args = vec!["stdio".to_owned()];
    // Applications start it in another directory, where the file would not be found by default.
    if let Some(file) = file.filter(|file| around.config_home().is_none_or(|home| !file.starts_with(home))) {
        args.extend(["--config".to_owned(), file.display().to_string()]);
    }
    ExportEntry::Command { command: "toolyard".to_owned(), args, env: Vec::new(), cwd: None }
}

fn render_for_app(program: ClientApp, entries: &[(String, ExportEntry)]) -> String {
    if program == ClientApp::Codex {
        return entry::render_codex(entries);
    }
    let variables = match program {
        ClientApp::Cursor | ClientApp::VsCode | ClientApp::Windsurf => VariableSyntax::WithEnv,
        _ => VariableSyntax::Plain,
    };
    let mut servers = Map::new();
    for (name, entry) in entries {
        servers.insert(name.clone(), json_entry(program, entry, variables));
    }
    let key = if program == ClientApp::VsCode { "servers" } else { "mcpServers" };
    let text = serde_json::to_string_pretty(&json!({key: servers})).unwrap_or_default();
    format!("{text}\n")
}

fn json_entry(program: ClientApp, entry: &ExportEntry, variables: VariableSyntax) -> Value {
    let mut members = Map::new();
    let mut put = |key: &str, value: Value| drop(members.insert(key.to_owned(), value));
    let table = |pairs: &[(String, String)]| -> Value {
        pairs
            .iter()
            .map(|(name, value)| (name.clone(), Value::from(variables.convert(value))))
            .collect::<Map<_, _>>()
            .into()
    };
    match entry {
        ExportEntry::Command { command, args, env, cwd } => {
            if program == ClientApp::VsCode {
                put("type", "stdio".into());
            }
            put("command", variables.convert(command).into());
            put("args", args.iter().map(|arg| Value::from(variables.convert(arg))).collect());
            if !env.is_empty() {
                put("env", table(env));
            }
            if let Some(cwd) = cwd {
                put("cwd", variables.convert(cwd).into());
            }
        }
        // Claude Desktop only starts commands and does not accept URLs in this file.
        ExportEntry::Url { url, headers, .. } if program == ClientApp::ClaudeDesktop => {
            let mut args = vec!["-y".to_owned(), "mcp-remote".to_owned(), url.clone()];
            for (name, value) in headers {
                args.extend(["--header".to_owned(), format!("{name}:{}", variables.convert(value))]);
            }
            put("command", "npx".into());
            put("args", args.into_iter().map(Value::from).collect());
        }
        ExportEntry::Url { url, headers, sse } => {
            let kind = if *sse { "sse" } else { "http" };
            match program {
                ClientApp::Windsurf => put("serverUrl", variables.convert(url).into()),
                ClientApp::Gemini if !sse => put("httpUrl", variables.convert(url).into()),
                ClientApp::Gemini | ClientApp::Cursor => put("url", variables.convert(url).into()),
                _ => {
                    put("type", kind.into());
                    put("url", variables.convert(url).into());
                }
            }
            if !headers.is_empty() {
                put("headers", table(headers));
            }
        }
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::entry::{ExportEntry, parse_entries};
    use super::render_for_app;
    use crate::args::ClientApp;

    fn all(entries: &[(String, ExportEntry)]) -> String {
        let one = |program: ClientApp| format!("{}\n{}", program.as_str(), render_for_app(program, entries));
        ClientApp::ALL.map(one).join("\n")
    }

    #[test]
    fn a_yard_that_runs_is_pasted_with_the_token_in_the_environment() {
        let headers = vec![("Authorization".to_owned(), "Bearer ${TOOLYARD_TOKEN}".to_owned())];
        let url = "http://127.0.0.1:8080/mcp".to_owned();
        insta::assert_snapshot!(all(&[(
            "toolyard".to_owned(),
            ExportEntry::Url { url, headers, sse: false }
        )]));
    }

    #[test]
    fn servers_are_pasted_as_they_are_written_with_variables_in_the_words_of_each_program() {
        let config = r#"
            [servers.files]
            command = "npx"
            args = ["-y", "server-filesystem", "${HOME}/x"]
            env = { TOKEN = "${TOKEN}", MODE = "fast", PORT = 5 }
            [servers.search]
            url = "https://${HOST:-mcp.example.com}/mcp"
            headers = { X-Key = "${KEY}", X-Other = "v" }
            [servers.old]
            type = "sse"
            url = "https://old.example.com/sse"
            [servers.off]
            command = "x"
            enabled = false
        "#;
        insta::assert_snapshot!(all(&parse_entries(config).unwrap()));
    }
}
