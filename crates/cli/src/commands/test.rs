//! `toolyard test`: reads test files, runs them, and writes reports.

mod files;
mod generic;
mod output;
mod watch;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use toolyard_config::{Config, ServerEntry};
use toolyard_suite::{
    ReportFormat, ServerSpec, SnapshotMode, SuiteEvent, SuiteOptions, SuiteReport, TestFile, TestFilter,
    github_annotations, github_summary, list_tests, render_report, run_generic, run_suite,
};
use toolyard_upstream::{Era, ServerSettings, UpstreamContext};

use crate::Exit;
use crate::args::{ServerSelectionArgs, TestArgs};
use crate::configuration::{process_environment, report_problem};
use crate::error::CommandError;
use crate::one_shot::{ad_hoc, check_server_exists};
use crate::terminal::{self, print_error, print_hint};
use crate::upstream_setup;
use output::SuiteOutput;

/// How many events can wait for the terminal.
const EVENTS: usize = 256;

pub(crate) async fn run(args: TestArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    check_reports(&args)?;
    if args.watch {
        return watch::run(&args, &stop).await;
    }
    run_once(&args, &stop).await
}

/// Reads the files and runs them once.
async fn run_once(args: &TestArgs, stop: &CancellationToken) -> Result<Exit, CommandError> {
    let variables = CiVariables::read();
    let report = match args.generic.generic {
        true => {
            let common = upstream_setup::build_context()?;
            let options = generic::options(args, &common)?;
            run_and_show(args, async |sender| run_generic(&options, &common, &sender, stop).await).await?
        }
        false => {
            let files = files::load(args)?;
            let common = upstream_setup::build_context()?;
            let options = suite_options(args, &files, &variables, &common)?;
            if args.list {
                return output::print_list(&list_tests(&files, &options), args.json);
            }
            run_and_show(args, async |sender| run_suite(&files, &options, &common, &sender, stop).await)
                .await?
        }
    };
    let written = write_reports(args, &report, &variables);
    if args.json {
        let text = render_report(ReportFormat::Json, &report).unwrap_or_default();
        terminal::print(&text)?;
    }
    written?;
    Ok(verdict(args, &report))
}

/// Runs the tests while the terminal shows the events.
async fn run_and_show(
    args: &TestArgs,
    run: impl AsyncFnOnce(mpsc::Sender<SuiteEvent>),
) -> Result<SuiteReport, CommandError> {
    // The sender is dropped at the end of the run, which ends the output.
    let (sender, mut events) = mpsc::channel(EVENTS);
    let running = run(sender);
    let showing = async {
        let mut report = SuiteReport::default();
        let mut output = SuiteOutput::new(args);
        while let Some(event) = events.recv().await {
            report.apply(&event);
            output.show(&event)?;
        }
        output.finish(&report)?;
        Ok::<_, CommandError>(report)
    };
    let (report, ()) = tokio::join!(showing, Box::pin(running));
    report
}

/// Decides the exit code, and prints why the run failed if no test says so.
fn verdict(args: &TestArgs, report: &SuiteReport) -> Exit {
    let summary = report.summary();
    if report.interrupted {
        return Exit::Interrupted;
    }
    if summary.failed + summary.not_run > 0 {
        return Exit::TestsFailed;
    }
    if summary.ran() == 0 {
        print_error("no test ran");
        match (summary.skipped, args.filter.is_empty()) {
            (0, false) => print_hint("no test matches --filter; run with --list to see all tests"),
            (0, true) => print_hint("this shard has no tests; use fewer shards"),
            _ => print_hint("all tests were skipped, for the reasons above"),
        }
        return Exit::TestsFailed;
    }
    if let Some(least) = args.fail_under
        && report.coverage.percent() < least
    {
        print_error(&format!(
            "the coverage is {:.1} %, which is less than {least} %",
            report.coverage.percent()
        ));
        return Exit::TestsFailed;
    }
    Exit::Success
}

/// The environment variables with which CI systems introduce themselves.
struct CiVariables {
    all: Arc<BTreeMap<String, String>>,
    is_ci: bool,
    is_github: bool,
    step_summary: Option<PathBuf>,
}

impl CiVariables {
    fn read() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let all: BTreeMap<String, String> = std::env::vars_os().filter_map(text).collect();
        let is_set =
            |name: &str| all.get(name).is_some_and(|value| !matches!(value.as_str(), "" | "0" | "false"));
        let (is_ci, is_github) = (is_set("CI"), is_set("GITHUB_ACTIONS"));
        let step_summary = all.get("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()).map(PathBuf::from);
        Self { all: Arc::new(all), is_ci, is_github, step_summary }
    }
}

fn suite_options(
    args: &TestArgs,
    files: &[TestFile],
    variables: &CiVariables,
    common: &UpstreamContext,
) -> Result<SuiteOptions, CommandError> {
    let snapshots = match (args.update, args.ci || variables.is_ci) {
        (true, _) => SnapshotMode::Update,
        (false, true) => SnapshotMode::ReadOnly,
        (false, false) => SnapshotMode::WriteMissing,
    };
    let mut configured = BTreeMap::new();
    let mut server = ad_hoc::server_settings(&args.which.other)?;
    let names_server = |file: &TestFile| matches!(file.server, Some(ServerSpec::Configured(_)));
    if server.is_none() && (args.which.server.is_some() || files.iter().any(names_server)) {
        configured = configured_servers(&args.which, common)?;
        if let Some(name) = &args.which.server {
            server = configured.get(name).cloned();
        }
    }
    let with_timeout = |settings: ServerSettings| ServerSettings {
        start_timeout: args.which.start_timeout.unwrap_or(settings.start_timeout),
        ..settings
    };
    let jobs = match args.jobs {
        Some(jobs) => usize::from(jobs),
        None => std::thread::available_parallelism().map_or(2, usize::from),
    };
    let mut eras: Vec<Era> = args.era.iter().copied().map(Era::from).collect();
    eras.dedup();
    Ok(SuiteOptions {
        jobs,
        filters: args.filter.iter().map(|text| TestFilter::parse(text)).collect(),
        shard: args.shard,
        retries: usize::from(args.retry),
        fail_fast: args.fail_fast,
        eras: (!eras.is_empty()).then_some(eras),
        snapshots,
        server: server.map(with_timeout),
        configured: configured.into_iter().map(|(name, settings)| (name, with_timeout(settings))).collect(),
        environment: Arc::clone(&variables.all),
        temporary: std::env::temp_dir(),
    })
}

/// Returns the MCP servers of the configuration, also disabled ones, by name.
fn configured_servers(
    which: &ServerSelectionArgs,
    common: &UpstreamContext,
) -> Result<BTreeMap<String, ServerSettings>, CommandError> {
    let config = Config::load(&which.config, &process_environment()).map_err(|problems| {
        problems.0.iter().for_each(report_problem);
        CommandError::AlreadyReported(Exit::Usage)
    })?;
    upstream_setup::apply_config(common, &config);
    let wanted = which.server.as_deref();
    if let Some(name) = wanted {
        check_server_exists(name, &config)?;
    }
    let mut servers = BTreeMap::new();
    for entry in config.servers() {
        match entry {
            ServerEntry::Ready(settings) => {
                servers.insert(settings.name.to_string(), (**settings).clone());
            }
            ServerEntry::Document(settings) if wanted == Some(settings.name.as_str()) => {
                let message =
                    format!("`{}` is an OpenAPI document; only MCP servers can be tested", settings.name);
                return Err(CommandError::usage(message));
            }
            ServerEntry::Broken(broken) if wanted == Some(broken.name.as_str()) => {
                let message = format!("server `{}` cannot be used: {}", broken.name, broken.reason());
                return Err(CommandError::usage(message));
            }
            ServerEntry::Document(_) | ServerEntry::Broken(_) => {}
        }
    }
    Ok(servers)
}

/// Fails before the run if a report could not be written after it.
fn check_reports(args: &TestArgs) -> Result<(), CommandError> {
    for report in &args.report {
        if report.format == ReportFormat::Sarif && !args.generic.generic {
            return Err(CommandError::usage(
                "a sarif report contains what lint finds, which only --generic runs",
            )
            .suggest("add --generic, or run `toolyard lint --sarif`"));
        }
        let folder = report.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) || report.path.is_dir() {
            let message =
                format!("cannot write the report {}: the folder does not exist", report.path.display());
            return Err(CommandError::usage(message));
        }
    }
    Ok(())
}

fn write_reports(args: &TestArgs, report: &SuiteReport, variables: &CiVariables) -> Result<(), CommandError> {
    let mut failed = None;
    for file in &args.report {
        let written = render_report(file.format, report)
            .and_then(|text| write_whole(&file.path, &text).map_err(|error| error.to_string()));
        if let Err(reason) = written {
            // The other reports are still written.
            let message = format!("cannot write the report {}: {reason}", file.path.display());
            failed.get_or_insert(CommandError::new(Exit::Failed, message));
        }
    }
    if variables.is_github {
        for annotation in github_annotations(report) {
            match args.json {
                true => eprintln!("{}", annotation.as_str()),
                false => terminal::print(&format!("{}\n", annotation.as_str()))?,
            }
        }
        if let Some(path) = &variables.step_summary
            && let Err(error) = append(path, &github_summary(report))
        {
            let message = format!("cannot write the step summary {}: {error}", path.display());
            failed.get_or_insert(CommandError::new(Exit::Failed, message));
        }
    }
    failed.map_or(Ok(()), Err)
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    // Devices such as /dev/stdout cannot be replaced.
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => fs::write(path, text),
        _ => toolyard_config::write_atomically(path, text.as_bytes()),
    }
}

fn append(path: &Path, text: &str) -> std::io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(text.as_bytes())
}
