//! `[connections]` and `trusted_proxies`: limits on HTTP connections.

use schemars::JsonSchema;
use serde::Deserialize;
use toolyard_serve::{ConnectionLimits, ProxyNetwork};

use super::limits::SettingProblem;
use super::values::ConfigDuration;

/// Limits on HTTP connections.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(default, expecting = "a table")]
pub(super) struct ConnectionKeys {
    /// Maximum number of open connections, excluding those of `health_reserve`. Capped so that at
    /// least a quarter of the process's file descriptors remain free for other uses. Default: 2048.
    total: Option<usize>,
    /// Maximum number of open connections that have not carried an authenticated request. A new
    /// connection replaces the oldest idle one. Default: 1024.
    unauthenticated: Option<usize>,
    /// Maximum number of unauthenticated connections from one IPv4 address or one IPv6 /64 network.
    /// Trusted proxies are exempt. Default: 256.
    unauthenticated_per_address: Option<usize>,
    /// Additional connections, reserved for requests to `/health` and `/ready`. Default: 32.
    health_reserve: Option<usize>,
    /// Maximum time for a client to send the head of a request. Default: 30s.
    head_timeout: Option<ConfigDuration>,
    /// Replaces `head_timeout` for unauthenticated connections while more than half of the allowed
    /// number is open. Default: 5s.
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

/// Returns the invalid entries of `trusted_proxies`.
pub(super) fn validate_proxies(proxies: &[String]) -> Vec<SettingProblem> {
    let parsed = proxies.iter().map(|text| text.parse::<ProxyNetwork>()).enumerate();
    let wrong = parsed.filter_map(|(at, parsed)| Some((at.to_string(), parsed.err()?)));
    wrong
        .map(|(at, problem)| SettingProblem::new(&["trusted_proxies", &at], format!("is invalid: {problem}")))
        .collect()
}
