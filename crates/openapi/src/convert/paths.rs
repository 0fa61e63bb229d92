//! Collects the operations of a document and follows the references of its paths.

use crate::document::{SpecNode, SpecObject};

use super::location::{SpecPath, resolve_object};
use super::schema::SchemaConverter;
use super::tool::SpecOperation;
use crate::operation::Method;

const METHODS: [(&str, Method); 9] = [
    ("get", Method::Get),
    ("put", Method::Put),
    ("post", Method::Post),
    ("delete", Method::Delete),
    ("options", Method::Options),
    ("head", Method::Head),
    ("patch", Method::Patch),
    ("trace", Method::Trace),
    ("query", Method::Query),
];

/// Members of a path item that are not operations.
const OTHERS: [&str; 7] =
    ["parameters", "servers", "summary", "description", "$ref", "additionalOperations", "security"];

impl<'d> SchemaConverter<'d> {
    /// Returns every operation in document order. Everything else is reported, including webhooks
    /// and callbacks, which are requests that the server sends.
    pub(super) fn collect_operations(&mut self) -> Vec<SpecOperation<'d>> {
        let mut sources = Vec::new();
        let top = SpecPath::new(0, "");
        let root = self.document.root();
        for key in ["webhooks", "x-webhooks"] {
            if let Some(webhooks) = root.get(key).and_then(SpecNode::as_object) {
                let message = format!("{} webhooks are requests sent by the server; skipped", webhooks.len());
                self.report.note(&top.key(key), "webhooks", message);
            }
        }
        let location = top.key("paths");
        let paths = match root.get("paths") {
            Some(SpecNode::Object(paths)) => paths,
            None | Some(SpecNode::Null) => return sources,
            Some(other) => {
                let message = format!(
                    "`paths` is {}; it contains no operations",
                    crate::document::describe_kind(other)
                );
                self.report.error(&location, "wrong-type", message);
                return sources;
            }
        };
        for (path, value) in paths.iter() {
            if path.starts_with("x-") {
                continue;
            }
            let at = location.key(path);
            let Some(found) = resolve_object(self.document, &mut self.report, value, &at, "a path") else {
                self.report.error(&at, "left-out", "cannot read any operation of this path");
                continue;
            };
            self.collect_path_operations(path, found.members, &found.target, &mut sources);
            // A path item with a reference may also have operations of its own.
            if let Some(own) = value.as_object().filter(|own| own.contains_key("$ref")) {
                self.collect_path_operations(path, own, &at.target(), &mut sources);
            }
        }
        sources
    }

    fn collect_path_operations(
        &mut self,
        path: &'d str,
        item: &'d SpecObject,
        target: &crate::document::ReferenceTarget,
        sources: &mut Vec<SpecOperation<'d>>,
    ) {
        let at = SpecPath::from_target(target);
        for (key, value) in item.iter() {
            let lower = key.to_ascii_lowercase();
            let method = METHODS.iter().find(|(name, _)| *name == lower).map(|(_, method)| method.clone());
            match method {
                Some(method) => {
                    self.collect_operation(path, method, value, &at.key(key), (item, target), sources)
                }
                None if key == "additionalOperations" => {
                    let location = at.key(key);
                    for (name, value) in value.as_object().into_iter().flat_map(SpecObject::iter) {
                        let token = name
                            .bytes()
                            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte));
                        if name.is_empty() || !token {
                            self.report.error(
                                &location.key(name),
                                "left-out",
                                format!("`{name}` is not a valid method"),
                            );
                            continue;
                        }
                        self.collect_operation(
                            path,
                            Method::Other(name.to_owned()),
                            value,
                            &location.key(name),
                            (item, target),
                            sources,
                        );
                    }
                }
                None if OTHERS.contains(&key) || key.starts_with("x-") => {}
                None => self.report.warn(
                    &at.key(key),
                    "unknown-method",
                    format!("`{key}` is not a valid method; ignored"),
                ),
            }
        }
    }

    fn collect_operation(
        &mut self,
        path: &'d str,
        method: Method,
        value: &'d SpecNode,
        at: &SpecPath<'_>,
        item: (&'d SpecObject, &crate::document::ReferenceTarget),
        sources: &mut Vec<SpecOperation<'d>>,
    ) {
        self.report.operation = Some(format!("{} {path}", method.as_str()));
        if let Some(found) = resolve_object(self.document, &mut self.report, value, at, "an operation") {
            let members = found.members;
            if members.contains_key("callbacks") {
                self.report.note(
                    &at.key("callbacks"),
                    "callbacks",
                    "callbacks are requests sent by the server; skipped",
                );
            }
            let id = match members.get("operationId") {
                Some(SpecNode::String(id)) if !id.trim().is_empty() => Some(&**id),
                None | Some(SpecNode::Null | SpecNode::String(_)) => None,
                Some(_) => {
                    self.report.warn(
                        &at.key("operationId"),
                        "wrong-type",
                        "the operationId is not a string; ignored",
                    );
                    None
                }
            };
            let tags = members.get("tags").and_then(SpecNode::as_array).into_iter().flatten();
            let tags = tags.filter_map(SpecNode::as_str).map(str::to_owned).collect();
            let same = |source: &&SpecOperation<'_>| source.path == path && source.method == method;
            if sources.iter().rev().take(20).find(same).is_none() {
                let (item, item_target) = item;
                sources.push(SpecOperation {
                    method,
                    path,
                    id,
                    tags,
                    members,
                    target: found.target,
                    item,
                    item_target: item_target.clone(),
                });
            }
        } else {
            self.report.error(at, "left-out", "cannot read this operation; skipped");
        }
        self.report.operation = None;
    }
}
