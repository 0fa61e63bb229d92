//! `[limits]` and the `limits` of a server, a tool or a token: the hub's limits as they are written
//! in the configuration.

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

/// The minimum for limits on messages and definitions. With less, few servers could complete
/// `initialize` and list their tools.
const LEAST_BYTES: usize = 65_536;

/// Limits that apply to the whole yard.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub struct LimitKeys {
    /// Maximum duration of a call, in seconds. Default: 300.
    call_seconds: Option<f64>,
    /// Maximum size of a request, in bytes. Default: 10485760.
    payload_bytes: Option<usize>,
    /// Maximum number of concurrent calls to one source. Further calls are queued. 0 means no
    /// limit. Default: 10.
    calls_per_source: Option<usize>,
    /// Rate limit of calls and list requests of one principal, or `false` for no limit. Default: 50
    /// per second with a burst of 2000.
    rate: Option<PrincipalRateKey>,
    /// Maximum number of resources that one session or one subscription stream can subscribe to.
    /// Default: 1000.
    subscriptions: Option<usize>,
    /// Maximum size of a message from a server over any transport, in bytes. At least 65536.
    /// Default: 33554432.
    message_bytes: Option<usize>,
    /// Maximum size of all definitions (tools, resources, prompts) that one server or OpenAPI
    /// document lists, in bytes. At least 65536. Default: 67108864.
    definition_bytes_per_source: Option<usize>,
    /// Maximum size of the definitions of all servers, OpenAPI documents and tester connections
    /// together, in bytes. At least 65536. Default: 268435456.
    definition_bytes: Option<usize>,
    /// Quotas of each principal for resources that use memory. 0 means no limit.
    quotas: QuotaKeys,
    /// Resident memory of the process, in bytes, above which new work of the principals that use
    /// most memory is refused. A third above it, all new work is refused. Default: 75 % of the
    /// memory limit of the control group, or 536870912 without such a limit.
    memory_mark_bytes: Option<u64>,
    /// Maximum time for in-flight calls to finish during shutdown, in seconds. Default: 30.
    drain_seconds: Option<f64>,
    /// Further limits of the tools whose full name matches the glob pattern. They apply to each
    /// tool separately. Default: none.
    tools: BTreeMap<String, BoundKeys>,
}

/// Limits of one server, tool or token, in addition to those of the yard.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(crate) struct BoundKeys {
    /// Maximum duration of a call, in seconds, regardless of progress. Default: no additional
    /// limit.
    call_seconds: Option<f64>,
    /// Maximum size of the arguments of a call, in bytes. Default: no additional limit.
    payload_bytes: Option<usize>,
    /// Maximum number of concurrent calls. Further calls are queued. 0 means no limit. Default: for
    /// a server `limits.calls_per_source`, else no limit.
    calls: Option<usize>,
    /// Rate limit of calls, for all callers together. Default: no limit.
    rate: Option<RateKeys>,
}

/// Quotas of one principal. 0 means no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(crate) struct QuotaKeys {
    /// Maximum size, in bytes, of responses that are waiting to be sent. Further responses are
    /// refused. Default: 33554432.
    bytes_in_flight: Option<usize>,
    /// Maximum number of MCP sessions. A new session replaces the principal's own session that has
    /// been idle longest. Default: 256.
    sessions: Option<usize>,
    /// Maximum number of open event streams and control sockets. Default: 256.
    streams: Option<usize>,
    /// Maximum number of running and queued programs. Default: 16.
    programs: Option<usize>,
    /// Maximum number of parked calls, that is, calls that wait for an answer from the client.
    /// Default: 64.
    parked_calls: Option<usize>,
}

/// Limits of the holder of a token, in addition to those of the yard.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(crate) struct CallerKeys {
    /// Maximum duration of a call, in seconds. Default: no additional limit.
    call_seconds: Option<f64>,
    /// Maximum size of the arguments of a call, in bytes. Default: no additional limit.
    payload_bytes: Option<usize>,
    /// Maximum number of concurrent calls to all servers together. Further calls are queued. 0
    /// means no limit. Default: no limit.
    calls: Option<usize>,
    /// Rate limit of calls, in addition to `limits.rate`. Default: no limit.
    rate: Option<RateKeys>,
    /// Quotas of the holder. Each key replaces the one in `limits.quotas`. Default:
    /// `limits.quotas`.
    quotas: QuotaKeys,
}

/// A rate limit (token bucket).
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(expecting = "a table")]
pub(crate) struct RateKeys {
    /// Sustained rate, in calls per second. Must be greater than 0. Required.
    per_second: f64,
    /// Maximum number of calls in a burst. At least 1. Required.
    burst: f64,
}

/// The rate limit of each principal.
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
            "description": "A rate limit, or false for no limit.",
            "anyOf": [generator.subschema_for::<RateKeys>(), {"type": "boolean"}],
        })
    }
}

/// A setting with a valid type and an invalid or risky value.
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

    /// Creates a warning about a value that works but is risky.
    pub(super) fn warning(place: &[&str], why: impl Into<String>, suggestion: &'static str) -> Self {
        Self { severity: ProblemSeverity::Warning, suggestion: Some(suggestion), ..Self::new(place, why) }
    }
}

impl LimitKeys {
    /// Returns the limits of the yard and of its tools. Limits of servers are part of the server
    /// entries.
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

    /// Returns the maximum size of a message from a server, in bytes.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes.unwrap_or(MESSAGE_BYTES)
    }

    /// Returns the limits on the size of definitions.
    pub fn definition_limits(&self) -> DefinitionLimits {
        let usual = DefinitionLimits::default();
        DefinitionLimits {
            per_source: self.definition_bytes_per_source.unwrap_or(usual.per_source),
            total: self.definition_bytes.unwrap_or(usual.total),
        }
    }

    /// Returns how long in-flight calls may take to finish during shutdown.
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
            (self.per_second > 0.0 && self.per_second.is_finite(), "per_second", "must be greater than 0"),
            (self.burst >= 1.0 && self.burst.is_finite(), "burst", "must be at least 1"),
        ];
        let wrong = checks.into_iter().filter(|(fine, ..)| !fine);
        wrong.map(|(_, key, why)| SettingProblem::new(&[table, &[key]].concat(), why)).collect()
    }
}

fn validate_seconds(given: Option<f64>, place: &[&str]) -> Option<SettingProblem> {
    let fine = given.is_none_or(|given| (0.0..=1e9).contains(&given));
    (!fine).then(|| SettingProblem::new(place, "must be a number of seconds from 0 to 1000000000"))
}
