//! The keys, for the help and for the documentation, which is checked against this list.

/// Where a key means what.
pub(crate) const HELP: &[(&str, &[(&str, &str)])] = &[
    (
        "Everywhere",
        &[
            ("↑ ↓ or k j", "move, or scroll"),
            ("PgUp PgDn", "a page; Ctrl-U and Ctrl-D half of one"),
            ("g G", "the first, the last"),
            ("Enter", "go on, or open"),
            ("Esc", "back; clears a filter first"),
            ("Tab Shift-Tab", "the next view, the one before; also ← → or h l"),
            ("/", "filter or search as you type"),
            ("H", "history; Tab there: of this session, or of the yard"),
            ("L", "log: events, standard error, messages"),
            ("T", "the end of the log below every screen, or not"),
            ("? or F1", "these keys"),
            ("q", "quit"),
            ("Ctrl-C", "cancel the call, else quit"),
            ("Ctrl-Z", "suspend; fg comes back"),
        ],
    ),
    ("Servers", &[("r", "reconnect"), ("e", "disable or enable, until the end of this session")]),
    ("Tools, resources, prompts", &[("c", "call, read or get"), ("y", "copy the definition (in details)")]),
    (
        "Forms",
        &[
            ("Ctrl-S", "call; also Enter on the button"),
            ("← → or Space", "change a choice; Enter shows them all"),
            ("Ctrl-N Ctrl-D", "add an item to a list, remove it"),
            ("Ctrl-T", "give a field, or leave it out"),
            ("Ctrl-R", "write the arguments as JSON, and back"),
            ("Ctrl-X", "decline what a server asks; Esc cancels it"),
        ],
    ),
    (
        "Results",
        &[
            ("Tab", "content or JSON"),
            ("Enter or Space", "fold, unfold; a long text opens"),
            ("← → or h l", "fold, unfold"),
            ("z", "fold everything"),
            ("n N", "the next find, the one before"),
            ("s", "save to a file"),
            ("y", "copy the call or its result"),
            ("r e", "repeat, or repeat with other arguments"),
            ("x", "cancel while it runs"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::HELP;

    #[test]
    fn the_documentation_has_every_key() {
        let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ui.md")).unwrap();
        for (heading, keys) in HELP {
            assert!(page.contains(&format!("### {heading}\n")), "docs/ui.md: {heading}");
            for (key, what) in *keys {
                let line = format!("| {key} | {what} |");
                assert!(page.contains(&line), "docs/ui.md lacks: {line}");
            }
        }
    }
}
