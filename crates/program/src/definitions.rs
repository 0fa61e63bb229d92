//! The definitions of the three program tools. The definition of `inspect_tool` is fixed by its
//! specification and must not change.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use toolyard_hub::json::to_raw;
use toolyard_hub::{SourceOffer, ToolListing, ToolOffer};

use crate::search::MOST;
use crate::settings::ProgramSettings;

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
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }
}

pub(crate) fn offer(settings: &ProgramSettings) -> Arc<SourceOffer> {
    let tools = ProgramTool::ALL.map(|tool| ToolOffer {
        definition: to_raw(&definition(tool, settings)),
        permissions: Vec::new(),
        metadata: Map::new(),
        hooks: Vec::new(),
        listing: ToolListing::Listed,
    });
    Arc::new(SourceOffer { tools: tools.into(), ..SourceOffer::default() })
}

fn definition(tool: ProgramTool, settings: &ProgramSettings) -> Value {
    match tool {
        ProgramTool::InspectTool => json!({
            "name": tool.name(),
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
            "name": tool.name(),
            "description": "Searches the tools available in execute_program. Returns the full name, a one-line summary and the \
                            Python signature of each match, best match first. Searches names, titles, descriptions and \
                            parameter names. An empty query lists all tools by server, in pages.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What the tool should do, in a few words. Empty to list all tools"},
                    "server": {"type": "string", "description": "Return only tools of this server"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "Maximum number of tools to return"},
                    "cursor": {"type": "string", "description": "Cursor returned with the previous page"}
                },
                "required": ["query"]
            },
            "annotations": {"readOnlyHint": true, "openWorldHint": false}
        }),
        ProgramTool::ExecuteProgram => json!({
            "name": tool.name(),
            "description": execute_program_description(settings),
            "inputSchema": {
                "type": "object",
                "properties": {
                    "code": {"type": "string", "description": "The Python script"},
                    "timeout_ms": {
                        "type": "integer",
                        "minimum": 1,
                        "description": format!("Time limit in milliseconds, at most {}", settings.time.as_millis()),
                    }
                },
                "required": ["code"]
            }
        }),
    }
}

/// Returns the description of `execute_program`: everything that a model needs to write a script
/// that works the first time.
fn execute_program_description(settings: &ProgramSettings) -> String {
    let ProgramSettings { time, memory, output, calls, parallel, python, .. } = settings;
    let python = python
        .as_deref()
        .map_or_else(|| "CPython 3.9 or newer".to_owned(), |version| format!("CPython {version}"));
    let (seconds, megabytes) = (time.as_secs_f64(), memory >> 20);
    format!(
        "Runs a Python script that can call all tools, and returns what the script prints. Use it to call several tools, page \
         through results, and join, filter or count data: only the printed output reaches the conversation.\n\
         \n\
         In the script:\n\
         - Every tool is an async function under its full name, and under its bare name if that is unique: \
         `rows = await query_financials(ticker=\"AAPL\")`. `tools[\"any name\"](...)` and `call_tool(\"any name\", {{...}})` \
         call any tool.\n\
         - Results are plain data (dicts, lists, strings, numbers) that matches outputSchema. Images, audio and files have \
         .mime_type and .data (bytes).\n\
         - A failed call raises ToolError with .message, .type (such as \"invalid_arguments\" or \"timeout\"), .tool and \
         .details.\n\
         - `await` works at the top level, and so does `asyncio.run(main())`. `asyncio.gather` runs calls in parallel: at \
         most {parallel} at once and {calls} in total.\n\
         - `await search_tools(\"words\")` and `await inspect_tool(\"name\")` look up tools from the script; \
         `progress(done, total, \"message\")` reports progress.\n\
         - Print the results you need. If the script prints nothing, the value of its last expression is returned.\n\
         \n\
         {python} with its standard library (json, re, csv, datetime, statistics, collections, itertools, decimal, ...). No \
         other packages, no network, no files, no processes, and no state between scripts. Limits: {seconds} s, \
         {megabytes} MB of memory, {output} bytes of output.\n\
         \n\
         Find tools with search_tools, and check what they return with inspect_tool."
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{ProgramTool, definition, execute_program_description};
    use crate::settings::ProgramSettings;

    #[test]
    fn inspect_tool_matches_the_specification() {
        let spec: Value =
            serde_json::from_str(include_str!("../../../tests/data/spec/inspect-tool.json")).unwrap();
        let ours = definition(ProgramTool::InspectTool, &ProgramSettings::default());
        assert_eq!(ours.to_string(), spec["definition"].to_string());
    }

    #[test]
    fn the_description_of_execute_program() {
        let settings = ProgramSettings { python: Some("3.12".to_owned()), ..ProgramSettings::default() };
        insta::assert_snapshot!(execute_program_description(&settings));
    }
}
