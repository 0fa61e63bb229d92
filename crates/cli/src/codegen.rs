//! `toolyard types`: generates types for the parameters and results of every tool, for the client
//! libraries.

mod python;
mod typescript;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow};
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use toolyard_hub::SourceState;
use toolyard_program::shapes::{Shape, ShapeReader, TypeDeclaration, TypeNames};

use crate::args::{Language, TypesArgs};
use crate::assembly::{AssemblyOptions, RunningYard};
use crate::configuration::load_or_report;
use crate::error::CommandError;
use crate::recording::CallRecords;
use crate::servers::StartMode;
use crate::{Exit, terminal};

/// How long the servers of a configuration may take to start.
const SETTLING: Duration = Duration::from_secs(60);
const ASKING: Duration = Duration::from_secs(30);
const CONNECTING: Duration = Duration::from_secs(5);

/// The parts of a tool definition that types are generated from.
#[derive(Debug, Deserialize)]
struct ToolSchemas {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "inputSchema")]
    input: Value,
    #[serde(rename = "outputSchema")]
    output: Option<Value>,
}

/// A tool with the types generated from its schemas.
struct ToolTypes {
    name: String,
    declared: Vec<TypeDeclaration>,
    params: Shape,
    result: Shape,
}

pub(crate) async fn run(args: TypesArgs) -> anyhow::Result<Exit> {
    let tools = match args.url {
        Some(url) => match fetch_tools(&url, args.token).await {
            Ok(tools) => tools,
            Err(error) => return Ok(error.report()),
        },
        None => match collect(&args.config).await? {
            Some(tools) => tools,
            None => return Ok(Exit::Usage),
        },
    };
    let text = write(args.lang, tools);
    match args.output {
        None => terminal::print(&text)?,
        Some(path) => {
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(Exit::Success)
}

fn write(language: Language, mut tools: Vec<ToolSchemas>) -> String {
    // Sorted, so that the output does not depend on the order of the tools.
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let mut names = TypeNames::new(match language {
        Language::Ts => typescript::RESERVED,
        Language::Python => python::RESERVED,
    });
    let typed: Vec<ToolTypes> = tools.into_iter().map(|tool| read(tool, &mut names)).collect();
    match language {
        Language::Ts => typescript::write(&typed),
        Language::Python => python::write(&typed),
    }
}

fn read(tool: ToolSchemas, names: &mut TypeNames) -> ToolTypes {
    let mut params = ShapeReader::new(&tool.input, names);
    let shape = params.read_root(&format!("{}_params", tool.name), &tool.description);
    let mut declared = params.finish();
    let result = match &tool.output {
        None => Shape::Unknown,
        Some(output) => {
            let mut result = ShapeReader::new(output, names);
            let shape = result.read_root(&format!("{}_result", tool.name), "");
            declared.extend(result.finish());
            shape
        }
    };
    ToolTypes { name: tool.name, declared, params: shape, result }
}

/// The tools of a running yard that are visible with this token.
async fn fetch_tools(url: &Url, token: Option<String>) -> Result<Vec<ToolSchemas>, CommandError> {
    #[derive(Deserialize)]
    struct ToolListResponse {
        tools: Vec<ToolSchemas>,
    }
    let address = format!("{}/mcp/tools", url.as_str().trim_end_matches('/'));
    let client = reqwest::Client::builder().tls_backend_preconfigured(toolyard_upstream::tls_config());
    let client = client.redirect(Policy::none()).connect_timeout(CONNECTING).build();
    let client = client.context("cannot create the HTTP client")?;
    let mut request = client.get(&address).timeout(ASKING);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let failure = |exit: Exit, error: reqwest::Error, message: String| {
        CommandError::new(exit, format!("{:#}", anyhow!(error).context(message)))
    };
    let unreachable = |error| failure(Exit::Unreachable, error, format!("cannot reach {url}"));
    let answer = request.send().await.map_err(unreachable)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED => {
            return Err(CommandError::new(Exit::Unauthorized, format!("{url} rejected the token"))
                .suggest("pass a valid token with --token or TOOLYARD_TOKEN"));
        }
        other => {
            return Err(CommandError::new(Exit::Failed, format!("{url} returned HTTP status {other}"))
                .suggest("check that this is the URL of a yard"));
        }
    }
    let malformed = |error| failure(Exit::Failed, error, format!("{url} returned an invalid list of tools"));
    let list: ToolListResponse = answer.json().await.map_err(malformed)?;
    Ok(list.tools)
}

/// Starts the servers of a configuration, collects their tools and stops them. Returns `None` if
/// the configuration cannot be used; its problems have been printed.
async fn collect(files: &[PathBuf]) -> anyhow::Result<Option<Vec<ToolSchemas>>> {
    let Some(config) = load_or_report(files) else { return Ok(None) };
    let options = AssemblyOptions { records: CallRecords::Off, ..AssemblyOptions::new(StartMode::Shared) };
    let mut running = RunningYard::assemble(&config, options).await?;
    running.start_servers(config.servers().to_vec())?;
    let yard = &running.yard;
    yard.wait_for_startup(SETTLING).await;
    for (name, status) in yard.statuses() {
        if !matches!(status.state, SourceState::Ready | SourceState::Disabled) {
            terminal::print_warning(&format!("the tools of server `{name}` are unavailable: not ready"));
        }
    }
    let catalog = yard.catalog();
    let described = catalog.tools().iter().map(|tool| {
        let parse = |raw: &str| serde_json::from_str::<Value>(raw).unwrap_or(Value::Bool(true));
        ToolSchemas {
            name: tool.full_name.to_string(),
            description: tool.description.clone().unwrap_or_default(),
            input: parse(tool.input_schema.get()),
            output: tool.output_schema.as_ref().map(|schema| parse(schema.get())),
        }
    });
    let described = described.collect();
    running.stop().await;
    Ok(Some(described))
}

#[cfg(test)]
mod tests;
