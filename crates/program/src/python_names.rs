//! Which names Python can spell, and which of them mean something there already.

const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def",
    "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is",
    "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
];

/// Names that scripts use all the time: a tool of such a name must not take its place.
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

/// Whether Python takes this as the name of a function or of a parameter.
pub(crate) fn is_identifier(name: &str) -> bool {
    // Python knows letters beyond these, but takes some of them for the same that are not.
    let first = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    let rest = name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    first && rest && KEYWORDS.binary_search(&name).is_err()
}

/// What people write for a name that Python cannot spell: `get_sum` for `get-sum`.
pub(crate) fn to_identifier(name: &str) -> Option<String> {
    let letter = |letter: char| if letter.is_ascii_punctuation() || letter == ' ' { '_' } else { letter };
    let spelled: String = name.chars().map(letter).collect();
    (spelled != name && is_identifier(&spelled)).then_some(spelled)
}

/// Whether a script may have a function of this name without losing one that it knows.
pub(crate) fn is_unreserved(name: &str) -> bool {
    BUILTINS.binary_search(&name).is_err()
}

/// The names that a program mentions, each once, in the order in which they come.
pub(crate) fn identifiers_in(code: &str) -> Vec<&str> {
    let mut seen = std::collections::HashSet::new();
    code.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .filter(|word| is_identifier(word) && seen.insert(*word))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{BUILTINS, KEYWORDS, identifiers_in, is_identifier, is_unreserved, to_identifier};

    #[test]
    fn the_lists_are_in_order() {
        assert!(KEYWORDS.is_sorted() && BUILTINS.is_sorted());
    }

    #[test]
    fn words_are_what_python_takes_as_names() {
        let fine = ["ticker", "_x1", "match", "type", "self"];
        let not = ["", "1st", "with-dash", "from", "None", "größe", "a b", "a.b"];
        assert!(fine.into_iter().all(is_identifier));
        assert!(!not.into_iter().any(is_identifier));
        assert!(is_unreserved("query") && !is_unreserved("print") && !is_unreserved("tools"));
    }

    #[test]
    fn names_that_python_cannot_spell_are_written_with_underscores() {
        assert_eq!(to_identifier("get-sum").as_deref(), Some("get_sum"));
        assert_eq!(to_identifier("mcp__my-server__a.b c").as_deref(), Some("mcp__my_server__a_b_c"));
        for none in ["get_sum", "3d-render", "größe-x", "", "-", "a\nb"] {
            assert_eq!(to_identifier(none).filter(|word| word != "_"), None, "{none}");
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
