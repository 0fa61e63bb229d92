//! `toolyard token list`

use serde_json::{Value, json};
use toolyard_cluster::{IssuedTokens, TokenOrigin};
use toolyard_config::TokenEntry;
use toolyard_hub::{Glob, Permissions, Timestamp};

use super::issued::{database, load, open};
use crate::Exit;
use crate::accepted_tokens::{SavedTokenError, read_saved_token};
use crate::args::ListTokensArgs;
use crate::clean::clean_line;
use crate::error::CommandError;
use crate::terminal::StdoutWriter;

/// A token as it is listed.
#[derive(Debug, PartialEq)]
struct ListedToken {
    name: String,
    origin: TokenOrigin,
    state: TokenState,
    created: Option<Timestamp>,
    revoked: Option<Timestamp>,
    /// What the token allows, if that is known.
    entry: Option<TokenEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum TokenState {
    Active,
    Expired,
    Revoked,
    /// In the database, but not accepted.
    Unusable(SavedTokenError),
}

impl TokenState {
    fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
            Self::Unusable(_) => "unusable",
        }
    }
}

pub(crate) async fn list(args: ListTokensArgs) -> anyhow::Result<Exit> {
    match print_tokens(&args).await {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Ok(error.report()),
    }
}

async fn print_tokens(args: &ListTokensArgs) -> Result<(), CommandError> {
    let config = load(&args.config)?;
    let issued = match database(&config) {
        None => IssuedTokens::default(),
        Some(database) => open(database).await?.list().await.map_err(anyhow::Error::from)?,
    };
    let tokens = listed_tokens(&config.access.tokens, &issued);
    let mut out = StdoutWriter::new();
    if args.json {
        let all: Vec<Value> = tokens.iter().map(ListedToken::to_json).collect();
        out.write_line(&Value::from(all).to_string())?;
    } else {
        let rows: Vec<Vec<String>> = tokens.iter().map(ListedToken::cells).collect();
        out.write_table(&["name", "state", "origin", "expires", "permissions", "note"], &rows)?;
    }
    Ok(out.flush()?)
}

/// Returns the tokens of the configuration, then those of the database, then those that were in the
/// database and are revoked.
fn listed_tokens(configured: &[TokenEntry], issued: &IssuedTokens) -> Vec<ListedToken> {
    let revocation = |digest| issued.revoked.iter().find(|revoked| revoked.digest == digest);
    let state = |entry: &TokenEntry| match revocation(entry.digest) {
        Some(_) => TokenState::Revoked,
        None if entry.expires.is_some_and(Timestamp::is_past) => TokenState::Expired,
        None => TokenState::Active,
    };
    let in_file = configured.iter().map(|entry| ListedToken {
        name: entry.name.clone(),
        origin: TokenOrigin::Configuration,
        state: state(entry),
        created: None,
        revoked: revocation(entry.digest).map(|revoked| Timestamp(revoked.revoked_at)),
        entry: Some(entry.clone()),
    });
    let saved = issued.saved.iter().map(|saved| {
        let (state, entry) = match read_saved_token(saved, configured) {
            Ok(entry) => (state(&entry), Some(entry)),
            Err(error) => (TokenState::Unusable(error), None),
        };
        ListedToken {
            name: saved.name.clone(),
            origin: TokenOrigin::Database,
            state,
            created: Some(Timestamp(saved.created_at)),
            revoked: None,
            entry,
        }
    });
    let gone = issued.revoked.iter().filter(|revoked| {
        revoked.origin == TokenOrigin::Database
            || !configured.iter().any(|entry| entry.digest == revoked.digest)
    });
    let gone = gone.map(|revoked| ListedToken {
        name: revoked.name.clone(),
        origin: revoked.origin,
        state: TokenState::Revoked,
        created: None,
        revoked: Some(Timestamp(revoked.revoked_at)),
        entry: None,
    });
    in_file.chain(saved).chain(gone).collect()
}

impl ListedToken {
    fn origin(&self) -> &'static str {
        match self.origin {
            TokenOrigin::Database => "database",
            TokenOrigin::Configuration => "configuration",
        }
    }

    fn expires(&self) -> Option<String> {
        Some(self.entry.as_ref()?.expires?.to_string())
    }

    fn cells(&self) -> Vec<String> {
        let permissions = self.entry.as_ref().map(|entry| permissions(&entry.permissions).join(", "));
        let note = match (&self.state, self.revoked) {
            (TokenState::Unusable(error), _) => error.to_string(),
            (_, Some(time)) => format!("revoked at {time}"),
            _ => String::new(),
        };
        vec![
            clean_line(&self.name),
            self.state.as_str().to_owned(),
            self.origin().to_owned(),
            self.expires().unwrap_or_else(|| "-".to_owned()),
            clean_line(&permissions.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned())),
            clean_line(&note),
        ]
    }

    fn to_json(&self) -> Value {
        let entry = self.entry.as_ref();
        let globs = |list: Option<&Vec<Glob>>| {
            list.map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>())
        };
        json!({
            "name": self.name,
            "origin": self.origin(),
            "state": self.state.as_str(),
            "problem": match &self.state {
                TokenState::Unusable(error) => Some(error.to_string()),
                TokenState::Active | TokenState::Expired | TokenState::Revoked => None,
            },
            "created": self.created.map(|time| time.to_string()),
            "expires": self.expires(),
            "revoked": self.revoked.map(|time| time.to_string()),
            "permissions": entry.map(|entry| permissions(&entry.permissions)),
            "servers": entry.and_then(|entry| globs(entry.allowed.sources.as_ref())),
            "tools": entry.and_then(|entry| globs(entry.allowed.tools.as_ref())),
        })
    }
}

fn permissions(held: &Permissions) -> Vec<String> {
    match held {
        Permissions::All => vec!["*".to_owned()],
        Permissions::Only(held) => held.iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use toolyard_cluster::{IssuedTokens, RevokedToken, SavedToken, TokenOrigin};
    use toolyard_config::parse_token;

    use super::listed_tokens;

    fn text(name: &str, digit: char, more: &str) -> String {
        let digest = digit.to_string().repeat(64);
        format!("[[tokens]]\nname = \"{name}\"\nsha256 = \"{digest}\"\n{more}")
    }

    fn saved(name: &str, digit: char, more: &str) -> SavedToken {
        let settings = text(name, digit, more);
        let entry = parse_token(&text(name, digit, "")).unwrap();
        let expires_at = parse_token(&settings).ok().and_then(|entry| entry.expires).map(|time| time.0);
        SavedToken { name: entry.name, digest: entry.digest, settings, created_at: UNIX_EPOCH, expires_at }
    }

    fn revoked(name: &str, digit: char, origin: TokenOrigin) -> RevokedToken {
        let digest = parse_token(&text(name, digit, "")).unwrap().digest;
        RevokedToken { name: name.to_owned(), digest, origin, revoked_at: UNIX_EPOCH }
    }

    #[test]
    fn every_token_is_listed_with_its_state() {
        let configured = [
            text("file", '1', "permissions = [\"*\"]"),
            text("leaked", '2', ""),
            text("old", '3', "expires = \"2001-01-01T00:00:00Z\""),
        ];
        let configured = configured.map(|text| parse_token(&text).unwrap());
        let issued = IssuedTokens {
            saved: vec![
                saved("ada", 'a', "permissions = [\"read\", \"write\"]\nexpires = \"2999-01-01T00:00:00Z\""),
                saved("file", 'b', ""),
                saved("later", 'c', "paths = []"),
                saved("past", 'd', "expires = \"2001-01-01T00:00:00Z\""),
            ],
            revoked: vec![
                revoked("gone", 'e', TokenOrigin::Database),
                revoked("leaked", '2', TokenOrigin::Configuration),
                revoked("removed", 'f', TokenOrigin::Configuration),
            ],
        };
        let rows: Vec<String> =
            listed_tokens(&configured, &issued).iter().map(|token| token.cells().join(" | ")).collect();
        insta::assert_snapshot!(rows.join("\n"));
        let json: Vec<String> =
            listed_tokens(&configured, &issued).iter().map(|token| token.to_json().to_string()).collect();
        insta::assert_snapshot!("listed_as_json", json.join("\n"));
    }
}
