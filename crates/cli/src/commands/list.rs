//! `toolyard list`

use std::sync::Arc;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolyard_hub::json::to_raw;
use toolyard_hub::{FullName, SourceName, SourceState, SourceStatus, YardScope};
use toolyard_upstream::ServerListKind;

use crate::Exit;
use crate::args::{ListArgs, ListKind};
use crate::clean::{clean_line, clean_name};
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection};
use crate::terminal::{StdoutWriter, print_note};

pub(crate) async fn run(args: ListArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let need = args.of.as_deref().map_or(ServerSelection::All, ServerSelection::Server);
    if args.of.is_some() && !args.which.other.is_empty() {
        return Err(CommandError::usage(
            "a configured server and a server command after `--` cannot be combined",
        ));
    }
    let lists: &[ServerListKind] = match args.what {
        ListKind::Servers => &ServerListKind::ALL,
        ListKind::Tools => &[ServerListKind::Tools],
        ListKind::Resources => &[ServerListKind::Resources],
        ListKind::Templates => &[ServerListKind::Templates],
        ListKind::Prompts => &[ServerListKind::Prompts],
    };
    let wish = OneShotOptions::new(need, lists);
    let visit = match args.what {
        // Unavailable servers are part of this list.
        ListKind::Servers => OneShotYard::open(&args.which, wish, &stop).await?,
        _ => OneShotYard::open_and_report(&args.which, wish, &stop).await?,
    };
    let done = show(&args, &visit);
    visit.close().await;
    done.map(|()| Exit::Success)
}

fn show(args: &ListArgs, visit: &OneShotYard) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    let view = visit.yard.view(&visit.principal);
    let rows = match args.what {
        ListKind::Servers => server_rows(visit),
        ListKind::Tools => {
            let tools = view.tools().map(|tool| ListRow {
                cells: vec![
                    tool.full_name.to_string(),
                    description_cell(
                        &tool.full_name,
                        &tool.title,
                        &tool.raw_name,
                        tool.description.as_deref(),
                    ),
                ],
                json: named_item_json(
                    &tool.source,
                    tool.full_name.as_str(),
                    &tool.raw_name,
                    &tool.definition,
                ),
            });
            tools.collect()
        }
        ListKind::Prompts => {
            let prompts = view.prompts().map(|prompt| {
                let (title, description) = title_and_description(&prompt.definition);
                ListRow {
                    cells: vec![
                        prompt.full_name.to_string(),
                        description_cell(
                            &prompt.full_name,
                            &title.unwrap_or_default(),
                            &prompt.raw_name,
                            description.as_deref(),
                        ),
                    ],
                    json: named_item_json(
                        &prompt.source,
                        prompt.full_name.as_str(),
                        &prompt.raw_name,
                        &prompt.definition,
                    ),
                }
            });
            prompts.collect()
        }
        ListKind::Resources => view
            .resources()
            .map(|resource| resource_row(&resource.source, "uri", &resource.uri, &resource.definition))
            .collect(),
        ListKind::Templates => {
            let one = |template: &Arc<toolyard_hub::TemplateEntry>| {
                resource_row(&template.source, "uriTemplate", &template.template, &template.definition)
            };
            view.templates().map(one).collect()
        }
    };
    let rows: Vec<ListRow> = rows;
    if args.json {
        let all: Vec<&RawValue> = rows.iter().map(|row| &*row.json).collect();
        serde_json::to_writer(OutWriter(&mut out), &all).map_err(std::io::Error::from)?;
        out.write_line("")?;
    } else {
        let head: &[&str] = match args.what {
            ListKind::Servers => &[
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
            ListKind::Tools => &["tool", "description"],
            ListKind::Prompts => &["prompt", "description"],
            ListKind::Resources => &["resource", "description"],
            ListKind::Templates => &["template", "description"],
        };
        if rows.is_empty() {
            print_note("nothing to list");
        } else {
            let cells: Vec<Vec<String>> = rows.into_iter().map(|row| row.cells).collect();
            out.write_table(head, &cells)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// One row of a list: cells that are safe on a terminal, and the same as JSON.
struct ListRow {
    cells: Vec<String>,
    json: Box<RawValue>,
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct NamedItem<'a> {
    server: &'a str,
    name: &'a str,
    raw_name: &'a str,
    definition: &'a RawValue,
}

fn named_item_json(source: &SourceName, name: &str, raw_name: &str, definition: &RawValue) -> Box<RawValue> {
    to_raw(&NamedItem { server: source.as_str(), name, raw_name, definition })
}

fn resource_row(source: &SourceName, key: &str, address: &str, definition: &RawValue) -> ListRow {
    #[derive(serde::Serialize)]
    struct ResourceItem<'a> {
        server: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<&'a str>,
        #[serde(rename = "uriTemplate", skip_serializing_if = "Option::is_none")]
        template: Option<&'a str>,
        definition: &'a RawValue,
    }
    let (title, description) = title_and_description(definition);
    let uri = (key == "uri").then_some(address);
    let template = (key != "uri").then_some(address);
    ListRow {
        cells: vec![
            clean_name(address).into_owned(),
            format_description(&title.unwrap_or_default(), "", description.as_deref()),
        ],
        json: to_raw(&ResourceItem { server: source.as_str(), uri, template, definition }),
    }
}

/// Returns the text next to a full name: the raw name if the full name does not contain it, the
/// title if it says more, and the description.
fn description_cell(full: &FullName, title: &str, raw_name: &str, description: Option<&str>) -> String {
    let text = format_description(title, raw_name, description);
    if full.as_str().ends_with(raw_name) { text } else { format!("({}) {text}", clean_name(raw_name)) }
}

fn format_description(title: &str, raw_name: &str, description: Option<&str>) -> String {
    let title = if title == raw_name { String::new() } else { clean_line(title) };
    let description = clean_line(description.unwrap_or_default());
    match (title.is_empty(), description.is_empty()) {
        (false, false) => format!("{title}: {description}"),
        (true, _) => description,
        (false, true) => title,
    }
}

/// Returns the title, or else the name, and the description of a definition.
fn title_and_description(definition: &RawValue) -> (Option<String>, Option<String>) {
    let value: Value = serde_json::from_str(definition.get()).unwrap_or_default();
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let title = text("title").or_else(|| text("name"));
    (title, text("description"))
}

fn server_rows(visit: &OneShotYard) -> Vec<ListRow> {
    let mut rows: Vec<ListRow> = Vec::new();
    for (name, status) in visit.yard.statuses_for(&visit.principal) {
        let view = visit.yard.view(&visit.principal).with_scope(YardScope::Source(name.clone()));
        let counts = [
            view.tools().count(),
            view.resources().count(),
            view.templates().count(),
            view.prompts().count(),
        ];
        rows.push(server_row(&name, &status, counts));
    }
    // Servers that could not be started at all.
    for trouble in visit.unavailable.iter().filter(|trouble| !visit.yard.has_source(&trouble.server)) {
        let status =
            SourceStatus { reason: Some(trouble.reason.clone()), ..SourceStatus::new(trouble.state, true) };
        rows.push(server_row(&trouble.server, &status, [0; 4]));
    }
    for name in &visit.disabled {
        rows.push(server_row(name, &SourceStatus::new(SourceState::Disabled, true), [0; 4]));
    }
    rows
}

fn server_row(
    name: &SourceName,
    status: &SourceStatus,
    [tools, resources, templates, prompts]: [usize; 4],
) -> ListRow {
    let dash = || "-".to_owned();
    let native = status.state == SourceState::Ready && status.transport.is_none();
    let transport = if native { Some("built in") } else { status.transport };
    let reason = match (&status.reason, status.warnings.len()) {
        (Some(reason), _) => clean_line(reason),
        (None, 0) => String::new(),
        (None, 1) => clean_line(&status.warnings[0]),
        (None, more) => format!("{} (and {} more)", clean_line(&status.warnings[0]), more - 1),
    };
    let mut cells = vec![
        clean_name(name.as_str()).into_owned(),
        status.state.label().to_owned(),
        transport.map_or_else(dash, ToOwned::to_owned),
        status.version.map_or_else(dash, ToOwned::to_owned),
    ];
    cells.extend([tools, resources, templates, prompts].map(|count| count.to_string()));
    cells.push(reason);
    let json = to_raw(&json!({
        "name": name.as_str(), "state": status.state.as_str(), "reason": status.reason,
        "transport": status.transport, "version": status.version, "era": status.era,
        "authorization": status.authorization.label().map(|_| status.authorization.as_str()),
        "tools": tools, "resources": resources, "templates": templates, "prompts": prompts,
        "warnings": status.warnings, "stderr": status.stderr,
    }));
    ListRow { cells, json }
}

/// Adapts standard output to `std::io::Write`.
struct OutWriter<'a>(&'a mut StdoutWriter);

impl std::io::Write for OutWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write_bytes(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}
