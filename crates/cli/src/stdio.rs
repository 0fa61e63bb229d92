//! `toolyard stdio`

use tokio_util::sync::CancellationToken;
use toolyard_serve::{StdioOptions, stdio_with};

use crate::args::StdioArgs;
use crate::config::Config;
use crate::signals::until_stopped;
use crate::{Exit, yard};

pub(crate) async fn run(args: StdioArgs) -> anyhow::Result<Exit> {
    let config = match Config::find(args.config.as_deref()) {
        Ok(config) => config,
        Err(error) => {
            eprintln!("toolyard: {error:#}");
            return Ok(Exit::Usage);
        }
    };
    let stop = CancellationToken::new();
    let options = StdioOptions {
        principal: yard::owner(&config),
        wire: toolyard_serve::StdioSettings {
            line: config.limits.limits().payload,
            drain: config.limits.drain(),
            ..Default::default()
        },
        stop: stop.clone(),
        ..StdioOptions::default()
    };
    match until_stopped(stop, stdio_with(yard::build(&config), options)).await? {
        Some(served) => served.map(|()| Exit::Fine).map_err(Into::into),
        None => Ok(Exit::Interrupted),
    }
}
