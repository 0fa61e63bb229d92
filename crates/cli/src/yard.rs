//! From the configuration to a running yard.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolyard_hub::{Permissions, Principal, Yard, YardSettings};

use crate::config::Config;
use crate::demo;

pub(crate) fn build(config: &Config) -> Arc<Yard> {
    let yard = Yard::new(YardSettings { limits: config.limits(), ..YardSettings::default() });
    if config.demo {
        yard.add(demo::source());
    }
    yard
}

/// Whoever started this process, or holds the token that it printed.
pub(crate) fn owner(config: &Config) -> Principal {
    match &config.permissions {
        None => Principal::owner(),
        Some(list) => {
            let held: BTreeSet<String> = list.iter().cloned().collect();
            Principal::new("owner", Permissions::Only(held))
        }
    }
}
