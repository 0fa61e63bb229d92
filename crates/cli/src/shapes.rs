//! `toolyard types`: the parameters and results of every tool as types of another language, for the client libraries.

mod python;
mod typescript;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use reqwest::{StatusCode, Url};
use serde::Deserialize;
use serde_json::Value;
use toolyard_hub::State;
use toolyard_program::shapes::{Declared, Names, Reader, Shape};
use toolyard_tester::Servers;
use toolyard_upstream::Common;

use crate::args::{Language, TypesArgs};
use crate::config::Given;
use crate::fleet::{Crew, Fleet, Manned};
use crate::keeping::Keeping;
use crate::outside::ConfiguredHooks;
use crate::{Exit, config, outside, shared, terminal, yard};

/// How long the servers of a configuration may take to say what they offer.
const SETTLING: Duration = Duration::from_secs(60);
const ASKING: Duration = Duration::from_secs(30);

/// What is known of a tool.
#[derive(Debug, Deserialize)]
struct Described {
    name: String,
    #[serde(default)]
    description: String,
    #[serde(rename = "inputSchema")]
    input: Value,
    #[serde(rename = "outputSchema")]
    output: Option<Value>,
}

/// A tool whose schemas have become types.
struct Typed {
    name: String,
    declared: Vec<Declared>,
    params: Shape,
    result: Shape,
}

pub(crate) async fn run(args: TypesArgs) -> anyhow::Result<Exit> {
    // First of all: it says how TLS is done, for whatever connects.
    let common = shared::common()?;
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

fn write(language: Language, mut tools: Vec<Described>) -> String {
    // The same tools give the same text, in whatever order they came.
    tools.sort_by(|one, other| one.name.cmp(&other.name));
    let mut names = Names::new(match language {
        Language::Ts => typescript::RESERVED,
        Language::Python => python::RESERVED,
    });
    let typed: Vec<Typed> = tools.into_iter().map(|tool| read(tool, &mut names)).collect();
    match language {
        Language::Ts => typescript::write(&typed),
        Language::Python => python::write(&typed),
    }
}

fn read(tool: Described, names: &mut Names) -> Typed {
    let mut params = Reader::new(&tool.input, names);
    let shape = params.root(&format!("{}_params", tool.name), &tool.description);
    let mut declared = params.finish();
    let result = match &tool.output {
        None => Shape::Unknown,
        Some(output) => {
            let mut result = Reader::new(output, names);
            let shape = result.root(&format!("{}_result", tool.name), "");
            declared.extend(result.finish());
            shape
        }
    };
    Typed { name: tool.name, declared, params: shape, result }
}

/// The tools of a yard that runs, as far as the token shows them.
async fn ask(
    url: &Url,
    token: Option<String>,
    common: &Common,
) -> Result<Vec<Described>, (Exit, anyhow::Error)> {
    #[derive(Deserialize)]
    struct List {
        tools: Vec<Described>,
    }
    let address = format!("{}/mcp/tools", url.as_str().trim_end_matches('/'));
    let client = outside::client(common).map_err(|error| (Exit::Failed, error))?;
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
    let list: List = answer.json().await.map_err(nonsense)?;
    Ok(list.tools)
}

/// The tools of a configuration, whose servers are started for this and stopped again. None: it cannot be used, which
/// was told.
async fn collect(files: Vec<PathBuf>, common: Common) -> anyhow::Result<Option<Vec<Described>>> {
    let Some(config) = config::load_or_tell(&files) else { return Ok(None) };
    let hooks = ConfiguredHooks::new(outside::client(&common)?, &config.hooks);
    let yard = yard::build(&config, hooks, &Keeping::nothing());
    let crew = Crew { common, manned: Manned::Fully, directory: Servers::default() };
    let fleet = Fleet::start(Arc::clone(&yard), config, Given::files(files), crew, |_| {})?;
    yard.settle(SETTLING).await;
    for (name, status) in yard.statuses() {
        if !matches!(status.state, State::Ready | State::Disabled) {
            eprintln!("toolyard: the tools of {name} are missing: it is not ready");
        }
    }
    let catalog = yard.catalog();
    let described = catalog.tools().iter().map(|tool| {
        let parse = |raw: &str| serde_json::from_str::<Value>(raw).unwrap_or(Value::Bool(true));
        Described {
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
