//! The keywords that have schemas in them: of arrays, of objects, and those that put schemas together.

use super::draft::{Draft, Fields, object};
use super::pattern::portable;
use super::schema::{Direction, Schemas};
use super::spot::At;
use super::view::View;
use crate::document::{Members, Node};

impl<'d> Schemas<'d> {
    pub(super) fn arrays(
        &mut self,
        source: View<'d>,
        at: &At<'_>,
        direction: Direction,
        out: &mut Fields<'d>,
    ) {
        let rest = match (source.get("prefixItems"), source.get("items")) {
            (Some(Node::Array(first)), rest) => {
                self.tuple(first, &at.key("prefixItems"), direction, out);
                rest.or_else(|| source.get("unevaluatedItems")).map(|rest| ("items", rest))
            }
            (_, Some(Node::Array(first))) => {
                self.tuple(first, &at.key("items"), direction, out);
                source.get("additionalItems").map(|rest| ("additionalItems", rest))
            }
            (_, Some(items)) => {
                let items = self.inner(items, &at.key("items"), direction);
                out.put("items", items);
                None
            }
            (_, None) => None,
        };
        match rest {
            Some((_, Node::Bool(more))) if out.contains_key("items") => {
                out.put("additionalItems", *more);
            }
            Some((key, rest)) if out.contains_key("items") => {
                let rest = self.inner(rest, &at.key(key), direction);
                out.put("additionalItems", rest);
            }
            _ => {}
        }
        if let Some(contains) = source.get("contains") {
            let least = source.get("minContains").and_then(Node::as_u64);
            if least != Some(0) {
                let contains = self.inner(contains, &at.key("contains"), direction);
                out.put("contains", contains);
            }
            if least.is_some_and(|least| least > 1) || source.contains_key("maxContains") {
                let message = "Draft 07 cannot say how many items must match; it is not checked";
                self.report.note(&at.key("contains"), "no-such-keyword", message);
            }
        }
    }

    /// Draft 07 has the list of the first items' schemas in `items`; an empty one says nothing.
    fn tuple(&mut self, first: &'d [Node], at: &At<'_>, direction: Direction, out: &mut Fields<'d>) {
        let first: Vec<Draft<'d>> =
            first.iter().enumerate().map(|(n, item)| self.inner(item, &at.index(n), direction)).collect();
        if !first.is_empty() {
            out.put("items", first);
        }
    }

    pub(super) fn objects(
        &mut self,
        source: View<'d>,
        at: &At<'_>,
        direction: Direction,
        out: &mut Fields<'d>,
    ) {
        let mut hidden = Vec::new();
        if let Some(properties) = source.get("properties") {
            let here = at.key("properties");
            match properties {
                Node::Object(properties) => {
                    let mut shown = Fields::new();
                    for (name, property) in properties.iter() {
                        if self.is_hidden(property, at.part, direction) {
                            hidden.push(name);
                            continue;
                        }
                        let converted = match self.part(property, at.part) {
                            Some(file) => file,
                            None => self.inner(property, &here.key(name), direction),
                        };
                        shown.put(name, converted);
                    }
                    out.put("properties", shown);
                }
                other => self.wrong(&here, "properties", other),
            }
        }
        self.required(source, at, &hidden, out);
        if let Some(Node::Object(patterns)) = source.get("patternProperties") {
            self.patterns(patterns, &at.key("patternProperties"), direction, out);
        }
        match source.get("additionalProperties") {
            None => self.unevaluated(source, at, out),
            Some(Node::Bool(more)) => {
                out.put("additionalProperties", *more);
            }
            Some(more) => {
                let more = match self.part(more, at.part) {
                    Some(file) => file,
                    None => self.inner(more, &at.key("additionalProperties"), direction),
                };
                out.put("additionalProperties", more);
            }
        }
        if let Some(names) = source.get("propertyNames") {
            let names = self.inner(names, &at.key("propertyNames"), direction);
            out.put("propertyNames", names);
        }
        self.dependencies(source, at, direction, out);
    }

    fn wrong(&mut self, at: &At<'_>, what: &str, found: &Node) {
        let message = format!("`{what}` is {}; it was left out", crate::document::kind(found));
        self.report.warn(at, "wrong-type", message);
    }

    fn required(&mut self, source: View<'d>, at: &At<'_>, hidden: &[&str], out: &mut Fields<'d>) {
        match source.get("required") {
            Some(Node::Array(names)) => {
                let mut kept: Vec<&str> = Vec::new();
                for name in names {
                    match name {
                        Node::String(name)
                            if hidden.contains(&&**name)
                                || self.hidden.contains(&**name)
                                || kept.contains(&&**name) => {}
                        Node::String(name) => kept.push(name),
                        other => self.wrong(&at.key("required"), "required", other),
                    }
                }
                if !kept.is_empty() {
                    out.put("required", Draft::texts(kept));
                }
            }
            None | Some(Node::Null) => {}
            Some(Node::Bool(_)) => {
                let message = "`required` is a boolean; the list belongs to the schema around this one";
                self.report.note(&at.key("required"), "odd-required", message);
            }
            Some(other) => self.wrong(&at.key("required"), "required", other),
        }
    }

    fn patterns(&mut self, patterns: &'d Members, at: &At<'_>, direction: Direction, out: &mut Fields<'d>) {
        let mut kept = Fields::new();
        for (pattern, schema) in patterns.iter() {
            match portable(pattern) {
                Some(portable) => {
                    let schema = self.inner(schema, &at.key(pattern), direction);
                    kept.put(portable, schema);
                }
                None => {
                    let message = "not every checker reads this pattern; such properties are not checked";
                    self.report.note(&at.key(pattern), "odd-pattern", message);
                }
            }
        }
        out.put("patternProperties", kept);
    }

    /// `unevaluatedProperties` is `additionalProperties` where nothing else could have evaluated any.
    fn unevaluated(&mut self, source: View<'d>, at: &At<'_>, out: &mut Fields<'d>) {
        let Some(more) = source.get("unevaluatedProperties") else { return };
        let others = ["allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas", "not", "$dynamicRef"];
        if *more == Node::Bool(false) && !others.iter().any(|other| source.contains_key(other)) {
            out.put("additionalProperties", false);
        } else if *more != Node::Bool(true) {
            let message = "Draft 07 has no `unevaluatedProperties`; further properties are not checked";
            self.report.note(&at.key("unevaluatedProperties"), "no-such-keyword", message);
        }
    }

    fn dependencies(&mut self, source: View<'d>, at: &At<'_>, direction: Direction, out: &mut Fields<'d>) {
        let mut all = Fields::new();
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            let Some(Node::Object(dependencies)) = source.get(keyword) else { continue };
            let here = at.key(keyword);
            for (name, dependency) in dependencies.iter() {
                let converted = match dependency {
                    Node::Array(names) => {
                        let mut kept: Vec<&str> = Vec::new();
                        for name in names.iter().filter_map(Node::as_str) {
                            if !kept.contains(&name) {
                                kept.push(name);
                            }
                        }
                        Draft::texts(kept)
                    }
                    schema => self.schema(schema, &here.key(name), direction),
                };
                let both = match (all.swap_remove(name), converted) {
                    (None, one) => one,
                    (Some(first), second) => {
                        object([("allOf", vec![as_schema(first), as_schema(second)].into())])
                    }
                };
                all.put(name, both);
            }
        }
        if !all.is_empty() {
            out.put("dependencies", all);
        }
    }

    /// `allOf`, `anyOf`, `oneOf`, `not`, conditions and the discriminator; gives back whether there were any.
    pub(super) fn composed(
        &mut self,
        source: View<'d>,
        at: &At<'_>,
        direction: Direction,
        out: &mut Fields<'d>,
        remarks: &mut Vec<String>,
    ) -> bool {
        let mut any = false;
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(branches) = source.get(keyword) else { continue };
            let here = at.key(keyword);
            let Node::Array(branches) = branches else {
                self.wrong(&here, keyword, branches);
                continue;
            };
            let mut converted: Vec<Draft<'d>> = branches
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
                match out.swap_remove("anyOf") {
                    None => out.put("anyOf", converted),
                    Some(first) => {
                        let mut all = vec![];
                        if let Some(Draft::List(before)) = out.swap_remove("allOf") {
                            all = before;
                        }
                        all.extend([object([("anyOf", first)]), object([("anyOf", converted.into())])]);
                        out.put("allOf", all);
                    }
                }
            } else {
                out.put(keyword, converted);
            }
        }
        if let Some(not) = source.get("not") {
            let meant = not.is_blank();
            let not = self.schema(not, &at.key("not"), direction);
            // What was loosened until it allows anything must not forbid everything.
            if !not.is_anything() || meant {
                out.put("not", not);
                any = true;
            }
        }
        if source.contains_key("if") {
            for keyword in ["if", "then", "else"] {
                let Some(branch) = source.get(keyword) else { continue };
                let branch = self.schema(branch, &at.key(keyword), direction);
                out.put(keyword, branch);
                any = true;
            }
        }
        if let Some(name) = source.get("discriminator").and_then(discriminator) {
            remarks.push(format!("Which kind it is says `{name}`."));
        }
        any
    }

    /// Says in every branch that the discriminator's mapping names which values lead there.
    fn discriminate(&mut self, source: View<'d>, branches: &[Node], converted: &mut [Draft<'d>]) {
        let Some(discriminator) = source.get("discriminator") else { return };
        let Some(name) = discriminator.get("propertyName").and_then(Node::as_str) else { return };
        let Some(Node::Object(mapping)) = discriminator.get("mapping") else { return };
        for (branch, converted) in branches.iter().zip(converted) {
            let Some(reference) = branch.get("$ref").and_then(Node::as_str) else { continue };
            if converted.is_anything() {
                continue;
            }
            let last = reference.rsplit('/').next();
            let leads_here = |target: &Node| {
                target.as_str().is_some_and(|target| {
                    target == reference || (!target.contains('/') && Some(target) == last)
                })
            };
            let values: Vec<&str> =
                mapping.iter().filter(|(_, target)| leads_here(target)).map(|(value, _)| value).collect();
            if !values.is_empty() {
                let mut property = Fields::new();
                property.put(name, object([("enum", Draft::texts(values))]));
                let kind = object([("properties", property.into()), ("required", Draft::texts([name]))]);
                let branch = std::mem::replace(converted, Draft::Null);
                *converted = object([("allOf", vec![branch, kind].into())]);
            }
        }
    }
}

/// The property that says which kind it is: an object since 3.0, a name in Swagger.
fn discriminator(value: &Node) -> Option<&str> {
    value.as_str().or_else(|| value.get("propertyName").and_then(Node::as_str))
}

fn as_schema(dependency: Draft<'_>) -> Draft<'_> {
    match dependency {
        Draft::List(_) => object([("required", dependency)]),
        schema => schema,
    }
}

/// Whether a value that fits one branch always fits another one too.
fn overlap(branches: &[Draft<'_>]) -> bool {
    branches.iter().enumerate().any(|(n, branch)| {
        branch.is_anything() && branches.len() > 1 || branches.iter().skip(n + 1).any(|other| other == branch)
    })
}
