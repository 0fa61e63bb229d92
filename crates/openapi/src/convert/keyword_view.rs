//! A view of the keywords of a schema: all members of an object, or only those that apply.

use crate::document::{SpecNode, SpecObject};

/// A view of the members of an object.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeywordView<'d> {
    members: &'d SpecObject,
    owner: Owner,
    ref_siblings: RefSiblings,
}

/// The object that the members belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Schema,
    /// A Swagger parameter, which contains its schema's keywords next to others.
    Parameter,
}

/// Which keywords next to a reference apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefSiblings {
    /// All, including the reference itself.
    All,
    /// All except the reference (OpenAPI 3.1 and later).
    Others,
    /// Only annotations, which do not change the accepted values (before OpenAPI 3.1).
    Annotations,
}

impl<'d> KeywordView<'d> {
    pub(super) fn all(members: &'d SpecObject) -> Self {
        Self { members, owner: Owner::Schema, ref_siblings: RefSiblings::All }
    }

    pub(super) fn from_parameter(members: &'d SpecObject) -> Self {
        Self { members, owner: Owner::Parameter, ref_siblings: RefSiblings::All }
    }

    /// Returns a view without the reference and the keywords that do not apply next to it.
    /// `nullable` applies in every version; read it from the full view.
    pub(super) fn with_ref_siblings(self, beside: RefSiblings) -> Self {
        Self { ref_siblings: beside, ..self }
    }

    pub(super) fn get(self, key: &str) -> Option<&'d SpecNode> {
        self.members.get(key).filter(|_| self.includes(key))
    }

    pub(super) fn contains_key(self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(super) fn is_true(self, key: &str) -> bool {
        self.get(key) == Some(&SpecNode::Bool(true))
    }

    pub(super) fn len(self) -> usize {
        self.members.keys().filter(|key| self.includes(key)).count()
    }

    pub(super) fn is_empty(self) -> bool {
        !self.members.keys().any(|key| self.includes(key))
    }

    fn includes(self, key: &str) -> bool {
        (self.owner == Owner::Schema || !is_parameter_keyword(key))
            && match self.ref_siblings {
                RefSiblings::All => true,
                RefSiblings::Others => !is_reference_keyword(key),
                RefSiblings::Annotations => {
                    matches!(key, "title" | "description" | "deprecated" | "default" | "example" | "examples")
                }
            }
    }
}

fn is_reference_keyword(key: &str) -> bool {
    matches!(
        key,
        "$ref"
            | "$dynamicRef"
            | "$recursiveRef"
            | "$defs"
            | "definitions"
            | "$id"
            | "$anchor"
            | "nullable"
            | "x-nullable"
    )
}

fn is_parameter_keyword(key: &str) -> bool {
    matches!(
        key,
        "name"
            | "in"
            | "required"
            | "description"
            | "deprecated"
            | "style"
            | "explode"
            | "allowReserved"
            | "allowEmptyValue"
            | "collectionFormat"
            | "example"
            | "examples"
    )
}
