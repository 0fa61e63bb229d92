//! `toolyard inspect`: shows one tool with its parameters.

use anstyle::Style;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;
use toolyard_hub::{CatalogEntry, Lookup, ToolEntry, ToolParameter, parameters};
use toolyard_upstream::ServerListKind;

use crate::Exit;
use crate::args::InspectArgs;
use crate::clean::{clean, clean_line, clean_name};
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection};
use crate::terminal::StdoutWriter;

pub(crate) async fn run(args: InspectArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let wish = OneShotOptions::new(
        ServerSelection::Named(&args.tool),
        &[ServerListKind::Tools, ServerListKind::Prompts],
    );
    let visit = OneShotYard::open(&args.which, wish, &stop).await?;
    let tool = visit.yard.find_tool(&args.tool, &visit.principal);
    let tool =
        tool.map_err(|error| not_a_tool_error(&visit, &args.tool).unwrap_or_else(|| visit.explain(error)));
    let done = tool.and_then(|tool| {
        let mut out = StdoutWriter::new();
        match args.json {
            true => out.write_line(tool.definition.get())?,
            false => {
                let bold = |text: &str| out.styled(Style::new().bold(), text);
                let text = page(&tool, &bold);
                out.write_bytes(text.as_bytes())?;
            }
        }
        Ok(out.flush()?)
    });
    visit.close().await;
    done.map(|()| Exit::Success)
}

/// If the name belongs to something other than a tool, returns an error that names the right
/// command.
fn not_a_tool_error(visit: &OneShotYard, name: &str) -> Option<CommandError> {
    if let Lookup::Found(prompt) = visit.yard.catalog().prompt(name)
        && prompt.is_visible_to(&visit.principal)
    {
        return Some(
            CommandError::new(Exit::ToolFailed, format!("`{}` is a prompt, not a tool", prompt.full_name))
                .suggest(format!("run `toolyard prompt {}` to get it", prompt.full_name)),
        );
    }
    // Resources have URIs, and no tool is named like one.
    let scheme = name.split_once("://").map(|(scheme, _)| scheme).unwrap_or_default();
    let is_uri = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    is_uri.then(|| {
        CommandError::new(
            Exit::ToolFailed,
            format!("`{}` is not a tool; it looks like a resource URI", clean_line(name)),
        )
        .suggest(format!("run `toolyard read {}` to read it", clean_line(name)))
    })
}

/// Renders the page of a tool. `bold` marks the headings.
fn page(tool: &ToolEntry, bold: &dyn Fn(&str) -> String) -> String {
    let mut page = format!("{} {}\n", bold("Tool name:"), clean_name(&tool.raw_name));
    page.push_str(&format!("{} {}\n", bold("Full name:"), tool.full_name));
    if tool.title != tool.raw_name {
        page.push_str(&format!("{} {}\n", bold("Title:"), clean_line(&tool.title)));
    }
    page.push_str(&format!("\n{}\n", bold("Description:")));
    let description = tool.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
    page.push_str(&clean(description.unwrap_or("No description")));
    page.push('\n');
    add_parameters(&mut page, &bold("Parameters:"), &tool.input_schema, "No parameters");
    if let Some(output) = &tool.output_schema {
        add_parameters(&mut page, &bold("Result:"), output, "Anything");
    }
    if let Some(problem) = tool.schema_problem() {
        page.push_str(&format!(
            "\nInvalid input schema, arguments are not validated: {}\n",
            clean_line(problem)
        ));
    }
    if let Some(problem) = tool.output_schema_problem() {
        page.push_str(&format!(
            "\nInvalid output schema, results are not validated: {}\n",
            clean_line(problem)
        ));
    }
    let hints = hints(&tool.definition);
    if !hints.is_empty() {
        page.push_str(&format!("\n{} {}\n", bold("Server annotations (unverified):"), hints.join(", ")));
    }
    page
}

fn add_parameters(page: &mut String, title: &str, schema: &RawValue, none: &str) {
    let fields = parameters(schema);
    match fields.is_empty() {
        true => page.push_str(&format!("\n{none}\n")),
        false => page.push_str(&format!("\n{title}\n")),
    }
    add_fields(page, &fields, 0);
}

fn add_fields(page: &mut String, fields: &[ToolParameter], depth: usize) {
    let indent = "  ".repeat(depth);
    for field in fields {
        let needed = if field.required { "required" } else { "optional" };
        page.push_str(&format!(
            "{indent}• {} ({needed}): {}",
            clean_name(&field.name),
            clean_line(&field.kind)
        ));
        if let Some(description) = field.description.as_deref().map(str::trim).filter(|text| !text.is_empty())
        {
            // Further lines are aligned with the first.
            let lines: Vec<String> =
                clean(description).lines().map(|line| line.trim_end().to_owned()).collect();
            page.push_str(" - ");
            page.push_str(&lines.join(&format!("\n{indent}  ")));
        }
        for remark in field.remarks() {
            page.push_str(&format!(" {}", clean_line(&remark)));
        }
        page.push('\n');
        add_fields(page, &field.fields, depth + 1);
    }
}

/// Returns the annotations of the server, which are unverified.
fn hints(definition: &RawValue) -> Vec<&'static str> {
    let definition: Value = serde_json::from_str(definition.get()).unwrap_or_default();
    let hint = |key: &str| definition.get("annotations")?.get(key)?.as_bool();
    let words = [
        ("readOnlyHint", "read-only", "not read-only"),
        ("destructiveHint", "destructive", "not destructive"),
        ("idempotentHint", "idempotent", "not idempotent"),
        ("openWorldHint", "open-world", "closed-world"),
    ];
    let declared =
        words.iter().filter_map(|(key, yes, no)| hint(key).map(|hint| if hint { *yes } else { *no }));
    declared.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};
    use toolyard_hub::json::to_raw;
    use toolyard_hub::{
        BoxFuture, HubError, Outcome, Source, SourceCall, SourceName, SourceOffer, ToolOffer, Yard,
    };

    use super::page;

    /// A server with one tool.
    struct One(SourceName, Value);

    impl Source for One {
        fn name(&self) -> &SourceName {
            &self.0
        }

        fn offer(&self) -> Arc<SourceOffer> {
            let tool = ToolOffer {
                definition: to_raw(&self.1),
                permissions: Vec::new(),
                metadata: serde_json::Map::new(),
                hooks: Vec::new(),
                listing: toolyard_hub::ToolListing::Listed,
            };
            Arc::new(SourceOffer { tools: vec![tool], ..SourceOffer::default() })
        }

        fn call<'a>(&'a self, _: SourceCall) -> BoxFuture<'a, Result<Outcome, HubError>> {
            Box::pin(async { Err(HubError::new(toolyard_hub::ErrorKind::ToolFailed, "not today")) })
        }
    }

    fn shown(server: &str, definition: Value) -> String {
        let yard =
            Yard::with_sources([Arc::new(One(SourceName::new(server), definition)) as Arc<dyn Source>]);
        page(&yard.catalog().tools()[0], &|text| text.to_owned())
    }

    #[test]
    fn the_example_of_the_specification_appears_line_for_line() {
        let tool = json!({
            "name": "javascript_tool",
            "description": "Execute JavaScript code in the context of the current page...",
            "inputSchema": {"type": "object", "properties": {
                "action": {"type": "string", "description": "Must be set to 'javascript_exec'"},
                "text": {"type": "string", "description": "The JavaScript code to execute..."},
                "tabId": {"type": "number", "description": "Tab ID to execute the code in..."},
            }, "required": ["action", "text", "tabId"]},
        });
        let expected = "\
Tool name: javascript_tool
Full name: mcp__claude-in-chrome__javascript_tool

Description:
Execute JavaScript code in the context of the current page...

Parameters:
• action (required): string - Must be set to 'javascript_exec'
• text (required): string - The JavaScript code to execute...
• tabId (required): number - Tab ID to execute the code in...
";
        assert_eq!(shown("claude-in-chrome", tool), expected);
    }

    #[test]
    fn everything_that_a_schema_says_is_shown() {
        let tool = json!({
            "name": "plan", "title": "Plan a trip",
            "description": "Plans.\n\nTakes a while.",
            "annotations": {"readOnlyHint": true, "openWorldHint": true},
            "inputSchema": {"type": "object", "properties": {
                "days": {"type": "integer", "minimum": 1, "maximum": 30, "default": 7, "description": "How long.\nIn days."},
                "stops": {"type": "array", "items": {"type": "object", "properties": {
                    "city": {"type": "string"}, "nights": {"type": "integer", "default": 1},
                }, "required": ["city"]}},
                "by": {"enum": ["train", "boat"]},
                "who": {"type": "string"},
            }, "required": ["who"]},
            "outputSchema": {"type": "object", "properties": {"price": {"type": "number"}}, "required": ["price"]},
        });
        insta::assert_snapshot!(shown("travel", tool));
    }

    #[test]
    fn what_a_terminal_would_obey_is_made_harmless() {
        let tool = json!({
            "name": "evil\u{1b}[2J\u{202e}name",
            "description": "\u{1b}]0;owned\u{7}Says\u{8} hello.",
            "inputSchema": {"type": "object", "properties": {
                "a\u{1b}[31m": {"type": "str\u{9b}1m", "description": "x\r\ny\u{2066}", "default": "\u{7}"},
            }},
        });
        insta::assert_snapshot!(shown("odd", tool));
    }

    #[test]
    fn a_tool_that_says_nothing_has_a_page_too() {
        insta::assert_snapshot!(shown("s", json!({"name": "quiet", "inputSchema": {"type": "object"}})));
    }
}
