//! Sets of JSON types. An integer is a number, so the numbers are split into integers and the rest.

use std::ops::{BitAnd, BitOr, Sub};

use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const NONE: Self = Self(0);
    pub(super) const ALL: Self = Self(127);
    pub(super) const NUMBER: Self = Self(12);
    const EACH: [(Self, &'static str); 6] = [
        (Self::NULL, "null"),
        (Self::BOOLEAN, "boolean"),
        (Self::NUMBER, "number"),
        (Self::STRING, "string"),
        (Self::ARRAY, "array"),
        (Self::OBJECT, "object"),
    ];

    /// The kinds that a `type` keyword allows. Unknown names allow nothing.
    pub(super) fn from_keyword(value: &Value) -> Self {
        match value {
            Value::String(name) if name == "integer" => Self::INTEGER,
            Value::String(name) => {
                Self::EACH.iter().find(|(_, known)| known == name).map_or(Self::NONE, |(kind, _)| *kind)
            }
            Value::Array(names) => {
                names.iter().fold(Self::NONE, |kinds, name| kinds | Self::from_keyword(name))
            }
            _ => Self::ALL,
        }
    }

    pub(super) fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::NULL,
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match number.as_f64().is_some_and(|float| float.fract() == 0.0) {
                true => Self::INTEGER,
                false => Self::FRACTION,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    pub(super) fn bits(self) -> usize {
        usize::from(self.0)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Each kind on its own, with integers and other numbers together.
    pub(super) fn each(self) -> impl Iterator<Item = Self> {
        Self::EACH.into_iter().map(move |(kind, _)| self & kind).filter(|kind| !kind.is_empty())
    }

    /// The names as the keyword `type` has them.
    pub(super) fn names(self) -> Vec<&'static str> {
        let name = |(kind, name): (Self, &'static str)| match self & kind {
            Self::NONE => None,
            Self::INTEGER => Some("integer"),
            _ => Some(name),
        };
        Self::EACH.into_iter().filter_map(name).collect()
    }
}

impl BitAnd for Kinds {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Sub for Kinds {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}
