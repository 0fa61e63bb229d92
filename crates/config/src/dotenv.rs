//! Files of environment variables with lines of `NAME=value`, such as `.env` and VS Code's
//! `envFile`.

pub(super) fn parse(text: &str) -> impl Iterator<Item = (String, String)> {
    text.lines().filter_map(line)
}

fn line(line: &str) -> Option<(String, String)> {
    let line = line.trim_start_matches('\u{feff}').trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    if line.starts_with('#') {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    (!name.is_empty() && !name.contains('\0')).then(|| (name.to_owned(), self::value(value.trim())))
}

fn value(text: &str) -> String {
    if let Some(rest) = text.strip_prefix('\'') {
        return rest.split('\'').next().unwrap_or_default().to_owned();
    }
    let Some(rest) = text.strip_prefix('"') else {
        // A comment must follow a space, because a token can contain `#`.
        return text.split(" #").next().unwrap_or_default().trim_end().to_owned();
    };
    let mut value = String::new();
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' => break,
            '\\' => match letters.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(other) => value.push(other),
                None => value.push('\\'),
            },
            other => value.push(other),
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_what_people_write() {
        let text = "# a comment\nA=1\nexport B = two words # why\nC='it''s'\nD=\"a\\n\\\"b\\\"\" # x\nE=to#ken\nF\n=7\nG=\n";
        let read: Vec<(String, String)> = parse(text).collect();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            pair("A", "1"),
            pair("B", "two words"),
            pair("C", "it"),
            pair("D", "a\n\"b\""),
            pair("E", "to#ken"),
            pair("G", ""),
        ];
        assert_eq!(read, expected);
    }
}
