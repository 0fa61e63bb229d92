//! Names: the raw name that a source gave an entry, and the full name under which the yard shows
//! it. This module contains all rules for shortening names and resolving conflicts.

use std::borrow::Borrow;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// Maximum length of a full name. Clients reject longer names, and a single one can make a client
/// reject the whole list.
pub(crate) const LONGEST: usize = 64;
const HASH_DIGITS: usize = 8;

/// The name of a source in this yard, as configured.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceName(Arc<str>);

impl SourceName {
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The prefix of the full names of its tools, unless the source name is so long that it is
    /// truncated.
    pub fn prefix(&self) -> String {
        format!("mcp__{}__", sanitize(&self.0))
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name under which the yard shows a tool or a prompt: at most 64 characters of
/// `[A-Za-z0-9_-]`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FullName(Arc<str>);

impl FullName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the shared text without copying it.
    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Borrow<str> for FullName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for FullName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How the entries of a source are named in the yard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// `mcp__{source}__{name}`.
    Source,
    /// The plain name, used for native tools of the yard.
    Plain,
}

/// Assigns unique full names. With sources and tools in a fixed order, the names are the same in
/// every process that has the same sources.
#[derive(Debug, Default)]
pub(crate) struct Namer {
    taken: HashSet<Arc<str>>,
}

impl Namer {
    pub(crate) fn assign(&mut self, prefix: Prefix, source: &SourceName, raw: &str) -> FullName {
        let preferred = match prefix {
            Prefix::Source => source.prefix() + &sanitize(raw),
            Prefix::Plain => sanitize(raw),
        };
        // The hash covers the original names, so that two names that become identical after
        // replacing characters get different suffixes, regardless of their order.
        let mut name =
            if preferred.len() > LONGEST { with_hash(&preferred, source, raw, 0) } else { preferred.clone() };
        let mut round = 0;
        while self.taken.contains(name.as_str()) {
            name = with_hash(&preferred, source, raw, round);
            round += 1;
        }
        let name: Arc<str> = name.into();
        self.taken.insert(Arc::clone(&name));
        FullName(name)
    }
}

/// Replaces characters outside `[A-Za-z0-9_-]` with `_`.
fn sanitize(name: &str) -> String {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let name: String = name.chars().map(|c| if fine(c) { c } else { '_' }).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn with_hash(preferred: &str, source: &SourceName, raw: &str, round: u32) -> String {
    let mut hasher = Sha256::new();
    hasher.update(source.as_str().as_bytes());
    hasher.update([0]);
    hasher.update(raw.as_bytes());
    hasher.update([0]);
    hasher.update(round.to_be_bytes());
    let digest = hasher.finalize();
    let hash = HEXLOWER.encode(&digest[..HASH_DIGITS / 2]);
    let keep = preferred.len().min(LONGEST - HASH_DIGITS - 1);
    format!("{}_{hash}", &preferred[..keep])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{any, proptest};

    use super::{LONGEST, Namer, Prefix, SourceName};

    fn names(tools: &[&str]) -> Vec<String> {
        let mut namer = Namer::default();
        let source = SourceName::new("git hub");
        tools.iter().map(|raw| namer.assign(Prefix::Source, &source, raw).to_string()).collect()
    }

    #[test]
    fn shows_source_and_tool_in_safe_characters() {
        assert_eq!(names(&["query", "read.file/v2"]), ["mcp__git_hub__query", "mcp__git_hub__read_file_v2"]);
    }

    #[test]
    fn names_that_become_identical_get_different_hashes() {
        let both = names(&["a.b", "a/b"]);
        assert_eq!(both[0], "mcp__git_hub__a_b");
        assert!(both[1].starts_with("mcp__git_hub__a_b_") && both[1].len() == "mcp__git_hub__a_b_".len() + 8);
        assert_eq!(both, names(&["a.b", "a/b"]));
    }

    #[test]
    fn a_long_name_is_cut_to_64_the_same_way_every_time() {
        let long = "x".repeat(200);
        let first = names(&[&long]);
        assert_eq!(first[0].len(), LONGEST);
        assert_eq!(first, names(&[&long]));
        assert_ne!(first, names(&[&format!("{long}y")]));
    }

    proptest! {
        #[test]
        fn every_name_is_safe_short_and_unique(raw in proptest::collection::vec(any::<String>(), 0..20)) {
            let mut namer = Namer::default();
            let mut seen = std::collections::HashSet::new();
            for name in &raw {
                let full = namer.assign(Prefix::Source, &SourceName::new("s"), name).to_string();
                assert!(full.len() <= LONGEST);
                assert!(full.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'));
                assert!(seen.insert(full));
            }
        }
    }
}
