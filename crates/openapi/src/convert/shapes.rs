//! The keywords that have schemas in them: of arrays, of objects, and those that put schemas together.

use serde_json::{Map, Value, json};

use super::pattern::portable;
use super::schema::{Direction, Schemas};
use super::spot::At;

type Members = Map<String, Value>;

impl Schemas<'_> {
    pub(super) fn arrays(&mut self, source: &Members, at: &At<'_>, direction: Direction, out: &mut Members) {
        let rest = match (source.get("prefixItems"), source.get("items")) {
            (Some(Value::Array(first)), rest) => {
                self.tuple(first, &at.key("prefixItems"), direction, out);
                rest.or_else(|| source.get("unevaluatedItems")).map(|rest| ("items", rest))
            }
            (_, Some(Value::Array(first))) => {
                self.tuple(first, &at.key("items"), direction, out);
                source.get("additionalItems").map(|rest| ("additionalItems", rest))
            }
            (_, Some(items)) => {
                let items = self.inner(items, &at.key("items"), direction);
                out.insert("items".to_owned(), items);
                None
            }
            (_, None) => None,
        };
        match rest {
            Some((_, Value::Bool(more))) if out.contains_key("items") => {
                out.insert("additionalItems".to_owned(), Value::Bool(*more));
            }
            Some((key, rest)) if out.contains_key("items") => {
                let rest = self.inner(rest, &at.key(key), direction);
                out.insert("additionalItems".to_owned(), rest);
            }
            _ => {}
        }
        if let Some(contains) = source.get("contains") {
            let least = source.get("minContains").and_then(Value::as_u64);
            if least != Some(0) {
                let contains = self.inner(contains, &at.key("contains"), direction);
                out.insert("contains".to_owned(), contains);
            }
            if least.is_some_and(|least| least > 1) || source.contains_key("maxContains") {
                let message = "Draft 07 cannot say how many items must match; it is not checked";
                self.report.note(&at.key("contains"), "no-such-keyword", message);
            }
        }
    }

    /// Draft 07 has the list of the first items' schemas in `items`; an empty one says nothing.
    fn tuple(&mut self, first: &[Value], at: &At<'_>, direction: Direction, out: &mut Members) {
        let first: Vec<Value> =
            first.iter().enumerate().map(|(n, item)| self.inner(item, &at.index(n), direction)).collect();
        if !first.is_empty() {
            out.insert("items".to_owned(), Value::Array(first));
        }
    }

    pub(super) fn objects(&mut self, source: &Members, at: &At<'_>, direction: Direction, out: &mut Members) {
        let mut hidden = Vec::new();
        if let Some(properties) = source.get("properties") {
            let here = at.key("properties");
            match properties {
                Value::Object(properties) => {
                    let mut shown = Members::new();
                    for (name, property) in properties {
                        if self.is_hidden(property, at.part, direction) {
                            hidden.push(name.as_str());
                            continue;
                        }
                        let converted = self.inner(property, &here.key(name), direction);
                        shown.insert(name.clone(), converted);
                    }
                    out.insert("properties".to_owned(), Value::Object(shown));
                }
                other => self.wrong(&here, "properties", other),
            }
        }
        self.required(source, at, &hidden, out);
        if let Some(Value::Object(patterns)) = source.get("patternProperties") {
            self.patterns(patterns, &at.key("patternProperties"), direction, out);
        }
        match source.get("additionalProperties") {
            None => self.unevaluated(source, at, out),
            Some(Value::Bool(more)) => {
                out.insert("additionalProperties".to_owned(), Value::Bool(*more));
            }
            Some(more) => {
                let more = self.inner(more, &at.key("additionalProperties"), direction);
                out.insert("additionalProperties".to_owned(), more);
            }
        }
        if let Some(names) = source.get("propertyNames") {
            let names = self.inner(names, &at.key("propertyNames"), direction);
            out.insert("propertyNames".to_owned(), names);
        }
        self.dependencies(source, at, direction, out);
    }

    fn wrong(&mut self, at: &At<'_>, what: &str, found: &Value) {
        let message = format!("`{what}` is {}; it was left out", crate::document::kind(found));
        self.report.warn(at, "wrong-type", message);
    }

    fn required(&mut self, source: &Members, at: &At<'_>, hidden: &[&str], out: &mut Members) {
        match source.get("required") {
            Some(Value::Array(names)) => {
                let mut kept: Vec<&str> = Vec::new();
                for name in names {
                    match name {
                        Value::String(name)
                            if hidden.contains(&name.as_str())
                                || self.hidden.contains(name)
                                || kept.contains(&name.as_str()) => {}
                        Value::String(name) => kept.push(name),
                        other => self.wrong(&at.key("required"), "required", other),
                    }
                }
                if !kept.is_empty() {
                    out.insert("required".to_owned(), Value::from(kept));
                }
            }
            None | Some(Value::Null) => {}
            Some(Value::Bool(_)) => {
                let message = "`required` is a boolean; the list belongs to the schema around this one";
                self.report.note(&at.key("required"), "odd-required", message);
            }
            Some(other) => self.wrong(&at.key("required"), "required", other),
        }
    }

    fn patterns(&mut self, patterns: &Members, at: &At<'_>, direction: Direction, out: &mut Members) {
        let mut kept = Members::new();
        for (pattern, schema) in patterns {
            match portable(pattern) {
                Some(portable) => {
                    let schema = self.inner(schema, &at.key(pattern), direction);
                    kept.insert(portable, schema);
                }
                None => {
                    let message = "not every checker reads this pattern; such properties are not checked";
                    self.report.note(&at.key(pattern), "odd-pattern", message);
                }
            }
        }
        out.insert("patternProperties".to_owned(), Value::Object(kept));
    }

    /// `unevaluatedProperties` is `additionalProperties` where nothing else could have evaluated any.
    fn unevaluated(&mut self, source: &Members, at: &At<'_>, out: &mut Members) {
        let Some(more) = source.get("unevaluatedProperties") else { return };
        let others = ["allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas", "not", "$dynamicRef"];
        if *more == Value::Bool(false) && !others.iter().any(|other| source.contains_key(*other)) {
            out.insert("additionalProperties".to_owned(), Value::Bool(false));
        } else if *more != Value::Bool(true) {
            let message = "Draft 07 has no `unevaluatedProperties`; further properties are not checked";
            self.report.note(&at.key("unevaluatedProperties"), "no-such-keyword", message);
        }
    }

    fn dependencies(&mut self, source: &Members, at: &At<'_>, direction: Direction, out: &mut Members) {
        let mut all = Members::new();
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            let Some(Value::Object(dependencies)) = source.get(keyword) else { continue };
            let here = at.key(keyword);
            for (name, dependency) in dependencies {
                let converted = match dependency {
                    Value::Array(names) => {
                        let mut kept: Vec<&str> = Vec::new();
                        for name in names.iter().filter_map(Value::as_str) {
                            if !kept.contains(&name) {
                                kept.push(name);
                            }
                        }
                        Value::from(kept)
                    }
                    schema => self.schema(schema, &here.key(name), direction),
                };
                let both = match (all.remove(name), converted) {
                    (None, one) => one,
                    (Some(first), second) => json!({"allOf": [as_schema(first), as_schema(second)]}),
                };
                all.insert(name.clone(), both);
            }
        }
        if !all.is_empty() {
            out.insert("dependencies".to_owned(), Value::Object(all));
        }
    }

    /// `allOf`, `anyOf`, `oneOf`, `not`, conditions and the discriminator; gives back whether there were any.
    pub(super) fn composed(
        &mut self,
        source: &Members,
        at: &At<'_>,
        direction: Direction,
        out: &mut Members,
        remarks: &mut Vec<String>,
    ) -> bool {
        let mut any = false;
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(branches) = source.get(keyword) else { continue };
            let here = at.key(keyword);
            let Value::Array(branches) = branches else {
                self.wrong(&here, keyword, branches);
                continue;
            };
            let mut converted: Vec<Value> = branches
                .iter()
                .enumerate()
                .map(|(n, branch)| self.schema(branch, &here.index(n), direction))
                .collect();
            if converted.is_empty() {
                continue;
            }
            any = true;
            if keyword != "allOf" {
                self.discriminate(source, branches, &mut converted);
            }
            if keyword == "oneOf" && overlap(&converted) {
                let message =
                    "two branches allow the same, so that `oneOf` could never hold; it is `anyOf` here";
                self.report.note(&here, "loose-one-of", message);
                match out.remove("anyOf") {
                    None => drop(out.insert("anyOf".to_owned(), Value::Array(converted))),
                    Some(first) => {
                        let both = json!([{"anyOf": first}, {"anyOf": converted}]);
                        let mut all = vec![];
                        if let Some(Value::Array(before)) = out.remove("allOf") {
                            all = before;
                        }
                        all.extend(both.as_array().cloned().unwrap_or_default());
                        out.insert("allOf".to_owned(), Value::Array(all));
                    }
                }
            } else {
                out.insert(keyword.to_owned(), Value::Array(converted));
            }
        }
        if let Some(not) = source.get("not") {
            let not = self.schema(not, &at.key("not"), direction);
            // What was loosened until it allows anything must not forbid everything.
            if not.as_object().is_some_and(|not| !not.is_empty()) || source.get("not") == Some(&json!({})) {
                out.insert("not".to_owned(), not);
                any = true;
            }
        }
        if source.contains_key("if") {
            for keyword in ["if", "then", "else"] {
                let Some(branch) = source.get(keyword) else { continue };
                let branch = self.schema(branch, &at.key(keyword), direction);
                out.insert(keyword.to_owned(), branch);
                any = true;
            }
        }
        if let Some(name) = source.get("discriminator").and_then(discriminator) {
            remarks.push(format!("Which kind it is says `{name}`."));
        }
        any
    }

    /// Says in every branch that the discriminator's mapping names which values lead there.
    fn discriminate(&mut self, source: &Members, branches: &[Value], converted: &mut [Value]) {
        let Some(discriminator) = source.get("discriminator") else { return };
        let Some(name) = discriminator.get("propertyName").and_then(Value::as_str) else { return };
        let Some(Value::Object(mapping)) = discriminator.get("mapping") else { return };
        for (branch, converted) in branches.iter().zip(converted) {
            let Some(reference) = branch.get("$ref").and_then(Value::as_str) else { continue };
            if converted.as_object().is_none_or(Map::is_empty) {
                continue;
            }
            let last = reference.rsplit('/').next();
            let leads_here = |target: &&Value| {
                target.as_str().is_some_and(|target| {
                    target == reference || (!target.contains('/') && Some(target) == last)
                })
            };
            let values: Vec<&str> = mapping
                .iter()
                .filter(|(_, target)| leads_here(target))
                .map(|(value, _)| value.as_str())
                .collect();
            if !values.is_empty() {
                let kind = json!({"properties": {name: {"enum": values}}, "required": [name]});
                *converted = json!({"allOf": [converted.clone(), kind]});
            }
        }
    }
}

/// The property that says which kind it is: an object since 3.0, a name in Swagger.
fn discriminator(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("propertyName").and_then(Value::as_str))
}

fn as_schema(dependency: Value) -> Value {
    match dependency {
        Value::Array(names) => json!({"required": names}),
        schema => schema,
    }
}

/// Whether a value that fits one branch always fits another one too.
fn overlap(branches: &[Value]) -> bool {
    branches.iter().enumerate().any(|(n, branch)| {
        branch.as_object().is_some_and(Map::is_empty) && branches.len() > 1
            || branches.iter().skip(n + 1).any(|other| other == branch)
    })
}
