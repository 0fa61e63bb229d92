//! Names: a type that is visible outside its module has a unique name, and no name is a private
//! metaphor.

use std::collections::{BTreeMap, VecDeque};

use proc_macro2::Span;
use syn::{Attribute, Ident, ImplItem, Item, TraitItem, Visibility};

use super::super::{File, check, crate_of, holds, is_any};

/// Former module names for which a standard term exists.
const FORBIDDEN_MODULES: [(&str, &str); 31] = [
    ("asks", "questions"),
    ("attach", "remote"),
    ("bank", "a name such as `interning`"),
    ("common", "a name for what it contains"),
    ("crew", "servers"),
    ("cut", "a name such as `pruning`"),
    ("desk", "dispatch"),
    ("door", "auth"),
    ("fleet", "servers"),
    ("hear", "notifications"),
    ("house", "common_args or supervisor"),
    ("keeper", "supervisor"),
    ("keeping", "recording"),
    ("keyring", "tokens"),
    ("lanes", "pool"),
    ("mirror", "remote"),
    ("order", "request"),
    ("outside", "outbound"),
    ("own", "private_sessions"),
    ("pack", "a name for what it does"),
    ("pages", "cors"),
    ("past", "history"),
    ("places", "concurrency"),
    ("seats", "connections"),
    ("shelf", "result_store"),
    ("split", "a name for what it does"),
    ("spot", "location"),
    ("turned", "rejection"),
    ("visit", "one_shot"),
    ("visitor", "unauthenticated"),
    ("way", "remote, route, transport: say which"),
];

/// Type names that do not describe what they hold.
const FORBIDDEN_TYPES: [&str; 20] = [
    "Asked", "Dress", "Dressed", "Found", "Kept", "Line", "Manned", "Order", "Place", "Reading", "Said",
    "Seen", "Slot", "Thing", "Told", "Trouble", "Wanted", "Way", "What", "Which",
];

/// Function names that are grammar alone, or metaphors.
const FORBIDDEN_FUNCTIONS: [&str; 32] = [
    "again", "alone", "among", "asked", "attend", "beside", "both", "cannot", "confess", "dress", "either",
    "fine", "found", "go", "gone", "hear", "heard", "here", "kept", "meet", "mend", "minds", "of", "said",
    "seen", "shelf", "told", "twice", "vouch", "wanted", "whom", "wrong",
];

/// A function or method, and its location.
struct Function {
    name: String,
    location: String,
}

/// A type definition: its name, its location, and whether other modules can see it.
struct Definition {
    name: String,
    location: String,
    is_visible: bool,
}

fn duplicate_types(files: &[File]) -> Vec<String> {
    let mut by_name: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for definition in definitions(files).into_iter().filter(|definition| definition.is_visible) {
        by_name.entry(definition.name).or_default().push(definition.location);
    }
    let several = by_name.into_iter().filter(|(_, places)| places.len() > 1);
    several
        .map(|(name, places)| {
            format!("`{name}` is defined at {}: give each a name for what it holds", places.join(", "))
        })
        .collect()
}

fn forbidden_names(files: &[File]) -> Vec<String> {
    let mut broken = Vec::new();
    for file in shipped(files) {
        let stem = file.path.rsplit('/').next().and_then(|name| name.strip_suffix(".rs")).unwrap_or_default();
        if let Some((name, instead)) = FORBIDDEN_MODULES.iter().find(|(name, _)| *name == stem) {
            broken.push(format!("{}: rename the module `{name}`: {instead}", file.path));
        }
    }
    for Definition { name, location, .. } in definitions(files) {
        if FORBIDDEN_TYPES.contains(&name.as_str()) {
            broken.push(format!("{location}: `{name}` is not descriptive: use a noun for what it holds"));
        }
    }
    for Function { name, location } in functions(files) {
        if FORBIDDEN_FUNCTIONS.contains(&name.as_str()) {
            broken.push(format!("{location}: `fn {name}` is not descriptive: use a verb for what it does"));
        }
    }
    broken
}

/// Returns the shipped code, without test modules.
fn shipped(files: &[File]) -> impl Iterator<Item = &File> {
    files.iter().filter(|file| {
        let Some((name, rest)) = crate_of(file) else { return false };
        let is_test = rest.contains("/tests/") || rest.ends_with("/tests.rs");
        is_any(file, &["rs"]) && rest.starts_with("src/") && name != "testkit" && !is_test
    })
}

fn definitions(files: &[File]) -> Vec<Definition> {
    collect(files, |path, item, found| {
        let (attributes, visibility, name) = match item {
            Item::Struct(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Enum(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Union(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Trait(item) => (&item.attrs, &item.vis, &item.ident),
            Item::Type(item) => (&item.attrs, &item.vis, &item.ident),
            _ => return,
        };
        if !is_for_tests(attributes) {
            let is_visible = !matches!(visibility, Visibility::Inherited);
            found.push(Definition { name: name.to_string(), location: at(path, name.span()), is_visible });
        }
    })
}

/// Skips trait implementations, because the trait names their methods.
fn functions(files: &[File]) -> Vec<Function> {
    collect(files, |path, item, found| {
        let mut add =
            |name: &Ident| found.push(Function { name: name.to_string(), location: at(path, name.span()) });
        match item {
            Item::Fn(function) => add(&function.sig.ident),
            Item::Impl(block) if block.trait_.is_none() => {
                for item in &block.items {
                    if let ImplItem::Fn(method) = item {
                        add(&method.sig.ident);
                    }
                }
            }
            Item::Trait(definition) => {
                for item in &definition.items {
                    if let TraitItem::Fn(method) = item {
                        add(&method.sig.ident);
                    }
                }
            }
            _ => {}
        }
    })
}

/// Collects what `add` finds in each item of the shipped files, without test modules.
fn collect<T>(files: &[File], add: impl Fn(&str, &Item, &mut Vec<T>)) -> Vec<T> {
    let mut found = Vec::new();
    for file in shipped(files) {
        // A file that does not parse does not build either, and cargo reports why.
        let Ok(parsed) = syn::parse_file(&file.text) else { continue };
        let mut pending: VecDeque<&Item> = parsed.items.iter().collect();
        while let Some(item) = pending.pop_front() {
            add(&file.path, item, &mut found);
            if let Item::Mod(module) = item
                && let Some((_, items)) = &module.content
                && !is_for_tests(&module.attrs)
            {
                pending.extend(items);
            }
        }
    }
    found
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

fn at(path: &str, span: Span) -> String {
    format!("{path}:{}", span.start().line)
}

#[test]
fn a_visible_type_has_a_name_of_its_own() {
    holds(duplicate_types);
}

#[test]
fn nothing_is_named_by_a_private_metaphor() {
    holds(forbidden_names);
}

#[test]
fn a_duplicate_visible_type_name_is_found() {
    let text = "pub struct Reply;\nmod inner {\n    pub(super) enum Reply {}\n}\n#[cfg(test)]\nmod tests {\n    pub struct Reply;\n}\n";
    let broken = [
        "`Reply` is defined at crates/hub/src/a.rs:1, crates/hub/src/a.rs:3: give each a name for what it holds",
    ];
    check(duplicate_types, "crates/hub/src/a.rs", text, &broken);
    check(duplicate_types, "crates/hub/src/a.rs", &text.replace("pub(super) ", ""), &[]);
    check(duplicate_types, "crates/testkit/src/a.rs", text, &[]);
    check(duplicate_types, "crates/hub/src/a/tests.rs", text, &[]);
}

#[test]
fn a_forbidden_name_is_found() {
    let broken = ["crates/hub/src/a.rs:2: `Said` is not descriptive: use a noun for what it holds"];
    check(forbidden_names, "crates/hub/src/a.rs", "//! a\nenum Said {}\nstruct SaidTwice;\n", &broken);
    let broken = ["crates/serve/src/door.rs: rename the module `door`: auth"];
    check(forbidden_names, "crates/serve/src/door.rs", "//! a\n", &broken);
    check(forbidden_names, "crates/serve/src/auth.rs", "//! a\n", &[]);
    let text = "//! a\nimpl A {\n    fn of() {}\n}\nimpl B for A {\n    fn hear() {}\n}\nfn of_kind() {}\n";
    let broken = ["crates/hub/src/a.rs:3: `fn of` is not descriptive: use a verb for what it does"];
    check(forbidden_names, "crates/hub/src/a.rs", text, &broken);
}
