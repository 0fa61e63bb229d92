//! `toolyard test --generic`: from arguments to the options of a generic run, and to the command that
//! repeats a failure.

use std::time::Duration;

use toolyard_config::Config;
use toolyard_suite::{GenericOptions, GenericScope, ReproductionCommand, TestFilter};
use toolyard_upstream::{Era, ServerSettings, UpstreamContext};

use super::configured_servers;
use crate::args::{AdHocServerArgs, ServerSelectionArgs, SeverityArg, TestArgs};
use crate::configuration::process_environment;
use crate::error::CommandError;
use crate::one_shot::ad_hoc;

/// Returns the options of the run.
pub(super) fn options(args: &TestArgs, common: &UpstreamContext) -> Result<GenericOptions, CommandError> {
    let generic = &args.generic;
    let which = server_selection(args)?;
    let server = server(args, &which, common)?;
    // Problems of the configuration matter only if a server of it is tested.
    let config = Config::load(&which.config, &process_environment());
    let canary = toolyard_random::hex_id()
        .map_err(|error| CommandError::new(crate::Exit::Failed, error.to_string()))?;
    let mut eras: Vec<Era> = args.era.iter().copied().map(Era::from).collect();
    eras.dedup();
    Ok(GenericOptions {
        server,
        eras,
        seed: generic.seed,
        cases: usize::from(generic.cases),
        scope: if generic.destructive { GenericScope::All } else { GenericScope::ReadOnly },
        tools: generic.tool.clone(),
        arguments: generic.arguments.clone(),
        call_timeout: generic.call_timeout,
        test_time: generic.test_time,
        max_time: generic.max_time,
        max_start: generic.max_start,
        filters: args.filter.iter().map(|text| TestFilter::parse(text)).collect(),
        fail_fast: args.fail_fast,
        lint: config.map(|config| config.lint.settings()).unwrap_or_default(),
        lint_level: generic.lint_level.into(),
        canary: Some(canary),
        reproduction: reproduction(args, &which),
    })
}

/// Returns how the server was named: before the options, with `--server` or `--url`, or after `--`.
fn server_selection(args: &TestArgs) -> Result<ServerSelectionArgs, CommandError> {
    let mut which = args.which.clone();
    let is_named = which.server.is_some() || !which.other.is_empty();
    match args.paths.as_slice() {
        [] if is_named => Ok(which),
        [only] if !is_named => {
            let name = only.to_string_lossy().into_owned();
            match toolyard_config::is_http_url(&name) {
                true => which.other.url = Some(name),
                false => which.server = Some(name),
            }
            Ok(which)
        }
        [] => Err(CommandError::usage("--generic needs a server").suggest(
            "pass the name of a configured server, a URL, or a command after --, such as \
             `toolyard test --generic -- node server.js`",
        )),
        _ => Err(CommandError::usage("--generic tests one server at a time")
            .suggest("pass either a name, a URL, or a command after --")),
    }
}

fn server(
    args: &TestArgs,
    which: &ServerSelectionArgs,
    common: &UpstreamContext,
) -> Result<ServerSettings, CommandError> {
    let settings = match (ad_hoc::server_settings(&which.other)?, &which.server) {
        (Some(settings), _) => settings,
        (None, Some(name)) => {
            let mut configured = configured_servers(which, common)?;
            configured.remove(name).ok_or_else(|| CommandError::usage(format!("unknown server `{name}`")))?
        }
        (None, None) => return Err(CommandError::usage("--generic needs a server")),
    };
    let start_timeout = args.which.start_timeout.unwrap_or(settings.start_timeout);
    Ok(ServerSettings { start_timeout, ..settings })
}

/// Returns the command that repeats a part of this run.
fn reproduction(args: &TestArgs, which: &ServerSelectionArgs) -> ReproductionCommand {
    let generic = &args.generic;
    let mut start = vec!["toolyard".to_owned(), "test".to_owned(), "--generic".to_owned()];
    let mut option = |name: &str, value: String| start.extend([name.to_owned(), value]);
    for era in &args.era {
        option("--era", Era::from(*era).as_str().to_owned());
    }
    for (name, value, usual) in [
        ("--call-timeout", generic.call_timeout, Duration::from_secs(5)),
        ("--max-start", generic.max_start, Duration::from_secs(10)),
    ] {
        if value != usual {
            option(name, time_text(value));
        }
    }
    if let Some(limit) = which.start_timeout {
        option("--start-timeout", time_text(limit));
    }
    match generic.lint_level {
        SeverityArg::Error => {}
        SeverityArg::Warning => option("--lint-level", "warning".to_owned()),
        SeverityArg::Info => option("--lint-level", "info".to_owned()),
    }
    for file in &which.config {
        option("--config", file.to_string_lossy().into_owned());
    }
    if generic.destructive {
        start.push("--destructive".to_owned());
    }
    ReproductionCommand { start: join(&start), server: server_words(&which.other, which.server.as_deref()) }
}

fn server_words(other: &AdHocServerArgs, name: Option<&str>) -> String {
    if let Some(url) = &other.url {
        // The values of headers are secrets, so they are left for the user to fill in.
        let headers = other.header.iter().map(|header| {
            let name = header.split(':').next().unwrap_or_default();
            format!(" --header {}", quoted(&format!("{name}: VALUE")))
        });
        return format!("--url {}{}", quoted(url), headers.collect::<String>());
    }
    match name {
        Some(name) => format!("--server {}", quoted(name)),
        None => {
            let mut words = Vec::new();
            let mut are_assignments = true;
            for word in &other.command {
                let assignment =
                    word.split_once('=').filter(|(name, _)| is_variable(name) && are_assignments);
                are_assignments = assignment.is_some();
                words.push(match assignment {
                    // A variable that was passed on is passed on again, so that its value is not shown.
                    Some((name, value)) if std::env::var(name).is_ok_and(|known| known == value) => {
                        format!("{name}=\"${name}\"")
                    }
                    Some((name, value)) => format!("{name}={}", quoted(value)),
                    None => quoted(word),
                });
            }
            format!("-- {}", words.join(" "))
        }
    }
}

fn is_variable(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn join(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell. A word with a NUL character cannot be an argument.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

fn time_text(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{reproduction, server_selection};
    use crate::args::TestArgs;

    /// The line that repeats a run with these words.
    fn line(words: &str) -> String {
        let args = TestArgs::try_parse_from(format!("test --generic {words}").split(' ')).unwrap();
        let command = reproduction(&args, &server_selection(&args).unwrap());
        format!("{} … {}", command.start, command.server)
    }

    #[test]
    fn a_failure_is_repeated_with_the_same_server_and_options() {
        assert_eq!(line("-- node server.js --flag"), "toolyard test --generic … -- node server.js --flag");
        assert_eq!(
            line("--era legacy --call-timeout 1500ms --destructive --seed 7 -- A_VARIABLE=a$b python s.py"),
            "toolyard test --generic --era legacy --call-timeout 1500ms --destructive … -- A_VARIABLE='a$b' python s.py"
        );
        assert_eq!(line("files --config a.toml"), "toolyard test --generic --config a.toml … --server files");
        assert_eq!(
            line("--url http://127.0.0.1:1/mcp --header Authorization:secret"),
            "toolyard test --generic … --url http://127.0.0.1:1/mcp --header 'Authorization: VALUE'"
        );
    }

    #[test]
    fn exactly_one_server_is_tested() {
        let refused = |words: &str| {
            let args = TestArgs::try_parse_from(format!("test --generic {words}").trim().split(' ')).unwrap();
            server_selection(&args).is_err()
        };
        assert!(refused(""));
        assert!(refused("one two"));
        assert!(refused("one -- node server.js"));
        assert!(!refused("http://127.0.0.1:1/mcp"));
    }
}
