//! Keywords that contain schemas: those for arrays and objects, and compositions.

use super::keyword_view::KeywordView;
use super::location::SpecPath;
use super::pattern::to_portable_pattern;
use super::schema::{SchemaConverter, SchemaDirection};
use super::schema_node::{SchemaFields, SchemaNode, object};
use crate::document::{SpecNode, SpecObject};

impl<'d> SchemaConverter<'d> {
    pub(super) fn convert_array_keywords(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
        out: &mut SchemaFields<'d>,
    ) {
        let rest = match (source.get("prefixItems"), source.get("items")) {
            (Some(SpecNode::Array(first)), rest) => {
                self.convert_tuple_items(first, &at.key("prefixItems"), direction, out);
                rest.or_else(|| source.get("unevaluatedItems")).map(|rest| ("items", rest))
            }
            (_, Some(SpecNode::Array(first))) => {
                self.convert_tuple_items(first, &at.key("items"), direction, out);
                source.get("additionalItems").map(|rest| ("additionalItems", rest))
            }
            (_, Some(items)) => {
                let items = self.convert_child_schema(items, &at.key("items"), direction);
                out.put("items", items);
                None
            }
            (_, None) => None,
        };
        match rest {
            Some((_, SpecNode::Bool(more))) if out.contains_key("items") => {
                out.put("additionalItems", *more);
            }
            Some((key, rest)) if out.contains_key("items") => {
                let rest = self.convert_child_schema(rest, &at.key(key), direction);
                out.put("additionalItems", rest);
            }
            _ => {}
        }
        if let Some(contains) = source.get("contains") {
            let least = source.get("minContains").and_then(SpecNode::as_u64);
            if least != Some(0) {
                let contains = self.convert_child_schema(contains, &at.key("contains"), direction);
                out.put("contains", contains);
            }
            if least.is_some_and(|least| least > 1) || source.contains_key("maxContains") {
                let message = "Draft 07 has no `minContains` and `maxContains`; the count is not checked";
                self.report.note(&at.key("contains"), "no-such-keyword", message);
            }
        }
    }

    /// Draft 07 has the schemas of the first items in `items`. An empty list has no effect.
    fn convert_tuple_items(
        &mut self,
        first: &'d [SpecNode],
        at: &SpecPath<'_>,
        direction: SchemaDirection,
        out: &mut SchemaFields<'d>,
    ) {
        let first: Vec<SchemaNode<'d>> = first
            .iter()
            .enumerate()
            .map(|(n, item)| self.convert_child_schema(item, &at.index(n), direction))
            .collect();
        if !first.is_empty() {
            out.put("items", first);
        }
    }

    pub(super) fn convert_object_keywords(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
        out: &mut SchemaFields<'d>,
    ) {
        let mut hidden = Vec::new();
        if let Some(properties) = source.get("properties") {
            let location = at.key("properties");
            match properties {
                SpecNode::Object(properties) => {
                    let mut shown = SchemaFields::new();
                    for (name, property) in properties.iter() {
                        if self.is_hidden(property, at.part, direction) {
                            hidden.push(name);
                            continue;
                        }
                        let converted = match self.file_part(property, at.part) {
                            Some(file) => file,
                            None => self.convert_child_schema(property, &location.key(name), direction),
                        };
                        shown.put(name, converted);
                    }
                    out.put("properties", shown);
                }
                other => self.warn_wrong_type(&location, "properties", other),
            }
        }
        self.convert_required(source, at, &hidden, out);
        if let Some(SpecNode::Object(patterns)) = source.get("patternProperties") {
            self.convert_pattern_properties(patterns, &at.key("patternProperties"), direction, out);
        }
        match source.get("additionalProperties") {
            None => self.convert_unevaluated_properties(source, at, out),
            Some(SpecNode::Bool(more)) => {
                out.put("additionalProperties", *more);
            }
            Some(more) => {
                let more = match self.file_part(more, at.part) {
                    Some(file) => file,
                    None => self.convert_child_schema(more, &at.key("additionalProperties"), direction),
                };
                out.put("additionalProperties", more);
            }
        }
        if let Some(names) = source.get("propertyNames") {
            let names = self.convert_child_schema(names, &at.key("propertyNames"), direction);
            out.put("propertyNames", names);
        }
        self.convert_dependencies(source, at, direction, out);
    }

    fn warn_wrong_type(&mut self, at: &SpecPath<'_>, keyword: &str, found: &SpecNode) {
        let message = format!("`{keyword}` is {}; ignored", crate::document::describe_kind(found));
        self.report.warn(at, "wrong-type", message);
    }

    fn convert_required(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        hidden: &[&str],
        out: &mut SchemaFields<'d>,
    ) {
        match source.get("required") {
            Some(SpecNode::Array(names)) => {
                let mut retained: Vec<&str> = Vec::new();
                for name in names {
                    match name {
                        SpecNode::String(name)
                            if hidden.contains(&&**name)
                                || self.hidden.contains(&**name)
                                || retained.contains(&&**name) => {}
                        SpecNode::String(name) => retained.push(name),
                        other => self.warn_wrong_type(&at.key("required"), "required", other),
                    }
                }
                if !retained.is_empty() {
                    out.put("required", SchemaNode::texts(retained));
                }
            }
            None | Some(SpecNode::Null) => {}
            Some(SpecNode::Bool(_)) => {
                let message = "`required` is a boolean; the enclosing schema should list required properties";
                self.report.note(&at.key("required"), "odd-required", message);
            }
            Some(other) => self.warn_wrong_type(&at.key("required"), "required", other),
        }
    }

    fn convert_pattern_properties(
        &mut self,
        patterns: &'d SpecObject,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
        out: &mut SchemaFields<'d>,
    ) {
        let mut retained = SchemaFields::new();
        for (pattern, schema) in patterns.iter() {
            match to_portable_pattern(pattern) {
                Some(portable) => {
                    let schema = self.convert_child_schema(schema, &at.key(pattern), direction);
                    retained.put(portable, schema);
                }
                None => {
                    let message =
                        "not every validator supports this pattern; such properties are not checked";
                    self.report.note(&at.key(pattern), "odd-pattern", message);
                }
            }
        }
        out.put("patternProperties", retained);
    }

    /// `unevaluatedProperties` equals `additionalProperties` if no other keyword can evaluate
    /// properties.
    fn convert_unevaluated_properties(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        out: &mut SchemaFields<'d>,
    ) {
        let Some(more) = source.get("unevaluatedProperties") else { return };
        let others = ["allOf", "anyOf", "oneOf", "$ref", "if", "dependentSchemas", "not", "$dynamicRef"];
        if *more == SpecNode::Bool(false) && !others.iter().any(|other| source.contains_key(other)) {
            out.put("additionalProperties", false);
        } else if *more != SpecNode::Bool(true) {
            let message = "Draft 07 has no `unevaluatedProperties`; additional properties are not checked";
            self.report.note(&at.key("unevaluatedProperties"), "no-such-keyword", message);
        }
    }

    fn convert_dependencies(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
        out: &mut SchemaFields<'d>,
    ) {
        let mut all = SchemaFields::new();
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            let Some(SpecNode::Object(dependencies)) = source.get(keyword) else { continue };
            let location = at.key(keyword);
            for (name, dependency) in dependencies.iter() {
                let converted = match dependency {
                    SpecNode::Array(names) => {
                        let mut retained: Vec<&str> = Vec::new();
                        for name in names.iter().filter_map(SpecNode::as_str) {
                            if !retained.contains(&name) {
                                retained.push(name);
                            }
                        }
                        SchemaNode::texts(retained)
                    }
                    schema => self.convert_schema(schema, &location.key(name), direction),
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

    /// Converts `allOf`, `anyOf`, `oneOf`, `not`, conditions and the discriminator. Returns whether
    /// there were any.
    pub(super) fn convert_composition(
        &mut self,
        source: KeywordView<'d>,
        at: &SpecPath<'_>,
        direction: SchemaDirection,
        out: &mut SchemaFields<'d>,
        remarks: &mut Vec<String>,
    ) -> bool {
        let mut any = false;
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(branches) = source.get(keyword) else { continue };
            let location = at.key(keyword);
            let SpecNode::Array(branches) = branches else {
                self.warn_wrong_type(&location, keyword, branches);
                continue;
            };
            let mut converted: Vec<SchemaNode<'d>> = branches
                .iter()
                .enumerate()
                .map(|(n, branch)| self.convert_schema(branch, &location.index(n), direction))
                .collect();
            if converted.is_empty() {
                continue;
            }
            any = true;
            if keyword != "allOf" {
                self.constrain_discriminator(source, branches, &mut converted);
            }
            if keyword == "oneOf" && branches_overlap(&converted) {
                let message = "two branches overlap, so `oneOf` could never match; converted to `anyOf`";
                self.report.note(&location, "loose-one-of", message);
                match out.swap_remove("anyOf") {
                    None => out.put("anyOf", converted),
                    Some(first) => {
                        let mut all = vec![];
                        if let Some(SchemaNode::List(before)) = out.swap_remove("allOf") {
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
            let not = self.convert_schema(not, &at.key("not"), direction);
            // If the conversion has loosened the schema until it accepts any value, `not` would
            // reject everything.
            if !not.is_anything() || meant {
                out.put("not", not);
                any = true;
            }
        }
        if source.contains_key("if") {
            for keyword in ["if", "then", "else"] {
                let Some(branch) = source.get(keyword) else { continue };
                let branch = self.convert_schema(branch, &at.key(keyword), direction);
                out.put(keyword, branch);
                any = true;
            }
        }
        if let Some(name) = source.get("discriminator").and_then(discriminator_property) {
            remarks.push(format!("The property `{name}` selects the variant."));
        }
        any
    }

    /// Adds the values of the discriminator's mapping to the branches that they select.
    fn constrain_discriminator(
        &mut self,
        source: KeywordView<'d>,
        branches: &[SpecNode],
        converted: &mut [SchemaNode<'d>],
    ) {
        let Some(discriminator) = source.get("discriminator") else { return };
        let Some(name) = discriminator.get("propertyName").and_then(SpecNode::as_str) else { return };
        let Some(SpecNode::Object(mapping)) = discriminator.get("mapping") else { return };
        for (branch, converted) in branches.iter().zip(converted) {
            let Some(reference) = branch.get("$ref").and_then(SpecNode::as_str) else { continue };
            if converted.is_anything() {
                continue;
            }
            let last = reference.rsplit('/').next();
            let leads_here = |target: &SpecNode| {
                target.as_str().is_some_and(|target| {
                    target == reference || (!target.contains('/') && Some(target) == last)
                })
            };
            let values: Vec<&str> =
                mapping.iter().filter(|(_, target)| leads_here(target)).map(|(value, _)| value).collect();
            if !values.is_empty() {
                let mut property = SchemaFields::new();
                property.put(name, object([("enum", SchemaNode::texts(values))]));
                let kind = object([("properties", property.into()), ("required", SchemaNode::texts([name]))]);
                let branch = std::mem::replace(converted, SchemaNode::Null);
                *converted = object([("allOf", vec![branch, kind].into())]);
            }
        }
    }
}

/// Returns the discriminator property: an object since OpenAPI 3.0, a name in Swagger 2.0.
fn discriminator_property(value: &SpecNode) -> Option<&str> {
    value.as_str().or_else(|| value.get("propertyName").and_then(SpecNode::as_str))
}

fn as_schema(dependency: SchemaNode<'_>) -> SchemaNode<'_> {
    match dependency {
        SchemaNode::List(_) => object([("required", dependency)]),
        schema => schema,
    }
}

/// Whether a value that matches one branch always matches another one too.
fn branches_overlap(branches: &[SchemaNode<'_>]) -> bool {
    branches.iter().enumerate().any(|(n, branch)| {
        branch.is_anything() && branches.len() > 1 || branches.iter().skip(n + 1).any(|other| other == branch)
    })
}
