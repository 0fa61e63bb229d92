//! Instructions to the model that a definition should not contain. Only phrases that have no other
//! use are listed. A phrase in quotes is an example and is not reported.

/// Phrases by what they ask for. `*` stands for up to four words.
const PHRASES: [(&str, &[&str]); 4] = [
    (
        "to ignore earlier instructions",
        &[
            "ignore * previous instructions",
            "ignore * prior instructions",
            "ignore * earlier instructions",
            "ignore * above instructions",
            "ignore * system prompt",
            "disregard * previous instructions",
            "disregard * prior instructions",
            "disregard * system prompt",
            "forget * previous instructions",
            "forget * prior instructions",
            "override * previous instructions",
            "override * system prompt",
        ],
    ),
    (
        "to hide something from the user",
        &[
            "do not tell the user",
            "don't tell the user",
            "do not inform the user",
            "don't inform the user",
            "never tell the user",
            "never inform the user",
            "do not mention * to the user",
            "don't mention * to the user",
            "never mention * to the user",
            "do not reveal * to the user",
            "without telling the user",
            "without informing the user",
            "without the user's knowledge",
            "without the user knowing",
            "hide * from the user",
            "keep * secret from the user",
            "do not let the user know",
            "don't let the user know",
        ],
    ),
    (
        "to pass on private data",
        &[
            "read * ~/.ssh",
            "contents of ~/.ssh",
            "content of ~/.ssh",
            "read * id_rsa",
            "read * .aws/credentials",
            "read * .cursor/mcp.json",
            "read * mcp.json and",
            "send * conversation to",
            "send * conversation history to",
            "send * chat history to",
            "include * conversation history in",
            "include * system prompt in",
            "reveal * system prompt",
            "send * environment variables to",
            "send * api keys to",
            "send * credentials to http",
            "forward * emails to",
            "pass * contents as sidenote",
            "pass * content as 'sidenote'",
        ],
    ),
    (
        "as a message of another role",
        &["<important>", "<system>", "</system>", "<|im_start|>", "<|system|>", "[system]:", "<<sys>>"],
    ),
];

/// Returns what a text instructs the model to do.
pub(super) fn find_injection(text: &str) -> Option<String> {
    let text = normalize(text);
    PHRASES.iter().find_map(|(purpose, phrases)| {
        let phrase = phrases.iter().find(|phrase| contains_phrase(&text, phrase))?;
        let phrase = phrase.replace(" * ", " … ");
        Some(format!("the text instructs the model {purpose} (\"{phrase}\")"))
    })
}

/// Lowercase, with one space between words and without what people do not see.
fn normalize(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if letter.is_whitespace() => {
                if !normal.ends_with(' ') {
                    normal.push(' ');
                }
            }
            '\u{2019}' => normal.push('\''),
            letter if toolyard_hub::printable::is_deceptive(letter) => {}
            letter => normal.extend(letter.to_lowercase()),
        }
    }
    normal
}

fn contains_phrase(text: &str, phrase: &str) -> bool {
    let Some((before, after)) = phrase.split_once(" * ") else {
        return text.match_indices(phrase).any(|(at, _)| !is_quoted(text, at));
    };
    text.match_indices(before).filter(|(at, _)| !is_quoted(text, *at)).any(|(at, _)| {
        let rest = &text[at + before.len()..];
        // The words in between, and the end of the phrase.
        let window = &rest[..rest.floor_char_boundary(100 + after.len())];
        window.match_indices(after).any(|(end, _)| {
            let between = &window[..end];
            between.starts_with(' ')
                && between.ends_with(' ')
                && between.split_whitespace().count() <= 4
                && !between.contains(['.', '!', '?'].as_slice())
        })
    })
}

/// Whether a quotation mark stands right before this place, or the phrase continues a word.
fn is_quoted(text: &str, at: usize) -> bool {
    text[..at]
        .chars()
        .next_back()
        .is_some_and(|before| "\"'`\u{201c}\u{2018}\u{ab}".contains(before) || before.is_alphanumeric())
}
