//! Saving and revoking tokens in the database of a yard with several replicas.

use std::path::PathBuf;

use toolyard_cluster::{MOST_TOKENS, SaveOutcome, TokenTable};
use toolyard_config::Config;
use toolyard_postgres::PostgresSettings;

use super::NewToken;
use crate::args::RevokeTokenArgs;
use crate::configuration::load_or_report;
use crate::error::CommandError;
use crate::{Exit, terminal, upstream_setup};

/// Saves a token. Its name must be unique in the configuration, too.
pub(super) async fn save(files: &[PathBuf], token: &NewToken) -> Result<(), CommandError> {
    let config = load(files)?;
    let database = database(&config).ok_or_else(|| {
        CommandError::usage("tokens can be saved only in the database of a yard with several replicas").suggest(
            "set `cluster.postgres` in toolyard.toml, or omit --save and add the printed lines to toolyard.toml",
        )
    })?;
    let name = &token.name;
    if config.access.tokens.iter().any(|known| known.name == *name) {
        return Err(CommandError::usage(format!("the configuration already has a token named {name:?}")));
    }
    let mut table = open(database).await?;
    match table.save(&token.to_saved()?).await.map_err(anyhow::Error::from)? {
        SaveOutcome::Saved => Ok(()),
        SaveOutcome::NameTaken => {
            Err(CommandError::usage(format!("the database already has a token named {name:?}"))
                .suggest("choose another name, or revoke the token with `toolyard token revoke`"))
        }
        SaveOutcome::Full => {
            Err(CommandError::usage(format!("the database already has {MOST_TOKENS} tokens"))
                .suggest("revoke tokens that are no longer used; `toolyard token list` shows them"))
        }
    }
}

/// Revokes a token of the database or of the configuration.
pub(crate) async fn revoke(args: RevokeTokenArgs) -> anyhow::Result<Exit> {
    match revoke_by_name(&args).await {
        Ok(message) => {
            terminal::print(&format!("{message}\n"))?;
            Ok(Exit::Success)
        }
        Err(error) => Ok(error.report()),
    }
}

async fn revoke_by_name(args: &RevokeTokenArgs) -> Result<String, CommandError> {
    let (config, name) = (load(&args.config)?, args.name.as_str());
    let unknown = || {
        CommandError::usage(format!("unknown token {name:?}"))
            .suggest("run `toolyard token list` to see the tokens")
    };
    let configured = config.access.tokens.iter().find(|token| token.name == name);
    let Some(database) = database(&config) else {
        configured.ok_or_else(unknown)?;
        let message =
            format!("the token {name:?} is in the configuration, and there is no database for revocations");
        return Err(CommandError::usage(message).suggest(
            "remove its [[tokens]] table from toolyard.toml; a running yard rejects it within a second",
        ));
    };
    let mut table = open(database).await?;
    let revoked = table.revoke(name, configured.map(|token| token.digest)).await;
    if revoked.map_err(anyhow::Error::from)? > 0 {
        return Ok(format!("revoked {name:?}; every replica rejects it within two seconds"));
    }
    let issued = table.list().await.map_err(anyhow::Error::from)?;
    match issued.revoked.iter().any(|token| token.name == name) {
        true => Ok(format!("{name:?} is already revoked")),
        false => Err(unknown()),
    }
}

/// Loads the configuration, whose problems are printed.
pub(super) fn load(files: &[PathBuf]) -> Result<Config, CommandError> {
    load_or_report(files).ok_or(CommandError::AlreadyReported(Exit::Usage))
}

pub(super) fn database(config: &Config) -> Option<&PostgresSettings> {
    config.cluster.as_ref()?.postgres.as_ref()
}

pub(super) async fn open(database: &PostgresSettings) -> Result<TokenTable, CommandError> {
    let tls = upstream_setup::build_context()?.tls;
    let opened = Box::pin(TokenTable::open(database, &tls)).await;
    Ok(opened.map_err(anyhow::Error::from)?)
}
