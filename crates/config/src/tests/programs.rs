//! `[programs]`.

use std::path::PathBuf;
use std::time::Duration;

use toolyard_hub::SourceName;
use toolyard_program::ProgramSettings;

use super::Place;

#[test]
fn what_is_not_said_is_as_the_documentation_says() {
    let config = Place::new(&[("toolyard.toml", "demo = true")]).load(&[]);
    assert!(config.programs.is_enabled() && config.programs.python().is_none());
    let settings = config.programs.settings();
    assert_eq!(settings, ProgramSettings::default());
    assert_eq!(
        (settings.time, settings.memory, settings.output),
        (Duration::from_secs(300), 536_870_912, 100_000)
    );
    assert_eq!((settings.calls, settings.parallel, settings.programs), (1_000, 16, 4));
    // Looking up a tool must not wait for running programs.
    assert_eq!(config.limits().sources[&SourceName::new("programs")].calls, Some(usize::MAX));
}

#[test]
fn every_key_is_read_and_a_path_is_seen_from_the_file() {
    let text = r#"
        [programs]
        enabled = false
        python = "bin/python3"
        timeout = "5s"
        memory_bytes = 67108864
        output_bytes = 10
        max_calls = 1
        max_parallel = 2
        max_programs = 3
    "#;
    let place =
        Place::new(&[("conf/toolyard.toml", text), ("more.toml", "[programs]\npython = \"python3.12\"")]);
    let config = place.load(&["conf/toolyard.toml"]);
    assert_eq!(config.problems(), []);
    assert!(!config.programs.is_enabled());
    assert_eq!(config.programs.python(), Some(place.folder().join("conf/bin/python3")));
    let settings = config.programs.settings();
    assert_eq!((settings.time, settings.memory, settings.output), (Duration::from_secs(5), 64 << 20, 10));
    assert_eq!((settings.calls, settings.parallel, settings.programs), (1, 2, 3));
    // The later file overrides the earlier one, key by key. A name is looked up only when it is
    // needed.
    let config = place.load(&["conf/toolyard.toml", "more.toml"]);
    assert_eq!(config.programs.python(), Some(PathBuf::from("python3.12")));
    assert_eq!(config.programs.settings().calls, 1);
}

#[test]
fn what_makes_no_sense_is_told_at_its_place() {
    let text = r#"[programs]
python = ""
timeout = "never"
memory_bytes = 1
output_bytes = 0
max_calls = 0
max_parallel = 0
max_programs = 9999999
max_program = 1
[servers.programs]
command = "x"
"#;
    insta::assert_snapshot!(Place::new(&[("toolyard.toml", text)]).problems_text(&[]));
}

#[test]
fn a_server_may_be_called_programs_where_there_are_none() {
    let text = "[programs]\nenabled = false\n[servers.programs]\ncommand = \"x\"\n";
    assert_eq!(Place::new(&[("toolyard.toml", text)]).load(&[]).problems(), []);
}
