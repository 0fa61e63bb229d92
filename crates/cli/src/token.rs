//! Random tokens, and the commands of `toolyard token`.

mod issued;
mod list;

use std::time::{Duration, SystemTime};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest, Sha256};
use toolyard_cluster::SavedToken;
use toolyard_config::{check_token_name, parse_token};
use toolyard_hub::Timestamp;

use crate::args::NewTokenArgs;
use crate::error::CommandError;
use crate::{Exit, terminal};

pub(crate) use self::issued::revoke;
pub(crate) use self::list::list;

/// Generates a token of 256 random bits. It does not start with a dash, which a command line would
/// parse as an option.
pub(crate) fn generate() -> anyhow::Result<String> {
    loop {
        let token = URL_SAFE_NO_PAD.encode(toolyard_random::bytes::<32>()?);
        if !token.starts_with('-') {
            return Ok(token);
        }
    }
}

/// Creates a token and prints it once: after it was saved in the database, or with the lines for
/// the configuration.
pub(crate) async fn create(args: NewTokenArgs) -> anyhow::Result<Exit> {
    let secret = generate()?;
    let files = args.config.clone();
    let made = match NewToken::new(args, &secret, SystemTime::now()) {
        Ok(made) => made,
        Err(error) => return Ok(error.report()),
    };
    if made.save
        && let Err(error) = issued::save(&files, &made).await
    {
        return Ok(error.report());
    }
    let text = match (made.json, made.save) {
        (true, _) => made.as_json(&secret),
        (false, true) => made.as_saved_text(&secret),
        (false, false) => made.as_text(&secret),
    };
    terminal::print(&format!("{text}\n"))?;
    Ok(Exit::Success)
}

/// A new token without its secret.
struct NewToken {
    name: String,
    sha256: String,
    permissions: Vec<String>,
    servers: Vec<String>,
    tools: Vec<String>,
    /// An inline table.
    limits: Option<String>,
    expires: Option<Timestamp>,
    save: bool,
    json: bool,
}

impl NewToken {
    fn new(args: NewTokenArgs, secret: &str, now: SystemTime) -> Result<Self, CommandError> {
        let sha256 = HEXLOWER.encode(&Sha256::digest(secret.as_bytes()));
        let name = args.name.unwrap_or_else(|| format!("token-{}", &sha256[..8]));
        if let Some(problem) = check_token_name(&name) {
            return Err(CommandError::usage(format!("the name {name:?} {problem}")));
        }
        let expires = match &args.expires {
            Some(text) => Some(expiry(text, now).ok_or_else(|| {
                CommandError::usage(format!("invalid expiry {text:?}"))
                    .suggest("use a duration such as 30d, 12h or 2w, or a time such as 2027-01-31T12:00:00Z")
            })?),
            None => None,
        };
        if expires.is_some_and(|expires| expires.0 <= now) {
            let message = format!("expiry {:?} is in the past", args.expires.unwrap_or_default());
            return Err(CommandError::usage(message));
        }
        let limits = args.limits.as_deref().map(inline_table).transpose()?;
        let made = Self {
            name,
            sha256,
            permissions: args.permission,
            servers: args.server,
            tools: args.tool,
            limits,
            expires,
            save: args.save,
            json: args.json,
        };
        match parse_token(&made.lines()) {
            Ok(_) => Ok(made),
            Err(problem) => Err(CommandError::usage(format!("invalid token: {problem}"))),
        }
    }

    /// The row of the database.
    fn to_saved(&self) -> Result<SavedToken, CommandError> {
        let settings = self.lines();
        let entry = parse_token(&settings).map_err(CommandError::usage)?;
        Ok(SavedToken {
            name: entry.name,
            digest: entry.digest,
            settings,
            created_at: SystemTime::now(),
            // With the resolution of the lines.
            expires_at: entry.expires.map(|time| time.0),
        })
    }

    fn lines(&self) -> String {
        let list = |items: &[String]| {
            toml::Value::Array(items.iter().map(|item| toml::Value::from(item.as_str())).collect())
                .to_string()
        };
        let mut lines = vec![
            "[[tokens]]".to_owned(),
            format!("name = {}", toml::Value::from(self.name.as_str())),
            format!("sha256 = \"{}\"", self.sha256),
            format!("permissions = {}", list(&self.permissions)),
        ];
        for (key, items) in [("servers", &self.servers), ("tools", &self.tools)] {
            if !items.is_empty() {
                lines.push(format!("{key} = {}", list(items)));
            }
        }
        lines.extend(self.limits.as_ref().map(|limits| format!("limits = {limits}")));
        lines.extend(self.expires.map(|time| format!("expires = \"{time}\"")));
        lines.join("\n")
    }

    fn as_saved_text(&self, secret: &str) -> String {
        format!(
            "Token (shown only once):\n\n  {secret}\n\nSaved as `{}`. Every replica accepts it within two seconds. To \
             revoke it, run `toolyard token revoke`.",
            self.name
        )
    }

    fn as_text(&self, secret: &str) -> String {
        format!("Token (shown only once):\n\n  {secret}\n\nAdd to toolyard.toml:\n\n{}", self.lines())
    }

    fn as_json(&self, secret: &str) -> String {
        json!({
            "token": secret,
            "name": self.name,
            "sha256": self.sha256,
            "permissions": self.permissions,
            "expires": self.expires.map(|time| time.to_string()),
            "config": self.lines(),
            "saved": self.save,
        })
        .to_string()
    }
}

/// Parses a table such as `{ calls = 4 }` and writes it on one line.
fn inline_table(text: &str) -> Result<String, CommandError> {
    let invalid = |problem: &str| {
        CommandError::usage(format!("invalid limits {text:?}: {problem}"))
            .suggest("use a TOML table such as '{ calls = 4, call_seconds = 30.0 }'")
    };
    let parsed: toml::Table =
        format!("limits = {text}").parse().map_err(|error: toml::de::Error| invalid(error.message()))?;
    match (parsed.get("limits"), parsed.len()) {
        (Some(table @ toml::Value::Table(_)), 1) => Ok(table.to_string()),
        _ => Err(invalid("expected a table")),
    }
}

/// Parses a duration from now, such as `30d`, or a point in time.
fn expiry(text: &str, now: SystemTime) -> Option<Timestamp> {
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    let split = text.find(|letter: char| !letter.is_ascii_digit())?;
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    // A century. Longer durations are typing errors.
    let seconds =
        number.parse::<u64>().ok()?.checked_mul(unit).filter(|seconds| *seconds <= 3_153_600_000)?;
    Some(Timestamp(now + Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use clap::Parser;

    use super::{NewToken, expiry, generate};
    use crate::args::NewTokenArgs;
    use crate::error::CommandError;

    fn made(arguments: &[&str]) -> Result<NewToken, String> {
        let args = NewTokenArgs::parse_from(std::iter::once(&"new").chain(arguments));
        let made = NewToken::new(args, "secret", UNIX_EPOCH + Duration::from_secs(1_705_314_600));
        made.map_err(|error| match error {
            CommandError::Failure { message, .. } => message,
            other => format!("{other:?}"),
        })
    }

    #[test]
    fn a_generated_token_is_never_taken_for_an_option() {
        // Without the check, one in 64 would start with a dash.
        for _ in 0..1_000 {
            assert!(!generate().unwrap().starts_with('-'));
        }
    }

    #[test]
    fn the_configuration_lines_contain_the_options_but_not_the_secret() {
        let arguments = [
            "--name",
            "c\"i",
            "--permission",
            "read",
            "--permission",
            "write",
            "--server",
            "git*",
            "--tool",
            "add",
            "--expires",
            "30d",
        ];
        let lines = made(&arguments).unwrap().lines();
        assert_eq!(
            lines,
            r#"[[tokens]]
name = 'c"i'
sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"
permissions = ["read", "write"]
servers = ["git*"]
tools = ["add"]
expires = "2024-02-14T10:30:00.000Z""#
        );
        let plain = made(&[]).unwrap();
        assert_eq!(plain.name, "token-2bb80d53");
        assert!(
            plain.as_text("secret").contains("  secret\n")
                && plain.as_json("secret").contains(r#""token":"secret""#)
        );
    }

    #[test]
    fn rejects_invalid_times_and_names() {
        let now = UNIX_EPOCH;
        for text in ["", "30", "d", "30 d", "-1d", "30y", "99999999999999999999d", "40000w", "1.5d"] {
            assert_eq!(expiry(text, now), None, "{text}");
        }
        assert_eq!(expiry("2w", now).unwrap().to_string(), "1970-01-15T00:00:00.000Z");
        for (arguments, problem) in [
            (["--name", "owner"], "the name \"owner\" is reserved for the owner of the yard"),
            (
                ["--name", "a:b"],
                "the name \"a:b\" must not contain colons, control characters or invisible characters",
            ),
            (["--name", ""], "the name \"\" must be 1 to 128 characters"),
            (["--expires", "2001-01-01T00:00:00Z"], "expiry \"2001-01-01T00:00:00Z\" is in the past"),
            (["--expires", "0d"], "expiry \"0d\" is in the past"),
        ] {
            assert_eq!(made(&arguments).err().as_deref(), Some(problem));
        }
        assert_eq!(made(&["--expires", "soon"]).err().as_deref(), Some("invalid expiry \"soon\""));
    }

    #[test]
    fn without_random_numbers_there_is_no_token() {
        let _outage = toolyard_random::SimulatedOutage::begin();
        assert!(generate().is_err());
    }

    #[test]
    fn no_two_tokens_are_alike() {
        assert_ne!(generate().unwrap(), generate().unwrap());
        assert_eq!(generate().unwrap().len(), 43);
    }
}
