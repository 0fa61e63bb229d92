//! The arguments of a call, as a form.

use ratatui::layout::Rect;
use serde_json::{Map, Value, json};
use toolyard_hub::json::{Object, to_raw};
use toolyard_hub::{Raw, UriTemplate, What};

use super::{Plan, Step};
use crate::calls::Subject;
use crate::canvas::{Canvas, inset, top};
use crate::form::{Filled, Form};
use crate::key::Key;
use crate::text::{clean, clip, short};
use crate::thing::Thing;
use crate::uri;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Filling {
    thing: Thing,
    pub(crate) form: Form,
}

impl Filling {
    pub(crate) fn new(thing: Thing) -> Self {
        let (schema, button) = match &thing {
            Thing::Tool(tool) => (thing.input_schema().unwrap_or_else(|| tool.input_schema.clone()), "call"),
            Thing::Template(template) => (of_template(&template.template), "read"),
            Thing::Resource(_) => (to_raw(&json!({"type": "object"})), "read"),
            Thing::Prompt(_) => (of_prompt(&thing.definition()), "get"),
        };
        Self { thing, form: Form::new(schema, button) }
    }

    /// The form of a call that was made before.
    pub(crate) fn again(thing: Thing, subject: &Subject) -> Self {
        let mut filling = Self::new(thing);
        let values = match (&filling.thing, &subject.what) {
            (Thing::Template(template), What::Resource { uri }) => {
                let values = UriTemplate::parse(&template.template).values(uri).unwrap_or_default();
                let values: Map<String, Value> =
                    values.into_iter().map(|(name, value)| (name, value.into())).collect();
                Some(to_raw(&values))
            }
            _ => subject.arguments().cloned(),
        };
        if let Some(values) = values {
            filling.form = filling.form.filled(&values);
        }
        filling
    }

    pub(crate) fn title(&self) -> String {
        format!("{} {}", self.form.button(), clean(&short(self.thing.raw_name(), 200)))
    }

    pub(crate) fn update(&mut self, key: Key, world: &World) -> Step {
        match self.form.press(key) {
            Filled::Stay => Step::Stay,
            Filled::Leave => Step::Back,
            Filled::Ignored => Step::Ignored,
            Filled::Wrong(why) => Step::Warn(why),
            Filled::HandIn(values) => match world.trouble(&self.thing) {
                // The form stays as it is, until the server is back.
                Some(trouble) => Step::Warn(format!("{trouble}: nothing was sent")),
                None => Step::Call(Box::new(self.plan(values))),
            },
        }
    }

    fn plan(&self, values: Raw) -> Plan {
        let name = self.thing.key().to_owned();
        let what = match &self.thing {
            Thing::Tool(_) => What::Tool { name, arguments: Some(values) },
            Thing::Prompt(_) => What::Prompt { name, arguments: Some(values) },
            Thing::Resource(_) => What::Resource { uri: name },
            Thing::Template(template) => {
                What::Resource { uri: uri::expand(&template.template, &texts(&values)) }
            }
        };
        let raw_name = match &what {
            What::Resource { uri } => uri.clone(),
            _ => self.thing.raw_name().to_owned(),
        };
        let subject = Subject { source: self.thing.source().clone(), raw_name, what };
        Plan { thing: Some(self.thing.clone()), subject }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas<'_>, area: Rect, world: &World) {
        let (head, body) = top(area, 2);
        let said = match &self.thing {
            Thing::Tool(tool) => tool.description.clone().unwrap_or_default(),
            Thing::Template(template) => uri::expand(&template.template, &texts(&self.form.value())),
            _ => {
                let definition = self.thing.definition();
                definition.get("description").and_then(Value::as_str).unwrap_or_default().to_owned()
            }
        };
        let said = clean(&short(&said, 500)).into_owned();
        let theme = canvas.theme;
        canvas.text(inset(head, 1), 0, &clip(&said, usize::from(head.width).saturating_sub(2)), theme.dim());
        match world.trouble(&self.thing) {
            Some(trouble) => canvas.text(inset(head, 1), 1, &format!("! {trouble}"), theme.warn()),
            None => canvas.rule(head, 1),
        }
        self.form.draw(canvas, body);
    }
}

fn of_prompt(definition: &Value) -> Raw {
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

fn of_template(template: &str) -> Raw {
    let parsed = UriTemplate::parse(template);
    let properties: Map<String, Value> =
        parsed.names().map(|name| (name.to_owned(), json!({"type": "string"}))).collect();
    let required = uri::required(template);
    to_raw(&json!({"type": "object", "properties": properties, "required": required}))
}

/// The texts of an object by name.
fn texts(values: &Raw) -> Vec<(String, String)> {
    let object = Object::parse(values).unwrap_or_default();
    let read = |(name, value): (&str, &serde_json::value::RawValue)| {
        Some((name.to_owned(), serde_json::from_str::<String>(value.get()).ok()?))
    };
    object.members().filter_map(read).collect()
}
