//! The operands of the commands about definitions: what a word on the command line stands for.

use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use toolyard_config::{Config, is_http_url};
use toolyard_definitions::{ServerOffer, parse_saved_definitions};
use toolyard_hub::nearest;

use crate::args::{AdHocServerArgs, ServerSelectionArgs};
use crate::configuration::{load_or_report, process_environment};
use crate::error::CommandError;
use crate::one_shot::collect_offers;

/// Larger saved lists are refused.
const LARGEST: u64 = 128 * 1024 * 1024;
const COMMAND: &str = "command:";

/// What to read definitions from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum OfferOperand {
    Server(String),
    Url(String),
    Command(Vec<String>),
    File(PathBuf),
    StandardInput,
}

/// Decides what a word stands for. Only a word that can be the name of a server needs the
/// configuration.
pub(super) fn parse(word: &str, usual: &ServerSelectionArgs) -> Result<OfferOperand, CommandError> {
    if word == "-" {
        return Ok(OfferOperand::StandardInput);
    }
    if is_http_url(word) {
        return Ok(OfferOperand::Url(word.to_owned()));
    }
    if let Some(command) = word.strip_prefix(COMMAND) {
        return parse_command(command);
    }
    let is_file = Path::new(word).is_file();
    if word.contains(char::is_whitespace) && !is_file {
        return parse_command(word);
    }
    let config = match is_file {
        // A file can be compared without a configuration.
        true => Config::load(&usual.config, &process_environment()).ok(),
        false => {
            Some(load_or_report(&usual.config).ok_or(CommandError::AlreadyReported(crate::Exit::Usage))?)
        }
    };
    let mut names: Vec<&str> =
        config.iter().flat_map(Config::servers).map(|entry| entry.name().as_str()).collect();
    if config.as_ref().is_some_and(|config| config.demo) {
        names.push("demo");
    }
    if names.contains(&word) {
        return Ok(OfferOperand::Server(word.to_owned()));
    }
    if is_file {
        return Ok(OfferOperand::File(PathBuf::from(word)));
    }
    let failure = CommandError::usage(format!("`{word}` is neither a configured server nor a file"));
    Err(match nearest(word, names.iter().copied()) {
        Some(close) => failure.suggest(format!("did you mean `{close}`?")),
        None => failure.suggest(format!("to start a program without arguments, write `{COMMAND}{word}`")),
    })
}

fn parse_command(text: &str) -> Result<OfferOperand, CommandError> {
    match shlex::split(text).filter(|words| !words.is_empty()) {
        Some(words) => Ok(OfferOperand::Command(words)),
        None => Err(CommandError::usage(format!("`{text}` is not a command: a quote is not closed"))),
    }
}

impl OfferOperand {
    /// Reads what it offers. `usual` has the configuration and the time limits.
    pub(super) async fn read(
        self,
        usual: &ServerSelectionArgs,
        stop: &CancellationToken,
    ) -> Result<Vec<ServerOffer>, CommandError> {
        let alone =
            ServerSelectionArgs { start_timeout: usual.start_timeout, ..ServerSelectionArgs::default() };
        let which = match self {
            Self::Server(name) => {
                ServerSelectionArgs { server: Some(name), config: usual.config.clone(), ..alone }
            }
            Self::Url(url) => {
                let other = AdHocServerArgs { url: Some(url), ..AdHocServerArgs::default() };
                ServerSelectionArgs { other, ..alone }
            }
            Self::Command(command) => {
                let other = AdHocServerArgs { command, ..AdHocServerArgs::default() };
                ServerSelectionArgs { other, ..alone }
            }
            Self::File(path) => {
                let file =
                    std::fs::File::open(&path).with_context(|| format!("cannot read {}", path.display()))?;
                return read_saved(file, &path.display().to_string());
            }
            Self::StandardInput => return read_saved(std::io::stdin().lock(), "standard input"),
        };
        collect_offers(&which, stop).await
    }
}

fn read_saved(from: impl Read, name: &str) -> Result<Vec<ServerOffer>, CommandError> {
    let mut bytes = Vec::new();
    from.take(LARGEST + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {name}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err(CommandError::usage(format!("{name} exceeds the limit of {LARGEST} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| CommandError::usage(format!("{name} is not UTF-8")))?;
    parse_saved_definitions(&text, name).map_err(|error| {
        CommandError::usage(format!("cannot use {name}: {error}"))
            .suggest("save a list with `toolyard list tools --json`")
    })
}

#[cfg(test)]
mod tests {
    use super::{OfferOperand, parse};
    use crate::args::ServerSelectionArgs;

    fn operand(word: &str) -> Option<OfferOperand> {
        let config = vec!["no-such-file.toml".into()];
        parse(word, &ServerSelectionArgs { config, ..ServerSelectionArgs::default() }).ok()
    }

    #[test]
    fn every_kind_of_operand_is_recognized() {
        let command = |words: &[&str]| {
            Some(OfferOperand::Command(words.iter().map(|word| (*word).to_owned()).collect()))
        };
        assert_eq!(operand("-"), Some(OfferOperand::StandardInput));
        assert_eq!(
            operand("http://127.0.0.1/mcp"),
            Some(OfferOperand::Url("http://127.0.0.1/mcp".to_owned()))
        );
        assert_eq!(operand("npx -y 'a b'"), command(&["npx", "-y", "a b"]));
        assert_eq!(operand("command:./server"), command(&["./server"]));
        assert_eq!(operand("npx 'open"), None);
        assert_eq!(operand("command:"), None);
        assert_eq!(operand("Cargo.toml"), Some(OfferOperand::File("Cargo.toml".into())));
    }
}
