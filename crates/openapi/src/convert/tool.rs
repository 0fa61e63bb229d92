//! Converts one operation of a document into a tool: names its properties and assembles its
//! schemas.

use std::collections::HashSet;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use toolyard_hub::json::to_raw;

use super::body::BodyPlan;
use super::describe;
use super::location::{DiagnosticData, SpecPath};
use super::parameters::{ParameterKind, ParameterSerialization, SpecParameter, with_parameter_docs};
use super::response::{accepted_media_types, is_success_status};
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode, fields, type_schema};
use super::{ConvertSettings, DRAFT, OutputSchemaMode};
use crate::document::{ReferenceTarget, SpecNode, SpecObject};
use crate::operation::{
    Argument, ArgumentLocation, DiagnosticSeverity, Method, Operation, OperationBody, ParameterStyle,
    SecurityScheme, SecuritySchemeKind,
};

/// An operation of the document.
#[derive(Debug)]
pub(super) struct SpecOperation<'d> {
    pub(super) method: Method,
    pub(super) path: &'d str,
    pub(super) id: Option<&'d str>,
    pub(super) tags: Vec<String>,
    pub(super) members: &'d SpecObject,
    pub(super) target: ReferenceTarget,
    pub(super) item: &'d SpecObject,
    pub(super) item_target: ReferenceTarget,
}

impl SpecOperation<'_> {
    pub(super) fn label(&self) -> String {
        format!("{} {}", self.method.as_str(), self.path)
    }
}

/// A property of the input schema under construction.
struct Property<'d> {
    preferred_name: String,
    place: ArgumentLocation,
    wire_name: String,
    serialization: ParameterSerialization,
    required: bool,
    schema: SchemaNode<'d>,
}

impl<'d> SchemaConverter<'d> {
    pub(super) fn convert_operation(
        &mut self,
        source: &SpecOperation<'d>,
        name: String,
        schemes: &[SecurityScheme],
        settings: &ConvertSettings,
    ) -> Operation {
        let root = self.document.root().as_object();
        let empty = SpecObject::new();
        let root = root.unwrap_or(&empty);
        let top = SpecPath::new(0, "");
        let (item_at, at) =
            (SpecPath::from_target(&source.item_target), SpecPath::from_target(&source.target));
        let servers = self.servers([(source.members, &at), (source.item, &item_at), (root, &top)]);
        let security = self.security([(source.members, &at), (root, &top)], schemes);
        let parameters =
            self.collect_parameters([(source.item, &source.item_target), (source.members, &source.target)]);
        let consumes = media_types(source.members, root, "consumes");
        let produces = media_types(source.members, root, "produces");
        let body = match self.request_body(source.members, &at) {
            Some(body) => Some(body),
            None => self.swagger_body(&parameters, &consumes),
        };
        if body.is_some() && matches!(source.method, Method::Get | Method::Head) {
            self.report.note(&at, "odd-body", "this method has a body, which some servers ignore");
        }
        self.needs.clear();
        let keys = credential_parameters(&security, schemes);
        let mut properties = Vec::new();
        for parameter in &parameters {
            if let ParameterKind::At(place) = parameter.kind {
                self.add_parameter(source, parameter, place, &keys, &mut properties);
            }
        }
        self.add_undeclared_parameters(source, &mut properties);
        let (arguments, body, input) = self.assemble_input(properties, body, &at);
        let needs = std::mem::take(&mut self.needs);
        let packed = self.bundle(input, &needs, SchemaDirection::Input, settings.budgets.input_bytes);
        self.report_elided(&at, "input", &packed.elided);

        let responses = self.responses(source.members, &at);
        let answer = match settings.output_schemas {
            OutputSchemaMode::Exact => self.response_schema(&source.method, &responses, &produces),
            OutputSchemaMode::Lenient => self.lenient_response_schema(&source.method, &responses, &produces),
            OutputSchemaMode::Omit => None,
        };
        self.needs.clear();
        let wrapping = answer.as_ref().map(|answer| answer.wrapping).unwrap_or_default();
        let answer_rules = answer.as_ref().map(|answer| answer.rules.clone()).unwrap_or_default();
        let output = answer.map(|answer| {
            let packed = self.bundle(
                answer.root,
                &answer.needs,
                SchemaDirection::Output,
                settings.budgets.output_bytes,
            );
            self.report_elided(&at, "output", &packed.elided);
            packed.text
        });
        if !responses
            .iter()
            .any(|(status, _)| is_success_status(status) || *status == "default" || status.starts_with('3'))
        {
            self.report.note(&at, "no-good-response", "no successful response is described");
        }

        let described = settings.override_for(source, &name, &settings.descriptions).map(str::to_owned);
        let most = settings.budgets.description_characters;
        let description = described.unwrap_or_else(|| {
            describe::description(source.members, source.item, &source.label(), &parameters, &responses, most)
        });
        let title = describe::title(source.members, source.id, source.method.as_str(), source.path);
        let definition = to_raw(&Definition {
            name: &name,
            title: &title,
            description: &description,
            input_schema: &packed.text,
            output_schema: output.as_deref(),
            annotations: hints_for_method(&source.method),
            meta: Meta { method: source.method.as_str(), path: source.path, operation_id: source.id },
        });
        Operation {
            name,
            definition,
            method: source.method.clone(),
            path: source.path.to_owned(),
            servers,
            arguments,
            body,
            wrapping,
            output: Arc::default(),
            response_rules: answer_rules,
            produces: accepted_media_types(&responses, &produces),
            security,
            tags: source.tags.clone(),
            operation_id: source.id.map(str::to_owned),
        }
    }

    fn add_parameter(
        &mut self,
        source: &SpecOperation<'_>,
        parameter: &SpecParameter<'d>,
        place: ArgumentLocation,
        keys: &[(ArgumentLocation, &str)],
        properties: &mut Vec<Property<'d>>,
    ) {
        let name = &parameter.wire_name;
        let target = parameter.target.clone();
        let at = SpecPath::from_target(&target);
        if keys.iter().any(|(key_place, key)| *key_place == place && key.eq_ignore_ascii_case(name)) {
            let message =
                format!("`{name}` is a credential; it is read from the configuration and is not an argument");
            self.report.note(&at, "credential", message);
            return;
        }
        if place == ArgumentLocation::Path && !source.path.contains(&format!("{{{name}}}")) {
            let message = format!("the path has no `{{{name}}}`; parameter ignored");
            self.report.warn(&at, "not-in-path", message);
            return;
        }
        let (schema, writing) = self.parameter_schema(parameter, place);
        let required = place == ArgumentLocation::Path
            || parameter.members.get("required") == Some(&SpecNode::Bool(true));
        let mut schema = with_parameter_docs(schema, parameter.members);
        // An empty value would change the path, so the schema rejects empty strings.
        if let SchemaNode::Object(members) = &mut schema
            && place == ArgumentLocation::Path
            && members.text("type") == Some("string")
            && !members.contains_key("enum")
            && members.get("minLength").is_none_or(|least| *least == SchemaNode::from(0))
        {
            members.put("minLength", 1);
        }
        properties.push(Property {
            preferred_name: property_name(name),
            place,
            wire_name: name.clone(),
            serialization: writing,
            required,
            schema,
        });
    }

    /// Adds string properties for parts of the path that no parameter describes.
    fn add_undeclared_parameters(&mut self, source: &SpecOperation<'_>, properties: &mut Vec<Property<'d>>) {
        for name in
            source.path.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
        {
            let known = |property: &Property<'_>| {
                property.place == ArgumentLocation::Path && property.wire_name == name
            };
            if name.is_empty() || properties.iter().any(known) {
                continue;
            }
            let message = format!("no parameter describes `{{{name}}}`; treated as a string");
            self.report.warn(&SpecPath::from_target(&source.target), "undeclared-parameter", message);
            properties.push(Property {
                preferred_name: property_name(name),
                place: ArgumentLocation::Path,
                wire_name: name.to_owned(),
                serialization: simple_serialization(),
                required: true,
                schema: type_schema("string"),
            });
        }
    }

    /// Names all properties and builds the argument mapping and the input schema.
    fn assemble_input(
        &mut self,
        mut properties: Vec<Property<'d>>,
        body: Option<BodyPlan<'d>>,
        at: &SpecPath<'_>,
    ) -> (Vec<Argument>, Option<OperationBody>, SchemaFields<'d>) {
        // Names are assigned in this order, whatever the order in the document.
        properties.sort_by_key(|property| match property.place {
            ArgumentLocation::Path => 0,
            ArgumentLocation::Query => 1,
            ArgumentLocation::QueryString => 2,
            ArgumentLocation::Header => 3,
            ArgumentLocation::Cookie => 4,
            ArgumentLocation::Body | ArgumentLocation::BodyField => 5,
        });
        let body = body.map(|plan| self.add_body(plan, &mut properties));
        let mut taken = HashSet::new();
        let mut arguments = Vec::new();
        let mut shown = SchemaFields::new();
        let mut required = Vec::new();
        for property in properties {
            let mut name = property.preferred_name.clone();
            if taken.contains(&name) {
                name = format!("{name}_{}", location_suffix(property.place));
                let plain = name.clone();
                let mut n = 2;
                while taken.contains(&name) {
                    name = format!("{plain}_{n}");
                    n += 1;
                }
                let message = format!(
                    "several parameters are named `{}`; this one becomes `{name}`",
                    property.preferred_name
                );
                self.report.note(at, "name-clash", message);
            }
            taken.insert(name.clone());
            if property.required {
                required.push(SchemaNode::from(name.clone()));
            }
            shown.put(name.clone(), with_wire_name_title(property.schema, &property.wire_name));
            arguments.push(Argument {
                property: name,
                place: property.place,
                wire_name: property.wire_name,
                style: property.serialization.style,
                explode: property.serialization.explode,
                allow_reserved: property.serialization.allow_reserved,
                required: property.required,
                content: property.serialization.content,
            });
        }
        let root = fields([
            ("$schema", DRAFT.into()),
            ("type", "object".into()),
            ("properties", shown.into()),
            ("required", required.into()),
            ("additionalProperties", false.into()),
        ]);
        (arguments, body, root)
    }

    fn add_body(&mut self, plan: BodyPlan<'d>, properties: &mut Vec<Property<'d>>) -> OperationBody {
        let form = plan.whole.is_form();
        let members = plan.spread.filter(|members| {
            let clashes =
                |name: &str| properties.iter().any(|property| property.preferred_name == property_name(name));
            let mut names = HashSet::new();
            form || members.iter().all(|member| {
                let name = property_name(&member.wire_name);
                !clashes(&name) && names.insert(name)
            })
        });
        match members {
            Some(members) => {
                for member in members {
                    self.needs.extend(member.needs);
                    properties.push(Property {
                        preferred_name: property_name(&member.wire_name),
                        place: ArgumentLocation::BodyField,
                        wire_name: member.wire_name,
                        serialization: simple_serialization(),
                        required: member.required,
                        schema: member.schema,
                    });
                }
            }
            None => {
                let required = plan.body.required;
                let schema = self.whole_schema(plan.whole);
                properties.push(Property {
                    preferred_name: "body".to_owned(),
                    place: ArgumentLocation::Body,
                    wire_name: "body".to_owned(),
                    serialization: simple_serialization(),
                    required,
                    schema,
                });
            }
        }
        plan.body
    }

    fn report_elided(&mut self, at: &SpecPath<'_>, which: &str, elided: &[String]) {
        if elided.is_empty() {
            return;
        }
        let shown: Vec<&str> = elided.iter().take(5).map(String::as_str).collect();
        let more = if elided.len() > 5 { ", …" } else { "" };
        let count = elided.len();
        let message = format!(
            "the {which} schema exceeds its size limit; {count} parts were omitted: {}{more}",
            shown.join(", ")
        );
        let list: Vec<&String> = elided.iter().take(100).collect();
        let extra = DiagnosticData::Value(json!({"schema": which, "parts": count, "names": list}));
        let code = if which == "input" { "input-elided" } else { "output-elided" };
        self.report.add(DiagnosticSeverity::Warning, at, code, message, extra);
    }
}

impl ConvertSettings {
    /// Returns the setting for an operation, by its id, its method and path, or its name.
    pub(super) fn override_for<'a>(
        &self,
        source: &SpecOperation<'_>,
        name: &str,
        table: &'a std::collections::BTreeMap<String, String>,
    ) -> Option<&'a str> {
        let by_id = source.id.and_then(|id| table.get(id));
        by_id.or_else(|| table.get(&source.label())).or_else(|| table.get(name)).map(String::as_str)
    }
}

fn simple_serialization() -> ParameterSerialization {
    ParameterSerialization {
        style: ParameterStyle::Simple,
        explode: false,
        allow_reserved: false,
        content: None,
    }
}

fn location_suffix(place: ArgumentLocation) -> &'static str {
    match place {
        ArgumentLocation::Path => "path",
        ArgumentLocation::Query => "query",
        ArgumentLocation::QueryString => "querystring",
        ArgumentLocation::Header => "header",
        ArgumentLocation::Cookie => "cookie",
        ArgumentLocation::Body | ArgumentLocation::BodyField => "body",
    }
}

/// Returns the headers, cookies and query parameters that carry credentials.
fn credential_parameters<'s>(
    security: &[Vec<crate::operation::SecurityRequirement>],
    schemes: &'s [SecurityScheme],
) -> Vec<(ArgumentLocation, &'s str)> {
    let needed = |name: &str| security.iter().flatten().any(|requirement| requirement.scheme == name);
    let keys = schemes.iter().filter(|scheme| needed(&scheme.name));
    keys.filter_map(|scheme| match &scheme.kind {
        SecuritySchemeKind::ApiKey { place, wire_name } => Some((*place, wire_name.as_str())),
        _ => None,
    })
    .collect()
}

/// Returns a property name that every model provider accepts.
fn property_name(wire_name: &str) -> String {
    let fine = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
    if wire_name.chars().all(fine) && wire_name.len() <= 64 {
        return wire_name.to_owned();
    }
    let spelled = super::transliterate::transliterate(wire_name);
    let mut name = String::new();
    for character in spelled.text.chars() {
        if fine(character) {
            name.push(character);
        } else if !name.ends_with('_') && !name.is_empty() {
            name.push('_');
        }
    }
    let name = name.trim_end_matches('_');
    let hash = || super::names::short_hash(wire_name);
    match name {
        "" => format!("parameter_{}", hash()),
        long if long.len() > 64 => format!("{}_{}", &long[..55], hash()),
        name if spelled.lossy => format!("{}_{}", &name[..name.len().min(55)], hash()),
        name => name.to_owned(),
    }
}

/// Adds the original name to the description of a property whose name was transliterated.
fn with_wire_name_title<'d>(schema: SchemaNode<'d>, wire_name: &str) -> SchemaNode<'d> {
    let says = schema.as_object().is_some_and(|members| members.contains_key("title"));
    if wire_name.is_ascii() || says {
        return schema;
    }
    super::parameters::with_annotations(schema, fields([("title", wire_name.to_owned().into())]))
}

/// Returns `consumes` or `produces` of Swagger: the operation's, else the document's.
fn media_types(operation: &SpecObject, root: &SpecObject, key: &str) -> Vec<String> {
    let list = operation.get(key).or_else(|| root.get(key)).and_then(SpecNode::as_array);
    let texts = list.into_iter().flatten().filter_map(SpecNode::as_str);
    texts.filter(|text| text.contains('/')).map(str::to_owned).collect()
}

/// Builds the MCP tool definition.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Definition<'a> {
    name: &'a str,
    title: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'a RawValue>,
    annotations: Hints,
    #[serde(rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    method: &'a str,
    path: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_id: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hints {
    read_only_hint: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    destructive_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotent_hint: Option<bool>,
    open_world_hint: bool,
}

/// Derives annotations from the semantics of the HTTP method.
fn hints_for_method(method: &Method) -> Hints {
    let (read_only_hint, destructive_hint, idempotent_hint) = match method {
        Method::Get | Method::Head | Method::Options | Method::Trace | Method::Query => (true, None, None),
        Method::Delete => (false, Some(true), Some(true)),
        Method::Put => (false, None, Some(true)),
        Method::Post | Method::Patch | Method::Other(_) => (false, None, None),
    };
    Hints { read_only_hint, destructive_hint, idempotent_hint, open_world_hint: true }
}
