//! `toolyard lint`: checks what servers offer for problems, without calling anything.

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use toolyard_config::Config;
use toolyard_definitions::lint::{LintFinding, LintSeverity, lint, render_sarif};

use super::offer_operand;
use crate::Exit;
use crate::args::LintArgs;
use crate::clean::{clean_line, clean_name};
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::one_shot::collect_offers;
use crate::terminal::{StdoutWriter, format_count};

pub(crate) async fn run(args: LintArgs, stop: CancellationToken) -> Result<Exit, CommandError> {
    if !args.of.is_empty() && !args.which.other.is_empty() {
        return Err(CommandError::usage("a server and a server command after `--` cannot be combined"));
    }
    // Problems of the configuration are reported when its servers are started.
    let settings = Config::load(&args.which.config, &process_environment());
    let settings = settings.map(|config| config.lint.settings()).unwrap_or_default();
    let offers = match args.of.as_slice() {
        [] => collect_offers(&args.which, &stop).await?,
        words => {
            let operands: Result<Vec<_>, _> =
                words.iter().map(|word| offer_operand::parse(word, &args.which)).collect();
            let mut offers = Vec::new();
            for operand in operands? {
                offers.extend(operand.read(&args.which, &stop).await?);
            }
            offers
        }
    };
    let findings: Vec<LintFinding> = offers.iter().flat_map(|offer| lint(offer, &settings)).collect();
    show(&args, &findings, offers.len())?;
    let least = LintSeverity::from(args.fail_on);
    let fails = findings.iter().any(|finding| finding.severity >= least);
    Ok(if fails { Exit::TestsFailed } else { Exit::Success })
}

#[derive(Serialize)]
struct LintReport<'a> {
    errors: usize,
    warnings: usize,
    info: usize,
    findings: &'a [LintFinding],
}

fn show(args: &LintArgs, findings: &[LintFinding], servers: usize) -> Result<(), CommandError> {
    let mut out = StdoutWriter::new();
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let [errors, warnings, info] =
        [LintSeverity::Error, LintSeverity::Warning, LintSeverity::Info].map(count);
    if args.json {
        let report = LintReport { errors, warnings, info, findings };
        out.write_line(&serde_json::to_string(&report).map_err(std::io::Error::from)?)?;
        return Ok(out.flush()?);
    }
    if args.sarif {
        let config = args.which.config.last().map(|path| path.display().to_string());
        let artifact = config.unwrap_or_else(|| toolyard_config::TOOLYARD_TOML.to_owned());
        out.write_line(&render_sarif(findings, &artifact, env!("CARGO_PKG_VERSION")).to_string())?;
        return Ok(out.flush()?);
    }
    let shown: Vec<&LintFinding> =
        findings.iter().filter(|finding| args.all || finding.severity > LintSeverity::Info).collect();
    let about = |finding: &LintFinding| (finding.server.clone(), finding.kind, finding.name.clone());
    for group in shown.chunk_by(|one, other| about(one) == about(other)) {
        let Some(first) = group.first() else { continue };
        let mut title = String::new();
        if servers > 1 || first.kind.is_none() {
            title.push_str(&format!("server {}", clean_name(&first.server)));
        }
        if let Some(kind) = first.kind {
            let separator = if title.is_empty() { "" } else { ", " };
            title.push_str(&format!("{separator}{} {}", kind.as_str(), clean_name(&first.name)));
        }
        out.write_line(&title)?;
        for finding in group {
            let color = match finding.severity {
                LintSeverity::Error => AnsiColor::Red,
                LintSeverity::Warning => AnsiColor::Yellow,
                LintSeverity::Info => AnsiColor::Blue,
            };
            let word = format!("{:<7}", finding.severity.as_str());
            let word = out.styled(Style::new().fg_color(Some(color.into())), &word);
            let path = if finding.path.is_empty() { "/".into() } else { clean_name(&finding.path) };
            out.write_line(&format!("  {word}  {}  {path}  {}", finding.rule, clean_line(&finding.message)))?;
        }
    }
    let hidden = if args.all || info == 0 { "" } else { " (not shown, see --all)" };
    let counts =
        [format_count(errors, "error"), format_count(warnings, "warning"), format!("{info} info{hidden}")];
    out.write_line(&format!("{} checked: {}", format_count(servers, "server"), counts.join(", ")))?;
    Ok(out.flush()?)
}
