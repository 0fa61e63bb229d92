//! The details of one tool, resource, template or prompt: names, description, parameters. The
//! layout of a tool follows `/mcp` in common assistants.

use serde_json::Value;
use toolyard_hub::parameters::type_name;
use toolyard_hub::{Raw, ToolParameter};

use crate::catalog_item::CatalogItem;
use crate::text::{clean, clean_lines, format_size, truncate};

/// How deep nested parameters are listed, and how many lines of them.
const DEEPEST: usize = 4;
const MOST: usize = 500;
/// How much of a description is shown: of the item, and of one parameter. The definition contains
/// all of it.
const LONGEST: usize = 20_000;
const LONGEST_OF_ONE: usize = 2_000;

/// A line of details. The label is highlighted, and `hang` is the indentation of wrapped lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetailLine {
    /// The highlighted beginning of the line.
    pub(crate) label: String,
    pub(crate) text: String,
    pub(crate) hang: usize,
}

impl DetailLine {
    fn labeled(label: &str, text: &str) -> Self {
        Self { label: label.to_owned(), text: clean(text).into_owned(), hang: 2 }
    }

    fn heading(label: &str) -> Self {
        Self { label: label.to_owned(), text: String::new(), hang: 0 }
    }

    fn text(text: &str) -> Self {
        Self { label: String::new(), text: text.to_owned(), hang: 0 }
    }

    fn blank() -> Self {
        Self::text("")
    }
}

pub(crate) fn details(thing: &CatalogItem) -> Vec<DetailLine> {
    match thing {
        CatalogItem::Tool(tool) => {
            let mut lines = name_lines("Tool name: ", &tool.raw_name, tool.full_name.as_str());
            push_description(&mut lines, tool.description.as_deref());
            lines.push(DetailLine::heading("Parameters:"));
            lines.extend(parameter_lines(&thing.input_schema().unwrap_or_else(|| tool.input_schema.clone())));
            if let Some(schema) = &tool.output_schema {
                lines.push(DetailLine::blank());
                lines.push(DetailLine::heading("Output schema:"));
                lines.extend(parameter_lines(schema));
            }
            push_hints(&mut lines, &thing.definition());
            if tool.title != tool.raw_name {
                lines.push(DetailLine::blank());
                lines.push(DetailLine::labeled("Title: ", &tool.title));
            }
            if let Some(problem) = tool.schema_problem() {
                lines.push(DetailLine::blank());
                lines.push(DetailLine::labeled("Input schema cannot be used: ", problem));
            }
            if let Some(problem) = tool.output_schema_problem() {
                lines.push(DetailLine::blank());
                lines.push(DetailLine::labeled("Output schema cannot be used: ", problem));
            }
            lines
        }
        CatalogItem::Prompt(prompt) => {
            let definition = thing.definition();
            let mut lines = name_lines("Prompt name: ", &prompt.raw_name, prompt.full_name.as_str());
            push_description(&mut lines, definition.get("description").and_then(Value::as_str));
            lines.push(DetailLine::heading("Arguments:"));
            let before = lines.len();
            for argument in definition.get("arguments").and_then(Value::as_array).into_iter().flatten() {
                let text_of = |key: &str| argument.get(key).and_then(Value::as_str);
                let required = argument.get("required").and_then(Value::as_bool) == Some(true);
                let name = text_of("name").unwrap_or_default();
                lines.push(bullet(0, name, required, "string", text_of("description"), &[]));
            }
            if lines.len() == before {
                lines.push(DetailLine::text("No arguments"));
            }
            lines
        }
        CatalogItem::Resource(resource) => {
            let mut lines = vec![DetailLine::labeled("URI: ", &resource.uri)];
            push_resource(&mut lines, &thing.definition());
            lines
        }
        CatalogItem::Template(template) => {
            let mut lines = vec![DetailLine::labeled("URI template: ", &template.template)];
            push_resource(&mut lines, &thing.definition());
            lines
        }
    }
}

fn name_lines(label: &str, raw: &str, full: &str) -> Vec<DetailLine> {
    vec![DetailLine::labeled(label, raw), DetailLine::labeled("Full name: ", full), DetailLine::blank()]
}

fn push_description(lines: &mut Vec<DetailLine>, description: Option<&str>) {
    lines.push(DetailLine::heading("Description:"));
    match description.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => lines.extend(clean_lines(&truncate(text, LONGEST)).lines().map(DetailLine::text)),
        None => lines.push(DetailLine::text("No description")),
    }
    lines.push(DetailLine::blank());
}

fn push_resource(lines: &mut Vec<DetailLine>, definition: &Value) {
    let text_of = |key: &str| definition.get(key).and_then(Value::as_str);
    for (label, key) in [("Name: ", "name"), ("Title: ", "title"), ("Type: ", "mimeType")] {
        if let Some(text) = text_of(key) {
            lines.push(DetailLine::labeled(label, text));
        }
    }
    if let Some(bytes) = definition.get("size").and_then(Value::as_u64) {
        lines.push(DetailLine::labeled("Size: ", &format_size(usize::try_from(bytes).unwrap_or(usize::MAX))));
    }
    lines.push(DetailLine::blank());
    push_description(lines, text_of("description"));
    lines.pop();
}

/// Lists the properties of a schema, one line each, with the properties of nested objects below
/// them.
fn parameter_lines(schema: &Raw) -> Vec<DetailLine> {
    let fields = toolyard_hub::parameters(schema);
    if fields.is_empty() {
        let root: Value = serde_json::from_str(schema.get()).unwrap_or_default();
        let word = type_name(&root, &root);
        let text = if word == "object" || word == "any" {
            "No parameters".to_owned()
        } else {
            clean(&word).into_owned()
        };
        return vec![DetailLine::text(&text)];
    }
    let mut lines = Vec::new();
    push_fields(&mut lines, &fields, 0);
    if lines.len() >= MOST {
        lines.push(DetailLine::text("… more parameters are not listed; see the schema"));
    }
    lines
}

fn push_fields(lines: &mut Vec<DetailLine>, fields: &[ToolParameter], depth: usize) {
    for field in fields {
        if lines.len() >= MOST {
            return;
        }
        let about = field.description.as_deref();
        lines.push(bullet(depth, &field.name, field.required, &field.kind, about, &field.remarks()));
        if depth + 1 < DEEPEST {
            push_fields(lines, &field.fields, depth + 1);
        }
    }
}

fn bullet(
    depth: usize,
    name: &str,
    required: bool,
    word: &str,
    about: Option<&str>,
    remarks: &[String],
) -> DetailLine {
    let need = if required { "required" } else { "optional" };
    let mut text = format!("({need}): {}", clean(word));
    if let Some(about) = about.map(str::trim).filter(|about| !about.is_empty()) {
        text.push_str(" - ");
        text.push_str(&clean(&truncate(about, LONGEST_OF_ONE)));
    }
    for remark in remarks {
        text.push(' ');
        text.push_str(&clean(remark));
    }
    let indent = "  ".repeat(depth);
    DetailLine { label: format!("{indent}• {} ", clean(name)), text, hang: 2 * depth + 2 }
}

/// Adds the annotations of the server, which Toolyard does not verify.
fn push_hints(lines: &mut Vec<DetailLine>, definition: &Value) {
    let hints = describe_hints(definition);
    if !hints.is_empty() {
        lines.push(DetailLine::blank());
        lines.push(DetailLine::heading("Server annotations (unverified):"));
        lines.extend(hints.into_iter().map(|hint| DetailLine::text(&format!("• {hint}"))));
    }
}

/// Describes each annotation of a definition.
pub(crate) fn describe_hints(definition: &Value) -> Vec<String> {
    const HINTS: [(&str, &str, &str); 4] = [
        ("readOnlyHint", "read-only", "not read-only"),
        ("destructiveHint", "destructive", "not destructive"),
        ("idempotentHint", "idempotent", "not idempotent"),
        ("openWorldHint", "open-world", "closed-world"),
    ];
    let annotations = definition.get("annotations");
    let value_of = |key: &str| annotations.and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let word = |(key, yes, no): &(&str, &str, &str)| {
        value_of(key).map(|is| if is { (*yes).to_owned() } else { (*no).to_owned() })
    };
    HINTS.iter().filter_map(word).collect()
}
