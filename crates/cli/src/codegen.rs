//! `toolyard types`: the parameters and results of every tool as types of another language, for the client libraries.

mod python;
mod typescript;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use reqwest::redirect::Policy;
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use toolyard_hooks::HttpHooks;
use toolyard_hub::SourceState;
use toolyard_program::shapes::{Shape, ShapeReader, TypeDeclaration, TypeNames};
use toolyard_tester::TesterServers;
use toolyard_upstream::UpstreamContext;

use crate::args::{Language, TypesArgs};
use crate::configuration::{ConfigInputs, load_or_report};
use crate::recording::CallRecording;
use crate::servers::{ConfiguredServers, ServerStartOptions, StartMode};
use crate::{Exit, terminal, upstream_setup, yard};

/// How long the servers of a configuration may take to say what they offer.
const SETTLING: Duration = Duration::from_secs(60);
const ASKING: Duration = Duration::from_secs(30);
const CONNECTING: Duration = Duration::from_secs(5);

/// What is known of a tool.
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

/// A tool whose schemas have become types.
struct ToolTypes {
    name: String,
    declared: Vec<TypeDeclaration>,
    params: Shape,
    result: Shape,
}

pub(crate) async fn run(args: TypesArgs) -> anyhow::Result<Exit> {
    // First of all: it says how TLS is done, for whatever connects.
    let common = upstream_setup::build_common()?;
    let tools = match args.url {
        Some(url) => match ask(&url, args.token, &common).await {
            Ok(tools) => tools,
            Err((exit, problem)) => {
                eprintln!("toolyard: {problem:#}");
                return Ok(exit);
            }
        },
        None => match collect(args.config, common).await? {
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
    Ok(Exit::Fine)
}

fn write(language: Language, mut tools: Vec<ToolSchemas>) -> String {
    // The same tools give the same text, in whatever order they came.
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
    let shape = params.root(&format!("{}_params", tool.name), &tool.description);
    let mut declared = params.finish();
    let result = match &tool.output {
        None => Shape::Unknown,
        Some(output) => {
            let mut result = ShapeReader::new(output, names);
            let shape = result.root(&format!("{}_result", tool.name), "");
            declared.extend(result.finish());
            shape
        }
    };
    ToolTypes { name: tool.name, declared, params: shape, result }
}

/// The tools of a yard that runs, as far as the token shows them.
async fn ask(
    url: &Url,
    token: Option<String>,
    common: &UpstreamContext,
) -> Result<Vec<ToolSchemas>, (Exit, anyhow::Error)> {
    #[derive(Deserialize)]
    struct ToolListResponse {
        tools: Vec<ToolSchemas>,
    }
    let address = format!("{}/mcp/tools", url.as_str().trim_end_matches('/'));
    let client = reqwest::Client::builder().tls_backend_preconfigured(common.tls.clone());
    let client = client.redirect(Policy::none()).connect_timeout(CONNECTING).build();
    let client = client.context("cannot set up HTTP").map_err(|error| (Exit::Failed, error))?;
    let mut request = client.get(&address).timeout(ASKING);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let unreachable =
        |error: reqwest::Error| (Exit::Unreachable, anyhow!(error).context(format!("cannot reach {url}")));
    let answer = request.send().await.map_err(unreachable)?;
    match answer.status() {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED => {
            return Err((
                Exit::Unauthorised,
                anyhow!("{url} wants another token: say --token or TOOLYARD_TOKEN"),
            ));
        }
        other => {
            return Err((Exit::Failed, anyhow!("{url} answered {other}; is it the address of a yard?")));
        }
    }
    let nonsense = |error: reqwest::Error| {
        (Exit::Failed, anyhow!(error).context(format!("{url} gave no list of tools")))
    };
    let list: ToolListResponse = answer.json().await.map_err(nonsense)?;
    Ok(list.tools)
}

/// The tools of a configuration, whose servers are started for this and stopped again. None: it cannot be used, which
/// was told.
async fn collect(files: Vec<PathBuf>, common: UpstreamContext) -> anyhow::Result<Option<Vec<ToolSchemas>>> {
    let Some(config) = load_or_report(&files) else { return Ok(None) };
    let hooks = HttpHooks::new(common.tls.clone(), &config.hooks).context("cannot set up HTTP")?;
    let yard = yard::build(&config, hooks, &CallRecording::disabled());
    let crew = ServerStartOptions { common, manned: StartMode::Shared, directory: TesterServers::default() };
    let fleet =
        ConfiguredServers::start(Arc::clone(&yard), config, ConfigInputs::from_files(files), crew, |_| {})?;
    yard.settle(SETTLING).await;
    for (name, status) in yard.statuses() {
        if !matches!(status.state, SourceState::Ready | SourceState::Disabled) {
            eprintln!("toolyard: the tools of {name} are missing: it is not ready");
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
    fleet.stop().await;
    Ok(Some(described))
}

#[cfg(test)]
mod tests;
