//! The rules of deny.toml, checked offline: licenses, sources and duplicate versions of everything
//! that is built. Each rule is a function over a list of packages, so that each can be shown to
//! fail.
#![allow(clippy::expect_used, reason = "a failing test panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

/// The part of deny.toml that is checked here.
#[derive(Deserialize)]
struct Deny {
    graph: Graph,
    licenses: Licenses,
    sources: Sources,
    bans: Bans,
}

#[derive(Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Clone, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    /// `None` for crates of this repository.
    source: Option<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn deny() -> Deny {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml is readable");
    toml::from_str(&text).expect("deny.toml has the expected keys")
}

/// Returns everything that is built for the targets of deny.toml, including tests and build
/// scripts.
fn packages(deny: &Deny) -> Vec<Package> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--format-version", "1", "--locked", "--offline"]).current_dir(root());
    for target in &deny.graph.targets {
        command.args(["--filter-platform", target]);
    }
    let done = command.output().expect("cargo runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let metadata: Metadata = serde_json::from_slice(&done.stdout).expect("cargo prints its metadata");
    assert!(metadata.packages.len() > 100, "{} packages", metadata.packages.len());
    metadata.packages
}

fn wrong_licenses(packages: &[Package], allowed: &BTreeSet<String>) -> Vec<String> {
    let violation = |package: &Package| {
        let license = package.license.as_deref().unwrap_or("none");
        let fine = allows(license, allowed);
        (!fine).then(|| format!("{} {}: {license}", package.name, package.version))
    };
    packages.iter().filter_map(violation).collect()
}

/// Whether an SPDX expression can be satisfied with these licenses. `/` is an older form of `OR`.
fn allows(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let fine = any(&words, &mut at, allowed);
    fine && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fine = all(words, at, allowed);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        fine |= all(words, at, allowed);
    }
    fine
}

fn all(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let mut fine = one(words, at, allowed);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        fine &= one(words, at, allowed);
    }
    fine
}

fn one(words: &[&str], at: &mut usize, allowed: &BTreeSet<String>) -> bool {
    let Some(word) = words.get(*at) else { return false };
    *at += 1;
    if *word == "(" {
        let fine = any(words, at, allowed);
        *at += 1;
        return fine;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).unwrap_or(&"");
        *at += 2;
        return allowed.contains(&format!("{word} WITH {exception}"));
    }
    allowed.contains(*word)
}

fn wrong_sources(packages: &[Package], registries: &[String]) -> Vec<String> {
    let fine = |source: &str| registries.iter().any(|registry| source == format!("registry+{registry}"));
    let other = packages.iter().filter_map(|package| Some((package, package.source.as_deref()?)));
    let other = other.filter(|(_, source)| !fine(source));
    other.map(|(package, source)| format!("{} {}: {source}", package.name, package.version)).collect()
}

/// Returns duplicate versions that are not in the list, and entries of the list that are not
/// needed.
fn wrong_duplicates(packages: &[Package], skipped: &[Skip]) -> Vec<String> {
    let mut by_name: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in packages {
        by_name.entry(&package.name).or_default().push(&package.version);
    }
    let fits = |skip: &Skip, name: &str, version: &str| {
        let (package, prefix) = skip.name.split_once('@').unwrap_or((&skip.name, ""));
        package == name && (version == prefix || version.starts_with(&format!("{prefix}.")))
    };
    let mut wrong = Vec::new();
    for (name, versions) in &by_name {
        let skips = |version: &&&str| skipped.iter().any(|skip| fits(skip, name, version));
        let left: Vec<&&str> = versions.iter().filter(|version| !skips(version)).collect();
        if left.len() > 1 {
            wrong.push(format!("{name}: {left:?} are built together"));
        }
    }
    for skip in skipped {
        let needed = by_name.iter().any(|(name, versions)| {
            versions.len() > 1 && versions.iter().any(|version| fits(skip, name, version))
        });
        if !needed {
            wrong.push(format!("{}: no longer a duplicate; remove it from deny.toml", skip.name));
        }
        if skip.reason.trim().is_empty() {
            wrong.push(format!("{}: no reason given", skip.name));
        }
    }
    wrong
}

#[test]
fn dependencies_have_the_licenses_sources_and_versions_of_deny_toml() {
    let deny = deny();
    let packages = packages(&deny);
    assert_eq!(wrong_licenses(&packages, &deny.licenses.allow), [""; 0]);
    assert_eq!(wrong_sources(&packages, &deny.sources.allow_registry), [""; 0]);
    assert_eq!(wrong_duplicates(&packages, &deny.bans.skip), [""; 0]);
}

fn package(name: &str, version: &str, license: &str, source: Option<&str>) -> Package {
    let [name, version] = [name, version].map(str::to_owned);
    Package { name, version, license: Some(license.to_owned()), source: source.map(str::to_owned) }
}

#[test]
fn a_license_that_is_not_allowed_is_found() {
    let allowed: BTreeSet<String> =
        ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for fine in [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/Apache-2.0",
        "(MIT OR X) AND ISC",
        "Apache-2.0 WITH LLVM-exception",
        "GPL-3.0 OR MIT AND ISC",
    ] {
        assert!(allows(fine, &allowed), "{fine}");
    }
    for wrong in ["", "none", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR X) AND Y", "Apache-2.0"] {
        let packages = [package("a", "1.0.0", wrong, None)];
        assert_eq!(wrong_licenses(&packages, &allowed), [format!("a 1.0.0: {wrong}")]);
    }
}

#[test]
fn a_source_beside_the_registry_is_found() {
    let registry = "https://github.com/rust-lang/crates.io-index";
    let packages = [
        package("ours", "1.0.0", "MIT", None),
        package("fine", "1.0.0", "MIT", Some(&format!("registry+{registry}"))),
        package("git", "1.0.0", "MIT", Some("git+https://example.com/git")),
        package("other", "1.0.0", "MIT", Some("registry+https://example.com/index")),
    ];
    let wrong = ["git 1.0.0: git+https://example.com/git", "other 1.0.0: registry+https://example.com/index"];
    assert_eq!(wrong_sources(&packages, &[registry.to_owned()]), wrong);
}

#[test]
fn a_duplicate_and_an_exception_that_nothing_needs_are_found() {
    let packages = ["1.0.0", "1.10.0", "2.0.0"].map(|version| package("a", version, "MIT", None));
    let skip = |name: &str, reason: &str| Skip { name: name.to_owned(), reason: reason.to_owned() };
    let wrong = wrong_duplicates(&packages, &[skip("a@1.0", "r"), skip("b@1", "")]);
    let expected = [
        r#"a: ["1.10.0", "2.0.0"] are built together"#,
        "b@1: no longer a duplicate; remove it from deny.toml",
        "b@1: no reason given",
    ];
    assert_eq!(wrong, expected);
    assert_eq!(wrong_duplicates(&packages, &[skip("a@1", "r")]), [""; 0]);
    assert_eq!(wrong_duplicates(&packages[..1], &[]), [""; 0]);
}
