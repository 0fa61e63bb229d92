//! Reading the command line, and saying it better than the library where the command of a server stands without the `--`
//! before it.

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::Args;
use crate::one_shot::ad_hoc::LAUNCHERS;

/// Ends the process where the command line makes no sense, or asks for help.
pub(crate) fn parse() -> Args {
    let words: Vec<OsString> = std::env::args_os().collect();
    Args::try_parse_from(&words).unwrap_or_else(|error| {
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        add_usage_hint(error, &words).exit()
    })
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
        (Some(line), _) => format!("the command of a server goes after `--`: {line}"),
        // A word that is nearly right is told by the library.
        (None, Some(_)) if error.get(ContextKind::SuggestedValue).is_some() => return error,
        (None, Some(server)) => format!("the tools of the server {server}: toolyard list tools {server}"),
        (None, None) => return error,
    };
    // What the library suggests would put the dashes into the middle of the command.
    error.remove(ContextKind::Suggested);
    error.remove(ContextKind::SuggestedValue);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint.into()]));
    error
}

/// Whether this is what `list` was to list.
fn is_list_argument(words: &[String], value: &str) -> bool {
    words.get(1).is_some_and(|verb| verb == "list") && words.get(2).is_some_and(|word| word == value)
}

/// The same line with dashes before what looks like the command of a server.
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
        // Whatever follows the name is the command, unless it is an option of ours.
        "add" => at.or_else(|| {
            let command = |word: &String| !word.starts_with('-') && !word.contains("://");
            words.get(3).filter(|word| command(word)).map(|_| 3)
        }),
        "list" | "inspect" | "call" | "read" | "prompt" | "complete" | "search" | "ui" => at,
        _ => None,
    }?;
    let mut said: Vec<&str> =
        std::iter::once("toolyard").chain(words[1..at].iter().map(String::as_str)).collect();
    said.push("--");
    said.extend(words[at..].iter().map(String::as_str));
    Some(said.join(" "))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::{Args, add_usage_hint};

    fn told(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        add_usage_hint(Args::try_parse_from(&words).unwrap_err(), &words).to_string()
    }

    #[test]
    fn a_command_without_dashes_is_shown_with_them() {
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
            let told = told(line);
            assert!(told.contains(&format!("the command of a server goes after `--`: {hint}\n")), "{told}");
            assert!(!told.contains("as a value"), "{told}");
        }
    }

    #[test]
    fn a_server_that_is_listed_without_saying_what_of_it_is_told_how() {
        let told = told("toolyard list everything");
        assert!(
            told.contains("the tools of the server everything: toolyard list tools everything\n"),
            "{told}"
        );
    }

    #[test]
    fn other_mistakes_are_told_as_ever() {
        for line in
            ["toolyard list --nonsense", "toolyard add files http://x --nonsense", "toolyard serve npx -y x"]
        {
            assert!(!told(line).contains("the command of a server"), "{line}");
        }
    }
}
