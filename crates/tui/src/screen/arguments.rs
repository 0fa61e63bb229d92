//! The arguments of a call, as a form.

use ratatui::layout::Rect;
use serde_json::{Map, Value, json};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{CallTarget, Raw, UriTemplate};

use super::{CallPlan, ScreenAction};
use crate::calls::CallSpec;
use crate::canvas::{Canvas, inset, split_top};
use crate::catalog_item::CatalogItem;
use crate::form::{FormAction, SchemaForm};
use crate::key::KeyPress;
use crate::text::{clean, clip, truncate};
use crate::ui_state::UiState;
use crate::uri;

#[derive(Debug)]
pub(crate) struct ArgumentsScreen {
    thing: CatalogItem,
    pub(crate) form: SchemaForm,
}

impl ArgumentsScreen {
    pub(crate) fn new(thing: CatalogItem) -> Self {
        let (schema, button) = match &thing {
            CatalogItem::Tool(tool) => {
                (thing.input_schema().unwrap_or_else(|| tool.input_schema.clone()), "call")
            }
            CatalogItem::Template(template) => (template_schema(&template.template), "read"),
            CatalogItem::Resource(_) => (to_raw(&json!({"type": "object"})), "read"),
            CatalogItem::Prompt(_) => (prompt_schema(&thing.definition()), "get"),
        };
        Self { thing, form: SchemaForm::new(schema, button) }
    }

    /// Opens the form with the arguments of an earlier call.
    pub(crate) fn from_call(thing: CatalogItem, subject: &CallSpec) -> Self {
        let mut filling = Self::new(thing);
        let values = match (&filling.thing, &subject.target) {
            (CatalogItem::Template(template), CallTarget::Resource { uri }) => {
                let values = UriTemplate::parse(&template.template).extract_values(uri).unwrap_or_default();
                let values: Map<String, Value> =
                    values.into_iter().map(|(name, value)| (name, value.into())).collect();
                Some(to_raw(&values))
            }
            _ => subject.arguments().cloned(),
        };
        if let Some(values) = values {
            filling.form = filling.form.with_values(&values);
        }
        filling
    }

    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.form.button(), clean(&truncate(self.thing.raw_name(), 200)))
    }

    pub(crate) fn update(&mut self, key: KeyPress, world: &UiState) -> ScreenAction {
        match self.form.press(key) {
            FormAction::Stay => ScreenAction::Stay,
            FormAction::Leave => ScreenAction::Back,
            FormAction::Ignored => ScreenAction::Ignored,
            FormAction::Invalid(why) => ScreenAction::Warn(why),
            FormAction::Submit(values) => match world.unavailable_reason(&self.thing) {
                // The form keeps its values until the server is back.
                Some(trouble) => ScreenAction::Warn(format!("{trouble}; nothing was sent")),
                None => ScreenAction::Call(Box::new(self.plan(values))),
            },
        }
    }

    fn plan(&self, values: Raw) -> CallPlan {
        let name = self.thing.key().to_owned();
        let what = match &self.thing {
            CatalogItem::Tool(_) => CallTarget::Tool { name, arguments: Some(values) },
            CatalogItem::Prompt(_) => CallTarget::Prompt { name, arguments: Some(values) },
            CatalogItem::Resource(_) => CallTarget::Resource { uri: name },
            CatalogItem::Template(template) => {
                CallTarget::Resource { uri: uri::expand(&template.template, &string_members(&values)) }
            }
        };
        let raw_name = match &what {
            CallTarget::Resource { uri } => uri.clone(),
            _ => self.thing.raw_name().to_owned(),
        };
        let subject = CallSpec { source: self.thing.source().clone(), raw_name, target: what };
        CallPlan { thing: Some(self.thing.clone()), subject }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &UiState) {
        let (head, body) = split_top(area, 2);
        let summary = match &self.thing {
            CatalogItem::Tool(tool) => tool.description.clone().unwrap_or_default(),
            CatalogItem::Template(template) => {
                uri::expand(&template.template, &string_members(&self.form.value()))
            }
            _ => {
                let definition = self.thing.definition();
                definition.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
        };
        let summary = clean(&truncate(&summary, 500)).into_owned();
        let theme = canvas.theme;
        canvas.text(
            inset(head, 1),
            0,
            &clip(&summary, usize::from(head.width).saturating_sub(2)),
            theme.dim(),
        );
        match world.unavailable_reason(&self.thing) {
            Some(trouble) => canvas.text(inset(head, 1), 1, &format!("! {trouble}"), theme.warn()),
            None => canvas.rule(head, 1),
        }
        self.form.draw(canvas, body);
    }
}

fn prompt_schema(definition: &Value) -> Raw {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for argument in definition.get("arguments").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = argument.get("name").and_then(Value::as_str) else { continue };
        let mut schema = json!({"type": "string"});
        if let Some(about) = argument.get("description") {
            schema["description"] = about.clone();
        }
        if argument.get("required").and_then(Value::as_bool) == Some(true) {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema);
    }
    to_raw(&json!({"type": "object", "properties": properties, "required": required}))
}

fn template_schema(template: &str) -> Raw {
    let parsed = UriTemplate::parse(template);
    let properties: Map<String, Value> =
        parsed.names().map(|name| (name.to_owned(), json!({"type": "string"}))).collect();
    let required = uri::required_variables(template);
    to_raw(&json!({"type": "object", "properties": properties, "required": required}))
}

/// Returns the string members of an object by name.
fn string_members(values: &Raw) -> Vec<(String, String)> {
    let object = Object::parse(values).unwrap_or_default();
    let read = |(name, value): (&str, &serde_json::value::RawValue)| {
        Some((name.to_owned(), serde_json::from_str::<String>(value.get()).ok()?))
    };
    object.members().filter_map(read).collect()
}
