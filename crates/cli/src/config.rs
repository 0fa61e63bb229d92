//! `toolyard.toml`: read whole, reported whole. Each room has its own settings; this file only assembles them.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use serde::Deserialize;
use toolyard_hub::{Limits, Rate};

use crate::args::AuthMode;

/// Everything that can be configured.
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) auth: Option<AuthMode>,
    /// Host names, beside the loopback ones, under which this server is reached.
    pub(crate) hosts: Vec<String>,
    /// Origins whose pages may use this server.
    pub(crate) origins: Vec<String>,
    /// What the holder of the token may do; everything if this is not said.
    pub(crate) permissions: Option<Vec<String>>,
    /// Whether the embedded demo tools are served too.
    pub(crate) demo: bool,
    pub(crate) limits: LimitKeys,
}

/// `[limits]`
#[derive(Debug, Deserialize, Default)]
#[serde(default)]
pub(crate) struct LimitKeys {
    call_seconds: Option<f64>,
    payload_bytes: Option<usize>,
    /// 0 means no limit.
    calls_per_source: Option<usize>,
    rate: Option<RateKeys>,
    drain_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RateKeys {
    per_second: f64,
    burst: f64,
}

impl Config {
    /// Reads a file. Keys that we do not know are warned about and passed over.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let (config, unknown) = Self::parse(&text).with_context(|| format!("in {}", path.display()))?;
        for key in unknown {
            eprintln!("toolyard: warning: {}: unknown key {key}", path.display());
        }
        Ok(config)
    }

    /// Without a file: the demo yard.
    pub(crate) fn embedded() -> Self {
        Self { demo: true, ..Self::default() }
    }

    pub(crate) fn find(path: Option<&Path>) -> anyhow::Result<Self> {
        path.map_or_else(|| Ok(Self::embedded()), Self::read)
    }

    fn parse(text: &str) -> anyhow::Result<(Self, Vec<String>)> {
        let mut unknown = Vec::new();
        let config: Self = serde_ignored::deserialize(toml::Deserializer::parse(text)?, |path| {
            unknown.push(path.to_string())
        })?;
        config.limits.check()?;
        Ok((config, unknown))
    }
}

impl LimitKeys {
    pub(crate) fn limits(&self) -> Limits {
        let usual = Limits::default();
        Limits {
            call_time: self.call_seconds.map_or(usual.call_time, Duration::from_secs_f64),
            payload: self.payload_bytes.unwrap_or(usual.payload),
            per_source: match self.calls_per_source {
                Some(0) => None,
                Some(most) => Some(most),
                None => usual.per_source,
            },
            rate: self.rate.as_ref().map(|rate| Rate { per_second: rate.per_second, burst: rate.burst }),
        }
    }

    /// How long calls in flight may still take once we are told to stop.
    pub(crate) fn drain(&self) -> Duration {
        self.drain_seconds.map_or(Duration::from_secs(30), Duration::from_secs_f64)
    }

    fn check(&self) -> anyhow::Result<()> {
        let times = [("call_seconds", self.call_seconds), ("drain_seconds", self.drain_seconds)];
        for (key, seconds) in times {
            let fine = seconds.is_none_or(|seconds| (0.0..=1e9).contains(&seconds));
            anyhow::ensure!(fine, "limits.{key} must be a number of seconds, zero or more");
        }
        if let Some(rate) = &self.rate {
            let fine = rate.per_second > 0.0 && rate.per_second.is_finite();
            anyhow::ensure!(fine, "limits.rate.per_second must be more than zero");
            anyhow::ensure!(
                rate.burst >= 1.0 && rate.burst.is_finite(),
                "limits.rate.burst must be at least 1"
            );
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use toolyard_hub::{Limits, Rate};

    use super::Config;

    #[test]
    fn reads_every_key_and_names_the_unknown_ones() {
        let text = r#"
            listen = "127.0.0.1:9000"
            auth = "none"
            demo = true
            permissions = ["admin"]
            colour = "red"
            [limits]
            call_seconds = 1.5
            payload_bytes = 1000
            calls_per_source = 0
            rate = { per_second = 5.0, burst = 10.0, what = 1 }
        "#;
        let (config, unknown) = Config::parse(text).unwrap();
        assert_eq!(unknown, ["colour", "limits.rate.what"]);
        assert_eq!(config.listen, Some("127.0.0.1:9000".parse().unwrap()));
        let limits = Limits {
            call_time: Duration::from_millis(1_500),
            payload: 1_000,
            per_source: None,
            rate: Some(Rate { per_second: 5.0, burst: 10.0 }),
        };
        assert_eq!(config.limits.limits(), limits);
    }

    #[test]
    fn errors_show_the_place() {
        let error = Config::parse("listen = \"127.0.0.1:9000\"\nauth = \"maybe\"\n").unwrap_err();
        insta::assert_snapshot!(error, @r#"
        TOML parse error at line 2, column 8
          |
        2 | auth = "maybe"
          |        ^^^^^^^
        unknown variant `maybe`, expected `token` or `none`
        "#);
        let error = Config::parse("[limits]\ncall_seconds = -1.0").unwrap_err();
        insta::assert_snapshot!(error, @"limits.call_seconds must be a number of seconds, zero or more");
    }
}
