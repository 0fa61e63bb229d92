//! Keys, tokens and passwords by their well-known forms. Examples and placeholders are not reported.

/// The start of a token, the letters that follow, and how many of them there must be.
const TOKENS: [(&str, &str, usize, &str); 13] = [
    ("AKIA", "upper", 16, "an AWS access key"),
    ("ASIA", "upper", 16, "an AWS access key"),
    ("ghp_", "word", 36, "a GitHub token"),
    ("gho_", "word", 36, "a GitHub token"),
    ("ghs_", "word", 36, "a GitHub token"),
    ("github_pat_", "word", 40, "a GitHub token"),
    ("glpat-", "word", 20, "a GitLab token"),
    ("sk-ant-", "word", 30, "an Anthropic API key"),
    ("sk-proj-", "word", 30, "an OpenAI API key"),
    ("xoxb-", "word", 20, "a Slack token"),
    ("xoxp-", "word", 20, "a Slack token"),
    ("AIza", "word", 35, "a Google API key"),
    ("sk_live_", "word", 20, "a Stripe key"),
];
/// A random text of this length has more different letters.
const FEWEST_LETTERS: usize = 9;
const PLACEHOLDERS: [&str; 6] = ["example", "xxxx", "your", "placeholder", "1234567", "redacted"];

/// Returns what a text contains that looks like a secret.
pub(super) fn find_secret(text: &str) -> Option<&'static str> {
    let token = TOKENS.iter().find(|(start, letters, least, _)| {
        text.match_indices(start).any(|(at, _)| {
            let starts_word = !text[..at].ends_with(|before: char| before.is_ascii_alphanumeric());
            let rest = &text[at + start.len()..];
            let allowed = |letter: char| match *letters {
                "upper" => letter.is_ascii_uppercase() || letter.is_ascii_digit(),
                _ => letter.is_ascii_alphanumeric() || letter == '_' || letter == '-',
            };
            let end = rest.find(|letter| !allowed(letter)).unwrap_or(rest.len());
            starts_word && end >= *least && is_random(&rest[..end])
        })
    });
    if let Some((.., what)) = token {
        return Some(what);
    }
    if let Some((_, rest)) = text.split_once("-----BEGIN ")
        && let Some((kind, body)) = rest.split_once("-----")
        && kind.ends_with("PRIVATE KEY")
        && body
            .trim_start()
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || "+/=".contains(*letter))
            .count()
            >= 40
    {
        return Some("a private key");
    }
    has_password_in_url(text).then_some("a URL with a password")
}

fn is_random(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let mut letters: Vec<char> = lower.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    letters.len() >= FEWEST_LETTERS && !PLACEHOLDERS.iter().any(|word| lower.contains(word))
}

/// `scheme://user:password@host`, with a password that is not a placeholder.
fn has_password_in_url(text: &str) -> bool {
    text.match_indices("://").any(|(at, separator)| {
        let rest = &text[at + separator.len()..];
        let authority =
            rest.split(|letter: char| letter.is_whitespace() || "/?#\"'`<>)".contains(letter)).next();
        let Some((user, _)) = authority.unwrap_or_default().rsplit_once('@') else { return false };
        let Some((_, password)) = user.split_once(':') else { return false };
        let is_placeholder = password.contains(['$', '{', '<', '[', '*', '%'].as_slice());
        password.len() >= 12 && !is_placeholder && is_random(password)
    })
}
