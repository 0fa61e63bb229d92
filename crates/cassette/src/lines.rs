//! Splits a stream of bytes into lines of a bounded length, independent of how the bytes arrive.

/// Collects bytes until a line is complete.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    buffer: Vec<u8>,
    longest: usize,
    skipping: bool,
}

/// A line, without its line break.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SplitLine<'a> {
    Complete(&'a [u8]),
    /// The line exceeds the limit. Its bytes are dropped.
    TooLong,
}

impl LineSplitter {
    pub(crate) fn new(longest: usize) -> Self {
        Self { buffer: Vec::new(), longest, skipping: false }
    }

    /// Adds bytes, and passes on the lines that they complete.
    pub(crate) fn push(&mut self, mut chunk: &[u8], mut receive: impl FnMut(SplitLine<'_>)) {
        while let Some(at) = memchr::memchr(b'\n', chunk) {
            let (head, tail) = (&chunk[..at], &chunk[at + 1..]);
            chunk = tail;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if self.buffer.len() + head.len() > self.longest {
                receive(SplitLine::TooLong);
            } else if self.buffer.is_empty() {
                receive(SplitLine::Complete(head));
            } else {
                self.buffer.extend_from_slice(head);
                receive(SplitLine::Complete(&self.buffer));
            }
            self.buffer.clear();
        }
        if self.skipping {
            return;
        }
        if self.buffer.len() + chunk.len() > self.longest {
            self.skipping = true;
            self.buffer = Vec::new();
            receive(SplitLine::TooLong);
        } else {
            self.buffer.extend_from_slice(chunk);
        }
    }

    /// Returns the last line if it has no line break.
    pub(crate) fn finish(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.buffer);
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::{LineSplitter, SplitLine};

    fn split(chunks: &[&str]) -> Vec<String> {
        let mut splitter = LineSplitter::new(5);
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.push(chunk.as_bytes(), |line| {
                lines.push(match line {
                    SplitLine::Complete(line) => String::from_utf8_lossy(line).into_owned(),
                    SplitLine::TooLong => "too long".to_owned(),
                });
            });
        }
        lines.extend(splitter.finish().map(|line| format!("rest {}", String::from_utf8_lossy(&line))));
        lines
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        for chunks in [&["ab\n\ncde\nfg"][..], &["a", "b\n", "\nc", "de\nf", "g"]] {
            assert_eq!(split(chunks), ["ab", "", "cde", "rest fg"]);
        }
    }

    #[test]
    fn long_lines_are_dropped_once() {
        for chunks in [&["123456\nab\n"][..], &["1234", "56", "7890", "\nab\n"], &["12345", "6\nab\n"]] {
            assert_eq!(split(chunks), ["too long", "ab"]);
        }
    }
}
