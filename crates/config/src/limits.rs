//! `[limits]` and the `limits` of a server, of a tool or of a token: the hub's limits as people write them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toolyard_hub::{DefinitionLimits, QuotaLimits, QuotaOverrides, RateLimit, ScopedLimits, YardLimits};
use toolyard_upstream::MESSAGE_BYTES;

use super::problem::ProblemSeverity;

/// The least that a limit on messages and definitions can be: below it hardly any server could introduce itself.
const LEAST_BYTES: usize = 65_536;

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct LimitKeys {
    /// The longest that a call may take, in seconds.
    call_seconds: Option<f64>,
    /// The largest request, in bytes.
    payload_bytes: Option<usize>,
    /// Calls of one source at once; more wait. 0 means no limit.
    calls_per_source: Option<usize>,
    /// How many calls a principal may make, or `false` for no limit.
    rate: Option<PrincipalRateKey>,
    /// Resources that one session, or one stream of subscriptions, may be subscribed to.
    subscriptions: Option<usize>,
    /// The largest message that is read from a server, in bytes.
    message_bytes: Option<usize>,
    /// The most that one server or document may list, in bytes of definitions.
    definition_bytes_per_source: Option<usize>,
    /// The most that all servers and documents together may list, in bytes of definitions.
    definition_bytes: Option<usize>,
    /// How much each principal may hold at once of what costs memory.
    quotas: QuotaKeys,
    /// The resident memory, in bytes, above which the heaviest principals are refused new work.
    memory_mark_bytes: Option<u64>,
    /// How long calls in flight may still take once we are told to stop, in seconds.
    drain_seconds: Option<f64>,
    /// Tighter limits for the tools whose full name fits the glob, each tool for itself.
    tools: BTreeMap<String, BoundKeys>,
}

/// Limits of one server, one tool or one token; what is not said is not limited here.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(crate) struct BoundKeys {
    /// The longest that a call may take, in seconds.
    call_seconds: Option<f64>,
    /// The largest arguments, in bytes.
    payload_bytes: Option<usize>,
    /// Calls at once; more wait. 0 means no limit.
    calls: Option<usize>,
    /// How many calls may be made.
    rate: Option<RateKeys>,
}

/// How much one principal may hold at once. 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(crate) struct QuotaKeys {
    /// Bytes of answers that are waiting to be sent.
    bytes_in_flight: Option<usize>,
    /// MCP sessions; beyond that, the principal's own idlest session makes room.
    sessions: Option<usize>,
    /// Open streams of events, and control sockets.
    streams: Option<usize>,
    /// Programs that run or wait to run.
    programs: Option<usize>,
    /// Calls that wait for an answer of the client.
    parked_calls: Option<usize>,
}

/// Limits of the holder of a token.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(crate) struct CallerKeys {
    /// The longest that a call may take, in seconds.
    call_seconds: Option<f64>,
    /// The largest arguments, in bytes.
    payload_bytes: Option<usize>,
    /// Calls at once; more wait. 0 means no limit.
    calls: Option<usize>,
    /// How many calls may be made.
    rate: Option<RateKeys>,
    /// How much it may hold at once of what costs memory, instead of what `limits.quotas` says.
    quotas: QuotaKeys,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(crate) struct RateKeys {
    /// Calls a second, in the long run.
    per_second: f64,
    /// Calls at once.
    burst: f64,
}

/// The rate of every principal: as said, as usual, or none.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PrincipalRateKey {
    Off,
    Usual,
    Of(RateKeys),
}

impl<'de> Deserialize<'de> for PrincipalRateKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RateVisitor;
        impl<'de> Visitor<'de> for RateVisitor {
            type Value = PrincipalRateKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table, or false")
            }

            fn visit_bool<E: Error>(self, limited: bool) -> Result<PrincipalRateKey, E> {
                Ok(if limited { PrincipalRateKey::Usual } else { PrincipalRateKey::Off })
            }

            fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<PrincipalRateKey, A::Error> {
                Deserialize::deserialize(MapAccessDeserializer::new(entries)).map(PrincipalRateKey::Of)
            }
        }
        deserializer.deserialize_any(RateVisitor)
    }
}

impl JsonSchema for PrincipalRateKey {
    fn schema_name() -> Cow<'static, str> {
        "PrincipalRate".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "How many calls a principal may make, or false for no limit.",
            "anyOf": [generator.subschema_for::<RateKeys>(), {"type": "boolean"}],
        })
    }
}

/// A value that is of the right kind and still makes no sense, or is risky: where, and why.
pub(super) struct SettingProblem {
    pub(super) severity: ProblemSeverity,
    pub(super) path: Vec<String>,
    pub(super) message: String,
    pub(super) suggestion: Option<&'static str>,
}

impl SettingProblem {
    pub(super) fn new(place: &[&str], why: impl Into<String>) -> Self {
        Self {
            severity: ProblemSeverity::Error,
            path: place.iter().map(|step| (*step).to_owned()).collect(),
            message: why.into(),
            suggestion: None,
        }
    }

    /// A value that works, and that an operator should know the risk of.
    pub(super) fn warning(place: &[&str], why: impl Into<String>, suggestion: &'static str) -> Self {
        Self { severity: ProblemSeverity::Warning, suggestion: Some(suggestion), ..Self::new(place, why) }
    }
}

impl LimitKeys {
    /// The limits of the yard and of its tools; those of servers are said with the servers.
    pub fn limits(&self) -> YardLimits {
        let usual = YardLimits::default();
        YardLimits {
            call_time: self.call_seconds.map_or(usual.call_time, Duration::from_secs_f64),
            payload: self.payload_bytes.unwrap_or(usual.payload),
            per_source: match self.calls_per_source {
                Some(0) => None,
                Some(most) => Some(most),
                None => usual.per_source,
            },
            rate: match &self.rate {
                Some(PrincipalRateKey::Off) => None,
                Some(PrincipalRateKey::Of(rate)) => Some(rate.rate()),
                Some(PrincipalRateKey::Usual) | None => usual.rate,
            },
            subscriptions: self.subscriptions.unwrap_or(usual.subscriptions),
            quotas: self.quotas.limits(),
            memory_mark: self.memory_mark_bytes,
            tools: self
                .tools
                .iter()
                .map(|(glob, keys)| (glob.as_str().into(), keys.scoped_limits()))
                .collect(),
            ..usual
        }
    }

    /// The largest message that is read from a server.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes.unwrap_or(MESSAGE_BYTES)
    }

    /// How many bytes of definitions are kept.
    pub fn definition_limits(&self) -> DefinitionLimits {
        let usual = DefinitionLimits::default();
        DefinitionLimits {
            per_source: self.definition_bytes_per_source.unwrap_or(usual.per_source),
            total: self.definition_bytes.unwrap_or(usual.total),
        }
    }

    /// How long calls in flight may still take once we are told to stop.
    pub fn drain_timeout(&self) -> Duration {
        self.drain_seconds.map_or(Duration::from_secs(30), Duration::from_secs_f64)
    }

    pub(super) fn with_fallback(self, mut earlier: Self) -> Self {
        earlier.tools.extend(self.tools);
        Self {
            call_seconds: self.call_seconds.or(earlier.call_seconds),
            payload_bytes: self.payload_bytes.or(earlier.payload_bytes),
            calls_per_source: self.calls_per_source.or(earlier.calls_per_source),
            rate: self.rate.or(earlier.rate),
            subscriptions: self.subscriptions.or(earlier.subscriptions),
            message_bytes: self.message_bytes.or(earlier.message_bytes),
            definition_bytes_per_source: self
                .definition_bytes_per_source
                .or(earlier.definition_bytes_per_source),
            definition_bytes: self.definition_bytes.or(earlier.definition_bytes),
            quotas: self.quotas.with_fallback(earlier.quotas),
            memory_mark_bytes: self.memory_mark_bytes.or(earlier.memory_mark_bytes),
            drain_seconds: self.drain_seconds.or(earlier.drain_seconds),
            tools: earlier.tools,
        }
    }

    pub(super) fn validate(&self) -> Vec<SettingProblem> {
        let mut found = Vec::new();
        found.extend(validate_seconds(self.call_seconds, &["limits", "call_seconds"]));
        found.extend(validate_seconds(self.drain_seconds, &["limits", "drain_seconds"]));
        if let Some(PrincipalRateKey::Of(rate)) = &self.rate {
            found.extend(rate.validate(&["limits", "rate"]));
        }
        for (given, key) in [
            (self.message_bytes, "message_bytes"),
            (self.definition_bytes_per_source, "definition_bytes_per_source"),
            (self.definition_bytes, "definition_bytes"),
        ] {
            if given.is_some_and(|given| given < LEAST_BYTES) {
                found.push(SettingProblem::new(&["limits", key], format!("must be at least {LEAST_BYTES}")));
            }
        }
        if self.memory_mark_bytes == Some(0) {
            found.push(SettingProblem::new(&["limits", "memory_mark_bytes"], "must be at least 1"));
        }
        for (glob, bounds) in &self.tools {
            found.extend(bounds.validate(&["limits", "tools", glob]));
        }
        found
    }
}

impl BoundKeys {
    pub(crate) fn scoped_limits(&self) -> ScopedLimits {
        ScopedLimits {
            call_time: self.call_seconds.map(Duration::from_secs_f64),
            payload: self.payload_bytes,
            calls: self.calls.map(|most| if most == 0 { usize::MAX } else { most }),
            rate: self.rate.as_ref().map(RateKeys::rate),
            quotas: QuotaOverrides::default(),
        }
    }

    pub(super) fn validate(&self, table: &[&str]) -> Vec<SettingProblem> {
        let below = |key| [table, &[key]].concat();
        let mut found: Vec<SettingProblem> =
            validate_seconds(self.call_seconds, &below("call_seconds")).into_iter().collect();
        found.extend(self.rate.iter().flat_map(|rate| rate.validate(&below("rate"))));
        found
    }
}

impl CallerKeys {
    fn bound_keys(&self) -> BoundKeys {
        BoundKeys {
            call_seconds: self.call_seconds,
            payload_bytes: self.payload_bytes,
            calls: self.calls,
            rate: self.rate.clone(),
        }
    }

    pub(crate) fn scoped_limits(&self) -> ScopedLimits {
        ScopedLimits { quotas: self.quotas.overrides(), ..self.bound_keys().scoped_limits() }
    }

    pub(super) fn validate(&self, table: &[&str]) -> Vec<SettingProblem> {
        self.bound_keys().validate(table)
    }
}

impl QuotaKeys {
    fn overrides(&self) -> QuotaOverrides {
        let most = |given: Option<usize>| given.map(|most| if most == 0 { usize::MAX } else { most });
        QuotaOverrides {
            bytes: most(self.bytes_in_flight),
            sessions: most(self.sessions),
            streams: most(self.streams),
            programs: most(self.programs),
            parked: most(self.parked_calls),
        }
    }

    fn limits(&self) -> QuotaLimits {
        let (own, usual) = (self.overrides(), QuotaLimits::default());
        QuotaLimits {
            bytes: own.bytes.unwrap_or(usual.bytes),
            sessions: own.sessions.unwrap_or(usual.sessions),
            streams: own.streams.unwrap_or(usual.streams),
            programs: own.programs.unwrap_or(usual.programs),
            parked: own.parked.unwrap_or(usual.parked),
        }
    }

    fn with_fallback(self, earlier: Self) -> Self {
        Self {
            bytes_in_flight: self.bytes_in_flight.or(earlier.bytes_in_flight),
            sessions: self.sessions.or(earlier.sessions),
            streams: self.streams.or(earlier.streams),
            programs: self.programs.or(earlier.programs),
            parked_calls: self.parked_calls.or(earlier.parked_calls),
        }
    }
}

impl RateKeys {
    fn rate(&self) -> RateLimit {
        RateLimit { per_second: self.per_second, burst: self.burst }
    }

    fn validate(&self, table: &[&str]) -> Vec<SettingProblem> {
        let checks = [
            (self.per_second > 0.0 && self.per_second.is_finite(), "per_second", "must be more than zero"),
            (self.burst >= 1.0 && self.burst.is_finite(), "burst", "must be at least 1"),
        ];
        let wrong = checks.into_iter().filter(|(fine, ..)| !fine);
        wrong.map(|(_, key, why)| SettingProblem::new(&[table, &[key]].concat(), why)).collect()
    }
}

fn validate_seconds(given: Option<f64>, place: &[&str]) -> Option<SettingProblem> {
    let fine = given.is_none_or(|given| (0.0..=1e9).contains(&given));
    (!fine).then(|| SettingProblem::new(place, "must be a number of seconds, zero or more"))
}
