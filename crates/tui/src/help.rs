//! The key bindings for the help screen. A test checks the documentation against this list.

/// The key bindings by context.
pub(crate) const HELP: &[(&str, &[(&str, &str)])] = &[
    (
        "Everywhere",
        &[
            ("↑ ↓ or k j", "move or scroll"),
            ("PgUp PgDn", "page up or down; Ctrl-U and Ctrl-D half a page"),
            ("g G", "first, last"),
            ("Enter", "select or open"),
            ("Esc", "clear the filter, or go back"),
            ("Tab Shift-Tab", "next, previous view; also ← → or h l"),
            ("/", "filter or search as you type"),
            ("H", "history; Tab there: this session or all calls"),
            ("L", "log: events, standard error, messages"),
            ("T", "show or hide the log tail below every screen"),
            ("? or F1", "show this help"),
            ("q", "quit"),
            ("Ctrl-C", "cancel the call, or quit"),
            ("Ctrl-Z", "suspend; fg resumes"),
        ],
    ),
    ("Servers", &[("r", "reconnect"), ("e", "disable or enable for the rest of this session")]),
    ("Tools, resources, prompts", &[("c", "call, read or get"), ("y", "copy the definition (in details)")]),
    (
        "Forms",
        &[
            ("Ctrl-S", "submit; also Enter on the button"),
            ("← → or Space", "change the choice; Enter lists all choices"),
            ("Ctrl-N Ctrl-D", "add, remove a list item"),
            ("Ctrl-T", "set or omit a field"),
            ("Ctrl-R", "switch between form and JSON"),
            ("Ctrl-X", "decline a server's request; Esc cancels it"),
        ],
    ),
    (
        "Results",
        &[
            ("Tab", "switch between content and JSON"),
            ("Enter or Space", "fold, unfold, or open long text"),
            ("← → or h l", "fold, unfold"),
            ("z", "fold all"),
            ("n N", "next, previous match"),
            ("s", "save to a file"),
            ("y", "copy the call or its result"),
            ("r e", "repeat, or repeat with different arguments"),
            ("x", "cancel a running call"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::HELP;

    #[test]
    fn the_documentation_has_every_key() {
        let page =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/ui.md"))
                .unwrap();
        for (heading, keys) in HELP {
            assert!(
                page.contains(&format!("### {heading}\n")),
                "docs/reference/ui.md lacks the heading: {heading}"
            );
            for (key, what) in *keys {
                let line = format!("| {key} | {what} |");
                assert!(page.contains(&line), "docs/reference/ui.md lacks: {line}");
            }
        }
    }
}
