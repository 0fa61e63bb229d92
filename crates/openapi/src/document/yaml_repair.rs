//! YAML that the parser refuses and others read, put so that it takes it. Lists and maps in brackets, nested deeper than it
//! goes: what is so deep is left out anyway, so it may as well be gone before. Texts in quotes, whose further lines are
//! not indented more than their key.

/// How many brackets the parser lets stand inside one another.
const DEEPEST: usize = 255;

/// The text with `null` for whatever is nested deeper than the parser goes, from this bracket to the end of the
/// outermost one around it. Nothing if there is no bracket here, or they do not close.
pub(super) fn drop_deep_brackets(text: &str, line: usize, column: usize) -> Option<String> {
    let (start, found) = place(text, line, column)?;
    if !matches!(found, '[' | '{') {
        return None;
    }
    let mut scanner = Scanner { text: text.as_bytes(), at: start };
    let mut out = String::with_capacity(text.len());
    out.push_str(text.get(..start)?);
    let mut kept_from = start;
    let mut open = DEEPEST;
    while open > 0 {
        let at = scanner.at;
        match scanner.next()? {
            Token::Opens => {
                open += 1;
                if open == DEEPEST + 1 {
                    out.push_str(text.get(kept_from..at)?);
                    out.push_str("null");
                }
            }
            Token::Closes => {
                if open == DEEPEST + 1 {
                    kept_from = scanner.at;
                }
                open -= 1;
            }
        }
    }
    out.push_str(text.get(kept_from..)?);
    Some(out)
}

/// The text with all further lines of the quoted one that begins here put to the right of what its own line begins with:
/// how far does not count in it. Nothing if that takes more than `most` bytes.
pub(super) fn with_quoted_lines_indented(
    text: &str,
    line: usize,
    column: usize,
    most: usize,
) -> Option<String> {
    let (start, quote) = place(text, line, column)?;
    let quote = u8::try_from(quote).ok().filter(|quote| matches!(quote, b'"' | b'\''))?;
    let mut scanner = Scanner { text: text.as_bytes(), at: start + 1 };
    scanner.skip_quoted(quote)?;
    let (before, quoted, after) = (text.get(..start)?, text.get(start..scanner.at)?, text.get(scanner.at..)?);
    let its_line = before.rsplit('\n').next()?;
    let indentation = 1 + its_line.bytes().take_while(|byte| b" -?".contains(byte)).count();
    let further = quoted.bytes().filter(|byte| *byte == b'\n').count();
    if further.saturating_mul(indentation) > most {
        return None;
    }
    let indented = quoted.replace('\n', &format!("\n{}", " ".repeat(indentation)));
    Some(format!("{before}{indented}{after}"))
}

/// Where a place is that is told by its line, from 1, and its column in characters, from 0, and what stands there.
fn place(text: &str, line: usize, column: usize) -> Option<(usize, char)> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (within, found) = text.get(before..)?.char_indices().nth(column)?;
    Some((before + within, found))
}

enum Token {
    Opens,
    Closes,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    /// The next bracket that is no part of a text or of a comment.
    fn next(&mut self) -> Option<Token> {
        // A quote is one where a value may begin, and a letter like any other inside a plain text.
        let mut may_begin = true;
        loop {
            let here = *self.text.get(self.at)?;
            self.at += 1;
            match here {
                b'[' | b'{' => return Some(Token::Opens),
                b']' | b'}' => return Some(Token::Closes),
                b'"' | b'\'' if may_begin => {
                    self.skip_quoted(here)?;
                    may_begin = false;
                }
                b'#' if self.follows_a_blank() => self.skip_line(),
                b',' | b':' => may_begin = true,
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => may_begin = false,
            }
        }
    }

    fn skip_quoted(&mut self, quote: u8) -> Option<()> {
        loop {
            let here = *self.text.get(self.at)?;
            self.at += 1;
            if here == b'\\' && quote == b'"' {
                self.at += 1;
            } else if here == quote {
                if quote == b'"' || self.text.get(self.at) != Some(&quote) {
                    return Some(());
                }
                self.at += 1;
            }
        }
    }

    fn follows_a_blank(&self) -> bool {
        let before = self.at.checked_sub(2).and_then(|at| self.text.get(at));
        before.is_none_or(|before| before.is_ascii_whitespace())
    }

    fn skip_line(&mut self) {
        while self.text.get(self.at).is_some_and(|next| *next != b'\n') {
            self.at += 1;
        }
    }
}
