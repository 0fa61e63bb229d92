//! The rules of a generic run. The reference page is generated from this list.

/// What a violated rule means for the test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleSeverity {
    /// The test fails.
    Failure,
    /// The test can pass; the finding is shown.
    Warning,
}

impl RuleSeverity {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Warning => "warning",
        }
    }
}

/// A rule that every server must follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GenericRule {
    pub id: &'static str,
    pub severity: RuleSeverity,
    /// What is reported.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($name:ident = $id:literal, $severity:ident, $summary:literal;)*) => {
        $(pub(crate) const $name: GenericRule =
            GenericRule { id: $id, severity: RuleSeverity::$severity, summary: $summary };)*

        /// All rules, in the order of the documentation.
        pub const GENERIC_RULES: &[GenericRule] = &[$($name),*];
    };
}

rules! {
    START_FAILED = "start-failed", Failure,
        "The server does not start, or it cannot be connected to.";
    START_SLOW = "start-slow", Failure,
        "The server takes longer to start than `--max-start` allows.";
    PROTOCOL_VIOLATION = "protocol-violation", Failure,
        "A message violates the protocol: text on standard output that is not JSON-RPC, a response \
        that matches no request, a notification with wrong members.";
    LIST_FAILED = "list-failed", Failure,
        "A list that the server declares cannot be read to its end.";
    LIST_CHANGED = "list-changed", Failure,
        "Two reads of a list differ, and the server has not announced that the list changed.";
    LIST_ORDER = "list-order", Warning,
        "Two reads of a list contain the same items in another order.";
    LINT = "lint", Failure,
        "A definition violates a [lint rule](lint.md) of the severity error, or the severity of \
        `--lint-level`.";
    CRASH = "crash", Failure,
        "The server ends, or closes the connection, during a call or right after it.";
    HANG = "hang", Failure,
        "A call gets neither an answer nor progress within `--call-timeout`.";
    SLOW_CALL = "slow-call", Warning,
        "A call gets no answer in time, but the server answers other requests, and the call \
        is answered with smaller numbers, which may be times or amounts, or when it is repeated.";
    NO_RESULT = "no-result", Failure,
        "The answer to a call cannot be used, such as an HTTP status or an invalid response.";
    RESULT_SHAPE = "result-shape", Failure,
        "A result has a missing member, or a member of the wrong type.";
    OUTPUT_SCHEMA = "output-schema", Failure,
        "The result of a tool with an output schema has no `structuredContent`, or one that does \
        not match.";
    INTERNAL_ERROR = "internal-error", Failure,
        "Valid arguments get a protocol error that blames the server: -32603, or -32600, -32601 \
        or -32700. A tool reports failure with `isError`.";
    UNHANDLED_ERROR = "unhandled-error", Warning,
        "Valid arguments get an error whose text is that of an unhandled exception.";
    ERROR_AS_SUCCESS = "error-as-success", Failure,
        "The text of a result is an error message, but the result has no `isError`.";
    ACCEPTS_INVALID = "accepts-invalid", Failure,
        "Arguments that the input schema excludes are accepted: a required property is missing, or \
        a value has a wrong type, or is not one of the allowed values. Values that servers \
        commonly convert, such as `\"5\"` to 5, are not used.";
    ACCEPTS_UNKNOWN = "accepts-unknown", Warning,
        "A property is accepted that the input schema excludes with `additionalProperties`.";
    UNKNOWN_ACCEPTED = "unknown-accepted", Failure,
        "A tool, prompt or method that does not exist gets a result instead of an error.";
    CONCURRENT_CALLS = "concurrent-calls", Failure,
        "Calls that were answered one after the other are not all answered when they are sent at the \
        same time.";
    PROGRESS_ORDER = "progress-order", Failure,
        "The progress of a call does not increase with every notification.";
    ENVIRONMENT_LEAKED = "environment-leaked", Failure,
        "A message of the server contains the value of a secret environment variable, as it is, in \
        Base64 or in hexadecimal. For a tool that says that it returns environment variables, this \
        is a warning.";
    RESOURCE_FAILED = "resource-failed", Warning,
        "A listed resource cannot be read.";
    PROMPT_FAILED = "prompt-failed", Warning,
        "A listed prompt cannot be rendered with a text for every argument.";
    STOP_SLOW = "stop-slow", Warning,
        "The server does not exit by itself after its standard input was closed, within two seconds.";
    NOTHING_CALLED = "nothing-called", Failure,
        "No tool was called, and the server has no resources and prompts either.";
    UNKNOWN_TOOL = "unknown-tool", Failure,
        "A tool that `--tool` names is not in the list of the server.";
    INCOMPLETE = "incomplete", Warning,
        "A time limit ended a test before all of its cases ran.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use toolyard_testkit::docs::check_generated;

    use super::GENERIC_RULES;

    #[test]
    fn the_documentation_lists_every_rule() {
        let ids: BTreeSet<&str> = GENERIC_RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), GENERIC_RULES.len());
        let mut page = String::from("## Rules\n");
        for rule in GENERIC_RULES {
            page.push_str(&format!("\n### {}\n\n*{}*: {}\n", rule.id, rule.severity.as_str(), rule.summary));
        }
        check_generated("reference/generic-tests.md", &page);
    }
}
