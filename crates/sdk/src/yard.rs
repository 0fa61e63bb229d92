//! The settings of a [`Yard`](crate::Yard): limits and hooks that apply to all of its tools.
//!
//! ```
//! use std::time::Duration;
//! use toolyard_sdk::yard::{YardLimits, YardSettings};
//! use toolyard_sdk::{NativeSource, Tool, Yard};
//!
//! let limits = YardLimits { call_time: Duration::from_secs(30), ..YardLimits::default() };
//! let yard = Yard::new(YardSettings { limits, ..YardSettings::default() });
//! yard.add(NativeSource::new("demo").tool(Tool::new("ping", || async { Ok("pong") })).into_source());
//! assert_eq!(yard.limits().call_time, Duration::from_secs(30));
//! ```

pub use toolyard_hub::{Glob, RateLimit, ScopedLimits, Source, SourceName, YardLimits, YardSettings};
