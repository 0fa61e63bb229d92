//! A token outside of a file: the lines that `toolyard token new` prints, and that a database can
//! keep. They have the same meaning there as in a file.

use std::path::Path;

use super::access::{self, TokenEntry};
use super::document::{ConfigDocument, Syntax};
use super::keys::ConfigKeys;
use super::tree::decode::decode;

/// Parses a `[[tokens]]` table. In contrast to a file, an unknown key is an error: it may restrict
/// the token in a later version.
pub fn parse_token(text: &str) -> Result<TokenEntry, String> {
    let parsed = ConfigDocument::parse(Path::new("token"), text, Syntax::Toml);
    let (_, root) = parsed.map_err(|problems| {
        let messages = problems.into_iter().map(|problem| problem.message);
        messages.collect::<Vec<_>>().join("; ")
    })?;
    let (keys, findings) = decode::<ConfigKeys>(&root, &[]);
    if let Some(error) = findings.errors.first() {
        return Err(error.message.clone());
    }
    if let Some(unknown) = findings.unknown.first() {
        return Err(format!("unknown key `{}`", unknown.key.name));
    }
    let tokens = keys.and_then(|keys| keys.tokens).unwrap_or_default();
    let mut wrong = Vec::new();
    let mut entries = access::build_tokens(tokens, &mut wrong);
    if let Some(problem) = wrong.first() {
        // The first two steps are `tokens` and the number of the token.
        let key = problem.path.get(2..).unwrap_or_default().join(".");
        return Err(format!("`{key}` {}", problem.message));
    }
    match (entries.pop(), entries.is_empty()) {
        (Some(entry), true) => Ok(entry),
        _ => Err("expected one `[[tokens]]` table".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_token;

    fn token(more: &str) -> Result<String, String> {
        let text = format!("[[tokens]]\nname = \"ci\"\nsha256 = \"{}\"\n{more}", "ab".repeat(32));
        parse_token(&text).map(|entry| entry.name)
    }

    #[test]
    fn a_token_means_the_same_as_in_a_file() {
        let more = "permissions = [\"read\"]\nservers = [\"git*\"]\nexpires = \"2030-01-01T00:00:00Z\"\n\
                    limits = { calls = 4, rate = { per_second = 5.0, burst = 20.0 } }";
        assert_eq!(token(more), Ok("ci".to_owned()));
        let text = format!("[[tokens]]\nname = \"ci\"\nsha256 = \"{}\"\n{more}", "ab".repeat(32));
        let entry = parse_token(&text).unwrap();
        assert_eq!((entry.digest, entry.bounds.calls), ([0xab; 32], Some(4)));
        assert!(entry.expires.is_some() && entry.allowed.sources.is_some() && entry.allowed.tools.is_none());
    }

    #[test]
    fn what_could_widen_a_token_by_mistake_is_an_error() {
        for (more, error) in [
            ("path = [\"/\"]", "unknown key `path`"),
            ("limits = { call = 4 }", "unknown key `call`"),
            (
                "limits = { call_seconds = -1.0 }",
                "`limits.call_seconds` must be a number of seconds from 0 to 1000000000",
            ),
            ("expires = \"soon\"", "`expires` is not a valid time: expected an RFC 3339 time"),
            ("[[tokens]]", "missing"),
        ] {
            let found = token(more).unwrap_err();
            assert!(found.starts_with(error), "{more}: {found}");
        }
        assert_eq!(parse_token("").unwrap_err(), "expected one `[[tokens]]` table");
        assert!(parse_token("[[tokens").is_err());
    }
}
