//! From the configuration to a running yard.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolyard_hub::{Permissions, Principal, Yard, YardSettings};

use crate::config::Config;
use crate::demo;
use crate::outside::ConfiguredHooks;

/// The yard, around whose calls these hooks are.
pub(crate) fn build(config: &Config, hooks: Arc<ConfiguredHooks>) -> Arc<Yard> {
    let settings = YardSettings { limits: config.limits(), hooks: vec![hooks], ..YardSettings::default() };
    let yard = Yard::new(settings);
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
