//! The rules: their names, how severe they are, and what they are about. The documentation is
//! generated from this list.

use super::LintSeverity;

/// A rule that definitions are checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LintRule {
    pub id: &'static str,
    pub severity: LintSeverity,
    /// What is reported, and why it matters.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($name:ident = $id:literal, $severity:ident, $summary:literal;)*) => {
        $(pub(super) const $name: LintRule =
            LintRule { id: $id, severity: LintSeverity::$severity, summary: $summary };)*

        /// All rules.
        pub const LINT_RULES: &[LintRule] = &[$($name),*];
    };
}

rules! {
    NAME_MISSING = "name-missing", Error,
        "A tool, prompt, resource or template has no name or URI, so it cannot be used.";
    NAME_CHARACTERS = "name-characters", Warning,
        "The name of a tool contains characters other than letters, digits, `_` and `-`. The APIs \
        of several model providers refuse it.";
    NAME_LENGTH = "name-length", Warning,
        "The name of a tool is longer than 64 characters. The APIs of several model providers \
        refuse it.";
    NAME_LENGTH_WITH_PREFIX = "name-length-with-prefix", Info,
        "The name of a tool is longer than 64 characters with the prefix `mcp__SERVER__` that \
        many clients add.";
    NAME_INVISIBLE = "name-invisible", Error,
        "A name contains control, invisible or text-direction characters, so that it can look \
        like another one.";
    NAME_MIXED_SCRIPTS = "name-mixed-scripts", Error,
        "A name mixes Latin letters with Cyrillic or Greek letters that look the same.";
    NAME_DUPLICATE = "name-duplicate", Error,
        "Two items of a list have the same name or URI, so only one of them can be used.";
    NAME_SIMILAR = "name-similar", Warning,
        "The names of two tools differ only in case or in separators, such as `get_user` and \
        `getUser`.";
    DESCRIPTION_MISSING = "description-missing", Warning,
        "A tool has no description. Models choose tools by their description.";
    DESCRIPTION_SHORT = "description-short", Info,
        "The description of a tool is shorter than `description_min` characters.";
    DESCRIPTION_LONG = "description-long", Warning,
        "The description of a tool is longer than `description_max` characters. Clients may cut \
        it, and every request to a model contains it.";
    DESCRIPTION_IS_NAME = "description-is-name", Warning,
        "The description of a tool only repeats its name.";
    PARAMETER_DESCRIPTION_MISSING = "parameter-description-missing", Info,
        "A parameter of a tool has no description.";
    PROMPT_DESCRIPTION_MISSING = "prompt-description-missing", Info,
        "A prompt has no description.";
    SCHEMA_MISSING = "schema-missing", Error,
        "A tool has no `inputSchema`, which the protocol requires.";
    SCHEMA_INVALID = "schema-invalid", Error,
        "A schema does not compile, so arguments or results cannot be checked.";
    SCHEMA_ROOT_TYPE = "schema-root-type", Error,
        "The `type` of an input schema is not `object`, which the protocol requires.";
    SCHEMA_ROOT_UNION = "schema-root-union", Warning,
        "An input schema has `anyOf`, `oneOf` or `allOf` at its root. The APIs of several model \
        providers refuse it.";
    SCHEMA_REMOTE_REF = "schema-remote-ref", Warning,
        "A schema refers to another document with `$ref`. Clients do not load it.";
    SCHEMA_BROKEN_REF = "schema-broken-ref", Error,
        "A `$ref` leads to nothing.";
    SCHEMA_RECURSIVE = "schema-recursive", Info,
        "An input schema contains itself. The APIs of some model providers refuse it.";
    SCHEMA_EMPTY_ENUM = "schema-empty-enum", Error,
        "An `enum` lists no values, so that no value is valid.";
    SCHEMA_REQUIRED_UNKNOWN = "schema-required-unknown", Warning,
        "`required` lists a property that `properties` does not declare.";
    SCHEMA_DEFAULT_INVALID = "schema-default-invalid", Warning,
        "A `default` is not valid under its own schema.";
    OUTPUT_SCHEMA_MISSING = "output-schema-missing", Info,
        "The description of a tool says that it returns JSON, but the tool has no output schema.";
    ANNOTATIONS_MISSING = "annotations-missing", Info,
        "A tool says neither whether it is read-only nor whether it is destructive. Clients then \
        assume that it is destructive.";
    ANNOTATIONS_CONTRADICTORY = "annotations-contradictory", Warning,
        "A tool says that it is read-only and destructive.";
    ANNOTATIONS_AGAINST_NAME = "annotations-against-name", Warning,
        "The name of a tool starts with a word such as `delete`, but the tool says that it is \
        read-only; or with a word such as `list`, but it says that it is destructive.";
    TOOLS_TOO_MANY = "tools-too-many", Warning,
        "A server has more than `tools_max` tools. Models choose worse, and the APIs of some \
        model providers refuse the list.";
    TOOL_TOO_LARGE = "tool-too-large", Warning,
        "The definition of a tool is larger than `tool_bytes_max` bytes. Every request to a model \
        contains it.";
    LIST_TOO_LARGE = "list-too-large", Warning,
        "The tools of a server are larger than `list_bytes_max` bytes together.";
    TEXT_INJECTION = "text-injection", Warning,
        "A text contains instructions to the model that do not belong in a definition: to ignore \
        earlier instructions, to hide something from the user, or to pass on private data.";
    TEXT_HIDDEN = "text-hidden", Warning,
        "A text contains a part that people do not see: invisible or text-direction characters, \
        control sequences, HTML comments, or text after very long white space.";
    TEXT_SECRET = "text-secret", Warning,
        "A text contains what looks like a key, a token or a password.";
    PROMPT_ARGUMENT_DUPLICATE = "prompt-argument-duplicate", Error,
        "Two arguments of a prompt have the same name.";
    RESOURCE_URI_INVALID = "resource-uri-invalid", Error,
        "The URI of a resource is not a valid absolute URI, or a URI template cannot be parsed.";
    RESOURCE_MIME_TYPE = "resource-mime-type", Warning,
        "A `mimeType` is not of the form `type/subtype`.";
}
