//! `toolyard stdio`

use std::sync::Arc;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use toolyard_config::Config;
use toolyard_hooks::HttpHooks;
use toolyard_hub::{Source, YardScope};
use toolyard_serve::{StdioOptions, stdio_with};
use toolyard_tester::{Tester, TesterServers, TesterSharing};

use crate::args::{Expose, StdioArgs};
use crate::recording::{CallRecording, HistoryReaders};
use crate::servers::{ConfiguredServers, ServerStartOptions, StartMode};
use crate::signals::until_stopped;
use crate::{Exit, programs, upstream_setup, yard};

pub(crate) async fn run(args: StdioArgs) -> anyhow::Result<Exit> {
    let given = args.documents.config_inputs(args.config);
    let Some(config) = given.load() else {
        return Ok(Exit::Usage);
    };
    let stop = CancellationToken::new();
    let mut options = StdioOptions {
        principal: yard::owner(&config),
        wire: toolyard_serve::StdioSettings {
            line: config.limits().payload,
            drain: config.limits.drain(),
            ..Default::default()
        },
        stop: stop.clone(),
        ..StdioOptions::default()
    };
    let (common, directory) = (upstream_setup::build_common()?, TesterServers::default());
    let hooks = HttpHooks::new(common.tls.clone(), &config.hooks).context("cannot set up HTTP")?;
    // Nobody reads past calls over standard input; the audit is for whoever runs us.
    let keeping = CallRecording::open(&config, HistoryReaders::None)?;
    let exposed = |what| args.expose.contains(&what);
    let tester = exposed(Expose::Tester).then(|| {
        Tester::new(config.tester.settings(TesterSharing::Process), common.clone(), Arc::clone(&directory))
    });
    let exposes_programs = exposed(Expose::Programs);
    if exposes_programs && !config.programs.is_enabled() {
        eprintln!("toolyard: there are no programs: the configuration says programs.enabled = false");
        return Ok(Exit::Usage);
    }
    let mut programs = None;
    let (yard, manned) = match (&tester, exposed(Expose::Tools) || exposes_programs) {
        // Servers are then started when they are tested, not before.
        (Some(tester), false) => {
            options.mcp.identity = yard::tester_identity();
            (yard::build_tester(&config, tester, &keeping, &Arc::default()), StartMode::NameOnly)
        }
        (tester, _) => {
            let yard = yard::build(&config, Arc::clone(&hooks), &keeping);
            let mut apart = Vec::new();
            if let Some(tester) = tester {
                yard.add(Arc::clone(tester) as Arc<dyn Source>);
                apart.push(tester.name().clone());
            }
            if exposes_programs {
                let built = programs::build(&config.programs, &yard)?;
                yard.add(Arc::clone(&built) as Arc<dyn Source>);
                apart.push(built.name().clone());
                programs = Some(built);
            }
            if !exposed(Expose::Tools) {
                if tester.is_none() {
                    options.mcp.identity = programs::identity();
                }
                options.reach = YardScope::Only(apart.into());
            }
            (yard, StartMode::Shared)
        }
    };
    let reloaded = move |config: &Config| hooks.replace(&config.hooks);
    let crew = ServerStartOptions { common, manned, directory };
    let mut fleet = ConfiguredServers::start(Arc::clone(&yard), config, given, crew, reloaded)?;
    let work = Box::pin(async {
        let served = tokio::select! {
            served = stdio_with(yard, options) => served.map_err(Into::into),
            failed = fleet.reload_on_change() => failed,
        };
        if let Some(tester) = tester {
            tester.stop().await;
        }
        if let Some(programs) = programs {
            programs.stop().await;
        }
        fleet.stop().await;
        served
    });
    let done = until_stopped(stop, work).await;
    keeping.close().await;
    let done = done?.transpose()?;
    Ok(if done.is_some() { Exit::Fine } else { Exit::Interrupted })
}
