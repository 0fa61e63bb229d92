//! The line that repeats a failure when it is pasted into a shell.

use serde_json::Value;

use super::compact::compact;

/// The parts of the command that are the same for every failure, quoted for a shell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReproductionCommand {
    /// The program and the options that change what is found, such as `toolyard test --generic`.
    pub start: String,
    /// The server, such as `-- node server.js`.
    pub server: String,
}

impl ReproductionCommand {
    /// Repeats one call.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> String {
        let arguments = compact(arguments).to_string();
        self.line(&format!("--tool {} --arguments {}", quote(tool), quote(&arguments)))
    }

    /// Repeats all calls of a tool.
    pub(crate) fn tool(&self, tool: &str, seed: u64, cases: usize) -> String {
        self.line(&format!("--tool {} --seed {seed} --cases {cases}", quote(tool)))
    }

    /// Repeats a test that calls no tool.
    pub(crate) fn test(&self, name: &str) -> String {
        self.line(&format!("--filter {}", quote(name)))
    }

    /// Repeats the whole run.
    pub(crate) fn run(&self, seed: u64, cases: usize) -> String {
        self.line(&format!("--seed {seed} --cases {cases}"))
    }

    fn line(&self, options: &str) -> String {
        format!("{} {options} {}", self.start, self.server).trim_end().to_owned()
    }
}

/// Quotes a word for a POSIX shell.
fn quote(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=@%+,".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::ReproductionCommand;

    #[test]
    fn words_are_quoted_for_a_shell() {
        let command = ReproductionCommand {
            start: "toolyard test --generic".to_owned(),
            server: "-- python 'my server.py'".to_owned(),
        };
        assert_eq!(
            command.call("parse", &json!({"text": "it's"})),
            r#"toolyard test --generic --tool parse --arguments '{"text":"it'\''s"}' -- python 'my server.py'"#
        );
        assert_eq!(
            command.call("a b", &json!({"text": "x".repeat(5001)})),
            r#"toolyard test --generic --tool 'a b' --arguments '{"text":{"$repeat":["x",5001]}}' -- python 'my server.py'"#
        );
        assert_eq!(
            command.tool("x", 7, 50),
            "toolyard test --generic --tool x --seed 7 --cases 50 -- python 'my server.py'"
        );
    }
}
