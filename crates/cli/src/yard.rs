//! From the configuration to a running yard.

use std::collections::BTreeSet;
use std::sync::Arc;

use toolyard_config::Config;
use toolyard_hooks::HttpHooks;
use toolyard_hub::{Permissions, Principal, Quotas, Source, Yard, YardSettings};
use toolyard_serve::Identity;
use toolyard_tester::Tester;

use crate::demo;
use crate::recording::CallRecording;

/// The yard, around whose calls these hooks are, and what is kept of them.
pub(crate) fn build(config: &Config, hooks: Arc<HttpHooks>, keeping: &CallRecording) -> Arc<Yard> {
    let settings = YardSettings { limits: config.limits(), hooks: vec![hooks], ..YardSettings::default() };
    let yard = Yard::new(keeping.apply_to(settings));
    if config.demo {
        yard.add(demo::source());
    }
    yard
}

/// The yard of the tester: its own, so that its tools are not among those that it tests.
pub(crate) fn build_tester(
    config: &Config,
    tester: &Arc<Tester>,
    keeping: &CallRecording,
    quotas: &Arc<Quotas>,
) -> Arc<Yard> {
    let quotas = Arc::clone(quotas);
    let settings = YardSettings { limits: config.limits(), quotas, ..YardSettings::default() };
    let yard = Yard::new(keeping.apply_to(settings));
    yard.add(Arc::clone(tester) as Arc<dyn Source>);
    yard
}

/// Who the tester says it is.
pub(crate) fn tester_identity() -> Identity {
    Identity {
        name: Tester::NAME.to_owned(),
        title: Some("MCP server tester".to_owned()),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(
            "Connect to one MCP server with connect_to_server, look at everything that it advertises, call its tools, \
             read its resources, get its prompts, and disconnect. Answers are verbatim and timed."
                .to_owned(),
        ),
    }
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
