//! Writes log lines to standard error and truncates long ones, because they contain text from
//! servers and clients.

use std::io::{self, Write};

use tracing_subscriber::fmt::MakeWriter;

/// The longest line, in bytes.
const LONGEST: usize = 8 * 1024;

/// Writes to standard error.
pub(super) struct TruncatingStderr;

impl<'a> MakeWriter<'a> for TruncatingStderr {
    type Writer = TruncatingWriter<io::Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        TruncatingWriter(io::stderr())
    }
}

/// Expects one line per write.
pub(super) struct TruncatingWriter<W>(W);

impl<W: Write> Write for TruncatingWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if line.len() <= LONGEST {
            return self.0.write_all(line).map(|()| line.len());
        }
        // Do not split a character.
        let end = (0..=LONGEST).rev().find(|at| line[*at] & 0xc0 != 0x80).unwrap_or(0);
        let mut short = line[..end].to_vec();
        short.extend_from_slice(format!("… ({} more bytes)\n", line.len() - end).as_bytes());
        self.0.write_all(&short).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{LONGEST, TruncatingWriter};

    fn written(line: &str) -> String {
        let mut writer = TruncatingWriter(Vec::new());
        writer.write_all(line.as_bytes()).unwrap();
        String::from_utf8(writer.0).unwrap()
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        assert_eq!(written("short\n"), "short\n");
        let long = format!("x{}\n", "é".repeat(LONGEST));
        let cut = written(&long);
        assert!(
            cut.starts_with("xéé") && cut.ends_with("é… (8195 more bytes)\n"),
            "{}",
            &cut[cut.len() - 40..]
        );
        assert!(cut.len() < LONGEST + 40);
    }
}
