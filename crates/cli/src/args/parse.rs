//! Parses the command line. Gives clap's messages the `hint:` of all other messages, and improves
//! the message if the `--` before the command of a server is missing.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser};

use super::Args;
use crate::clean::clean;
use crate::one_shot::ad_hoc::LAUNCHERS;

/// Parses the arguments of this process. Exits on invalid arguments and after printing help.
pub(crate) fn parse() -> Args {
    let words: Vec<OsString> = std::env::args_os().collect();
    Args::try_parse_from(&words).unwrap_or_else(|error| {
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        with_hints(add_usage_hint(error, &words), &words).exit()
    })
}

/// Writes clap's `tip:` and its reference to `--help` as hints. Leaves help texts unchanged.
fn with_hints(error: clap::Error, words: &[String]) -> clap::Error {
    let text = error.to_string();
    let Some(message) = text.strip_prefix("error: ") else { return error };
    let mut shown = String::new();
    for line in clean(message.trim_end()).lines() {
        match line.strip_prefix("  tip: ") {
            Some(tip) => shown.push_str(&format!("  hint: {tip}")),
            None if line.starts_with("For more information, try ") => shown.push_str(&format!(
                "  hint: run `{} --help` to see the arguments and options",
                command_path(words)
            )),
            None => shown.push_str(line),
        }
        shown.push('\n');
    }
    clap::Error::raw(error.kind(), shown)
}

/// Returns the command that the words select, such as `toolyard token new`.
fn command_path(words: &[String]) -> String {
    let mut path = "toolyard".to_owned();
    let mut command = &Args::command();
    for word in words.iter().skip(1) {
        let Some(next) = command.find_subcommand(word) else { break };
        path = format!("{path} {}", next.get_name());
        command = next;
    }
    path
}

fn add_usage_hint(mut error: clap::Error, words: &[String]) -> clap::Error {
    let listed = match (error.kind(), error.get(ContextKind::InvalidValue)) {
        (ErrorKind::UnknownArgument, _) => None,
        (ErrorKind::InvalidValue, Some(ContextValue::String(value))) if is_list_argument(words, value) => {
            Some(value)
        }
        _ => return error,
    };
    let hint = match (insert_double_dash(words), listed) {
        (Some(line), _) => format!("pass the command of a server after `--`: {line}"),
        // Clap already suggests a similar value.
        (None, Some(_)) if error.get(ContextKind::SuggestedValue).is_some() => return error,
        (None, Some(server)) => {
            format!("to list the tools of server `{server}`, run `toolyard list tools {server}`")
        }
        (None, None) => return error,
    };
    // Clap's own suggestion would insert `--` in the middle of the command.
    error.remove(ContextKind::Suggested);
    error.remove(ContextKind::SuggestedValue);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    error
}

/// Whether `value` is the argument that says what to list.
fn is_list_argument(words: &[String], value: &str) -> bool {
    words.get(1).is_some_and(|verb| verb == "list") && words.get(2).is_some_and(|word| word == value)
}

/// The same command line with `--` before what looks like the command of a server.
fn insert_double_dash(words: &[String]) -> Option<String> {
    let verb = words.get(1)?.as_str();
    if words.iter().any(|word| word == "--") {
        return None;
    }
    let launcher = |word: &&String| {
        let name = word.rsplit('/').next().unwrap_or(word);
        LAUNCHERS.contains(&name)
    };
    let at = words.iter().skip(2).position(|word| launcher(&word)).map(|at| at + 2);
    let at = match verb {
        // Everything after the name is the command, unless it is one of our options.
        "add" => at.or_else(|| {
            let command = |word: &String| !word.starts_with('-') && !word.contains("://");
            words.get(3).filter(|word| command(word)).map(|_| 3)
        }),
        "list" | "inspect" | "call" | "read" | "prompt" | "complete" | "search" | "ui" => at,
        _ => None,
    }?;
    let mut line: Vec<&str> =
        std::iter::once("toolyard").chain(words[1..at].iter().map(String::as_str)).collect();
    line.push("--");
    line.extend(words[at..].iter().map(String::as_str));
    Some(line.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Args, add_usage_hint, with_hints};

    fn message(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        with_hints(add_usage_hint(Args::try_parse_from(&words).unwrap_err(), &words), &words).to_string()
    }

    #[test]
    fn ends_every_message_with_a_hint() {
        for (line, hint) in [
            ("toolyard serve --nonsense", "run `toolyard serve --help` to see the arguments and options\n"),
            ("toolyard token new --nonsense", "run `toolyard token new --help` to see"),
            ("toolyard --nonsense", "run `toolyard --help` to see"),
            ("toolyard nonsense", "run `toolyard --help` to see"),
            ("toolyard doctr", "hint: a similar subcommand exists: 'doctor'"),
        ] {
            let message = message(line);
            assert!(message.starts_with("error: ") && message.contains(hint), "{message}");
            assert!(!message.contains("tip:") && !message.contains("For more information"), "{message}");
        }
        assert!(message("toolyard serve --help").starts_with("Serve the yard over HTTP"));
    }

    #[test]
    fn suggests_the_missing_dashes_before_a_command() {
        for (line, hint) in [
            ("toolyard add files npx -y server .", "toolyard add files -- npx -y server ."),
            ("toolyard add files my-server --stdio", "toolyard add files -- my-server --stdio"),
            ("toolyard list npx -y server", "toolyard list -- npx -y server"),
            (
                "toolyard call echo message=hi /usr/bin/uvx --from a b",
                "toolyard call echo message=hi -- /usr/bin/uvx --from a b",
            ),
            ("toolyard list npx server", "toolyard list -- npx server"),
            ("toolyard ui node server.js", "toolyard ui -- node server.js"),
        ] {
            let message = message(line);
            assert!(
                message.contains(&format!("pass the command of a server after `--`: {hint}\n")),
                "{message}"
            );
            assert!(!message.contains("as a value"), "{message}");
        }
    }

    #[test]
    fn suggests_how_to_list_the_tools_of_a_server() {
        let message = message("toolyard list everything");
        assert!(
            message
                .contains("to list the tools of server `everything`, run `toolyard list tools everything`\n"),
            "{message}"
        );
    }

    #[test]
    fn leaves_other_errors_unchanged() {
        for line in
            ["toolyard list --nonsense", "toolyard add files http://x --nonsense", "toolyard serve npx -y x"]
        {
            assert!(!message(line).contains("the command of a server"), "{line}");
        }
    }
}
