//! Valid and reserved Python names.

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Names that scripts commonly use. A tool must not shadow them.
const BUILTINS: [&str; 81] = [
    "ToolError",
    "abs",
    "aiter",
    "all",
    "anext",
    "any",
    "ascii",
    "asyncio",
    "bin",
    "bool",
    "breakpoint",
    "bytearray",
    "bytes",
    "call_tool",
    "callable",
    "chr",
    "classmethod",
    "compile",
    "complex",
    "delattr",
    "dict",
    "dir",
    "divmod",
    "enumerate",
    "eval",
    "exec",
    "execute_program",
    "exit",
    "filter",
    "float",
    "format",
    "frozenset",
    "getattr",
    "globals",
    "hasattr",
    "hash",
    "help",
    "hex",
    "id",
    "input",
    "inspect_tool",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "locals",
    "main",
    "map",
    "max",
    "memoryview",
    "min",
    "next",
    "object",
    "oct",
    "open",
    "ord",
    "pow",
    "print",
    "progress",
    "property",
    "quit",
    "range",
    "repr",
    "reversed",
    "round",
    "search_tools",
    "set",
    "setattr",
    "slice",
    "sorted",
    "staticmethod",
    "str",
    "sum",
    "super",
    "tools",
    "tuple",
    "type",
    "vars",
    "zip",
];

/// Returns whether a name is valid for a Python function or parameter.
pub(crate) fn is_identifier(name: &str) -> bool {
    // Python allows further letters, but normalizes them, so that different names become equal.
    let first = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let rest = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    first && rest && KEYWORDS.binary_search(&name).is_err()
}

/// Returns the usual spelling of a name that is not an identifier: `get_sum` for `get-sum`.
pub(crate) fn to_identifier(name: &str) -> Option<String> {
    let replace = |c: char| if c.is_ascii_punctuation() || c == ' ' { '_' } else { c };
    let spelled: String = name.chars().map(replace).collect();
    (spelled != name && is_identifier(&spelled)).then_some(spelled)
}

/// Returns whether a function of this name shadows no built-in name.
pub(crate) fn is_unreserved(name: &str) -> bool {
    BUILTINS.binary_search(&name).is_err()
}

/// Returns the names that a program mentions, without duplicates, in order of appearance.
pub(crate) fn identifiers_in(code: &str) -> Vec<&str> {
    let mut seen = std::collections::HashSet::new();
    code.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| is_identifier(word) && seen.insert(*word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{BUILTINS, KEYWORDS, identifiers_in, is_identifier, is_unreserved, to_identifier};

    #[test]
    fn the_lists_are_sorted() {
        assert!(KEYWORDS.is_sorted() && BUILTINS.is_sorted());
    }

    #[test]
    fn identifiers_are_valid_python_names() {
        let valid = ["ticker", "_x1", "match", "type", "self"];
        let invalid = ["", "1st", "with-dash", "from", "None", "größe", "a b", "a.b"];
        assert!(valid.into_iter().all(is_identifier));
        assert!(!invalid.into_iter().any(is_identifier));
        assert!(is_unreserved("query") && !is_unreserved("print") && !is_unreserved("tools"));
    }

    #[test]
    fn invalid_names_are_spelled_with_underscores() {
        assert_eq!(to_identifier("get-sum").as_deref(), Some("get_sum"));
        assert_eq!(to_identifier("mcp__my-server__a.b c").as_deref(), Some("mcp__my_server__a_b_c"));
        for name in ["get_sum", "3d-render", "größe-x", "", "-", "a\nb"] {
            assert_eq!(to_identifier(name).filter(|word| word != "_"), None, "{name}");
        }
    }

    #[test]
    fn a_program_mentions_each_name_once() {
        assert_eq!(
            identifiers_in("x = await f(x)\nfor y in g.h(\"mcp__a__b\"): f"),
            ["x", "f", "y", "g", "h", "mcp__a__b"]
        );
    }
}
