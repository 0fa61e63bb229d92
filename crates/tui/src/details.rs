//! One tool, resource, template or prompt in words: names, description, parameters. The layout of a tool is that of
//! `/mcp` in the assistants people know.

use serde_json::Value;
use toolyard_hub::parameters::type_name;
use toolyard_hub::{Raw, ToolParameter};

use crate::catalog_item::CatalogItem;
use crate::text::{clean, clean_lines, format_size, truncate};

/// How deep the members of members are told, and how many lines of them.
const DEEPEST: usize = 4;
const MOST: usize = 500;
/// How much of a description is told, of the thing and of one parameter. The definition has it all.
const LONGEST: usize = 20_000;
const LONGEST_OF_ONE: usize = 2_000;

/// A line of details: a heading is told apart, and `hang` is how far what does not fit is indented.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetailLine {
    /// What the line begins with that is only there to be found.
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
            let mut told = name_lines("Tool name: ", &tool.raw_name, tool.full_name.as_str());
            push_description(&mut told, tool.description.as_deref());
            told.push(DetailLine::heading("Parameters:"));
            told.extend(parameter_lines(&thing.input_schema().unwrap_or_else(|| tool.input_schema.clone())));
            if let Some(schema) = &tool.output_schema {
                told.push(DetailLine::blank());
                told.push(DetailLine::heading("Result:"));
                told.extend(parameter_lines(schema));
            }
            push_hints(&mut told, &thing.definition());
            if tool.title != tool.raw_name {
                told.push(DetailLine::blank());
                told.push(DetailLine::labeled("Title: ", &tool.title));
            }
            if let Some(problem) = tool.schema_problem() {
                told.push(DetailLine::blank());
                told.push(DetailLine::labeled("The schema cannot be used: ", problem));
            }
            if let Some(problem) = tool.output_schema_problem() {
                told.push(DetailLine::blank());
                told.push(DetailLine::labeled("The output schema cannot be used: ", problem));
            }
            told
        }
        CatalogItem::Prompt(prompt) => {
            let definition = thing.definition();
            let mut told = name_lines("Prompt name: ", &prompt.raw_name, prompt.full_name.as_str());
            push_description(&mut told, definition.get("description").and_then(Value::as_str));
            told.push(DetailLine::heading("Arguments:"));
            let before = told.len();
            for argument in definition.get("arguments").and_then(Value::as_array).into_iter().flatten() {
                let said = |key: &str| argument.get(key).and_then(Value::as_str);
                let required = argument.get("required").and_then(Value::as_bool) == Some(true);
                let name = said("name").unwrap_or_default();
                told.push(bullet(0, name, required, "string", said("description"), &[]));
            }
            if told.len() == before {
                told.push(DetailLine::text("No arguments"));
            }
            told
        }
        CatalogItem::Resource(resource) => {
            let mut told = vec![DetailLine::labeled("URI: ", &resource.uri)];
            push_resource(&mut told, &thing.definition());
            told
        }
        CatalogItem::Template(template) => {
            let mut told = vec![DetailLine::labeled("URI template: ", &template.template)];
            push_resource(&mut told, &thing.definition());
            told
        }
    }
}

fn name_lines(label: &str, raw: &str, full: &str) -> Vec<DetailLine> {
    vec![DetailLine::labeled(label, raw), DetailLine::labeled("Full name: ", full), DetailLine::blank()]
}

fn push_description(told: &mut Vec<DetailLine>, description: Option<&str>) {
    told.push(DetailLine::heading("Description:"));
    match description.map(str::trim).filter(|text| !text.is_empty()) {
        Some(text) => told.extend(clean_lines(&truncate(text, LONGEST)).lines().map(DetailLine::text)),
        None => told.push(DetailLine::text("No description")),
    }
    told.push(DetailLine::blank());
}

fn push_resource(told: &mut Vec<DetailLine>, definition: &Value) {
    let said = |key: &str| definition.get(key).and_then(Value::as_str);
    for (label, key) in [("Name: ", "name"), ("Title: ", "title"), ("Type: ", "mimeType")] {
        if let Some(text) = said(key) {
            told.push(DetailLine::labeled(label, text));
        }
    }
    if let Some(bytes) = definition.get("size").and_then(Value::as_u64) {
        told.push(DetailLine::labeled("Size: ", &format_size(usize::try_from(bytes).unwrap_or(usize::MAX))));
    }
    told.push(DetailLine::blank());
    push_description(told, said("description"));
    told.pop();
}

/// The members of a schema, one line each, those of objects within it below them.
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
    let mut told = Vec::new();
    push_fields(&mut told, &fields, 0);
    if told.len() >= MOST {
        told.push(DetailLine::text("… and more than can be listed; the schema has it all"));
    }
    told
}

fn push_fields(told: &mut Vec<DetailLine>, fields: &[ToolParameter], depth: usize) {
    for field in fields {
        if told.len() >= MOST {
            return;
        }
        let about = field.description.as_deref();
        told.push(bullet(depth, &field.name, field.required, &field.kind, about, &field.remarks()));
        if depth + 1 < DEEPEST {
            push_fields(told, &field.fields, depth + 1);
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

/// What the server says about the tool's manners. Nobody has checked it.
fn push_hints(told: &mut Vec<DetailLine>, definition: &Value) {
    let hints = describe_hints(definition);
    if !hints.is_empty() {
        told.push(DetailLine::blank());
        told.push(DetailLine::heading("Hints from the server (nobody has checked them):"));
        told.extend(hints.into_iter().map(|hint| DetailLine::text(&format!("• {hint}"))));
    }
}

/// Each hint of a definition in words.
pub(crate) fn describe_hints(definition: &Value) -> Vec<String> {
    const HINTS: [(&str, &str); 4] = [
        ("readOnlyHint", "read-only"),
        ("destructiveHint", "destructive"),
        ("idempotentHint", "idempotent"),
        ("openWorldHint", "reaches out into the world"),
    ];
    let annotations = definition.get("annotations");
    let said = |key: &str| annotations.and_then(|hints| hints.get(key)).and_then(Value::as_bool);
    let word = |(key, word): &(&str, &str)| {
        said(key).map(|yes| format!("{word}: {}", if yes { "yes" } else { "no" }))
    };
    HINTS.iter().filter_map(word).collect()
}
