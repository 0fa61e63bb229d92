//! Splits texts and names into words.

/// Returns the words of a text in lower case and singular: `readFile`, `read_file` and `Read files`
/// have the same two words.
pub(crate) fn tokenize(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in text.split(|letter: char| !letter.is_alphanumeric()) {
        let letters: Vec<char> = part.chars().collect();
        let mut start = 0;
        for index in 1..letters.len() {
            if is_word_start(&letters, index) {
                push_word(&letters[start..index], &mut words);
                start = index;
            }
        }
        push_word(&letters[start..], &mut words);
    }
    words
}

/// Returns whether a new word starts at this index, as in `readFile` and `HTTPServer`.
fn is_word_start(letters: &[char], index: usize) -> bool {
    let (previous, current) = (letters[index - 1], letters[index]);
    let next_is_lower = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
    current.is_uppercase()
        && (previous.is_lowercase() || previous.is_numeric() || (previous.is_uppercase() && next_is_lower))
}

fn push_word(letters: &[char], words: &mut Vec<String>) {
    if !letters.is_empty() {
        let word: String = letters.iter().flat_map(|letter| letter.to_lowercase()).collect();
        words.push(singular(word));
    }
}

/// Reduces a plural to its singular, so that searches match both: files, queries, classes.
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
    fn naming_conventions_result_in_the_same_words() {
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
