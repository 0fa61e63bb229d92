//! The text of a configuration file and the excerpts shown with a problem. An excerpt hides all
//! values except the one that the problem is about, and hides that one as well if its key can hold
//! a secret.

use std::path::{Path, PathBuf};

use toolyard_hub::printable::is_deceptive;

use super::problem::{ConfigLocation, ConfigProblem, ProblemSeverity};
use super::tree::decode_error::DecodeError;
use super::tree::{ConfigNode, ConfigSyntaxError, ConfigValue, Span, json, toml};

/// Keys whose values are never shown, except for `${…}` references.
const PRIVATE: [&str; 26] = [
    "args",
    "auth_token",
    "baseUrl",
    "base_url",
    // Users sometimes write the token itself here, instead of the name of its variable.
    "bearerTokenEnv",
    "bearerTokenEnvVar",
    "bearer_token_env_var",
    "clientSecret",
    "client_secret",
    // Users sometimes write the token itself here, instead of its digest.
    "sha256",
    "CLIENT_SECRET",
    "default",
    "env",
    "env_http_headers",
    "headers",
    "httpUrl",
    "http_headers",
    "openapi",
    "password",
    "postgres",
    "redis",
    "serverUrl",
    "token",
    "token_url",
    "url",
    "username",
];
/// Maximum width of an excerpt. Some configurations consist of a single long line.
const WIDEST: usize = 100;
/// Number of bytes of a line that are considered before and after a problem.
const NEAR: usize = 400;
const HIDDEN: char = '…';

pub(super) struct ConfigDocument {
    pub(super) path: PathBuf,
    text: String,
    /// In the order of the text. `None` if the text could not be parsed, so that values are
    /// unknown.
    leaves: Option<Vec<Leaf>>,
}

struct Leaf {
    span: Span,
    private: bool,
}

/// The syntax of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    Toml,
    Json,
}

impl ConfigDocument {
    /// Parses a text. Errors do not show secrets.
    pub(super) fn parse(
        path: &Path,
        text: &str,
        syntax: Syntax,
    ) -> Result<(Self, ConfigNode), Vec<ConfigProblem>> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
        let parsed = match syntax {
            Syntax::Toml => toml::parse(&text),
            Syntax::Json => json::parse(&text).map_err(|broken| vec![broken]),
        };
        let mut document = Self { path: path.to_owned(), text, leaves: None };
        match parsed {
            Ok(root) => {
                let mut leaves = Vec::new();
                collect_leaves(&root, false, &mut leaves);
                leaves.sort_by_key(|leaf| leaf.span.start);
                document.leaves = Some(leaves);
                Ok((document, root))
            }
            Err(broken) => {
                let problem = |ConfigSyntaxError { span, message }| {
                    document.problem(ProblemSeverity::Error, &span, message)
                };
                Err(broken.into_iter().map(problem).collect())
            }
        }
    }

    pub(super) fn problem(
        &self,
        severity: ProblemSeverity,
        span: &Span,
        message: impl Into<String>,
    ) -> ConfigProblem {
        ConfigProblem {
            location: Some(self.location(span)),
            ..ConfigProblem::for_file(severity, self.path.clone(), message)
        }
    }

    pub(super) fn decode_problem(&self, fault: &DecodeError) -> ConfigProblem {
        self.problem(ProblemSeverity::Error, &fault.span, fault.message.clone())
            .with_suggestion(fault.suggestion.clone())
    }

    /// Returns the span of `piece` within a value, or of the whole value if it is spelled
    /// differently there.
    pub(super) fn span_within(&self, span: &Span, piece: &str) -> Span {
        let text = self.text.get(span.clone()).unwrap_or_default();
        text.find(piece).filter(|_| !piece.is_empty()).map_or_else(
            || span.clone(),
            |at| Span { start: span.start + at, end: span.start + at + piece.len() },
        )
    }

    fn location(&self, span: &Span) -> ConfigLocation {
        let start = self.text.floor_char_boundary(span.start);
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |at| start + at);
        let (excerpt, caret) = self.excerpt(line_start, line_end, span);
        ConfigLocation {
            line: self.text[..line_start].matches('\n').count() + 1,
            column: self.text[line_start..start].chars().count() + 1,
            excerpt,
            caret,
        }
    }

    /// Returns a line with hidden values and the position of the carets.
    fn excerpt(&self, start: usize, end: usize, span: &Span) -> (String, (usize, usize)) {
        let line = self.text[start..end].trim_end();
        let guess = RedactionGuess::for_line(line);
        let near = Span {
            start: line.floor_char_boundary(span.start.saturating_sub(start + NEAR)),
            end: line.floor_char_boundary((span.start - start).saturating_add(NEAR)),
        };
        let mut shown: Vec<char> = Vec::new();
        let (mut caret, mut width) = (None, 0);
        let mut hiding = false;
        for (offset, letter) in line[near.clone()].char_indices() {
            let offset = near.start + offset;
            let at = start + offset;
            if at >= span.start && caret.is_none() {
                caret = Some(shown.len());
            }
            let hidden = match &self.leaves {
                Some(leaves) => leaf_at(leaves, at).is_some_and(|leaf| leaf.hides(at, letter, span)),
                None => guess.hides(offset, letter),
            };
            if hidden && hiding {
                continue;
            }
            hiding = hidden;
            shown.push(if hidden {
                HIDDEN
            } else if is_deceptive(letter) {
                ' '
            } else {
                letter
            });
            if caret.is_some() && at < span.end.max(span.start + 1) {
                width = shown.len() - caret.unwrap_or_default();
            }
        }
        let caret = caret.unwrap_or(shown.len());
        window(&shown, (caret, width.max(1)), (near.start > 0, near.end < line.len()))
    }
}

impl Leaf {
    fn hides(&self, at: usize, letter: char, problem: &Span) -> bool {
        let quote = letter == '"' || letter == '\'';
        if quote && (at == self.span.start || at + 1 == self.span.end) {
            return false;
        }
        let about = problem.contains(&at);
        let whole = problem.start <= self.span.start && self.span.end <= problem.end;
        !(about && (!whole || (*problem == self.span && !self.private)))
    }
}

fn leaf_at(leaves: &[Leaf], at: usize) -> Option<&Leaf> {
    let after = leaves.partition_point(|leaf| leaf.span.start <= at);
    leaves[..after].last().filter(|leaf| leaf.span.contains(&at))
}

/// Hides everything that could be a value in a text that cannot be parsed. Only punctuation is
/// shown.
struct RedactionGuess {
    hidden_from: usize,
}

impl RedactionGuess {
    fn for_line(line: &str) -> Self {
        let trimmed = line.trim_start();
        let heading = trimmed.starts_with('[')
            && trimmed.trim_start_matches('[').starts_with(|letter: char| letter.is_alphabetic());
        let hidden_from = match line.find(['=', ':']) {
            Some(at) => at,
            None if heading => line.len(),
            None => 0,
        };
        Self { hidden_from }
    }

    fn hides(&self, offset: usize, letter: char) -> bool {
        let structure = letter.is_whitespace() || "[]{},:=\"'#".contains(letter);
        offset >= self.hidden_from && !structure
    }
}

fn collect_leaves(node: &ConfigNode, private: bool, leaves: &mut Vec<Leaf>) {
    match &node.value {
        ConfigValue::Table(entries) => {
            for (key, below) in entries {
                collect_leaves(below, private || PRIVATE.contains(&key.name.as_str()), leaves);
            }
        }
        ConfigValue::List(items) => {
            for below in items {
                collect_leaves(below, private, leaves);
            }
        }
        _ => leaves.push(Leaf { span: node.span.clone(), private }),
    }
}

/// Returns the part of a long line around the caret. `cut` says whether the line continues on the
/// left and on the right.
fn window(line: &[char], caret: (usize, usize), cut: (bool, bool)) -> (String, (usize, usize)) {
    let (at, width) = caret;
    let from = if line.len() > WIDEST { at.saturating_sub(WIDEST / 3) } else { 0 };
    let to = (from + WIDEST).min(line.len());
    let mark = |cut: bool| if cut { "..." } else { "" };
    let (before, after) = (mark(cut.0 || from > 0), mark(cut.1 || to < line.len()));
    let text: String = line[from..to].iter().collect();
    (format!("{before}{text}{after}"), (at - from + before.len(), width.min(to.saturating_sub(at)).max(1)))
}
