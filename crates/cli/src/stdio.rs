//! `toolyard stdio`

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolyard_serve::{StdioOptions, stdio_with};

use crate::args::StdioArgs;
use crate::config::Config;
use crate::fleet::Fleet;
use crate::outside::ConfiguredHooks;
use crate::signals::until_stopped;
use crate::{Exit, config, outside, shared, yard};

pub(crate) async fn run(args: StdioArgs) -> anyhow::Result<Exit> {
    let Some(config) = config::load_or_tell(&args.config) else {
        return Ok(Exit::Usage);
    };
    let stop = CancellationToken::new();
    let options = StdioOptions {
        principal: yard::owner(&config),
        wire: toolyard_serve::StdioSettings {
            line: config.limits().payload,
            drain: config.limits.drain(),
            ..Default::default()
        },
        stop: stop.clone(),
        ..StdioOptions::default()
    };
    let common = shared::common()?;
    let hooks = ConfiguredHooks::new(outside::client()?, &config.hooks);
    let yard = yard::build(&config, Arc::clone(&hooks));
    let reloaded = move |config: &Config| hooks.replace(&config.hooks);
    let mut fleet = Fleet::start(Arc::clone(&yard), common, config, args.config, reloaded)?;
    let work = Box::pin(async {
        let served = tokio::select! {
            served = stdio_with(yard, options) => served.map_err(Into::into),
            failed = fleet.follow() => failed,
        };
        fleet.stop().await;
        served
    });
    let done = until_stopped(stop, work).await?.transpose()?;
    Ok(if done.is_some() { Exit::Fine } else { Exit::Interrupted })
}
