//! `[connections]` and `trusted_proxies`: how many connections there may be, as people write it.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_serve::{ConnectionLimits, ProxyNetwork};

use super::limits::SettingProblem;
use super::values::ConfigDuration;

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct ConnectionKeys {
    /// Connections at once, those for health checks not counted.
    total: Option<usize>,
    /// Connections at once that have not carried an authenticated request.
    unauthenticated: Option<usize>,
    /// The same from one IPv4 address or one IPv6 /64 network.
    unauthenticated_per_address: Option<usize>,
    /// Further connections that only answer `/health` and `/ready`.
    health_reserve: Option<usize>,
    /// How long a client may take to send the head of a request.
    head_timeout: Option<ConfigDuration>,
    /// The same for unauthenticated connections while more than half of their number are open.
    pressed_head_timeout: Option<ConfigDuration>,
}

impl ConnectionKeys {
    pub(super) fn with_fallback(self, earlier: Self) -> Self {
        Self {
            total: self.total.or(earlier.total),
            unauthenticated: self.unauthenticated.or(earlier.unauthenticated),
            unauthenticated_per_address: self
                .unauthenticated_per_address
                .or(earlier.unauthenticated_per_address),
            health_reserve: self.health_reserve.or(earlier.health_reserve),
            head_timeout: self.head_timeout.or(earlier.head_timeout),
            pressed_head_timeout: self.pressed_head_timeout.or(earlier.pressed_head_timeout),
        }
    }

    pub(super) fn validate(&self) -> Vec<SettingProblem> {
        let counts = [
            ("total", self.total),
            ("unauthenticated", self.unauthenticated),
            ("unauthenticated_per_address", self.unauthenticated_per_address),
        ];
        let wrong = counts.into_iter().filter(|(_, count)| *count == Some(0));
        wrong.map(|(key, _)| SettingProblem::new(&["connections", key], "must be at least 1")).collect()
    }

    pub(super) fn limits(&self, proxies: &[String]) -> ConnectionLimits {
        let usual = ConnectionLimits::default();
        ConnectionLimits {
            total: self.total.unwrap_or(usual.total),
            unauthenticated: self.unauthenticated.unwrap_or(usual.unauthenticated),
            unauthenticated_per_address: self
                .unauthenticated_per_address
                .unwrap_or(usual.unauthenticated_per_address),
            health_reserve: self.health_reserve.unwrap_or(usual.health_reserve),
            head_time: self.head_timeout.map_or(usual.head_time, |time| time.0),
            pressed_head_time: self.pressed_head_timeout.map_or(usual.pressed_head_time, |time| time.0),
            trusted_proxies: proxies.iter().filter_map(|text| text.parse().ok()).collect(),
        }
    }
}

/// What is wrong with the addresses of proxies.
pub(super) fn validate_proxies(proxies: &[String]) -> Vec<SettingProblem> {
    let parsed = proxies.iter().map(|text| text.parse::<ProxyNetwork>()).enumerate();
    let wrong = parsed.filter_map(|(at, parsed)| Some((at.to_string(), parsed.err()?)));
    wrong
        .map(|(at, problem)| SettingProblem::new(&["trusted_proxies", &at], format!("is wrong: {problem}")))
        .collect()
}
