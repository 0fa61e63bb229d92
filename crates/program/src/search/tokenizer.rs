//! Texts and names as the words that they are made of.

/// The words of a text in lower case: `readFile`, `read_file` and `Read files` have the same two.
pub(crate) fn tokenize(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for piece in text.split(|letter: char| !letter.is_alphanumeric()) {
        let letters: Vec<char> = piece.chars().collect();
        let mut start = 0;
        for at in 1..letters.len() {
            if is_word_start(&letters, at) {
                push_word(&letters[start..at], &mut words);
                start = at;
            }
        }
        push_word(&letters[start..], &mut words);
    }
    words
}

/// Whether a new word begins here: `readFile`, `HTTPServer`.
fn is_word_start(letters: &[char], at: usize) -> bool {
    let (before, here) = (letters[at - 1], letters[at]);
    let next_is_small = letters.get(at + 1).is_some_and(|next| next.is_lowercase());
    here.is_uppercase()
        && (before.is_lowercase() || before.is_numeric() || (before.is_uppercase() && next_is_small))
}

fn push_word(letters: &[char], words: &mut Vec<String>) {
    if !letters.is_empty() {
        let word: String = letters.iter().flat_map(|letter| letter.to_lowercase()).collect();
        words.push(singular(word));
    }
}

/// One and many are the same word to whoever searches: files, queries, classes.
fn singular(mut word: String) -> String {
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if word.len() > 4 && ["sses", "shes", "ches", "xes", "zes"].iter().any(|end| word.ends_with(end)) {
        word.truncate(word.len() - 2);
    } else if word.len() > 3
        && word.ends_with('s')
        && !["ss", "us", "is"].iter().any(|end| word.ends_with(end))
    {
        word.truncate(word.len() - 1);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::tokenize;

    #[test]
    fn names_of_all_fashions_are_the_same_words() {
        for text in
            ["read_file", "readFile", "ReadFiles", "read-file", "Read the".trim_end_matches(" the"), "READ"]
        {
            assert_eq!(tokenize(text)[0], "read", "{text}");
        }
        assert_eq!(tokenize("HTTPServer2Go"), ["http", "server2", "go"]);
        assert_eq!(
            tokenize("queries of classes, boxes, status & glass"),
            ["query", "of", "class", "box", "status", "glass"]
        );
        assert_eq!(tokenize("Größe 数据"), ["größe", "数据"]);
        assert_eq!(tokenize(" _-_ "), Vec::<String>::new());
    }
}
