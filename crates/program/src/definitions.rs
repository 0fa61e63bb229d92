//! The three tools as they are advertised. `inspect_tool` is a contract, word for word.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{SourceOffer, ToolListing, ToolOffer};

use crate::search::MOST;
use crate::settings::ProgramSettings;

/// One of the three.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramTool {
    InspectTool,
    SearchTools,
    ExecuteProgram,
}

/// The arguments of `inspect_tool`.
#[derive(Debug, Deserialize)]
pub(crate) struct InspectArguments {
    pub(crate) tool_name: String,
}

impl ProgramTool {
    pub(crate) const ALL: [Self; 3] = [Self::InspectTool, Self::SearchTools, Self::ExecuteProgram];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::InspectTool => "inspect_tool",
            Self::SearchTools => "search_tools",
            Self::ExecuteProgram => "execute_program",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

pub(crate) fn offer(settings: &ProgramSettings) -> Arc<SourceOffer> {
    let tools = ProgramTool::ALL.map(|verb| ToolOffer {
        definition: to_raw(&definition(verb, settings)),
        permissions: Vec::new(),
        metadata: Map::new(),
        hooks: Vec::new(),
        listing: ToolListing::Listed,
    });
    Arc::new(SourceOffer { tools: tools.into(), ..SourceOffer::default() })
}

fn definition(verb: ProgramTool, settings: &ProgramSettings) -> Value {
    match verb {
        ProgramTool::InspectTool => json!({
            "name": verb.name(),
            "description": "Returns the schema and description of a tool available in execute_program. Includes outputSchema if \
                            the upstream MCP server defines one. Call this before writing a script if you need to understand \
                            a tool's return format.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "tool_name": {
                        "type": "string",
                        "description": "Namespaced tool name (e.g., mcp__financial_data__query_financials)"
                    }
                },
                "required": ["tool_name"]
            }
        }),
        ProgramTool::SearchTools => json!({
            "name": verb.name(),
            "description": "Finds tools available in execute_program by what they do, best first: full name, one line, and the \
                            Python signature of each. Searches names, titles, descriptions and parameter names. An empty query \
                            lists all tools by server, in pages.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words for what the tool should do; empty to list all tools"},
                    "server": {"type": "string", "description": "Only tools of this server"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "How many to return"},
                    "cursor": {"type": "string", "description": "Where the page before said that the next one begins"}
                },
                "required": ["query"]
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false}
        }),
        ProgramTool::ExecuteProgram => json!({
            "name": verb.name(),
            "description": execute_program_description(settings),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "code": {"type": "string", "description": "The Python script"},
                    "timeout_ms": {
                        "type": "integer",
                        "minimum": 1,
                        "description": format!("How long it may take, at most {} ms", settings.time.as_millis()),
                    }
                },
                "required": ["code"]
            }
        }),
    }
}

/// What a model must know to write a script that works the first time.
fn execute_program_description(settings: &ProgramSettings) -> String {
    let ProgramSettings { time, memory, output, calls, parallel, python, .. } = settings;
    let python =
        python.as_deref().map_or_else(|| "CPython 3.9 or newer".to_owned(), |it| format!("CPython {it}"));
    let (seconds, megabytes) = (time.as_secs_f64(), memory >> 20);
    format!(
        "Runs a Python script that can call all tools, and returns what it prints. Use it to call several tools, go through \
         pages, and join, filter or count data: only what the script prints reaches the conversation.\n\
         \n\
         In the script:\n\
         - Every tool is an async function by its full name, and by its bare name where that is unique: \
         `rows = await query_financials(ticker=\"AAPL\")`. `tools[\"any name\"](...)` and `call_tool(\"any name\", {{...}})` \
         reach every tool.\n\
         - Results are data: dicts, lists, strings, numbers, as outputSchema says. Images, audio and files have .mime_type and \
         .data (bytes).\n\
         - A failing call raises ToolError, with .message, .type (such as \"invalid_arguments\" or \"timeout\"), .tool and \
         .details.\n\
         - `await` works at the top level, and so does `asyncio.run(main())`. `asyncio.gather` runs calls in parallel: at \
         most {parallel} at once and {calls} in all.\n\
         - `await search_tools(\"words\")` and `await inspect_tool(\"name\")` find tools from within; \
         `progress(done, total, \"message\")` reports progress.\n\
         - Show what you need with `print`. If nothing is printed, the value of the last expression is shown.\n\
         \n\
         {python} with its standard library (json, re, csv, datetime, statistics, collections, itertools, decimal, ...). No \
         other packages, no network, no files, no processes; each script starts afresh. Limits: {seconds} s, {megabytes} MB of \
         memory, {output} bytes of output.\n\
         \n\
         Find tools with search_tools, and look at what they return with inspect_tool."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{ProgramTool, definition, execute_program_description};
    use crate::settings::ProgramSettings;

    #[test]
    fn inspect_tool_is_the_one_of_the_document() {
        let spec: Value =
            serde_json::from_str(include_str!("../../../tests/data/spec/inspect-tool.json")).unwrap();
        let ours = definition(ProgramTool::InspectTool, &ProgramSettings::default());
        assert_eq!(ours.to_string(), spec["definition"].to_string());
    }

    #[test]
    fn what_a_model_is_told_about_programs() {
        let settings = ProgramSettings { python: Some("3.12".to_owned()), ..ProgramSettings::default() };
        insta::assert_snapshot!(execute_program_description(&settings));
    }
}
