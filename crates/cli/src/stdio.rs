//! `toolyard stdio`

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolyard_hub::{Source, YardScope};
use toolyard_serve::{StdioOptions, stdio_with};

use crate::args::{Expose, StdioArgs};
use crate::assembly::{self, AssemblyOptions, RunningYard, TesterPlacement};
use crate::error::CommandError;
use crate::servers::StartMode;
use crate::{Exit, programs};

pub(crate) async fn run(args: StdioArgs) -> anyhow::Result<Exit> {
    let given = args.documents.config_inputs(args.config);
    let Some(config) = given.load() else {
        return Ok(Exit::Usage);
    };
    let exposed = |part| args.expose.contains(&part);
    if exposed(Expose::Programs) && !config.programs.is_enabled() {
        let error = CommandError::usage("programs are disabled in the configuration");
        return Ok(error.suggest("set `programs.enabled = true`, or omit `programs` from --expose").report());
    }
    let placement = match exposed(Expose::Tools) || exposed(Expose::Programs) {
        true => TesterPlacement::SharedYard,
        false => TesterPlacement::Exclusive,
    };
    let tester = exposed(Expose::Tester).then_some(placement);
    // If only the tester is exposed, it starts servers itself when they are tested.
    let mode =
        if tester == Some(TesterPlacement::Exclusive) { StartMode::NameOnly } else { StartMode::Shared };
    let programs = exposed(Expose::Programs);
    let mut running =
        RunningYard::assemble(&config, AssemblyOptions { tester, programs, ..AssemblyOptions::new(mode) })
            .await?;
    let stop = CancellationToken::new();
    let mut options = StdioOptions {
        principal: assembly::owner(&config),
        wire: toolyard_serve::StdioSettings {
            max_line_bytes: config.limits().payload,
            drain_timeout: config.limits.drain_timeout(),
            ..Default::default()
        },
        stop: stop.clone(),
        ..StdioOptions::default()
    };
    if !exposed(Expose::Tools) {
        let tester = running.tester.as_ref().map(|tester| tester.source.name().clone());
        match (tester, &running.programs) {
            (None, Some(programs)) => {
                options.mcp.identity = programs::identity();
                options.reach = YardScope::Only([programs.name().clone()].into());
            }
            (Some(tester), Some(programs)) => {
                options.reach = YardScope::Only([tester, programs.name().clone()].into());
            }
            // The yard only contains the tester.
            (_, None) => options.mcp.identity = assembly::tester_identity(),
        }
    }
    running.start_and_follow(config, given, |_| {})?;
    let yard = Arc::clone(&running.yard);
    let served = async { Ok(stdio_with(yard, options).await?) };
    let done = running.run(stop, served).await?;
    Ok(if done.is_some() { Exit::Success } else { Exit::Interrupted })
}
