//! `toolyard doctor`: checks the configuration, every server and this machine, and suggests fixes.

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use toolyard_config::{Config, ConfigProblem, ProblemSeverity, ServerEntry};
use toolyard_hub::{Source, SourceState};
use toolyard_program::{Engine, EngineSettings};
use toolyard_upstream::{ServerListKind, TransportSettings, Upstream, check_command};

use crate::args::{DoctorArgs, ServerSelectionArgs};
use crate::clean::clean_line;
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::one_shot::{OneShotOptions, OneShotYard, ServerSelection, UnavailableServer};
use crate::terminal::{StdoutWriter, format_count};
use crate::{Exit, upstream_setup};

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    #[serde(skip)]
    exit: Exit,
    level: FindingLevel,
    /// What was checked: `config`, `command`, `server`, `authorization`, `tools` or `machine`.
    about: &'static str,
    /// The name of the checked item.
    name: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingLevel {
    Fine,
    Warning,
    Failed,
}

impl Finding {
    fn ok(about: &'static str, name: impl Into<String>, message: impl Into<String>) -> Self {
        let (name, message) = (name.into(), message.into());
        Self { exit: Exit::Success, level: FindingLevel::Fine, about, name, message, fix: None }
    }

    fn failed(exit: Exit, about: &'static str, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { exit, level: FindingLevel::Failed, ..Self::ok(about, name, message) }
    }

    fn warning(about: &'static str, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { level: FindingLevel::Warning, ..Self::ok(about, name, message) }
    }

    fn with_fix(self, fix: Option<String>) -> Self {
        Self { fix, ..self }
    }
}

pub(crate) async fn run(args: DoctorArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    let mut findings = Vec::new();
    let usable = args.which.other.url.is_some()
        || !args.which.other.command.is_empty()
        || check_config(&args.which, &mut findings);
    if usable {
        check_server_commands(&args.which, &mut findings);
        let visit = OneShotYard::open_quietly(
            &args.which,
            OneShotOptions::new(ServerSelection::All, &ServerListKind::ALL),
            &stop,
        )
        .await?;
        check_servers(&visit, &mut findings).await;
        visit.close().await;
    }
    check_machine(&mut findings).await?;
    show(&args, &findings)?;
    // The most likely root cause decides: first the configuration, then authorization, then
    // unreachable servers.
    let worst = [Exit::Usage, Exit::Unauthorized, Exit::Unreachable, Exit::Failed];
    let failed = |exit: &&Exit| {
        findings.iter().any(|finding| finding.level == FindingLevel::Failed && finding.exit == **exit)
    };
    Ok(worst.iter().find(failed).copied().unwrap_or(Exit::Success))
}

/// Checks the configuration. Returns whether it can be used.
fn check_config(which: &ServerSelectionArgs, findings: &mut Vec<Finding>) -> bool {
    let around = process_environment();
    let name = match which.config.as_slice() {
        [] => toolyard_config::default_config_file(&around)
            .map_or("none".to_owned(), |file| file.display().to_string()),
        files => files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", "),
    };
    let (problems, loaded) = match Config::load(&which.config, &around) {
        Ok(config) => (config.problems().to_vec(), Some(config)),
        Err(problems) => (problems.0, None),
    };
    if let Some(config) = &loaded {
        let servers = format_count(config.servers().len(), "server");
        let off = config.servers().iter().filter(|entry| !entry.is_enabled()).count();
        let message = match (config.is_demo_only(), off) {
            (true, _) => "no configuration found, using the demo yard".to_owned(),
            (false, 0) => servers,
            (false, off) => format!("{servers}, {off} disabled"),
        };
        let fix =
            config.is_demo_only().then(|| "run `toolyard add` or `toolyard import` to create one".to_owned());
        let finding = if config.is_demo_only() { Finding::warning } else { Finding::ok };
        findings.push(finding("config", &name, message).with_fix(fix));
    }
    findings.extend(problems.iter().map(|problem| config_problem_finding(problem, &name)));
    loaded.is_some()
}

fn config_problem_finding(problem: &ConfigProblem, file: &str) -> Finding {
    let location = match (&problem.file, &problem.location) {
        (Some(file), Some(location)) => format!("{}:{}:{}", file.display(), location.line, location.column),
        (Some(file), None) => file.display().to_string(),
        (None, _) => file.to_owned(),
    };
    let of = problem.server.as_ref().map(|server| format!("server `{server}`: ")).unwrap_or_default();
    let message = format!("{of}{}", problem.message);
    let finding = match problem.severity {
        ProblemSeverity::Error => Finding::failed(Exit::Usage, "config", location, message),
        ProblemSeverity::Warning => Finding::warning("config", location, message),
    };
    finding.with_fix(problem.suggestion.clone())
}

/// Checks that the programs of the servers exist.
fn check_server_commands(which: &ServerSelectionArgs, findings: &mut Vec<Finding>) {
    let Ok(config) = Config::load(&which.config, &process_environment()) else { return };
    if !which.other.is_empty() {
        return;
    }
    let is_selected =
        |entry: &&ServerEntry| which.server.as_deref().is_none_or(|name| name == entry.name().as_str());
    for entry in config.servers().iter().filter(is_selected).filter(|entry| entry.is_enabled()) {
        let ServerEntry::Ready(settings) = entry else { continue };
        let TransportSettings::Command(command) = &settings.transport else { continue };
        let name = settings.name.as_str();
        findings.push(match check_command(command, std::env::var_os("PATH").as_deref()) {
            Ok(()) => Finding::ok("command", name, format!("found {}", command.program)),
            Err(error) => Finding::failed(Exit::Unreachable, "command", name, error.to_string())
                .with_fix(error.suggestion()),
        });
    }
}

async fn check_servers(visit: &OneShotYard, findings: &mut Vec<Finding>) {
    let catalog = visit.yard.catalog();
    for upstream in visit.upstreams() {
        let status = upstream.status();
        let name = upstream.name().as_str();
        if status.state != SourceState::Ready {
            continue;
        }
        let version = status.version.unwrap_or("an unknown version");
        let era = status.era.unwrap_or("unknown");
        let tools = catalog.tools().iter().filter(|tool| &tool.source == upstream.name());
        let message = format!(
            "connected over {}, protocol {version} ({era} era), {}",
            status.transport.unwrap_or("an unknown transport"),
            format_count(tools.clone().count(), "tool"),
        );
        findings.push(Finding::ok("server", name, message));
        findings.extend(check_authorization(upstream).await);
        for tool in tools {
            if let Some(problem) = tool.schema_problem() {
                let message = format!("invalid input schema of {}: {problem}", tool.full_name);
                let fix = "arguments are not validated; report this to the author of the server".to_owned();
                findings.push(Finding::warning("tools", name, message).with_fix(Some(fix)));
            }
            if let Some(problem) = tool.output_schema_problem() {
                let message = format!("invalid output schema of {}: {problem}", tool.full_name);
                let fix = "results are not validated; report this to the author of the server".to_owned();
                findings.push(Finding::warning("tools", name, message).with_fix(Some(fix)));
            }
        }
        let warnings = visit.yard.statuses().into_iter().find(|(source, _)| source == upstream.name());
        for warning in warnings.into_iter().flat_map(|(_, status)| status.warnings) {
            findings.push(Finding::warning("tools", name, warning));
        }
    }
    // Skip servers whose missing command has already been reported.
    let is_reported = |trouble: &&UnavailableServer| {
        let command = |finding: &Finding| finding.about == "command" && finding.level == FindingLevel::Failed;
        findings.iter().any(|finding| command(finding) && finding.name == trouble.server.as_str())
    };
    let new = visit
        .unavailable
        .iter()
        .filter(|trouble| trouble.state != SourceState::Failed && !is_reported(trouble));
    let new: Vec<Finding> = new.map(unavailable_server_finding).collect();
    findings.extend(new);
}

async fn check_authorization(upstream: &Upstream) -> Option<Finding> {
    let name = upstream.name().as_str();
    match upstream.auth_status().await {
        Ok(status) => status.label().map(|label| Finding::ok("authorization", name, label)),
        Err(error) => {
            let fix = error.suggestion(name);
            Some(Finding::failed(Exit::Unauthorized, "authorization", name, error.to_string()).with_fix(fix))
        }
    }
}

fn unavailable_server_finding(trouble: &UnavailableServer) -> Finding {
    let name = trouble.server.as_str();
    let mut message = trouble.describe();
    if !trouble.stderr.is_empty() {
        message.push_str(&format!("; last lines on stderr: {}", trouble.stderr.join(" / ")));
    }
    let known = trouble.suggestion.clone();
    let fix = known.unwrap_or_else(|| match trouble.state {
        SourceState::NeedsAuthorization => format!("run `toolyard login {name}`"),
        _ => format!("run `toolyard --log debug list tools {name}` for details"),
    });
    let about = if trouble.state == SourceState::NeedsAuthorization { "authorization" } else { "server" };
    Finding::failed(trouble.exit(), about, name, message).with_fix(Some(fix))
}

/// Checks that this machine can store credentials and run the sandbox for programs.
async fn check_machine(findings: &mut Vec<Finding>) -> Result<(), CommandError> {
    let around = process_environment();
    findings.push(match around.data_home() {
        Some(home) => {
            let location = home.join("toolyard");
            Finding::ok("machine", "credentials", format!("stored in {}", location.display()))
        }
        None => {
            Finding::warning("machine", "credentials", "no home directory, so credentials are not stored")
                .with_fix(Some("set HOME".to_owned()))
        }
    });
    let launcher = vec![upstream_setup::current_exe()?.into(), "sandbox".into()];
    let engine = Engine::new(EngineSettings { launcher, python: None, without: Vec::new() });
    findings.push(match engine.ready().await {
        Ok(about) if about.missing.is_empty() => {
            let message = format!("programs can run, with Python {}", about.python_version);
            Finding::ok("machine", "sandbox", message)
        }
        Ok(about) => {
            let missing = about.missing.join(", ");
            let message =
                format!("programs can run, but this kernel lacks {missing}; Python {}", about.python_version);
            Finding::warning("machine", "sandbox", message)
        }
        // Nothing but programs needs it.
        Err(unavailable) => {
            let message = format!("programs cannot run: {}", unavailable.reason);
            Finding::warning("machine", "sandbox", message).with_fix(unavailable.suggestion)
        }
    });
    engine.stop().await;
    Ok(())
}

fn show(args: &DoctorArgs, findings: &[Finding]) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    if args.json {
        out.write_line(&serde_json::to_string(findings).unwrap_or_default())?;
        return Ok(out.flush()?);
    }
    for finding in findings {
        let (mark, colour) = match finding.level {
            FindingLevel::Fine => ("ok  ", AnsiColor::Green),
            FindingLevel::Warning => ("warn", AnsiColor::Yellow),
            FindingLevel::Failed => ("FAIL", AnsiColor::Red),
        };
        let mark = out.styled(Style::new().fg_color(Some(colour.into())), mark);
        let (name, message) = (clean_line(&finding.name), clean_line(&finding.message));
        out.write_line(&format!("{mark} {} {name}: {message}", finding.about))?;
        if let Some(fix) = &finding.fix {
            out.write_line(&format!("     fix: {}", clean_line(fix)))?;
        }
    }
    let count = |level: FindingLevel| findings.iter().filter(|finding| finding.level == level).count();
    out.write_line(&format!(
        "{}, {}",
        format_count(count(FindingLevel::Failed), "error"),
        format_count(count(FindingLevel::Warning), "warning")
    ))?;
    Ok(out.flush()?)
}
