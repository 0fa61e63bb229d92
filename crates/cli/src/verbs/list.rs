//! `toolyard list`

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{FullName, Reach, SourceName, State, Status};
use toolyard_upstream::Lists;

use crate::Exit;
use crate::args::{ListArgs, Listed};
use crate::clean::{clean_line, clean_name};
use crate::fault::Fault;
use crate::terminal::{Out, note};
use crate::visit::{Need, Visit, Wish};

pub(crate) async fn run(args: ListArgs, stop: CancellationToken) -> Result<Exit, Fault> {
    let need = args.of.as_deref().map_or(Need::All, Need::Server);
    if args.of.is_some() && !args.which.other.is_absent() {
        return Err(Fault::usage("a server of the configuration and one after `--` cannot both be listed"));
    }
    let lists: &[Lists] = match args.what {
        Listed::Servers => &Lists::ALL,
        Listed::Tools => &[Lists::Tools],
        Listed::Resources => &[Lists::Resources],
        Listed::Templates => &[Lists::Templates],
        Listed::Prompts => &[Lists::Prompts],
    };
    let wish = Wish::new(need, lists);
    let visit = match args.what {
        // How those are that cannot be reached is just what is asked.
        Listed::Servers => Visit::open(&args.which, wish, &stop).await?,
        _ => Visit::open_all(&args.which, wish, &stop).await?,
    };
    let done = show(&args, &visit);
    visit.close().await;
    done.map(|()| Exit::Fine)
}

fn show(args: &ListArgs, visit: &Visit) -> Result<(), Fault> {
    let mut out = Out::new();
    let view = visit.yard.view(&visit.principal);
    let rows = match args.what {
        Listed::Servers => servers(visit),
        Listed::Tools => {
            let tools = view.tools().map(|tool| Row {
                cells: vec![
                    tool.full_name.to_string(),
                    beside(&tool.full_name, &tool.title, &tool.raw_name, tool.description.as_deref()),
                ],
                json: named(&tool.source, tool.full_name.as_str(), &tool.raw_name, &tool.definition),
            });
            tools.collect()
        }
        Listed::Prompts => {
            let prompts = view.prompts().map(|prompt| {
                let (title, description) = texts(&prompt.definition);
                Row {
                    cells: vec![
                        prompt.full_name.to_string(),
                        beside(
                            &prompt.full_name,
                            &title.unwrap_or_default(),
                            &prompt.raw_name,
                            description.as_deref(),
                        ),
                    ],
                    json: named(
                        &prompt.source,
                        prompt.full_name.as_str(),
                        &prompt.raw_name,
                        &prompt.definition,
                    ),
                }
            });
            prompts.collect()
        }
        Listed::Resources => view
            .resources()
            .map(|resource| addressed(&resource.source, "uri", &resource.uri, &resource.definition))
            .collect(),
        Listed::Templates => {
            let one = |template: &Arc<toolyard_hub::Template>| {
                addressed(&template.source, "uriTemplate", &template.template, &template.definition)
            };
            view.templates().map(one).collect()
        }
    };
    let rows: Vec<Row> = rows;
    if args.json {
        let all: Vec<&RawValue> = rows.iter().map(|row| &*row.json).collect();
        serde_json::to_writer(OutWriter(&mut out), &all).map_err(std::io::Error::from)?;
        out.line("")?;
    } else {
        let head: &[&str] = match args.what {
            Listed::Servers => &[
                "server",
                "state",
                "transport",
                "version",
                "tools",
                "resources",
                "templates",
                "prompts",
                "reason",
            ],
            Listed::Tools => &["tool", "description"],
            Listed::Prompts => &["prompt", "description"],
            Listed::Resources => &["resource", "description"],
            Listed::Templates => &["template", "description"],
        };
        if rows.is_empty() {
            note("there is nothing to list");
        } else {
            let cells: Vec<Vec<String>> = rows.into_iter().map(|row| row.cells).collect();
            out.table(head, &cells)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// One line of a list, harmless on a terminal, and the same as JSON.
struct Row {
    cells: Vec<String>,
    json: Box<RawValue>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Named<'a> {
    server: &'a str,
    name: &'a str,
    raw_name: &'a str,
    definition: &'a RawValue,
}

fn named(source: &SourceName, name: &str, raw_name: &str, definition: &RawValue) -> Box<RawValue> {
    to_raw(&Named { server: source.as_str(), name, raw_name, definition })
}

fn addressed(source: &SourceName, key: &str, address: &str, definition: &RawValue) -> Row {
    #[derive(serde::Serialize)]
    struct Addressed<'a> {
        server: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
        #[serde(rename = "uriTemplate", skip_serializing_if = "Option::is_none")]
        template: Option<&'a str>,
        definition: &'a RawValue,
    }
    let (title, description) = texts(definition);
    let uri = (key == "uri").then_some(address);
    let template = (key != "uri").then_some(address);
    Row {
        cells: vec![
            clean_name(address).into_owned(),
            described(&title.unwrap_or_default(), "", description.as_deref()),
        ],
        json: to_raw(&Addressed { server: source.as_str(), uri, template, definition }),
    }
}

/// What stands beside the full name of a thing: its own name where that cannot be read out of it, the title where that
/// says more, and the description.
fn beside(full: &FullName, title: &str, raw_name: &str, description: Option<&str>) -> String {
    let text = described(title, raw_name, description);
    if full.as_str().ends_with(raw_name) { text } else { format!("({}) {text}", clean_name(raw_name)) }
}

fn described(title: &str, raw_name: &str, description: Option<&str>) -> String {
    let title = if title == raw_name { String::new() } else { clean_line(title) };
    let description = clean_line(description.unwrap_or_default());
    match (title.is_empty(), description.is_empty()) {
        (false, false) => format!("{title}: {description}"),
        (true, _) => description,
        (false, true) => title,
    }
}

/// The title, or else the name, and the description of a definition.
fn texts(definition: &RawValue) -> (Option<String>, Option<String>) {
    let value: Value = serde_json::from_str(definition.get()).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let title = text("title").or_else(|| text("name"));
    (title, text("description"))
}

fn servers(visit: &Visit) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (name, status) in visit.yard.statuses_for(&visit.principal) {
        let view = visit.yard.view(&visit.principal).of(Reach::Source(name.clone()));
        let counts = [
            view.tools().count(),
            view.resources().count(),
            view.templates().count(),
            view.prompts().count(),
        ];
        rows.push(server(&name, &status, counts));
    }
    // Those that could not even be started.
    for trouble in visit.troubles.iter().filter(|trouble| !visit.yard.has(&trouble.server)) {
        let status = Status { reason: Some(trouble.reason.clone()), ..Status::new(trouble.state, true) };
        rows.push(server(&trouble.server, &status, [0; 4]));
    }
    for name in &visit.disabled {
        rows.push(server(name, &Status::new(State::Disabled, true), [0; 4]));
    }
    rows
}

fn server(name: &SourceName, status: &Status, [tools, resources, templates, prompts]: [usize; 4]) -> Row {
    let dash = || "-".to_owned();
    let native = status.state == State::Ready && status.transport.is_none();
    let transport = if native { Some("built in") } else { status.transport };
    let reason = match (&status.reason, status.warnings.len()) {
        (Some(reason), _) => clean_line(reason),
        (None, 0) => String::new(),
        (None, 1) => clean_line(&status.warnings[0]),
        (None, more) => format!("{} (and {} more)", clean_line(&status.warnings[0]), more - 1),
    };
    let mut cells = vec![
        clean_name(name.as_str()).into_owned(),
        status.state.as_str().to_owned(),
        transport.map_or_else(dash, ToOwned::to_owned),
        status.version.map_or_else(dash, ToOwned::to_owned),
    ];
    cells.extend([tools, resources, templates, prompts].map(|count| count.to_string()));
    cells.push(reason);
    let json = to_raw(&json!({
        "name": name.as_str(), "state": status.state.as_str(), "reason": status.reason,
        "transport": status.transport, "version": status.version, "era": status.era,
        "authorization": status.authorization.word(),
        "tools": tools, "resources": resources, "templates": templates, "prompts": prompts,
        "warnings": status.warnings, "stderr": status.stderr,
    }));
    Row { cells, json }
}

/// Standard output for whoever wants a writer.
struct OutWriter<'a>(&'a mut Out);

impl std::io::Write for OutWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.bytes(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
