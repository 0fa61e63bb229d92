//! The keywords of a schema as the document has them: all members of an object, or those of them that count.

use crate::document::{SpecNode, SpecObject};

/// Members of an object of the document.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeywordView<'d> {
    members: &'d SpecObject,
    owner: Owner,
    ref_siblings: RefSiblings,
}

/// What the members belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Schema,
    /// A parameter of Swagger's, which is its own schema, but not all of it is.
    Parameter,
}

/// Which of the keywords beside a reference count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefSiblings {
    /// The reference itself included.
    All,
    /// As from 3.1 on.
    Others,
    /// Before 3.1 only what does not change what is allowed.
    Annotations,
}

impl<'d> KeywordView<'d> {
    pub(super) fn all(members: &'d SpecObject) -> Self {
        Self { members, owner: Owner::Schema, ref_siblings: RefSiblings::All }
    }

    pub(super) fn from_parameter(members: &'d SpecObject) -> Self {
        Self { members, owner: Owner::Parameter, ref_siblings: RefSiblings::All }
    }

    /// The same, without the reference and what it makes meaningless. `nullable`, which authors mean in every version, is
    /// for whoever asks the whole.
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
