//! Detection of changed files, and of the servers that changed.

use std::time::Duration;

use toolyard_hub::SourceName;

use super::super::diff::{ConfigDiff, diff};
use super::super::{ConfigChange, ConfigWatcher, ServerEntry};
use super::{Place, entry};

const BEFORE: &str = "[servers.same]\ncommand = \"x\"\n[servers.other]\ncommand = \"x\"\n[servers.gone]\ncommand = \"x\"\n\
                      [servers.bad]\ncommand = \"${NONE}\"\n";
const AFTER: &str = "# a comment moves everything\n[servers.new]\ncommand = \"x\"\n[servers.other]\ncommand = \"y\"\n\
                     [servers.bad]\ncommand = \"${NONE}\"\n[servers.same]\ncommand = \"x\"\n";

#[test]
fn only_servers_that_changed_are_named() {
    let place = Place::new(&[("toolyard.toml", BEFORE)]);
    let old = place.load(&[]);
    place.write("toolyard.toml", AFTER);
    let new = place.load(&[]);
    let gone = SourceName::new("gone");
    let expected = ConfigDiff {
        added: vec![entry(&new, "new")],
        removed: vec![&gone],
        changed: vec![entry(&new, "other")],
    };
    assert_eq!(diff(&old, &new), expected);
    assert_eq!(diff(&new, &new), ConfigDiff::default());
}

#[test]
fn a_server_whose_error_is_fixed_has_changed() {
    let place = Place::new(&[("toolyard.toml", BEFORE)]);
    let old = place.load(&[]);
    place.write("toolyard.toml", &BEFORE.replace("${NONE}", "x"));
    let new = place.load(&[]);
    let names: Vec<&str> = diff(&old, &new).changed.into_iter().map(|entry| entry.name().as_str()).collect();
    assert_eq!(names, ["bad"]);
    assert!(matches!(entry(&new, "bad"), ServerEntry::Ready(_)));
}

/// Waits up to a fixed time for a change.
async fn within(watch: &mut ConfigWatcher, seconds: u64) -> Option<ConfigChange> {
    tokio::time::timeout(Duration::from_secs(seconds), watch.changed()).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_change_of_any_file_is_reported_once() {
    let files = [
        (
            "toolyard.toml",
            "imports = [\"a.json\", \"later.json\"]\n[servers.x]\ncommand = \"x\"\nenv_file = \".env\"\n",
        ),
        ("a.json", "{\"mcpServers\": {}}"),
        (".env", "A=1\n"),
    ];
    let place = Place::new(&files);
    let mut watch = ConfigWatcher::new(&place.load(&[])).unwrap();
    assert_eq!(within(&mut watch, 60).await, None);
    for name in ["toolyard.toml", "a.json", ".env", "later.json"] {
        place.write(
            name,
            "# something else that is longer than what was there before, in any of these files\n",
        );
        let path = place.folder().join(name);
        assert_eq!(within(&mut watch, 60).await, Some(ConfigChange::File(path)), "{name}");
        assert_eq!(within(&mut watch, 60).await, None, "{name}");
    }
    std::fs::remove_file(place.folder().join(".env")).unwrap();
    assert_eq!(within(&mut watch, 60).await, Some(ConfigChange::File(place.folder().join(".env"))));
}

#[tokio::test(start_paused = true)]
async fn a_change_before_the_watch_began_is_not_missed() {
    let place = Place::new(&[("toolyard.toml", "demo = true\n")]);
    let config = place.load(&[]);
    place.write("toolyard.toml", "demo = false\n");
    let mut watch = ConfigWatcher::new(&config).unwrap();
    assert!(within(&mut watch, 60).await.is_some());
    watch.set_config(&place.load(&[]));
    assert_eq!(within(&mut watch, 60).await, None);
}
