//! Configuration values that can be written in more than one way.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A duration: a number of seconds, or a string such as `30s`, `2m` or `500ms`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConfigDuration(pub(super) Duration);

/// A string that may also be written as a number or a boolean. It does not implement `Debug`
/// because it can be a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ScalarText(pub(super) String);

/// A list of strings, or one string that is split at spaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TextList(pub(super) Vec<String>);

/// Permissions for everything that a server offers, or by glob pattern of its tool names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PermissionKeys {
    All(Vec<String>),
    ByTool(BTreeMap<String, Vec<String>>),
}

/// Whether tools of an OpenAPI document declare an output schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputSchemasKey {
    Off,
    On,
    Lenient,
}

const TIME: &str = "a number of seconds or a string such as \"30s\", \"2m\" or \"500ms\"";
/// One year. A larger value is most likely a typo, and would overflow when durations are added.
const LONGEST_SECONDS: f64 = 31_536_000.0;

impl ConfigDuration {
    pub(super) fn from_seconds(seconds: f64) -> Option<Self> {
        let fine = seconds > 0.0 && seconds <= LONGEST_SECONDS;
        fine.then(|| Self(Duration::from_secs_f64(seconds)))
    }

    pub(super) fn from_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let split = text.find(|letter: char| letter.is_alphabetic()).unwrap_or(text.len());
        let (number, unit) = text.split_at(split);
        let unit = match unit {
            "ms" => 0.001,
            "" | "s" | "sec" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        Self::from_seconds(number.trim().parse::<f64>().ok()? * unit)
    }
}

impl<'de> Deserialize<'de> for ConfigDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ValueVisitor;
        fn validate<E: Error>(time: Option<ConfigDuration>) -> Result<ConfigDuration, E> {
            time.ok_or_else(|| {
                E::custom(format_args!("expected {TIME}, greater than zero and at most one year"))
            })
        }
        impl Visitor<'_> for ValueVisitor {
            type Value = ConfigDuration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(TIME)
            }

            fn visit_u64<E: Error>(self, seconds: u64) -> Result<ConfigDuration, E> {
                validate(
                    u32::try_from(seconds)
                        .ok()
                        .and_then(|seconds| ConfigDuration::from_seconds(seconds.into())),
                )
            }

            fn visit_i64<E: Error>(self, _negative: i64) -> Result<ConfigDuration, E> {
                validate(None)
            }

            fn visit_f64<E: Error>(self, seconds: f64) -> Result<ConfigDuration, E> {
                validate(ConfigDuration::from_seconds(seconds))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ConfigDuration, E> {
                validate(ConfigDuration::from_text(text))
            }
        }
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for ScalarText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = ScalarText;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ScalarText, E> {
                Ok(ScalarText(text.to_owned()))
            }

            fn visit_bool<E: Error>(self, flag: bool) -> Result<ScalarText, E> {
                Ok(ScalarText(flag.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<ScalarText, E> {
                Ok(ScalarText(number.to_string()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<ScalarText, E> {
                Ok(ScalarText(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<ScalarText, E> {
                Ok(ScalarText(number.to_string()))
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for TextList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = TextList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of strings, or one string with spaces")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<TextList, E> {
                Ok(TextList(text.split_whitespace().map(str::to_owned).collect()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<TextList, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(items)).map(TextList)
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for PermissionKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = PermissionKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of permissions, or a table from glob patterns to lists of permissions")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<PermissionKeys, A::Error> {
                Deserialize::deserialize(SeqAccessDeserializer::new(items)).map(PermissionKeys::All)
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<PermissionKeys, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(entries)).map(PermissionKeys::ByTool)
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

impl<'de> Deserialize<'de> for OutputSchemasKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "true, false or \"lenient\"";
        struct Reading;
        impl Visitor<'_> for Reading {
            type Value = OutputSchemasKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(EXPECTED)
            }

            fn visit_bool<E: Error>(self, shown: bool) -> Result<OutputSchemasKey, E> {
                Ok(if shown { OutputSchemasKey::On } else { OutputSchemasKey::Off })
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OutputSchemasKey, E> {
                match text {
                    "lenient" => Ok(OutputSchemasKey::Lenient),
                    _ => Err(E::custom(format_args!("expected {EXPECTED}"))),
                }
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

impl JsonSchema for OutputSchemasKey {
    fn schema_name() -> Cow<'static, str> {
        "OutputSchemas".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "true, false, or \"lenient\" for a schema that accepts any object.",
            "anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["lenient"]}],
        })
    }
}

impl JsonSchema for ConfigDuration {
    fn schema_name() -> Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A duration: a number of seconds, or a string such as 30s, 2m, 1h or 500ms. \
                Greater than zero and at most one year.",
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": r"^\s*[0-9.]+\s*(ms|s|sec|m|min|h)?\s*$"},
            ],
        })
    }
}

impl JsonSchema for ScalarText {
    fn schema_name() -> Cow<'static, str> {
        "Word".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["string", "number", "boolean"]})
    }
}

impl JsonSchema for TextList {
    fn schema_name() -> Cow<'static, str> {
        "Words".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A list of strings, or one string with spaces.",
            "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}],
        })
    }
}

impl JsonSchema for PermissionKeys {
    fn schema_name() -> Cow<'static, str> {
        "Permissions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let list = json_schema!({"type": "array", "items": {"type": "string"}});
        json_schema!({
            "description": "A list of permissions for everything that a server offers, or a table from \
                glob patterns of tool names to lists of permissions.",
            "anyOf": [list, {"type": "object", "additionalProperties": list}],
        })
    }
}
